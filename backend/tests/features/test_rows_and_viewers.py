"""Values of rows reach operators and nobody below: a viewer sees the table, the code and how many there are."""

import asyncio
from typing import Any

import httpx
import pytest

from tests.features.test_streams import STREAMS, created
from tests.support.engine_double import EngineDouble, example
from tests.test_collector import collector, wait_for  # noqa: F401
from thalweg.engine_client.access import problem_for
from thalweg.engine_client.client import EngineFailure
from thalweg.engine_client.documents import EngineError
from thalweg.kernel.principal import Principal, Role

SECRET = "4711-of-a-customer"
ERROR: dict[str, Any] = {
    "code": "apply_conflict", "class": "permanent", "title": "A change does not fit the destination's rows",
    "message": f'INSERT into "public"."orders" ("id" = \'{SECRET}\'): duplicate key value', "cure": "Mend the row.",
    "sqlstate": "23505", "table": '"public"."orders"', "lsn": "0/5A3C1F8", "xid": 7, "at": None,
}  # fmt: skip
EVERYWHERE = (
    "/api/v1/overview", "/api/v1/overview/rates", "/api/v1/streams", "/api/v1/alerts", "/api/v1/operations",
    "/api/v1/topology", "/api/v1/engines", "/api/v1/history", "/api/v1/advisor/runs", "/metrics",
)  # fmt: skip


async def test_an_error_of_a_row_shows_viewers_the_table_and_the_code(
    operator: httpx.AsyncClient,
    viewer: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Any,  # noqa: F811
) -> None:
    stream = await created(operator, registered)
    path = f"{STREAMS}/{stream['id']}"
    engine.status, engine.phase, engine.error = "ABORTED", "STOPPED", ERROR
    shown = await wait_for(operator, path, status="ABORTED")
    assert SECRET in shown["error"]["detail"]
    assert SECRET not in shown["error"]["message"]  # this one goes into alerts and mails
    seen = (await viewer.get(path)).json()
    assert (seen["error"]["code"], seen["error"]["sqlstate"]) == ("apply_conflict", "23505")
    assert '"public"."orders"' in seen["error"]["message"]
    await asyncio.sleep(1.5)  # alerts are looked for meanwhile
    for address in (path, *EVERYWHERE):
        answer = await viewer.get(address)
        assert answer.status_code in (200, 404), f"{address}: {answer.text}"
        assert SECRET not in answer.text, address


