"""Commands in the fenced blocks of pages for developers name files that exist, and select tests that exist: a filter of
gtest that matches nothing ends well, and a reader believes that something was tested."""

import re
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache

from links import is_there
from sources import ROOT, shown, source_files

PAGES = ("CONTRIBUTING.md", "README.md")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"#.*$", re.MULTILINE)
# A path of the repository is a word with a slash. Others begin with a variable, another path or an address.
WORD = re.compile(r"(?<![\w./$}~:@=<-])[\w-]+(?:/[\w.-]+)+(?![\w/*:=@-])")
FILE = re.compile(r"(?<![\w./$}~:@=<-])[\w-]+\.(?:py|sh|cc|h|ts|tsx)\b")
GTEST_FILTER = re.compile(r"--gtest_filter='([^']+)'")
GTEST = re.compile(r"^TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\)", re.MULTILINE)
PYTEST_SELECTION = re.compile(r"([\w/]+\.py) -k (\w+)")
MADE = ("build/", "dist/")


def main() -> int:
    problems = [f"{shown(page)}: {problem}" for page in source_files(".md") if page.name in PAGES
                for problem in problems_of(page.read_text())]
    print("\n".join(problems) or "the commands of pages name what is there")
    return 1 if problems else 0


def problems_of(text: str) -> Iterator[str]:
    for pattern in GTEST_FILTER.findall(text):
        if not any(fnmatchcase(name, part) for part in pattern.split(":") for name in _gtests()):
            yield f"--gtest_filter='{pattern}' selects no test"
    for fence in FENCE.findall(text):
        commands = COMMENT.sub("", fence)
        for name in sorted({*WORD.findall(commands), *FILE.findall(commands)}):
            if not name.startswith(MADE) and not is_there(name) and not is_there(f"{name}/"):
                yield f"names {name} in a command, which is not there"
        for file, word in PYTEST_SELECTION.findall(commands):
            if not any(re.search(rf"^(?:async )?def test_\w*{word}", path.read_text(), re.MULTILINE)
                       for path in source_files(".py") if path.as_posix().endswith(f"/{file}")):
                yield f"-k {word} selects no test of {file}"


@cache
def _gtests() -> frozenset[str]:
    return frozenset(f"{suite}.{name}" for path in (ROOT / "engine").rglob("*_test.cc")
                     for suite, name in GTEST.findall(path.read_text()))


if __name__ == "__main__":
    sys.exit(main())
