"""Streams: created whole or not at all, changed under If-Match, moved along their lifecycle."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import text

from tests.conftest import Sides
from tests.support.contract import CONTRACT
from tests.support.engine_double import EngineDouble, example
from thalweg.engine_client.parked_documents import ParkedContents
from thalweg.features.streams.audited_changes import ENTRY_CHARACTERS_MAX, bounded
from thalweg.features.streams.parameters import check_destination_parameters, load_parameters
from thalweg.kernel.context import Resources
from thalweg.kernel.problems import Problem
from thalweg.kernel.settings import PACKAGE

STREAMS = "/api/v1/streams"


def body_of(ids: dict[str, str], applies: str | None = None, **changes: Any) -> dict[str, Any]:
    """`applies` is the engine that does, where another one captures."""
    return {
        "name": "shop to warehouse",
        "source_id": ids["source"],
        "destinations": [{"database_id": ids["destination"], "engine_id": applies}],
        "rules": {"include": [{"schema": "public", "table": "*"}]},
        **changes,
    }


async def created(client: httpx.AsyncClient, ids: dict[str, str], **changes: Any) -> dict[str, Any]:
    answer = await client.post(STREAMS, json=body_of(ids, **changes))
    assert answer.status_code == 202, answer.text
    return dict((await client.get(f"{STREAMS}/{answer.json()['stream_id']}")).json())


async def counts(resources: Resources) -> tuple[int, int]:
    async with resources.sessions() as session:
        row = (
            await session.execute(text("SELECT (SELECT count(*) FROM streams), (SELECT count(*) FROM operations)"))
        ).one()
    return row[0], row[1]


async def test_create(operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble) -> None:
    answer = await operator.post(STREAMS, json=body_of(registered, parameters={"parallelism": 8}))
    assert answer.status_code == 202
    accepted = answer.json()
    assert answer.headers["location"] == f"{STREAMS}/{accepted['stream_id']}"
    stream = (await operator.get(answer.headers["location"])).json()
    assert (stream["desired_status"], stream["status"], stream["phase"]) == ("ENABLED", "UNKNOWN", "UNKNOWN")
    assert [table["table"] for table in stream["tables"]] == ["customers", "orders"]
    assert stream["effective_parameters"]["parallelism"] == 8
    assert stream["effective_parameters"]["group_size"] == 20000
    assert stream["parameters"] == {"parallelism": 8}
    assert stream["lcrs_per_second"] is None
    assert stream["health"]["level"] == "unknown"
    operation = (await operator.get(f"/api/v1/operations/{accepted['operation_id']}")).json()
    assert (operation["kind"], operation["state"]) == ("stream.create", "pending")
    assert operation["target"] == {
        "type": "stream",
        "id": stream["id"],
        "name": "shop to warehouse",
        "destination_id": None,
        "destination": None,
        "table": None,
    }


async def test_failed_checks_leave_nothing_behind(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, sides: Sides, resources: Resources
) -> None:
    sides.on_source("CREATE TABLE notes (body text)", f"ALTER TABLE notes OWNER TO {sides.source['user']}")
    headers = {"Idempotency-Key": "key-of-this-test"}
    answer = await operator.post(STREAMS, json=body_of(registered), headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (409, "preflight_failed")
    assert " checks stands in the way: Keys of tables" in answer.json()["detail"], "one of them"
    error = answer.json()["errors"][0]
    assert (error["code"], error["pointer"]) == ("table_keys", "/source_id")
    assert "REPLICA IDENTITY FULL" in error["sql"]
    assert error["cure"]
    assert await counts(resources) == (0, 0)
    sides.on_source(error["sql"])
    assert (await operator.post(STREAMS, json=body_of(registered), headers=headers)).status_code == 202


async def test_create_needs_an_engine(operator: httpx.AsyncClient, registered: dict[str, str]) -> None:
    answer = await operator.post(STREAMS, json=body_of(registered))
    assert (answer.status_code, answer.json()["code"]) == (409, "no_engine")


async def test_unknown_ids_are_named(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    there = registered["destination"]
    for pointer, change in {
        "/source_id": {"source_id": "nosuchid"},
        "/capture_engine_id": {"capture_engine_id": "nosuchid"},
        "/destinations/0/database_id": {"destinations": [{"database_id": "nosuchid"}]},
        "/destinations/1/database_id": {"destinations": [{"database_id": there}, {"database_id": there}]},
        "/destinations/1/engine_id": {
            "destinations": [{"database_id": there}, {"database_id": registered["source"], "engine_id": "nosuchid"}],
        },
    }.items():
        answer = await operator.post(STREAMS, json=body_of(registered, **change))
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["pointer"] == pointer


async def test_parameters_are_checked(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    parameters = {"parallelism": 65, "commit_serialization": "some", "initial_copy": 1, "warp": 9, "group_size": "1"}
    answer = await operator.post(STREAMS, json=body_of(registered, parameters=parameters))
    assert answer.status_code == 422
    problems = {error["pointer"]: error["message"] for error in answer.json()["errors"]}
    assert set(problems) == {f"/parameters/{name}" for name in parameters}
    assert problems["/parameters/parallelism"] == "It must be from 1 to 64 appliers."


async def test_two_streams_may_not_write_one_table(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    await created(operator, registered)
    answer = await operator.post(STREAMS, json=body_of(registered, name="another"))
    assert answer.status_code == 409
    assert [error["code"] for error in answer.json()["errors"]] == ["other_streams"]


async def test_execute_as_another_role(
    admin: httpx.AsyncClient, operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    stream = await created(operator, registered)
    engine.parked = 2
    path = f"{STREAMS}/{stream['id']}/destinations/{stream['destinations'][0]['id']}/errors"
    cause = (await operator.get(path)).json()["causes"][0]["cause"]
    for asked in (f"{path}/1/execute", f"{path}:execute", f"{path}:execute?cause={cause}"):
        answer = await operator.post(asked, json={"role": "clerk"})
        assert answer.status_code == 202, answer.text
        entry = (await admin.get("/api/v1/audit")).json()["items"][0]
        assert entry["after"]["role"] == "clerk"
    assert (await operator.post(f"{path}/1/dry-run", json={"role": "clerk"})).status_code == 200
    assert engine.roles == ["clerk"] * 4
    assert (await operator.post(f"{path}/1/execute", json={"role": ""})).status_code == 422
    engine.refuses_execution = {**example("dry-run")["error"], "code": "invalid_request", "message": "no such role"}
    unknown = await operator.post(f"{path}/1/execute", json={"role": "nobody"})
    assert (unknown.status_code, unknown.json()["errors"][0]["pointer"]) == (422, "/role")
    engine.refuses_execution = {**engine.refuses_execution, "code": "insufficient_privilege", "message": "GRANT a TO b"}
    lacking = await operator.post(f"{path}/1/execute", json={"role": "clerk"})
    assert (lacking.status_code, lacking.json()["detail"]) == (409, "GRANT a TO b")
    engine.refuses_execution = None
    engine.roles.clear()
    assert (await operator.post(f"{path}/1/execute")).status_code == 202
    assert engine.roles == [], "as the engine's user"


async def test_error_policies_are_checked_at_their_places(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    wrong: list[tuple[Any, str]] = [
        ("park", ""),
        ([{"action": "ignore"}], "/0/action"),
        ([{"action": "park"}, {"action": "park", "error": "235"}], "/1/error"),
        ([{"action": "park", "error": "parked_behind"}], "/0/error"),
        ([{"action": "park", "error": "23p01"}], "/0/error"),
        ([{"action": "park", "table": "orders"}], "/0/schema"),
        ([{"action": "park", "schema": "public"}], "/0/table"),
        ([{"action": "park", "times": 3}], "/0/times"),
        ([{"action": "retry", "times": 101, "delay_seconds": 1, "after_retries": "park"}], "/0/times"),
        ([{"action": "retry", "times": True, "delay_seconds": 1, "after_retries": "park"}], "/0/times"),
        ([{"action": "retry", "times": 1, "after_retries": "park"}], "/0/delay_seconds"),
        ([{"action": "retry", "times": 1, "delay_seconds": 1, "after_retries": "retry"}], "/0/after_retries"),
        ([{"action": "park", "whenever": 1}], "/0/whenever"),
        ([{"action": "park"}] * 101, ""),
    ]
    for policies, place in wrong:
        answer = await operator.post(STREAMS, json=body_of(registered, parameters={"error_policies": policies}))
        assert answer.status_code == 422, policies
        problem = answer.json()["errors"][0]
        assert problem["pointer"] == f"/parameters/error_policies{place}"
        assert "retry" in problem["cure"]
        if place.endswith("/error"):
            assert "an SQLSTATE in upper case, such as 23505; the class of one, such as 23; or" in problem["message"]
            assert "apply_conflict, apply_failed, initial_copy_inconsistent" in problem["message"]


async def test_error_policies_are_kept_as_they_are(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    policies: list[dict[str, Any]] = [
        {"error": "23505", "schema": "public", "table": "orders", "action": "park"},
        {"error": "apply_conflict", "action": "stop"},
        {"action": "retry", "times": 100, "delay_seconds": 3600, "after_retries": "park"},
    ]
    stream = await created(operator, registered)
    assert stream["effective_parameters"]["error_policies"] == []
    changed = await operator.patch(
        f"{STREAMS}/{stream['id']}", json={"parameters": {"error_policies": policies}},
        headers={"If-Match": stream["etag"]},
    )  # fmt: skip
    assert changed.json()["parameters"] == {"error_policies": policies}
    assert not changed.json()["restart_needed"]


async def test_update_parameters(operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble) -> None:
    stream = await created(operator, registered)
    path = f"{STREAMS}/{stream['id']}"
    live = await operator.patch(path, json={"parameters": {"parallelism": 2}}, headers={"If-Match": stream["etag"]})
    assert live.json()["parameters"] == {"parallelism": 2}
    assert live.json()["restart_needed"] is False
    stale = await operator.patch(path, json={"parameters": {"parallelism": 3}}, headers={"If-Match": stream["etag"]})
    assert stale.status_code == 412
    later = await operator.patch(
        path, json={"parameters": {"queue_size": 1024}}, headers={"If-Match": live.headers["etag"]}
    )
    assert later.json()["parameters"] == {"parallelism": 2, "queue_size": 1024}
    assert later.json()["restart_needed"] is True


async def test_lifecycle_refuses_what_makes_no_sense(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    stream = await created(operator, registered)
    path = f"{STREAMS}/{stream['id']}"
    stopping = (await operator.post(f"{path}:stop")).json()
    assert stopping["state"] == "pending"
    assert (await operator.post(f"{path}:stop")).json() == stopping
    refused = await operator.post(f"{path}:retry")
    assert (refused.status_code, refused.json()["code"]) == (409, "invalid_transition")
    assert (await operator.post(f"{path}:start")).json()["state"] == "pending"
    deleted = await operator.delete(path)
    assert deleted.status_code == 202
    for action in ("start", "stop", "retry"):
        assert (await operator.post(f"{path}:{action}")).status_code == 409
    assert (await operator.patch(path, json={"name": "x"}, headers={"If-Match": "*"})).status_code == 409
    listed = (await operator.get("/api/v1/operations", params={"target_id": stream["id"]})).json()["items"]
    assert [(operation["kind"], operation["state"]) for operation in listed] == [
        ("stream.delete", "pending"), ("stream.start", "failed"), ("stream.stop", "failed"),
        ("stream.create", "failed"),
    ]  # fmt: skip
    assert listed[1]["error"]["code"] == "superseded"
    assert [operation["waiting_for"] is None for operation in listed] == [False, True, True, True]
    assert (await operator.delete(path)).json() == deleted.json()
    forced = await operator.delete(path, params={"force": True})
    assert forced.json()["operation_id"] != deleted.json()["operation_id"]


async def test_database_in_use_is_not_deleted(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    await created(operator, registered)
    for database_id in registered.values():
        answer = await operator.delete(f"/api/v1/databases/{database_id}")
        assert (answer.status_code, answer.json()["code"]) == (409, "database_in_use")
        assert "shop to warehouse" in answer.json()["detail"]


async def test_every_change_raises_the_desired_revision(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    async def revision() -> int:
        return int((await operator.get("/api/v1/engines")).json()["items"][0]["desired_revision"])

    seen = [await revision()]
    stream = await created(operator, registered)
    seen.append(await revision())
    await operator.post(f"{STREAMS}/{stream['id']}:stop")
    seen.append(await revision())
    path = f"/api/v1/databases/{registered['source']}"
    await operator.patch(path, json={"password": "new"}, headers={"If-Match": "*"})
    seen.append(await revision())
    assert seen == sorted(set(seen))


async def test_changes_are_audited(
    operator: httpx.AsyncClient, admin: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    stream = await created(operator, registered)
    await operator.post(f"{STREAMS}/{stream['id']}:stop")
    entries = (await admin.get("/api/v1/audit", params={"target_id": stream["id"]})).json()["items"]
    assert [entry["action"] for entry in entries] == ["streams_stop", "streams_create"]
    assert entries[0]["before"]["desired_status"] == "ENABLED"
    assert entries[0]["after"]["desired_status"] == "DISABLED"
    assert entries[0]["actor_name"] == "operator"


async def test_error_queue_is_read_through_the_engine(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    stream = await created(operator, registered)
    path = f"{STREAMS}/{stream['id']}/destinations/{stream['destinations'][0]['id']}/errors"
    parked = (await operator.get(path)).json()["errors"]
    assert parked[0]["sqlstate"] == "23505"
    assert (await operator.post(f"{path}/1/execute")).status_code == 202
    assert (await operator.delete(f"{path}/1", params={"reason": "a test row"})).status_code == 204
    assert (engine.executed, engine.deleted) == ([1], [1])


async def test_the_whole_error_queue_is_executed(
    operator: httpx.AsyncClient, viewer: httpx.AsyncClient, admin: httpx.AsyncClient, registered: dict[str, str],
    engine: EngineDouble,
) -> None:  # fmt: skip
    stream = await created(operator, registered)
    path = f"{STREAMS}/{stream['id']}/destinations/{stream['destinations'][0]['id']}/errors:execute"
    engine.parked = 3
    assert (await viewer.post(path)).status_code == 403
    answer = await operator.post(path)
    told = {"accepted": True, "state": "DONE", "executed": None, "failed_again": None, "message": None}
    assert (answer.status_code, answer.json()) == (202, told)
    assert engine.executed == [1, 2, 3]
    entry = (await admin.get("/api/v1/audit", params={"target_id": stream["id"]})).json()["items"][0]
    assert entry["sentence"] == "All parked transactions executed again"


async def test_the_error_queue_is_grouped_by_cause(
    operator: httpx.AsyncClient, viewer: httpx.AsyncClient, admin: httpx.AsyncClient, registered: dict[str, str],
    engine: EngineDouble,
) -> None:  # fmt: skip
    stream = await created(operator, registered)
    path = f"{STREAMS}/{stream['id']}/destinations/{stream['destinations'][0]['id']}/errors"
    engine.parked = 3
    behind, first = (await operator.get(path)).json()["causes"]
    assert (behind["kind"], behind["transactions"]) == ("waits", 2)
    assert (first["kind"], first["table"], first["object"]) == ("duplicate_key", '"public"."t"', "t_pkey")
    assert "execute them" in first["cure"]
    assert (await viewer.get(path)).json()["causes"][1]["object"] is None, "its message quotes rows"
    only = (await operator.get(path, params={"cause": first["cause"]})).json()
    assert ([error["id"] for error in only["errors"]], only["total"]) == ([1], 3)
    assert (await operator.get(path, params={"cause": "no cause"})).status_code == 422
    chosen = {"cause": first["cause"]}
    assert (await viewer.post(f"{path}:execute", params=chosen)).status_code == 403
    assert (await operator.post(f"{path}:execute", params=chosen)).status_code == 202
    assert engine.executed == [1]
    assert (await operator.post(f"{path}:execute", params={"cause": "0"})).status_code == 404
    refused, entry = (await admin.get("/api/v1/audit", params={"target_id": stream["id"]})).json()["items"][:2]
    assert refused["sentence"] == "Parked transactions with one cause (0) executed again: refused"
    assert entry["sentence"] == "Parked transactions with one cause (23505) executed again"
    assert (entry["after"]["table"], entry["after"]["transactions"]) == ('"public"."t"', 1)


async def test_a_parked_transaction_is_tried_and_rolled_back(
    operator: httpx.AsyncClient, viewer: httpx.AsyncClient, admin: httpx.AsyncClient, registered: dict[str, str],
    engine: EngineDouble,
) -> None:  # fmt: skip
    stream = await created(operator, registered)
    path = f"{STREAMS}/{stream['id']}/destinations/{stream['destinations'][0]['id']}/errors"
    assert (await viewer.post(f"{path}/1/dry-run")).status_code == 403
    succeeds = await operator.post(f"{path}/1/dry-run")
    assert (succeeds.status_code, succeeds.json()["succeeds"], succeeds.json()["message"]) == (200, True, None)
    engine.dry_run_succeeds = False
    fails = (await operator.post(f"{path}/1/dry-run")).json()
    assert (fails["succeeds"], fails["code"], fails["sqlstate"]) == (False, "apply_conflict", "23505")
    assert '("id" = 500)' in fails["message"] and "compare the rows" in fails["cure"]
    assert (await operator.post(f"{path}/9/dry-run")).status_code == 404
    assert (engine.tried, engine.executed) == ([1, 1], [])
    entry = (await admin.get("/api/v1/audit", params={"target_id": stream["id"]})).json()["items"][1]
    assert entry["sentence"] == "Parked transaction 1 tried and rolled back: it would fail (23505)"


async def test_an_engine_that_knows_no_causes_tells_none(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = await created(operator, registered)
    monkeypatch.setattr(engine, "_causes", lambda: None)
    queue = await operator.get(f"{STREAMS}/{stream['id']}/destinations/{stream['destinations'][0]['id']}/errors")
    assert (queue.status_code, queue.json()["causes"]) == (200, None)


async def test_a_refused_execution_is_tried_by_executing_again(
    admin: httpx.AsyncClient, operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    stream = await created(operator, registered)
    path = f"{STREAMS}/{stream['id']}/destinations/{stream['destinations'][0]['id']}/errors/1/execute"
    engine.refuses_execution = {
        "code": "apply_conflict", "message": "INSERT into orders: duplicate key", "sqlstate": "23505",
        "cure": "Compare the row on both sides, repair the destination's, then retry the stream.",
    }  # fmt: skip
    refused = (await operator.post(path)).json()
    assert (refused["code"], refused["status"], refused["title"]) == (
        "execution_refused", 409, "The execution did not go through",
    )  # fmt: skip
    assert refused["cure"] == "Compare the row on both sides, repair the destination's, then execute it again."
    path = path.removesuffix("/execute").replace("/1", "/99")
    assert (await operator.delete(path, params={"reason": "gone"})).status_code == 404
    entries = (await admin.get("/api/v1/audit", params={"target_id": stream["id"]})).json()["items"]
    assert [entry["sentence"] for entry in entries if entry["action"].startswith("stream_errors")] == [
        "Parked transaction 99 discarded: refused",
        "Parked transaction 1 executed again: failed again (apply_conflict)",
    ]  # fmt: skip


async def test_an_execution_that_fails_behind_the_first_is_not_refused(
    admin: httpx.AsyncClient, operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    stream = await created(operator, registered)
    path = f"{STREAMS}/{stream['id']}/destinations/{stream['destinations'][0]['id']}/errors"
    error = {"code": "apply_conflict", "class": "permanent", "title": "T", "message": "in the way", "cure": "C"}
    engine.refuses_execution = error
    engine.execution = {
        "error_id": 1, "state": "FAILED", "executed": 1, "total": 2, "started_at": engine.started_at,
        "finished_at": engine.started_at, "error": error, "failed_again": 1,
        "failures": [{"error_id": 2, "error": error}],
    }  # fmt: skip
    answer = await operator.post(f"{path}/1/execute")
    assert (answer.status_code, answer.json()) == (
        202, {"accepted": True, "state": "FAILED", "executed": 1, "failed_again": 1, "message": "in the way"},
    )  # fmt: skip
    events = (await operator.get(f"{STREAMS}/{stream['id']}/history/events")).json()["items"]
    entry = (await admin.get("/api/v1/audit", params={"target_id": stream["id"]})).json()["items"][0]
    words = "Parked transaction 1 executed again: applied; 1 behind it failed"
    assert entry["sentence"] == words
    assert words in [event["sentence"] for event in events]
    assert (await operator.post(f"{path}/2/execute")).status_code == 409, "the last execution was of another one"
    engine.execution |= {"error": {**error, "message": "of an earlier execution"}}
    assert (await operator.post(f"{path}/1/execute")).status_code == 409, "refused before it began"
    engine.execution |= {"error": error, "executed": 0}
    assert (await operator.post(f"{path}/1/execute")).status_code == 409, "nothing was applied"


async def test_error_queue_comes_in_parts(
    operator: httpx.AsyncClient, viewer: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    stream = await created(operator, registered)
    path = f"{STREAMS}/{stream['id']}/destinations/{stream['destinations'][0]['id']}/errors"
    engine.parked = 250
    first = (await viewer.get(path)).json()
    assert (len(first["errors"]), first["total"], first["roots"]) == (100, 250, 1)
    second = (await viewer.get(path, params={"limit": 200, "cursor": first["next_cursor"]})).json()
    assert [error["id"] for error in second["errors"]] == list(range(101, 251))
    assert second["next_cursor"] is None
    roots = (await viewer.get(path, params={"roots_only": True})).json()
    assert [error["id"] for error in roots["errors"]] == [1]
    assert (await viewer.get(path, params={"cursor": "nonsense"})).status_code == 422
    assert first["execution"] is None
    engine.execution = {
        "error_id": 1, "state": "FAILED", "executed": 80, "total": 250, "started_at": engine.started_at,
        "finished_at": engine.started_at,
        "error": {"code": "apply_conflict", "class": "permanent", "title": "T", "message": "in the way", "cure": "C"},
    }  # fmt: skip
    execution = (await operator.get(path)).json()["execution"]
    assert (execution["failed_again"], execution["failures"]) == (None, []), "an older engine does not tell"
    engine.execution |= {"failed_again": 1, "failures": [{"error_id": 1, "error": engine.execution["error"]}]}
    execution = (await operator.get(path)).json()["execution"]
    (failure,) = execution["failures"]
    assert (execution["failed_again"], failure["error_id"], failure["message"]) == (1, 1, "in the way")
    assert (execution["state"], execution["executed"], execution["message"]) == ("FAILED", 80, "in the way")


async def test_an_execution_tells_of_no_failure_that_has_left_the_queue(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    """As after a copy of the tables, which settles what was parked of them."""
    stream = await created(operator, registered)
    path = f"{STREAMS}/{stream['id']}/destinations/{stream['destinations'][0]['id']}/errors"
    error = {"code": "apply_conflict", "class": "permanent", "title": "T", "message": "in the way", "cure": "C"}
    engine.parked = 3
    engine.execution = {
        "error_id": None, "state": "FAILED", "executed": 5, "total": 9, "started_at": engine.started_at,
        "finished_at": engine.started_at, "error": {**error, "message": "settled"}, "failed_again": 2,
        "failures": [{"error_id": 7, "error": {**error, "message": "settled"}}, {"error_id": 1, "error": error}],
    }  # fmt: skip
    told = (await operator.get(path)).json()["execution"]
    assert [failure["error_id"] for failure in told["failures"]] == [1]
    assert (told["failed_again"], told["message"], told["state"]) == (1, "in the way", "FAILED")
    engine.execution |= {"failed_again": 1, "failures": engine.execution["failures"][:1]}
    assert (await operator.get(path)).json()["execution"] is None
    engine.execution |= {"failed_again": 3}
    assert (await operator.get(path)).json()["execution"]["failed_again"] == 2, "of these nobody knows"
    engine.parked = 0
    assert (await operator.get(path)).json()["execution"] is None, "nothing is left of them"


async def test_a_parked_transaction_that_opens_too_slowly_can_be_discarded(
    admin: httpx.AsyncClient, operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    stream = await created(operator, registered)
    path = f"{STREAMS}/{stream['id']}/destinations/{stream['destinations'][0]['id']}/errors"
    engine.contents_take = 3.0  # longer than the settings' engine_timeout
    monkeypatch.setattr("thalweg.engine_client.client.CONTENTS_TIMEOUT_SECONDS", 0)
    assert (await operator.get(f"{path}/1")).json()["code"] == "engine_slow"
    why = {"reason": "cannot be opened"}
    refused = (await operator.delete(f"{path}/1", params=why)).json()
    assert (refused["code"], "not answered in time" in refused["detail"]) == ("not_kept_whole", True)
    assert engine.deleted == []
    assert (await operator.delete(f"{path}/1", params={**why, "partly": True})).status_code == 204
    assert engine.deleted == [1]
    entries = (await admin.get("/api/v1/audit", params={"target_id": stream["id"]})).json()["items"]
    discarded, before = [entry for entry in entries if entry["action"] == "stream_errors_delete"]
    assert "not answered in time" in discarded["before"]["changes_unreadable"]
    assert before["sentence"] == "Parked transaction 1 discarded: refused"


async def test_contents_of_a_parked_transaction_are_no_viewers(
    admin: httpx.AsyncClient, operator: httpx.AsyncClient, viewer: httpx.AsyncClient, registered: dict[str, str],
    engine: EngineDouble,
) -> None:  # fmt: skip
    stream = await created(operator, registered)
    path = f"{STREAMS}/{stream['id']}/destinations/{stream['destinations'][0]['id']}/errors"
    assert (await viewer.get(f"{path}/1")).status_code == 403
    shown = (await operator.get(f"{path}/1")).json()
    assert (shown["error"]["id"], shown["changes_total"]) == (1, 1)
    (change,) = shown["changes"]
    assert (change["operation"], change["schema"], change["found_by"]) == ("INSERT", "public", ["id"])
    amount = change["columns"][1]
    assert (amount["wanted"]["text"], amount["now"]["state"], amount["wanted_differs"]) == ("19.90", "null", True)
    assert (await operator.get(f"{path}/2")).status_code == 404
    assert (await operator.delete(f"{path}/1", params={"reason": "19.90 was wrong"})).status_code == 204
    entries = (await admin.get("/api/v1/audit", params={"target_id": stream["id"]})).json()["items"]
    discarded = next(entry for entry in entries if entry["action"] == "stream_errors_delete")
    assert discarded["after"]["reason"] == "19.90 was wrong"
    assert discarded["before"]["changes"][0]["columns"][1]["wanted"]["text"] == "19.90"
    looked = [entry for entry in entries if entry["action"] == "stream_errors_get"]
    assert [entry["after"]["error_id"] for entry in looked] == [1], "of what does not exist nothing was seen"
    assert all("changes" not in entry["after"] for entry in looked)


def test_an_audit_entry_holds_as_much_as_it_may() -> None:
    contents = ParkedContents.model_validate(example("error-contents"))
    column = contents.changes[0].columns[1]
    column.wanted.text = "x" * 1024
    contents.changes = contents.changes * 500
    kept = bounded(contents)
    assert 0 < len(kept["changes"]) < 500
    assert len(json.dumps(kept)) < ENTRY_CHARACTERS_MAX + 10_000


async def test_parameters_are_those_of_the_contract(viewer: httpx.AsyncClient) -> None:
    assert (PACKAGE / "contract" / "parameters.json").read_text() == (CONTRACT / "parameters.json").read_text()
    served = (await viewer.get("/api/v1/stream-parameters")).json()["parameters"]
    assert {parameter["name"] for parameter in served} >= {"parallelism", "commit_serialization", "disable_on_error"}
    assert all(parameter["description"] for parameter in served)


def test_the_contract_says_which_parameters_a_destination_may_override(tmp_path: Path) -> None:
    document = json.loads((CONTRACT / "parameters.json").read_text())
    assert {parameter["scope"] for parameter in document["parameters"]} == {"STREAM", "DESTINATION"}
    for parameter in document["parameters"]:
        parameter["scope"] = "STREAM" if parameter["name"] == "group_size" else "DESTINATION"
    (tmp_path / "parameters.json").write_text(json.dumps(document))
    definitions = load_parameters(tmp_path)
    check_destination_parameters(definitions, {"queue_size": 64}, "")
    with pytest.raises(Problem) as refused:
        check_destination_parameters(definitions, {"queue_size": 64, "group_size": 10}, "/destinations/0")
    (error,) = refused.value.errors
    assert error.pointer == "/destinations/0/parameters/group_size"


async def test_topology(operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble) -> None:
    stream = await created(operator, registered)
    topology = (await operator.get("/api/v1/topology")).json()
    kinds = {node["id"]: node["kind"] for node in topology["nodes"]}
    assert sorted(kinds.values()) == ["APPLY", "CAPTURE", "DATABASE", "DATABASE", "QUEUE"]
    chain = {edge["source"]: edge["target"] for edge in topology["edges"]}
    at, seen = f"database:{stream['source']['id']}", []
    while at in chain:
        seen.append(kinds[at])
        at = chain[at]
    assert [*seen, kinds[at]] == ["DATABASE", "CAPTURE", "QUEUE", "APPLY", "DATABASE"]
