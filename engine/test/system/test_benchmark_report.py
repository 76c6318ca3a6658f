"""A benchmark says what else the machine did, and does not begin on a busy one."""

import json
import re
from argparse import Namespace
from pathlib import Path

import pytest

from bench import report, results
from bench.surroundings import Surroundings, Watch

QUIET = Surroundings(load=0.4, others_percent=1.0, steal_percent=0.0, flush_ms=0.8)
BUSY = Surroundings(load=9.0, others_percent=60.0, steal_percent=0.0, flush_ms=7.5)


def run(monkeypatch: pytest.MonkeyPatch, out: Path, before: Surroundings, during: Surroundings,
        force: bool = False) -> dict[str, object]:
    monkeypatch.setattr(report, "before_a_run", lambda directory: before)
    monkeypatch.setattr(Watch, "look", lambda self: during)
    made = report.Report("staged", Namespace(out=out / "staged.json", force=force))
    made.method("m")
    made.figure("a figure", method="thalweg", lcr_per_second=1)
    made.ratio(0.9)
    return dict(json.loads((out / "staged.json").read_text()))


def test_each_figure_has_its_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    document = run(monkeypatch, tmp_path, QUIET, QUIET)
    assert document["busy"] == []
    assert document["figures"] == [{"method": "thalweg", "lcr_per_second": 1, "load": 0.4, "others_percent": 1.0,
                                    "steal_percent": 0.0, "flush_ms": 0.8}]


def test_a_busy_machine_is_refused_unless_forced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="busy"):
        run(monkeypatch, tmp_path, BUSY, BUSY)
    assert not (tmp_path / "staged.json").exists()
    assert len(run(monkeypatch, tmp_path, BUSY, QUIET, force=True)["busy"]) == 1  # type: ignore[arg-type]


def test_the_page_marks_it_and_says_where_native_is_ahead(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run(monkeypatch, tmp_path, QUIET, BUSY)
    monkeypatch.setattr("sys.argv", ["results", str(tmp_path)])
    results.main()
    page = (tmp_path / "README.md").read_text()
    assert re.search(r"\| 0\.90 \| 20[-0-9]+ \| \*\*busy\*\* \|", page)
    assert "* **staged**: R = 0.90, wanted: 2.2 or more." in page
    assert "* **staged**: R = 0.90." in page
    assert "others 60.0 % of all cores" in page
    missing = page.split("## Not measured")[1].split("\n## ")[0]
    assert "* **latency**, wanted: 1 or more" in missing and "staged**" not in missing


def test_the_machine_is_really_looked_at(tmp_path: Path) -> None:
    found = Watch(tmp_path).look()
    assert found.flush_ms > 0
    assert 0 <= found.steal_percent <= 100
    assert found.others_percent >= 0


def test_all_runs_the_scenarios_that_the_page_of_results_shows() -> None:
    script = (Path(__file__).resolve().parents[3] / "scripts/bench.sh").read_text()
    (of_all,) = re.findall(r"^scenarios=\(([^)]*)\)", script, re.MULTILINE)
    assert sorted(of_all.split()) == sorted(scenario.name for scenario in results.SCENARIOS)
