"""The few pieces of Markdown that the reference pages are made of."""

import json
import textwrap
from collections.abc import Iterable, Sequence


def head(title: str, source: str, text: str) -> str:
    return f"<!-- Written by `make docs` from {source}. Do not edit. -->\n\n# {title}\n\n{text.strip()}\n"


def prose(text: str) -> str:
    """Paragraphs whose lines end at 120 columns."""
    return "\n\n".join(textwrap.fill(part, 120, break_long_words=False, break_on_hyphens=False)
                       for part in text.strip().split("\n\n"))


def cell(text: object) -> str:
    """One table cell: a bar would end it, a line break would end the table."""
    return " ".join(str(text).replace("|", "\\|").split())


def code(text: object) -> str:
    """Code in a cell; empty stays empty."""
    return f"`{cell(text)}`" if str(text) else ""


def value(of: object) -> str:
    """A JSON value as code: strings bare, the rest as JSON writes it."""
    return code(of if isinstance(of, str) else json.dumps(of))


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"
