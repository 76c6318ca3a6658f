"""`make fmt` wraps long lines of Markdown, and `make lint` reports them."""

from pathlib import Path
from types import ModuleType

import pytest

LINT = Path(__file__).resolve().parents[2] / "scripts" / "lint"
WORDS = "word " * 30


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(LINT))
    return __import__("lines")


def test_prose_is_broken_from_its_first_long_line_on(lines: ModuleType) -> None:
    text = f"short\n{WORDS.strip()}\nrest\n\nshort too\n"
    filled = lines.fill(text)
    assert lines.too_long(text) and not lines.too_long(filled)
    assert filled.split() == text.split()
    assert filled.startswith("short\nword") and filled.endswith("word rest\n\nshort too\n")


def test_items_keep_their_indentation_and_stay_items(lines: ModuleType) -> None:
    filled = lines.fill(f"12. {WORDS}- {WORDS}\n    1. {WORDS}\n").split("\n")
    assert all(len(line) <= 120 for line in filled)
    assert (
        filled[1].startswith("    word") and filled[3].startswith("    1. word") and filled[4].startswith("       word")
    )
    assert not any(line.lstrip().startswith("- ") for line in filled)


def test_code_tables_and_addresses_stay_as_they_are(lines: ModuleType) -> None:
    span = "`" + "a " * 60 + "`"
    text = f"```\n{WORDS}\n```\n| {WORDS} |\n\n{'x' * 130}\n\n<img {WORDS}>\n"
    assert lines.fill(text) == text
    assert not lines.too_long(text)
    assert span in lines.fill(f"words {span} words\n")
