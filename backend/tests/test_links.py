"""`make lint` checks the files that pages name."""

from pathlib import Path

import pytest

LINT = Path(__file__).resolve().parents[2] / "scripts" / "lint"


def test_files_and_folders_that_pages_name_must_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(LINT))
    links = __import__("links")
    there = "`docs/concepts.md`, `kernel/http/help.py`, `scripts/lint/`, `engine/contract/*.json`, `README.md`"
    placeholders = "`x.cc`, `x_fuzz.cc`, `DIR/desired.json`, `pg_hba.conf`, `.thalweg/secrets/`, `a.b`, `GET /x/`"
    assert links.missing_names(f"{there} {placeholders}\n```\n`gone.h`\n```\n") == []
    gone = ["engine/gone.md", "gone.h", "http/concepts.md", "scripts/gone/", "scripts/gone_*.sh"]
    assert links.missing_names(" ".join(f"`{name}`" for name in gone)) == gone
