"""Lines of Markdown end at 120 columns. With --fix: fills paragraphs anew from their first longer line on.

Rows of tables, lines of HTML, single words (an address) and what programs print cannot be broken and may be longer.
"""

import re
import sys
from dataclasses import dataclass, field

from sources import shown, source_files

COLUMNS = 120
FENCE = re.compile(r"^\s*(?:>\s*)*(```|~~~)")
ITEM = re.compile(r"^(\s*(?:[*+-]|\d+[.)])\s+|\s*>\s+)")
NO_PROSE = re.compile(r"^\s*(?:\||<|#|\[[^\]]+\]:)")
# A code span stays whole; so do words beside it without a space.
WORD = re.compile(r"(?:`[^`]*`|\S)+")
# A line that began with one of these would begin a list, a heading, a quotation or a table.
BEGINS_BLOCK = re.compile(r"^(?:[*+-]|\d+[.)]|#+|[>|<].*|[=-]+)$")


@dataclass
class Paragraph:
    """Consecutive lines of prose: a paragraph, or an item of a list up to the next one."""

    first: int
    lines: list[str] = field(default_factory=list)


def main(arguments: list[str]) -> int:
    problems: list[str] = []
    for path in source_files(".md"):
        text = path.read_text()
        if "--fix" in arguments and (filled := fill(text)) != text:
            path.write_text(filled)
            text = filled
        problems += [f"{shown(path)}:{number}: {length} columns" for number, length in too_long(text)]
    print("\n".join(problems) or "every line ends in time")
    return 1 if problems else 0


def too_long(text: str) -> list[tuple[int, int]]:
    """(number, columns) of each line that is too long and could be broken."""
    return [(paragraph.first + number, len(line)) for paragraph in _paragraphs(text.split("\n"))
            for number, line in enumerate(paragraph.lines, 1)
            if len(line) > COLUMNS and len(WORD.findall(line)) > 1]


def fill(text: str) -> str:
    lines = text.split("\n")
    for paragraph in reversed(_paragraphs(lines)):
        long = next((at for at, line in enumerate(paragraph.lines) if len(line) > COLUMNS), None)
        if long is not None:
            begin = paragraph.first + long
            lines[begin:paragraph.first + len(paragraph.lines)] = _filled(paragraph, long)
    return "\n".join(lines)


def _paragraphs(lines: list[str]) -> list[Paragraph]:
    found: list[Paragraph] = []
    open_paragraph: Paragraph | None = None
    fenced = False
    for number, line in enumerate(lines):
        if FENCE.match(line):
            fenced = not fenced
            open_paragraph = None
        elif fenced or not line.strip() or NO_PROSE.match(line):
            open_paragraph = None
        else:
            if open_paragraph is None or ITEM.match(line):
                open_paragraph = Paragraph(number)
                found.append(open_paragraph)
            open_paragraph.lines.append(line)
            if line.endswith(("  ", "\\")):
                open_paragraph = None
    return found


def _filled(paragraph: Paragraph, begin: int) -> list[str]:
    lines = paragraph.lines
    item = ITEM.match(lines[0])
    first = item[1] if item else _indent(lines[0])
    rest = _indent(lines[1]) if len(lines) > 1 else " " * len(first)
    prefix = first if begin == 0 else rest
    text = "\n".join(lines[begin:])[len(prefix) if begin == 0 else 0:]
    words: list[str] = []
    for found in WORD.findall(text):
        word = " ".join(found.split())
        if words and BEGINS_BLOCK.match(word):
            words[-1] += f" {word}"
        else:
            words.append(word)
    filled = [prefix + words[0]]
    for word in words[1:]:
        if len(filled[-1]) + 1 + len(word) <= COLUMNS:
            filled[-1] += f" {word}"
        else:
            filled.append(rest + word)
    return filled


def _indent(line: str) -> str:
    return line[:len(line) - len(line.lstrip())]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
