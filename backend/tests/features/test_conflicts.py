"""Conflict handlers as a parameter, and the conflict log: listed, counted, opened, exported."""

import csv
import io
import json
from typing import Any

import httpx

from tests.features.test_streams import STREAMS, body_of, created
from tests.support.engine_double import EngineDouble


async def log_of(client: httpx.AsyncClient, registered: dict[str, str]) -> str:
    stream = await created(client, registered)
    return f"{STREAMS}/{stream['id']}/destinations/{stream['destinations'][0]['id']}/conflicts"


OF_ORDERS = {"kind": "update_origin_differs", "schema": "public", "table": "orders"}


async def test_handlers_are_checked_at_their_places(
    admin: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    wrong: list[tuple[Any, str]] = [
        ("discard", ""),
        ([{"kind": "insert_exists"}], "/0/action"),
        ([{"action": "discard"}], "/0/kind"),
        ([{"kind": "insert_differs", "action": "discard"}], "/0/kind"),
        ([{"kind": "insert_exists", "action": "park"}], "/0/action"),
        ([{"kind": "update_exists", "action": "overwrite"}], "/0/action"),
        ([{"kind": "insert_exists", "action": "discard", "table": "orders"}], "/0/schema"),
        ([{"kind": "insert_exists", "action": "discard", "schema": "public"}], "/0/table"),
        ([{"kind": "insert_exists", "action": "discard", "error": "23505"}], "/0/error"),
        ([{"kind": "insert_exists", "action": "discard"}] * 101, ""),
        ([{**OF_ORDERS, "action": "maximum"}], "/0/by"),
        ([{"kind": "insert_exists", "action": "latest", "by": "amount"}], "/0/by"),
        ([{**OF_ORDERS, "action": "overwrite", "by": "amount"}], "/0/by"),
        ([{**OF_ORDERS, "action": "discard", "tie": "discard"}], "/0/tie"),
        ([{"kind": "update_missing", "action": "latest"}], "/0/action"),
        ([{**OF_ORDERS, "action": "delta"}], "/0/columns"),
        ([{**OF_ORDERS, "kind": "insert_exists", "action": "delta", "columns": ["amount"]}], "/0/action"),
        ([{"kind": "insert_exists", "action": "discard", "columns": ["amount"]}], "/0/columns"),
        ([{**OF_ORDERS, "action": "discard", "columns": ["amount", "amount"]}], "/0/columns"),
        (
            [
                {**OF_ORDERS, "action": "discard", "columns": ["amount"]},
                {**OF_ORDERS, "action": "delta", "columns": ["stock", "amount"]},
            ],
            "/1/columns",
        ),
        ([{**OF_ORDERS, "action": "discard"}, {**OF_ORDERS, "action": "delta", "columns": ["stock"]}], "/1/columns"),
        (
            [
                {"kind": "update_origin_differs", "action": "discard"},
                {**OF_ORDERS, "action": "delta", "columns": ["stock"]},
            ],
            "/1/columns",
        ),
        ([{**OF_ORDERS, "action": "latest", "columns": ["stock"]}], "/0/by"),
        ([{**OF_ORDERS, "action": "delta", "columns": ["stock"]}, {**OF_ORDERS, "action": "latest"}], "/1/by"),
        (
            [
                {**OF_ORDERS, "action": "delta", "columns": ["stock"]},
                {"kind": "update_origin_differs", "action": "latest"},
            ],
            "/1/by",
        ),
        ([{**OF_ORDERS, "action": "priority", "by": "site"}], "/0/order"),
        ([{**OF_ORDERS, "action": "priority", "order": ["a"]}], "/0/by"),
        ([{**OF_ORDERS, "action": "priority", "by": "site", "order": ["a", "a"]}], "/0/order"),
        ([{**OF_ORDERS, "action": "discard", "order": ["a"]}], "/0/order"),
        ([{**OF_ORDERS, "action": "append"}], "/0/columns"),
        ([{**OF_ORDERS, "kind": "delete_missing", "action": "merge"}], "/0/action"),
        ([{**OF_ORDERS, "action": "expression", "columns": ["amount"]}], "/0/expression"),
        ([{**OF_ORDERS, "action": "expression", "columns": ["a", "b"], "expression": "1"}], "/0/columns"),
        ([{**OF_ORDERS, "action": "discard", "expression": "1"}], "/0/expression"),
        ([{"kind": "multiple_unique_conflicts", "action": "overwrite"}], "/0/action"),
        ([{"kind": "insert_exists", "action": "discard"}, {"kind": "insert_exists", "action": "overwrite"}], "/1/kind"),
        ([{**OF_ORDERS, "action": "discard"}, {**OF_ORDERS, "action": "overwrite"}], "/1/table"),
        (
            [{"kind": "update_origin_differs", "action": "discard"}, {**OF_ORDERS, "action": "overwrite"}],
            "/1/table",
        ),
    ]
    for handlers, place in wrong:
        answer = await admin.post(STREAMS, json=body_of(registered, parameters={"conflict_handlers": handlers}))
        assert answer.status_code == 422, handlers
        problem = answer.json()["errors"][0]
        assert problem["pointer"] == f"/parameters/conflict_handlers{place}"
        assert "overwrite" in problem["cure"]


async def test_handlers_are_kept_as_they_are(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    handlers: list[dict[str, Any]] = [
        {"kind": "insert_exists", "schema": "public", "table": "orders", "action": "overwrite"},
        {"kind": "insert_exists", "action": "discard"},
        {"kind": "delete_missing", "action": "discard"},
    ]
    policies = [{"error": "23514", "action": "skip"}]
    stream = await created(operator, registered)
    assert stream["effective_parameters"]["conflict_handlers"] == []
    changed = await operator.patch(
        f"{STREAMS}/{stream['id']}",
        json={"parameters": {"conflict_handlers": handlers, "error_policies": policies}},
        headers={"If-Match": stream["etag"]},
    )
    assert changed.json()["parameters"] == {"conflict_handlers": handlers, "error_policies": policies}
    assert not changed.json()["restart_needed"]


async def test_the_log_is_paged_and_filtered(
    operator: httpx.AsyncClient, viewer: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    path = await log_of(operator, registered)
    engine.conflicts = 250
    page = (await operator.get(path, params={"limit": 200})).json()
    assert [page["conflicts"][0]["id"], len(page["conflicts"])] == [250, 200]
    rest = (await operator.get(path, params={"limit": 200, "cursor": page["next_cursor"]})).json()
    assert ([one["id"] for one in rest["conflicts"]], rest["next_cursor"]) == (list(range(50, 0, -1)), None)
    errors = (await operator.get(path, params={"kind": "error"})).json()["conflicts"]
    assert {(one["kind"], one["sqlstate"], one["action"]) for one in errors} == {("error", "23514", "skip")}
    await operator.get(path, params={"schema": "public", "table": "a b"})
    assert engine.asked_conflicts["table"] == "a b"
    half = await operator.get(path, params={"table": "orders"})
    assert (half.status_code, half.json()["errors"][0]["pointer"]) == (422, "/query/schema")
    zero = await operator.get(path, params={"schema": "public", "table": "a\0b"})
    assert (zero.status_code, zero.json()["errors"][0]["pointer"]) == (422, "/query/table")
    assert (await viewer.get(path)).json()["conflicts"][0]["message"] is None, "it quotes rows"


async def test_the_log_is_counted(
    viewer: httpx.AsyncClient, operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    path = await log_of(operator, registered)
    counts = (await viewer.get(f"{path}:count")).json()["counts"]
    assert [(one["kind"], one["sqlstate"], one["changes"]) for one in counts] == [("update_exists", None, 4)]


async def test_an_entry_is_opened_by_operators_only(
    admin: httpx.AsyncClient, operator: httpx.AsyncClient, viewer: httpx.AsyncClient, registered: dict[str, str],
    engine: EngineDouble,
) -> None:  # fmt: skip
    path = await log_of(operator, registered)
    engine.conflicts = 3
    opened = (await operator.get(f"{path}/2")).json()
    assert (opened["id"], opened["rows_found"]) == (2, 1)
    first, second = opened["columns"]
    assert (first["identity"], first["wanted"]["text"], first["now"]["text"], first["wanted_differs"]) == \
        (True, "5", "6", True)  # fmt: skip
    assert (second["wanted"]["state"], second["before"]["state"], second["before_differs"]) == ("null", "absent", None)
    entry = (await admin.get("/api/v1/audit")).json()["items"][0]
    assert (entry["action"], entry["after"]["conflict_id"]) == ("stream_conflicts_get", 2)
    assert (await operator.get(f"{path}/9")).status_code == 404
    assert (await viewer.get(f"{path}/2")).status_code == 403


async def test_the_log_is_exported_whole(
    admin: httpx.AsyncClient, operator: httpx.AsyncClient, viewer: httpx.AsyncClient, registered: dict[str, str],
    engine: EngineDouble,
) -> None:  # fmt: skip
    path = await log_of(operator, registered)
    engine.conflicts = 250
    answer = await operator.get(f"{path}:export")
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert [line["id"] for line in lines] == list(range(250, 0, -1))
    assert (lines[0]["wanted"], lines[0]["destination"], lines[0]["before"]) == \
        ({"id": "5", "name": None}, {"id": "6", "name": "here"}, None)  # fmt: skip
    engine.conflict_changes = {"message": "=cmd|' /C calc'!A0"}
    table = (await operator.get(f"{path}:export", params={"format": "csv"})).text
    rows = list(csv.DictReader(io.StringIO(table)))
    assert len(rows) == 250
    assert json.loads(rows[0]["wanted"]) == {"id": "5", "name": None}
    assert rows[0]["before"] == ""
    assert rows[0]["message"] == "'=cmd|' /C calc'!A0", "a spreadsheet would run it"
    assert (await admin.get("/api/v1/audit")).json()["items"][0]["action"] == "stream_conflicts_export"
    assert (await viewer.get(f"{path}:export")).status_code == 403
