"""Behind whom a stream waits at a server: told by its engine, shown with stream, health and operations."""

from typing import Any

import httpx

from tests.features.test_streams import STREAMS, created
from tests.support.engine_double import EngineDouble
from tests.test_collector import collector, wait_for  # noqa: F401

Running = Any


async def test_a_start_that_waits_says_behind_whom(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Running,  # noqa: F811
) -> None:
    engine.waits, engine.phase = True, "INSTANTIATING"
    stream = await created(operator, registered)
    path = f"{STREAMS}/{stream['id']}"
    shown = await wait_for(operator, path, phase="INSTANTIATING")
    [wait] = shown["waits"]
    assert (wait["side"], wait["database"], wait["destination_id"]) == ("source", "orders", None)
    assert wait["statement"].startswith("COPY (SELECT")
    assert [(blocker["pid"], blocker["user"], blocker["state"]) for blocker in wait["blockers"]] == [
        (4712, "bob", "idle in transaction")
    ]
    told = "at the source orders behind server process 4712 (psql of bob, idle in transaction for "
    assert shown["health"]["level"] == "warning"
    assert told in shown["health"]["reason"]
    [operation] = (await operator.get("/api/v1/operations", params={"target_id": stream["id"]})).json()["items"]
    assert told in operation["waiting_for"]
    query = {"stream_id": stream["id"], "window_seconds": 60}
    advice = (await operator.get("/api/v1/advisor/analysis", params=query)).json()
    assert [(entry["verdict"], entry["top_finding_code"]) for entry in advice["paths"]] == [
        ("WAITING", "start_blocked")
    ]
    assert told in advice["paths"][0]["explanation"]
    engine.waits, engine.phase = False, "REPLICATING"
    assert (await wait_for(operator, path, phase="REPLICATING"))["waits"] == []
