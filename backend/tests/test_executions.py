"""Outcomes of executions that took longer than their requests, in the audit log."""

from datetime import timedelta
from typing import Any

import httpx

from tests.features.test_error_queue import queue_of
from tests.support.engine_double import EngineDouble
from thalweg.kernel.clock import now
from thalweg.kernel.context import Resources
from thalweg.workers.executions import ExecutionWatch

STARTED_AT = "2026-03-01T08:00:00Z"


def execution(**changed: Any) -> dict[str, Any]:
    return {
        "error_id": 1, "state": "RUNNING", "executed": 2, "total": 9, "started_at": STARTED_AT, "finished_at": None,
        "error": None, "failed_again": 0, "failures": [],
    } | changed  # fmt: skip


async def entry_of(admin: httpx.AsyncClient, stream: dict[str, Any]) -> dict[str, Any]:
    entries = (await admin.get("/api/v1/audit", params={"target_id": stream["id"]})).json()["items"]
    return next(entry for entry in entries if entry["action"] == "stream_errors_execute")


async def test_the_outcome_is_written_into_the_entry_of_the_request(
    admin: httpx.AsyncClient, operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble,
    resources: Resources,
) -> None:  # fmt: skip
    stream, path = await queue_of(operator, registered)
    watch = ExecutionWatch(resources)
    engine.execution = execution()
    assert (await operator.post(f"{path}/1/execute")).json()["state"] == "RUNNING"
    await watch.turn(now())
    assert (await entry_of(admin, stream))["sentence"] == "Parked transaction 1 executed again, in progress"
    error = {"code": "apply_conflict", "class": "permanent", "title": "T", "message": "in the way", "cure": "C"}
    engine.execution = execution(state="FAILED", executed=8, failed_again=1, error=error, finished_at=STARTED_AT)
    await watch.turn(now())
    entry = await entry_of(admin, stream)
    assert entry["after"]["state"] == "FAILED"
    assert (entry["after"]["executed"], entry["after"]["code_of_failure"]) == (8, "apply_conflict")
    assert entry["actor_name"] != "engine", "it is the request's own entry"
    engine.execution = execution(state="DONE", executed=9, finished_at=STARTED_AT)
    await watch.turn(now())
    assert (await entry_of(admin, stream))["after"]["state"] == "FAILED", "the outcome does not change"


async def test_the_outcome_is_unknown_after_another_execution(
    admin: httpx.AsyncClient, operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble,
    resources: Resources,
) -> None:  # fmt: skip
    stream, path = await queue_of(operator, registered)
    engine.execution = execution()
    await operator.post(f"{path}/1/execute")
    engine.execution = execution(state="DONE", started_at="2026-03-01T08:05:00Z", finished_at=STARTED_AT)
    await ExecutionWatch(resources).turn(now())
    assert "not known" in (await entry_of(admin, stream))["sentence"]


async def test_an_execution_is_given_up_in_the_end(
    admin: httpx.AsyncClient, operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble,
    resources: Resources,
) -> None:  # fmt: skip
    stream, path = await queue_of(operator, registered)
    engine.execution = execution()
    await operator.post(f"{path}/1/execute")
    watch = ExecutionWatch(resources)
    await watch.turn(now() + timedelta(hours=23))
    assert (await entry_of(admin, stream))["after"]["state"] == "RUNNING"
    await watch.turn(now() + timedelta(hours=25))
    assert (await entry_of(admin, stream))["after"]["state"] == "UNKNOWN"


async def test_an_outcome_is_written_before_another_execution_begins(
    admin: httpx.AsyncClient, operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    """An engine knows only its last: nobody could tell afterwards."""
    stream, path = await queue_of(operator, registered)
    engine.execution = execution()
    assert (await operator.post(f"{path}/1/execute")).json()["state"] == "RUNNING"
    engine.execution = execution(state="DONE", executed=9, finished_at=STARTED_AT)
    assert (await operator.post(f"{path}/1/execute")).json()["state"] == "DONE"
    entries = (await admin.get("/api/v1/audit", params={"target_id": stream["id"]})).json()["items"]
    executed = [entry["after"].get("state") for entry in entries if entry["action"] == "stream_errors_execute"]
    assert executed == [None, "DONE"]