async def test_the_error_queue_shows_viewers_no_values(
    operator: httpx.AsyncClient, viewer: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    stream = await created(operator, registered)
    path = f"{STREAMS}/{stream['id']}/destinations/{stream['destinations'][0]['id']}/errors"
    engine.why = ERROR["message"]
    engine.execution = {
        "error_id": 1, "state": "FAILED", "executed": 80, "total": 250, "started_at": engine.started_at,
        "finished_at": engine.started_at, "error": ERROR, "failed_again": 1,
        "failures": [{"error_id": 1, "error": ERROR}],
    }  # fmt: skip
    full, seen = (await operator.get(path)).json(), await viewer.get(path)
    assert SECRET in full["errors"][0]["message"] and SECRET in full["execution"]["message"]
    assert SECRET in full["execution"]["failures"][0]["message"]
    assert SECRET not in seen.text
    (parked,) = seen.json()["errors"]
    assert (parked["tables"], parked["sqlstate"], parked["message"]) == (['"public"."t"'], "23505", None)
    assert seen.json()["total"] == 1


async def test_a_marker_that_has_failed_shows_viewers_no_values(
    operator: httpx.AsyncClient, viewer: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    path = f"{STREAMS}/{(await created(operator, registered))['id']}/markers"
    failed = {**example("markers")["placed"][2], "id": "failed00", "state": "FAILED", "failure": SECRET}
    engine.placed_markers.append(failed)
    for address in (path, f"{path}/failed00"):
        assert SECRET in (await operator.get(address)).text
        seen = await viewer.get(address)
        assert (SECRET in seen.text, "operators are shown why" in seen.text) == (False, True)


@pytest.mark.parametrize(
    ("code", "sqlstate", "told"),
    [
        ("database_error", "23505", False),
        ("database_error", "", False),  # an engine that tells none
        ("apply_conflict", "", False),
        ("engine_busy", "P0001", False),
        ("database_error", "55P03", True),
        ("unknown_stream", "", True),
    ],
)
def test_which_refusals_of_an_engine_viewers_may_read(code: str, sqlstate: str, told: bool) -> None:
    failure = EngineFailure(code, SECRET, "Mend it.", 503, sqlstate)
    readers = {role: Principal("", "", role, "session", "") for role in (Role.VIEWER, Role.OPERATOR)}
    assert (SECRET in problem_for(readers[Role.VIEWER], failure).detail) is told
    assert SECRET in problem_for(readers[Role.OPERATOR], failure).detail


@pytest.mark.parametrize(
    ("code", "sqlstate", "apart"),
    [
        ("apply_failed", "", True),
        ("initial_copy_inconsistent", "", True),
        ("database_error", "22P02", True),  # invalid input syntax for type integer: "..."
        ("database_error", "P0001", True),  # what a trigger says
        ("database_error", "44000", True),  # new row violates check option for view
        ("database_error", "42601", True),  # of a statement that a trigger builds
        ("database_error", "38000", True),  # an exception of PL/Python's
        ("database_error", "MYAPP", True),  # RAISE ... USING ERRCODE
        ("database_error", "XX000", True),
        ("database_error", "", False),  # the engine's own
        ("insufficient_privilege", "42501", False),
        ("database_error", "55P03", False),
        ("database_error", "42883", False),
        ("connection_lost", "08006", False),
    ],
)
def test_which_messages_quote_rows(code: str, sqlstate: str, apart: bool) -> None:
    error = EngineError.model_validate({**ERROR, "code": code, "sqlstate": sqlstate})
    assert (SECRET in error.message) is not apart
    assert (SECRET in error.detail) is apart
    # The engine knows where the message comes from: a function may raise any SQLSTATE.
    raised = EngineError.model_validate({**ERROR, "code": code, "sqlstate": sqlstate, "shows_rows": True})
    assert SECRET not in raised.message
    # Kept and read again it stays as it is.
    assert EngineError.model_validate(error.model_dump(by_alias=True)) == error


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({"operation": "UPDATE", "row_missing": True}, "UPDATE of {}: the destination has no such row."),
        (
            {"operation": "INSERT", "sqlstate": "23505"},
            "INSERT into {}: a unique key exists already. The server's SQLSTATE: 23505.",
        ),
        ({"operation": "DELETE", "sqlstate": "XX000"}, "DELETE from {}. The server's SQLSTATE: XX000."),
        ({"operation": "MERGE"}, "A change of {}."),  # a newer engine's
        ({}, "A change of {}."),  # an older engine's
    ],
)
def test_a_change_that_does_not_fit_has_its_operation_and_kind_for_everybody(facts: dict[str, Any], told: str) -> None:
    table = '"public"."t"'
    error = EngineError.model_validate({**ERROR, "sqlstate": "", "table": table, **facts})
    assert (error.message, error.detail) == (told.format(table), ERROR["message"])
    assert EngineError.model_validate(error.model_dump(mode="json", by_alias=True)) == error


@pytest.mark.parametrize(
    ("table", "sqlstate", "told"),
    [
        ('"public"."t"', "22021", '"public"."t": a value does not fit. The server\'s SQLSTATE: 22021.'),
        ("", "22021", "A value does not fit. The server's SQLSTATE: 22021."),
        ('"public"."t"', "XX000", '"public"."t". The server\'s SQLSTATE: XX000.'),
        ("", "XX000", f"{ERROR['title']}. The server's SQLSTATE: XX000."),
    ],
)
def test_an_error_of_a_copy_says_its_table_and_its_title_once(table: str, sqlstate: str, told: str) -> None:
    document = {**ERROR, "code": "database_error", "sqlstate": sqlstate, "table": table}
    assert EngineError.model_validate(document).message == told
