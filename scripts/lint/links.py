"""Links of Markdown pages lead somewhere, and every file that a page or a comment names exists.

Checked are relative links with their anchors (as GitHub makes them from headings), paths in backticks, and paths below
docs/ in any source. Links to other hosts are not followed: lint works without a network.
"""

import re
import sys
from functools import cache
from pathlib import Path

from sources import ROOT, shown, source_files

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
# A path of this repository: begins with one of its top folders and ends in a name with an extension.
NAMED = re.compile(r"`((?:backend|deploy|docs|e2e|engine|frontend|migrations|scripts)/[\w./-]+\.\w+)`")
DOCS_PATH = re.compile(r"(?<![\w./-])docs/[\w/-]+\.md\b")
SOURCES = {".h", ".cc", ".inc", ".c", ".py", ".ts", ".tsx", ".sh", ".md", ".txt", ".cmake"}


def main() -> int:
    problems: list[str] = []
    for path in source_files():
        if path.suffix not in SOURCES or path.name.endswith(".generated.ts"):
            continue
        text = path.read_text(errors="replace")
        problems += [f"{shown(path)}: names {name}, which is not there"
                     for name in sorted(set(DOCS_PATH.findall(text))) if not (ROOT / name).exists()]
        if path.suffix == ".md":
            problems += _broken_links(path, text)
            problems += [f"{shown(path)}: names {name}, which is not there"
                         for name in sorted(set(NAMED.findall(text))) if not (ROOT / name).exists()]
    problems += _unlisted_decisions()
    print("\n".join(problems) or "every link leads somewhere")
    return 1 if problems else 0


def _broken_links(page: Path, text: str) -> list[str]:
    problems = []
    for match in LINK.finditer(FENCE.sub("", text)):
        target = match[1] or match[2]
        if "://" in target or target.startswith("mailto:"):
            continue
        name, _, anchor = target.partition("#")
        linked = (page.parent / name).resolve() if name else page
        if not linked.exists():
            problems.append(f"{shown(page)}: links to {target}, which is not there")
        elif anchor and linked.suffix == ".md" and anchor not in _anchors(linked):
            problems.append(f"{shown(page)}: links to {target}, a heading that is not there")
    return problems


@cache
def _anchors(page: Path) -> frozenset[str]:
    text = FENCE.sub("", page.read_text())
    anchors: set[str] = set(re.findall(r'<a (?:id|name)="([^"]+)"', text))
    for heading in HEADING.findall(text):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        number = 0
        while (anchor := f"{slug}-{number}" if number else slug) in anchors:
            number += 1
        anchors.add(anchor)
    return frozenset(anchors)


def _unlisted_decisions() -> list[str]:
    index = ROOT / "docs/decisions/README.md"
    listed = set(re.findall(r"\]\(([\w-]+\.md)\)", index.read_text()))
    return [f"{shown(index)}: does not list {path.name}"
            for path in sorted(index.parent.glob("*.md")) if path != index and path.name not in listed]


if __name__ == "__main__":
    sys.exit(main())
