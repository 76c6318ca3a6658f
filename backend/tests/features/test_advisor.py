"""The advisor over HTTP, on samples that the collector took from an engine at the HTTP boundary."""

from typing import Any

import httpx
import pytest

from tests.features.test_streams import STREAMS, created
from tests.support.engine_double import EngineDouble
from tests.support.serving import eventually
from tests.test_collector import collector, wait_for  # noqa: F401

ADVISOR = "/api/v1/advisor"
Running = Any


@pytest.fixture
async def stream(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Running,  # noqa: F811
) -> dict[str, Any]:
    """A stream with a few samples."""
    made = await created(operator, registered)
    await wait_for(operator, f"{STREAMS}/{made['id']}", phase="REPLICATING")

    async def sampled() -> bool:
        return len((await operator.get(f"{STREAMS}/{made['id']}/samples")).json()["samples"]) >= 4

    await eventually(sampled)
    return made


async def test_run_has_the_six_tables(operator: httpx.AsyncClient, stream: dict[str, Any]) -> None:
    answer = await operator.post(f"{ADVISOR}/runs", json={"stream_id": stream["id"], "name": "first"})
    assert answer.status_code == 201, answer.text
    run = answer.json()
    assert answer.headers["Location"] == f"{ADVISOR}/runs/{run['id']}"
    assert (run["reason"], run["requested_by"], run["name"]) == ("on_demand", "operator", "first")
    analysis = run["analysis"]
    ids = [f"{stream['id']}:{name}" for name in ("capture", "queue", "apply")]
    assert [part["component_id"] for part in analysis["components"]] == ids
    assert [part["component_db"] for part in analysis["components"]] == ["shop", "shop", "warehouse"]
    assert [(link["position"], link["source_component_id"], link["destination_component_id"])
            for link in analysis["component_links"]] == [(1, ids[0], ids[1]), (2, ids[1], ids[2])]  # fmt: skip
    statistics = {
        (row["component_type"], row["sub_component_type"], row["statistic_name"]): row
        for row in analysis["component_statistics"]
    }
    applied = statistics["APPLY", None, "MESSAGE APPLY RATE"]
    assert (applied["statistic_value"], applied["statistic_unit"]) == (pytest.approx(1190), "MESSAGES PER SECOND")
    # Of 9 ns of the double's applier 5 execute and 2 are idle.
    assert statistics["APPLY", "APPLY SERVER", "EVENT: EXECUTE"]["statistic_value"] == pytest.approx(55.556)
    (bottleneck,) = analysis["path_bottlenecks"]
    assert (bottleneck["component_id"], bottleneck["sub_component_type"]) == (ids[2], "APPLY SERVER")
    assert (bottleneck["top_event"], bottleneck["idle_percent"]) == ("EXECUTE", 22.2)
    assert bottleneck["bottleneck_identified"] is True
    assert bottleneck["advisor_run_reason"] is None
    for table, rows in (
        ("components", "components"), ("component-links", "component_links"), ("databases", "databases"),
        ("component-statistics", "component_statistics"), ("path-statistics", "path_statistics"),
        ("path-bottlenecks", "path_bottlenecks"),
    ):  # fmt: skip
        assert (await operator.get(f"{ADVISOR}/runs/{run['id']}/{table}")).json() == analysis[rows]
        assert analysis[rows]


async def test_runs_are_listed_named_and_deleted(
    operator: httpx.AsyncClient, viewer: httpx.AsyncClient, stream: dict[str, Any]
) -> None:
    first = (await operator.post(f"{ADVISOR}/runs", json={})).json()
    second = (await operator.post(f"{ADVISOR}/runs", json={"component_id": f"{stream['id']}:apply"})).json()
    listed = (await viewer.get(f"{ADVISOR}/runs", params={"stream_id": stream["id"]})).json()["items"]
    assert [run["id"] for run in listed] == [second["id"], first["id"]]
    assert listed[0]["paths"][0]["component_id"] == f"{stream['id']}:apply"
    assert (await viewer.post(f"{ADVISOR}/runs", json={})).status_code == 403

    path = f"{ADVISOR}/runs/{first['id']}"
    change = {"name": "before the index", "note": "pgbench at 500 tps\nnightly load", "kept": True}
    named = (await operator.patch(path, json=change, headers={"If-Match": first["etag"]})).json()
    assert {name: named[name] for name in change} == change
    stale = await operator.patch(path, json={"kept": False}, headers={"If-Match": first["etag"]})
    assert (stale.status_code, stale.json()["code"]) == (412, "stale_resource")
    assert (await operator.delete(path)).status_code == 204
    assert (await viewer.get(path)).status_code == 404
    unknown = await operator.post(f"{ADVISOR}/runs", json={"stream_id": "nosuchstream"})
    assert unknown.json()["errors"][0]["pointer"] == "/stream_id"


async def test_analysis_of_the_present_and_of_the_past(viewer: httpx.AsyncClient, stream: dict[str, Any]) -> None:
    live = (await viewer.get(f"{ADVISOR}/analysis", params={"stream_id": stream["id"], "window_seconds": 60})).json()
    assert live["live"] is True
    assert live["paths"][0]["verdict"] == "BOTTLENECK"
    times = [sample["at"] for sample in (await viewer.get(f"{STREAMS}/{stream['id']}/samples")).json()["samples"]]
    span = {"begin_at": "2020-01-01T00:00:00Z", "end_at": times[-1]}

    async def past() -> dict[str, Any] | None:
        """Of history, which is written a little later."""
        found = (await viewer.get(f"{ADVISOR}/analysis", params=span)).json()
        return dict(found) if found["analysis"]["samples"] else None

    assert (await eventually(past))["paths"][0]["verdict"] == "BOTTLENECK"
    # What is not known is null, never zero.
    nothing = {"begin_at": "2020-01-01T00:00:00Z", "end_at": "2020-01-02T00:00:00Z"}
    unknown = (await viewer.get(f"{ADVISOR}/analysis", params=nothing)).json()
    assert unknown["paths"][0]["verdict"] == "UNKNOWN"
    assert unknown["paths"][0]["messages_per_second"] is None
