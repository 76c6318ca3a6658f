"""`thalweg advisor` and `thalweg mon` as processes of their own, on what the collector has sampled."""

import json
from pathlib import Path
from typing import Any

from tests.conftest import Users
from tests.features.test_advisor import stream  # noqa: F401
from tests.test_collector import collector  # noqa: F401
from tests.test_commands import Shell, shell, with_token  # noqa: F401

VIEWS = ["COMPONENT", "COMPONENT_LINK", "COMPONENT_STAT", "DATABASE", "PATH_BOTTLENECK", "PATH_STAT"]


async def test_reports_of_a_run(
    shell: Shell,  # noqa: F811
    users: Users,
    stream: dict[str, Any],  # noqa: F811
    tmp_path: Path,
) -> None:
    shell = with_token(shell, users)
    taken = await shell("advisor", "run", "--stream", stream["name"], "--name", "noon")
    assert taken.code == 0, taken.err
    assert "APPLY SERVER (EXECUTE)" in taken.out and "latency p50 2.0 ms" in taken.out
    heading = next(line for line in taken.out.splitlines() if line.startswith("1. "))
    assert heading.endswith(" (apply_data_layer_missing)"), "the entry of the reference"
    file = tmp_path / "streams_advisor.txt"
    for _ in range(2):
        assert (await shell("advisor", "report", "--file", str(file))).code == 0
    lines = file.read_text().splitlines()
    # Appended: each of the six tables twice.
    assert [line for line in lines if line.startswith("DBA_STREAMS_TP_")] == 2 * [
        f"DBA_STREAMS_TP_{name}" for name in VIEWS
    ]
    head = lines.index("DBA_STREAMS_TP_PATH_BOTTLENECK") + 1
    bottleneck = dict(zip(lines[head].split("|"), lines[head + 1].split("|"), strict=True))
    assert (bottleneck["PATH_ID"], bottleneck["BOTTLENECK_IDENTIFIED"]) == (f"{stream['id']}:warehouse", "YES")
    assert bottleneck["ADVISOR_RUN_ID"] == "2"

    exported = await shell("advisor", "export", "1", "--format", "csv", "--directory", str(tmp_path))
    assert len(exported.out.splitlines()) == 6
    statistics = (tmp_path / "advisor-run-1-component_stat.csv").read_text().splitlines()
    assert statistics[0].startswith("COMPONENT_ID,COMPONENT_NAME,COMPONENT_DB,COMPONENT_TYPE,SUB_COMPONENT_TYPE,")
    assert any("MESSAGE APPLY RATE,1190.00,MESSAGES PER SECOND,1," in line for line in statistics)
    assert (await shell("advisor", "export", "1", "--directory", str(tmp_path))).code == 0
    page = (tmp_path / "advisor-run-1.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "<svg" in page and "DBA_STREAMS_TP_PATH_STAT" in page
    # Self-contained: it fetches nothing and runs nothing.
    assert not any(word in page for word in ("http://", "https://", "<script", "<link", "src="))


async def test_list_compare_and_monitor(
    shell: Shell,  # noqa: F811
    users: Users,
    stream: dict[str, Any],  # noqa: F811
) -> None:
    shell = with_token(shell, users)
    assert "no advisor run yet" in (await shell("advisor", "show")).err
    for _ in range(2):
        assert (await shell("advisor", "run")).code == 0
    listed = json.loads((await shell("advisor", "list", "--json")).out)
    assert [run["id"] for run in listed] == [2, 1]
    compared = await shell("advisor", "compare", "1", "2", "--all")
    assert f"{stream['name']} → warehouse: still APPLY SERVER: EXECUTE" in compared.out
    ticker = await shell("mon", "--count", "1")
    assert ticker.code == 0, ticker.err
    (line,) = ticker.out.splitlines()
    segments = [part.strip() for part in line.split(" | ")]
    assert segments[0].endswith(f"{stream['name']} → warehouse")
    assert segments[1].startswith("C shop to warehouse 1200 150K 0.0015sec <")
    assert segments[2].startswith("Q 1200 4")
    assert segments[3].startswith("A 1190 118 0.0032sec AS(1) <22%I 0%F 56%EXECUTE> <B>")
