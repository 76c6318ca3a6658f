"""`make lint` finds files that the README of their folder does not name."""

from pathlib import Path

import pytest

LINT = Path(__file__).resolve().parents[2] / "scripts" / "lint"


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("`lexer.h`, `http/`, `pages.py`", []),
        ("`lexer`, `kernel/http/`, `kernel/pages.py`", []),
        ("`Lexer`, `http/*`, `pag*`", ["http/guard.py"]),
        ("lexer.h, `pages`", ["http/guard.py", "lexer.h"]),
        ("`flexer.h`, `guard.py`", ["lexer.h", "pages.py"]),
    ],
)
def test_a_file_is_named_by_itself_its_stem_its_class_a_pattern_or_its_folder(
    monkeypatch: pytest.MonkeyPatch, text: str, missing: list[str]
) -> None:
    monkeypatch.syspath_prepend(str(LINT))
    lint = __import__("readmes")
    files = [Path(name) for name in ("http/guard.py", "lexer.h", "lexer.cc", "pages.py")]
    assert lint.unnamed(text, files) == missing
