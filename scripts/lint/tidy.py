"""Checks beside the formatters': sizes, names, layers' folders without a page, standards that the bibliography lacks,
sentences without a noun as their subject, words and addresses that do not belong here."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from sources import ROOT, shown, source_files

LINES_MAX = 600
LINES_LISTED = 250
COUNTED = {".h", ".cc", ".inc", ".py", ".ts", ".tsx", ".mjs", ".sh", ".css"}
BANNED_NAMES = {"utils", "util", "common", "misc", "helpers", "helper", "manager", "managers"}
# Written by other programs, so their size and wording are not ours.
GENERATED = ("package-lock.json", ".lock", "openapi.json", "schema.d.ts", "routeTree.gen.ts", ".generated.ts")
# A comment begins with its subject, not with a clause that stands for one. C's may also stand behind code.
RIDDLE = re.compile(
    r"(?:^[ \t]*(?:#|\"{3}|--|\*)|//|/\*+)[ \t]*(?:Wh(?:at|ich)(?:ever)?|Who(?:ever|m|se)?)\b.*", re.MULTILINE)
# An answer without its question: of what, as what?
FRAGMENT = re.compile(
    r"(?:^[ \t]*(?:#|\"{3})|\bdescription=\(?\s*f?\")[ \t]*(?:Of|As) (?!soon\b|long\b|many as\b)[a-z`].*", re.MULTILINE)
NO_FRAGMENTS = ("backend", "thalweg")
# The same of a page: a sentence begins behind another one, in a block (a paragraph, an item, a quotation) or in a cell.
# It ends with its mark, or with its block.
CLAUSE = re.compile(
    r"(?:(?:\A|\n[ \t]*\n|\n(?=[ \t]*(?:[-*+>]|\d+[.)])[ \t]))[ \t]*(?:(?:[-*+>]|\d+[.)])[ \t]+)*"
    r"|[.!?:;][*_`\"')\]]*\s+|\|[ \t]*)"
    r"(?P<sentence>[*_\"'(]*(?:What|Who)(?:ever)?\b"
    r".*?(?=(?P<mark>[.!?])[*_`\"')\]]*(?:\s|\|)|\||\n[ \t]*(?:\n|[-*+>|][ \t]|\d+[.)][ \t])|\Z))", re.DOTALL)
# Comments as pages: blocks of whole lines with one mark, and comments behind code. Literals are found to be skipped.
C_COMMENT = re.compile(
    r"(?P<text>(?:^[ \t]*//[^\n]*\n)+|(?<=[;{},)])[ \t]+//[^\n]*|/\*.*?\*/)"
    r"|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)'|`[^`]*`",
    re.MULTILINE | re.DOTALL)
LINE_COMMENT = re.compile(r"(?P<text>(?:^[ \t]*#.*\n)+)", re.MULTILINE)
COMMENTS = {
    **dict.fromkeys((".h", ".cc", ".c", ".inc", ".ts", ".tsx", ".mjs"), C_COMMENT),
    **dict.fromkeys((".py", ".sh", ".cmake"), LINE_COMMENT),
}
MARK = re.compile(r"^[ \t]*(?://+|#+|/?\*+/?|\"{3})[ \t]?|\"{3}\Z|\*/\Z", re.MULTILINE)
NO_PROSE = re.compile(r"^[ \t]*(```|~~~).*?^[ \t]*\1|^#.*?$", re.MULTILINE | re.DOTALL)
WRITTEN = "<!-- Written by "  # the first words of a page whose sentences come from elsewhere
SCRIPTS = {".py", ".sh", ".sql"}
CONSOLE = {".ts", ".tsx", ".mjs", ".css"}
NO_RIDDLES = {
    ("backend", "thalweg"): SCRIPTS,
    ("backend", "tests"): SCRIPTS,
    ("scripts",): SCRIPTS,
    ("engine",): SCRIPTS | {".cc", ".h", ".c", ".inc", ".cmake", ".txt", ".mjs"},
    ("frontend",): CONSOLE,
    ("e2e",): CONSOLE | SCRIPTS,
}
# Each folder directly in these has a page that says what it holds.
LAYERS = ("backend/thalweg", "engine/src", "frontend/src")
BINARY = {".png", ".ico", ".woff2", ".bin", ".gz", ".webp"}

BIBLIOGRAPHY = ROOT / "docs" / "bibliography.md"
RFC = re.compile(r"\bRFC ?(\d{3,5})\b")
# Bracketed letters keep the patterns from finding themselves.
WORDS = [
    (re.compile(r"\b(?:TOD[O]|FIXM[E]|XX[X]|HAC[K])\b"), "an unfinished thought; finish it or open an issue"),
    (re.compile(r"(?<![\w.$}])/(?:wor[k]|roo[t])/[\w.-]+"), "a path of one machine"),
    (re.compile(r"/hom[e]/\w+/"), "a path of one machine"),
    (re.compile(r"\b[Ss]eed 00\d\b|\barchitecture, section\b|\b[Ii]ssue \d+\b"),
     "a text that a reader of this repository does not have; papers are in docs/bibliography.md"),
    (re.compile(r"https?://[^\s/\"']*(?:registry|pypi|artifactory|nexus|mirror)"), "a package registry's address"),
]


def main() -> int:
    problems: list[str] = []
    long_files: list[tuple[int, str]] = []
    for path in source_files():
        problems += _name_problems(path)
        if path.suffix in BINARY or "corpus" in path.parts or "golden" in path.parts:
            continue
        generated = path.name.endswith(GENERATED)
        text = path.read_text(errors="replace")
        lines = text.count("\n")
        if path.suffix in COUNTED and not generated:
            if lines > LINES_MAX:
                problems.append(f"{shown(path)}: {lines} lines, more than {LINES_MAX}")
            elif lines > LINES_LISTED:
                long_files.append((lines, shown(path)))
        problems += _word_problems(path, text, generated)
        if not generated:
            problems += _uncited(path, text)
        if path.suffix == ".md":
            problems += _clauses(path, text)
        elif path.suffix in COMMENTS and _is_plain(path) and not generated:
            problems += _clauses_in_comments(path, text)
    problems += _missing_pages()
    for lines, name in sorted(long_files, reverse=True):
        print(f"long: {lines:>4} {name}")
    print("\n".join(problems) or "tidy")
    return 1 if problems else 0


def _name_problems(path: Path) -> list[str]:
    parts = path.relative_to(ROOT).parts
    names = [*parts[:-1], parts[-1].split(".")[0]]
    return [f"{shown(path)}: nothing is called '{name}' here; say what it does"
            for name in names if name.lower() in BANNED_NAMES]


def _word_problems(path: Path, text: str, generated: bool) -> list[str]:
    checks = WORDS[-1:] if generated else WORDS
    if _is_plain(path) and not generated:
        checks = [*checks, (RIDDLE, "a comment that hides its subject; begin with the noun")]
    if path.suffix == ".py" and path.relative_to(ROOT).parts[:2] == NO_FRAGMENTS:
        checks = [*checks, (FRAGMENT, "a fragment; say in a sentence what the name or the function is")]
    return [f"{shown(path)}:{text.count(chr(10), 0, match.start()) + 1}: '{match[0]}': {why}"
            for pattern, why in checks for match in pattern.finditer(text)]


def _uncited(path: Path, text: str) -> list[str]:
    """Standards that the text cites and the bibliography lacks."""
    listed = BIBLIOGRAPHY.read_text()
    return [f"{shown(path)}: cites RFC {number}, which {shown(BIBLIOGRAPHY)} lacks"
            for number in dict.fromkeys(RFC.findall(text)) if f"**RFC {number}.**" not in listed]


def _clauses(path: Path, text: str) -> list[str]:
    """Sentences of a page that have a clause in the place of their subject. Questions and headings may begin so."""
    if text.startswith(WRITTEN):
        return []
    prose = NO_PROSE.sub(lambda match: "\n" * match[0].count("\n"), text)
    return [f"{shown(path)}:{prose.count(chr(10), 0, match.start('sentence')) + 1}: "
            f"'{' '.join(match['sentence'].split())}': a sentence that hides its subject; begin with the noun"
            for match in CLAUSE.finditer(prose) if match["mark"] != "?"]


def _clauses_in_comments(path: Path, text: str) -> list[str]:
    """The same of comments, but for their first words, which RIDDLE has."""
    problems = []
    for line, comment in _comments(path.suffix, text):
        words = MARK.sub("", comment) + "\n"
        problems += [
            f"{shown(path)}:{line + words.count(chr(10), 0, match.start('sentence'))}: "
            f"'{' '.join(match['sentence'].split())}': a sentence that hides its subject; begin with the noun"
            for match in CLAUSE.finditer(words) if match["mark"] != "?" and match.start("sentence") > 1
        ]
    return problems


def _comments(suffix: str, text: str) -> Iterator[tuple[int, str]]:
    """Comments and docstrings, each with the number of its first line."""
    for match in COMMENTS[suffix].finditer(text):
        if match["text"]:
            yield text.count("\n", 0, match.start()) + 1, match["text"]
    if suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                yield node.lineno, str(node.value.value)


def _is_plain(path: Path) -> bool:
    parts = path.relative_to(ROOT).parts
    return any(parts[: len(folder)] == folder and path.suffix in kinds for folder, kinds in NO_RIDDLES.items())


def _missing_pages(root: Path = ROOT) -> list[str]:
    sources = {path.parent for path in root.glob("*/**/*") if path.suffix in COUNTED}
    folders = [
        folder for layer in LAYERS for folder in sorted((root / layer).iterdir())
        if any(folder == source or folder in source.parents for source in sources)
    ]
    return [
        f"{folder.relative_to(root)}: has no README.md" for folder in folders if not (folder / "README.md").exists()
    ]


if __name__ == "__main__":
    sys.exit(main())
