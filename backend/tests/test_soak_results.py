"""The page of the last soak keeps each part's last run."""

from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


def test_a_part_replaces_its_own_row_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    soak = __import__("soak_results")
    monkeypatch.setattr(soak, "PAGE", tmp_path / "soak.md")
    soak.main("kills", "✓", "61", "7", "2 x ten files")
    soak.main("worlds", "✗", "5", "7", "")
    soak.main("worlds", "✓", "9", "8", "1 x 1000 worlds; 1 x 100 worlds")
    rows = [line for line in soak.PAGE.read_text().splitlines() if line.startswith(("| worlds", "| kills"))]
    assert [row.split(" | ")[0] for row in rows] == ["| worlds", "| kills"]
    assert "1 x 1000 worlds" in rows[0] and rows[0].endswith("| passed |")
    assert "1 min 1 s" in rows[1] and "| 7 |" in rows[1]
    soak.main("kills", "✗", "3", "9", "")
    assert "| kills |" in soak.PAGE.read_text() and soak.PAGE.read_text().count("**failed**") == 1
