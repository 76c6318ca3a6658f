"""Values of rows reach operators and nobody below: a viewer sees the table, the code and how many there are."""

import asyncio
from typing import Any

import httpx
import pytest

from tests.features.test_streams import STREAMS, created
from tests.support.engine_double import EngineDouble
from tests.test_collector import collector, wait_for  # noqa: F401
from thalweg.engine_client.documents import EngineError

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
        "finished_at": engine.started_at, "error": ERROR,
    }  # fmt: skip
    full, seen = (await operator.get(path)).json(), await viewer.get(path)
    assert SECRET in full["errors"][0]["message"] and SECRET in full["execution"]["message"]
    assert SECRET not in seen.text
    (parked,) = seen.json()["errors"]
    assert (parked["tables"], parked["sqlstate"], parked["message"]) == (['"public"."t"'], "23505", None)
    assert seen.json()["total"] == 1


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
    # Kept and read again it stays as it is.
    assert EngineError.model_validate(error.model_dump(by_alias=True)) == error
