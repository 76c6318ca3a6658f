"""The README of a source folder names each of its files: by name, by stem (`lexer` and `lexer.h` stand for lexer.h and
lexer.cc), by the class that has its name (`LcrQueue`), or by a pattern (`evaluate_*`). The files of a folder without a
README belong to the README above, which names either them or their folder (`http/`). Tests and what only they use stand
beside what they test, and need no name."""

import re
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from sources import shown, source_files

FOLDERS = (
    "backend/tests/", "backend/thalweg/", "engine/src/", "engine/test/simulation/", "engine/test/support/",
    "engine/test/system/", "frontend/src/", "scripts/",
)  # fmt: skip
CODE = {".h", ".cc", ".inc", ".py", ".ts", ".tsx", ".sh"}
UNNAMED = re.compile(r"(?:_(?:test|fuzz|bench|harness|fixture|samples)|\.test|^__init__|^test_\w*)\.\w+$|^index\.ts$")
NAMED = re.compile(r"`([^`\n]+)`")


def main() -> int:
    pages: dict[Path, list[Path]] = {}
    for path in source_files(*CODE):
        if shown(path).startswith(FOLDERS) and not UNNAMED.search(path.name):
            pages.setdefault(page_of(path), []).append(path)
    problems = [
        f"{shown(page)}: does not name {', '.join(missing)}"
        for page, files in sorted(pages.items())
        if (missing := unnamed(page.read_text(), [path.relative_to(page.parent) for path in files]))
    ]
    print("\n".join(problems) or "READMEs name the files of their folders")
    return 1 if problems else 0


def page_of(path: Path) -> Path:
    return next(folder / "README.md" for folder in path.parents if (folder / "README.md").is_file())


def unnamed(text: str, files: list[Path]) -> list[str]:
    """Files by their paths from the page's folder; of several with one stem the first."""
    names = set(_names(text))
    missing = {path.with_suffix(""): path.as_posix() for path in reversed(files) if not _is_named(path, names)}
    return sorted(missing.values())


def _names(text: str) -> Iterator[str]:
    """Names in backticks, each with its path and without."""
    for quoted in NAMED.findall(text):
        for word in re.split(r"[\s,]+", quoted):
            parts = re.sub(r"\.(?:h|cc)$|/$", "", word).split("/")
            for start in range(len(parts)):
                name = "/".join(parts[start:]) + "/" * word.endswith("/")
                if re.match(r"[*.]*\w", name) and not name.startswith("*."):
                    yield name


def _is_named(path: Path, names: set[str]) -> bool:
    folders = {f"{folder.name}/" for folder in path.parents if folder.name}
    stem = path.name.split(".")[0]
    own = (re.sub(r"\.(?:h|cc)$", "", path.name), stem, re.sub(r"(?:^|[_-])(\w)", lambda match: match[1].upper(), stem))
    return bool(folders & names) or any(fnmatchcase(name, pattern) for pattern in names for name in own)


if __name__ == "__main__":
    sys.exit(main())
