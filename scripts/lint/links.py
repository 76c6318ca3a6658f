"""Links of Markdown pages lead somewhere, files that pages and comments name exist, a README names every folder.

Checked are relative links with their anchors (as GitHub makes them from headings), files and folders in backticks,
paths below docs/ in any source, the pages of the help that the console leads to, and that each page below docs/ is in
the help's menu and in an index. Links to other hosts are not followed: lint works without a network.
"""

import re
import sys
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from sources import ROOT, shown, source_files

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
# A file by its ending, or a folder by the slash after it. Both may be the end of a path: `daemon/engine.h`.
ENDINGS = "h cc inc c py ts tsx mjs css sh md json yml lock toml txt cmake sql service conf Dockerfile"
NAMED = re.compile(rf"`([\w.*-][\w./*-]*(?:/|\.(?:{ENDINGS.replace(' ', '|')})))`")
# Names that stand for others (x.cc, DIR/desired.json), and files of other programs or of a running Thalweg.
PLACEHOLDER = re.compile(r"(?:^|/)(?:x[._][\w./]*$|[A-Z]+/)|^\.thalweg/")
FOREIGN = {"pg_hba.conf", "postgresql.conf", "desired.json", "wal-archives.json", "run_streams_advisor.sh",
           "spill_mark/"}
HELP_PAGE = re.compile(r"\bhelp=\"([\w/-]+)\"")
DOCS_PATH = re.compile(r"(?<![\w./-])docs/[\w/-]+\.md\b")
MENU = "scripts/help/mkdocs.yml"
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
            if path.name != "CHANGELOG.md":
                problems += [f"{shown(path)}: names {name}, which is not there" for name in missing_names(text)]
        if path.suffix == ".tsx":
            problems += [f"{shown(path)}: leads to the help's page {name}, which is not there"
                         for name in HELP_PAGE.findall(text) if not (ROOT / "docs" / f"{name}.md").is_file()]
    problems += unlisted_pages() + _unmapped_folders()
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


def missing_names(text: str) -> list[str]:
    """Files and folders that a page names in backticks and that are the end of no path in the repository."""
    named = set(NAMED.findall(FENCE.sub("", text))) - FOREIGN
    return sorted(name for name in named if not PLACEHOLDER.search(name) and not is_there(name))


@cache
def is_there(name: str) -> bool:
    pattern = name.removeprefix("./")
    if "*" in pattern:
        return any(fnmatchcase(path, f"*/{pattern}") for path in _paths())
    return any(path.endswith(f"/{pattern}") for path in _paths())


@cache
def _paths() -> frozenset[str]:
    """Every file, and every folder with a slash after it, each after a slash."""
    files = [path.relative_to(ROOT) for path in source_files()]
    folders = {folder for file in files for folder in file.parents}
    return frozenset([f"/{file}" for file in files] + [f"/{folder}/" for folder in folders])


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


def unlisted_pages(root: Path = ROOT) -> list[str]:
    """Pages that an index or the menu of the help does not name. The menu has decisions' index only."""
    menu = set(re.findall(r": (docs/[\w/-]+\.md)$", (root / MENU).read_text(), re.MULTILINE))
    problems = []
    for page in sorted((root / "docs").rglob("*.md")):
        name = page.relative_to(root).as_posix()
        if name not in menu and (page.parent.name != "decisions" or page.name == "README.md"):
            problems.append(f"{MENU}: does not have {name} in its nav")
        problems += [f"{index.relative_to(root)}: does not list {name}" for index in _indexes(root, page)
                     if (page.relative_to(index.parent).as_posix()) not in _linked(index)]
    return problems


def _indexes(root: Path, page: Path) -> list[Path]:
    """The pages that are to name this one: decisions are in their own index, guides also in theirs."""
    whole, own = root / "docs" / "README.md", page.parent / "README.md"
    of_folder = [own] if page.parent.name in ("decisions", "guides") and page != own else []
    if page == whole or (page.parent.name == "decisions" and of_folder):
        return of_folder
    return [whole, *of_folder]


def _linked(index: Path) -> set[str]:
    return set(re.findall(r"\]\(([\w/-]+\.md)(?:#[\w-]+)?\)", index.read_text()))


def _unmapped_folders() -> list[str]:
    """Folders without a README that the one above them does not name either. Inputs of tests need none."""
    folders = {path.parent for path in source_files()} - {ROOT}
    inputs = {"corpus", "golden", "generated", "versions"}
    return [problem for folder in sorted(folders) if not inputs & set(folder.parts)
            for problem in _unmapped(folder)]


def _unmapped(folder: Path) -> list[str]:
    if (folder / "README.md").is_file():
        return []
    page = next(above / "README.md" for above in folder.parents if (above / "README.md").is_file())
    if re.search(rf"(?<!\w){re.escape(folder.name)}(?:/|`|\b)", page.read_text()):
        return []
    return [f"{shown(page)}: does not say what {shown(folder)}/ holds"]


if __name__ == "__main__":
    sys.exit(main())
