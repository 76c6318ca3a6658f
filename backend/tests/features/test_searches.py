"""Searches in a source's log over REST: begun at the right engine, followed, read, exported, recorded."""

import csv
import io
import json
from typing import Any

import httpx
import pytest

from tests.conftest import Sides
from tests.features.test_streams import created
from tests.support.engine_double import EngineDouble
from thalweg.features.changes.asked import search_of
from thalweg.kernel.log_positions import moment_of
from thalweg.kernel.problems import Problem

ORDERS = {"rules": {"include": [{"schema": "public", "table": "orders"}]}}
CUSTOMERS = {"rules": {"include": [{"schema": "public", "table": "customers"}]}}
SECRET = "4711-of-a-customer"


async def mined(client: httpx.AsyncClient, registered: dict[str, str], **changes: Any) -> str:
    return str((await created(client, registered, capture_kind="wal", **changes))["id"])


def path_of(registered: dict[str, str], rest: str = "searches") -> str:
    return f"/api/v1/sources/{registered['source']}/{rest}"


async def audited(admin: httpx.AsyncClient, action: str) -> list[dict[str, Any]]:
    items = (await admin.get("/api/v1/audit", params={"limit": 1000})).json()["items"]
    return [item for item in items if item["action"] == action]


async def test_a_source_that_no_stream_mines_says_so(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    await created(operator, registered)
    listed = (await operator.get(path_of(registered))).json()
    assert (listed["streams"], listed["unavailable"], listed["searches"]) == ([], [], [])
    assert "thalweg streams capture" in listed["reason"]
    refused = await operator.post(path_of(registered), json={})
    assert (refused.status_code, refused.json()["code"]) == (409, "search_refused")
    assert "log mining" in refused.json()["cure"]
    assert (await operator.get("/api/v1/sources/nosuchid/searches")).status_code == 404


async def test_what_is_kept_is_listed_by_stream(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    stream = await mined(operator, registered)
    begun = (await operator.post(path_of(registered), json={})).json()
    listed = (await operator.get(path_of(registered))).json()
    assert listed["streams"] == [
        {
            "stream_id": stream, "stream_name": "shop to warehouse", "kept_from": "0/1A2B3C4D",
            "kept_from_time": "2026-11-30T09:12:44.101250Z", "kept_until": "0/2F40A8B0", "kept_bytes": 352321536,
        }
    ]  # fmt: skip
    assert listed["reason"] is None
    assert [(search["id"], search["stream_id"]) for search in listed["searches"]] == [(begun["id"], stream)]
    engine.searches.refusal = (409, "search_refused", "Nothing is kept yet.")
    silent = (await operator.get(path_of(registered))).json()
    assert (silent["streams"], silent["unavailable"][0]["message"]) == ([], "Nothing is kept yet.")
    assert silent["unavailable"][0]["code"] == "search_refused" and silent["reason"]
    engine.searches.refusal = (404, "not_found", "There is no such address.")
    older = (await operator.get(path_of(registered))).json()
    assert "version" in older["unavailable"][0]["message"]


async def test_a_search_is_begun_followed_and_ended(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    stream = await mined(operator, registered)
    engine.searches.states = ["RUNNING", "DONE"]
    wanted = {
        "table": {"schema": "public", "table": "orders"}, "key": {"id": "5", "note": None}, "from": "0/1A2B3C4D",
        "to_time": "2026-11-30T11:00:00+01:00", "xid": 771, "limit": 50,
    }  # fmt: skip
    answer = await operator.post(path_of(registered), json=wanted)
    assert answer.status_code == 202, answer.text
    begun = answer.json()
    assert (begun["state"], begun["stream_id"], begun["found"]) == ("RUNNING", stream, 3)
    assert answer.headers["location"] == f"{path_of(registered)}/{begun['id']}"
    assert engine.searches.asked == [(stream, {**wanted, "to_time": "2026-11-30T10:00:00Z"})]
    path = answer.headers["location"]
    assert (await operator.get(path)).json()["state"] == "RUNNING"
    done = (await operator.get(path, params={"after": 1, "limit": 2, "whole": True})).json()
    assert [done["state"], done["next_after"], [change["number"] for change in done["changes"]]] == ["DONE", 3, [2, 3]]
    assert engine.searches.looked[-1] == {"after": "1", "limit": "2", "whole": "1"}
    update = done["changes"][0]
    assert (update["operation"], update["before_is"], update["origin"]) == ("UPDATE", "followed", "warehouse")
    assert update["columns"][1] == {
        "name": "state", "type": "text", "key": False, "before": {"text": "new", "cut": False, "masked": False},
        "after": {"text": "paid", "cut": False, "masked": False},
    }  # fmt: skip
    assert (update["undo"], update["undo_note"]) == (None, "The stream masks email.")
    insertion = (await operator.get(path)).json()["changes"][0]
    assert insertion["undo"] == """DELETE FROM "public"."orders" WHERE "id" = '5'::bigint;"""
    assert (await operator.delete(path)).status_code == 204
    assert (await operator.get(path)).status_code == 404
    assert (await operator.delete(path)).status_code == 404


async def test_a_search_that_is_sent_twice_is_begun_once(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    await mined(operator, registered)
    headers = {"Idempotency-Key": "key-of-this-test"}
    answers = [await operator.post(path_of(registered), json={}, headers=headers) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert len(engine.searches.asked) == 1


async def test_a_failed_search_says_why(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    await mined(operator, registered)
    engine.searches.states = ["FAILED"]
    begun = (await operator.post(path_of(registered), json={})).json()
    failed = (await operator.get(f"{path_of(registered)}/{begun['id']}")).json()
    assert (failed["state"], failed["error"]["code"]) == ("FAILED", "search_overtaken")
    assert "wal_keep_mb" in failed["error"]["cure"]


@pytest.mark.parametrize(
    ("refusal", "status", "code", "pointer"),
    [
        ((400, "invalid_request", "/key/id: is no bigint"), 422, "invalid_request", "/key/id"),
        ((400, "invalid_request", "The table is unknown."), 422, "invalid_request", ""),
        ((409, "search_refused", "Nothing is kept yet."), 409, "search_refused", None),
        ((503, "search_busy", "Another one runs."), 503, "search_busy", None),
        ((404, "not_found", "There is no such address."), 409, "search_refused", None),
        ((404, "unknown_stream", "The engine has no such stream."), 404, "not_found", None),
    ],
)
async def test_refusals_of_an_engine(
    operator: httpx.AsyncClient, admin: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble,
    refusal: tuple[int, str, str], status: int, code: str, pointer: str | None,
) -> None:  # fmt: skip
    await mined(operator, registered)
    engine.searches.refuses_search = refusal
    answer = await operator.post(path_of(registered), json={})
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert [error["pointer"] for error in answer.json()["errors"]] == ([] if pointer is None else [pointer])
    found = await operator.get(path_of(registered, "changes"))
    assert [error["pointer"] for error in found.json()["errors"]] == ([] if pointer is None else [f"/query{pointer}"])
    assert await audited(admin, "searches_create") == []


async def test_the_stream_that_has_the_table_and_keeps_most_is_searched(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, sides: Sides
) -> None:
    sides.on_source("CREATE TABLE items (id bigint PRIMARY KEY)")
    orders = await mined(operator, registered, **ORDERS)
    customers = await mined(operator, registered, name="customers", **CUSTOMERS)
    engine.searches.kept_from = {orders: "1/0", customers: "0/FFFFFFFF"}

    async def chosen(**body: Any) -> str:
        answer = await operator.post(path_of(registered), json=body)
        assert answer.status_code == 202, answer.text
        return engine.searches.asked[-1][0]

    def of(table: str) -> dict[str, str]:
        return {"schema": "public", "table": table}

    assert await chosen(table=of("orders")) == orders
    assert await chosen(table=of("customers")) == customers
    assert await chosen() == customers  # FFFFFFFF is less than 1/0
    assert await chosen(table=of("items")) == customers
    assert await chosen(table=of("gone"), stream_id=orders) == orders
    assert await chosen(table=of("customers"), stream_id=orders) == orders
    unknown = await operator.post(path_of(registered), json={"stream_id": "nosuchid"})
    assert (unknown.status_code, unknown.json()["errors"][0]["pointer"]) == (422, "/stream_id")
    search = (await operator.post(path_of(registered), json={"stream_id": orders})).json()["id"]
    assert (await operator.get(f"{path_of(registered)}/{search}")).json()["stream_id"] == orders


async def test_a_table_that_nobody_has_is_refused(
    operator: httpx.AsyncClient, admin: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble,
    sides: Sides,
) -> None:  # fmt: skip
    """Nothing found would read as if nobody had changed it."""
    await mined(operator, registered)
    for name, near in (("public.order", "public.orders is similar"), ("app.orders", "public.orders"), ("app.nope", "")):
        refused = await operator.get(path_of(registered, "changes"), params={"table": name})
        assert refused.status_code == 422, refused.text
        (error,) = refused.json()["errors"]
        assert (error["pointer"], name in error["message"]) == ("/query/table", True)
        assert near in error["cure"] and "--stream" in error["cure"]
    body = {"table": {"schema": "app", "table": "nope"}}
    refused = await operator.post(path_of(registered), json=body)
    assert [error["pointer"] for error in refused.json()["errors"]] == ["/table"]
    assert engine.searches.asked == [] and await audited(admin, "searches_create") == []
    sides.cluster.execute(f"ALTER DATABASE {sides.source['dbname']} WITH ALLOW_CONNECTIONS false")
    asked = await operator.post(path_of(registered), json=body)
    assert asked.status_code == 202, "the log can be searched while the source is away"


async def test_changes_waits_for_the_end(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, sides: Sides
) -> None:
    await mined(operator, registered)
    sides.on_source('CREATE TABLE "odd.table" (id bigint)')
    engine.searches.states = ["RUNNING", "RUNNING", "DONE"]
    query = [
        ("from", "2026-11-30T10:00:00"), ("to", "0/2F40A8B0"), ("table", 'public."odd.table"'), ("key", "id=5"),
        ("key", '"a=b"=x=y'), ("xid", "771"), ("limit", "7"),
    ]  # fmt: skip
    found = (await operator.get(path_of(registered, "changes"), params=query)).json()
    assert (found["state"], len(found["changes"]), found["next_after"]) == ("DONE", 4, None)
    assert engine.searches.asked[0][1] == {
        "from_time": "2026-11-30T10:00:00Z", "to": "0/2F40A8B0", "table": {"schema": "public", "table": "odd.table"},
        "key": {"id": "5", "a=b": "x=y"}, "xid": 771, "limit": 7,
    }  # fmt: skip
    engine.searches.states = ["RUNNING"]
    running = (await operator.get(path_of(registered, "changes"), params={"wait": "0.2"})).json()
    assert (running["state"], len(running["changes"])) == ("RUNNING", 4)
    many = await operator.get(path_of(registered, "changes"), params={"limit": "10000", "wait": "0"})
    assert many.status_code == 200 and engine.searches.looked[-1]["limit"] == "1000"


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ({"from": "yesterday"}, "/query/from"), ({"from": "0001-01-01T00:00:00+14:00"}, "/query/from"),
        ({"to": "0/X"}, "/query/to"), ({"table": "orders"}, "/query/table"),
        ({"table": "public.orders", "key": "id"}, "/query/key"), ({"wait": "31"}, "/query/wait"),
        ({"limit": "10001"}, "/query/limit"), ({"xid": "0"}, "/query/xid"),
        ({"table": f"public.{'t' * 64}"}, "/query/table"),
    ],
)  # fmt: skip
async def test_wrong_queries_are_named(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, query: dict[str, str], pointer: str
) -> None:
    await mined(operator, registered)
    answer = await operator.get(path_of(registered, "changes"), params=query)
    assert (answer.status_code, [error["pointer"] for error in answer.json()["errors"]]) == (422, [pointer])
    assert engine.searches.asked == []


def test_a_key_names_each_column_once() -> None:
    with pytest.raises(Problem, match="once"):
        search_of(None, None, "public.t", ["id=5", "id=6"], None, 1)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("0/1A2B3C4D", "0/1A2B3C4D"), ("2026-11-30T10:00:00Z", "2026-11-30T10:00:00+00:00"),
        ("2026-11-30", "2026-11-30T00:00:00+00:00"), ("2026-11-30 10:00+01:00", "2026-11-30T10:00:00+01:00"),
        ("", None), ("1/123456789", None),
    ],
)  # fmt: skip
def test_moments(text: str, moment: str | None) -> None:
    found = moment_of(text)
    assert (found if found is None or isinstance(found, str) else found.isoformat()) == moment


async def test_only_operators_search(
    viewer: httpx.AsyncClient, anonymous: httpx.AsyncClient, operator: httpx.AsyncClient, registered: dict[str, str],
    engine: EngineDouble,
) -> None:  # fmt: skip
    await mined(operator, registered)
    search = (await operator.post(path_of(registered), json={})).json()["id"]
    one = f"{path_of(registered)}/{search}"
    changes = path_of(registered, "changes")
    for address in (path_of(registered), one, f"{one}:export", f"{one}:undo", changes):
        assert (await viewer.get(address)).status_code == 403, address
        assert (await anonymous.get(address)).status_code == 401, address
    assert (await viewer.post(path_of(registered), json={})).status_code == 403
    assert (await viewer.delete(one)).status_code == 403
    assert len(engine.searches.asked) == 1


async def test_the_audit_log_has_who_searched_what_and_no_values(
    admin: httpx.AsyncClient, operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    stream = await mined(operator, registered)
    body = {"table": {"schema": "public", "table": "orders"}, "key": {"id": SECRET}, "xid": 7}
    search = (await operator.post(path_of(registered), json=body)).json()["id"]
    (entry,) = await audited(admin, "searches_create")
    assert entry["after"] == {
        "search_id": search, "stream_id": stream, "schema": "public", "table": "orders", "key_columns": ["id"],
        "xid": 7,
    }  # fmt: skip
    assert (entry["actor_name"], entry["target_type"], entry["target_name"]) == ("operator", "database", "shop")
    assert entry["sentence"] == "Changes of public.orders searched in the log"
    one = f"{path_of(registered)}/{search}"
    await operator.get(one)
    assert await audited(admin, "searches_get") == [], "it is their own"
    await admin.get(one)
    (entry,) = await audited(admin, "searches_get")
    assert (entry["actor_name"], entry["after"]["search_id"]) == ("admin", search)
    await operator.get(f"{one}:export", params={"format": "csv"})
    await operator.get(f"{one}:undo", params={"change": 1})
    (exported,), (undone,) = await audited(admin, "searches_export"), await audited(admin, "searches_undo")
    assert (exported["after"]["format"], undone["after"]["changes"]) == ("csv", [1])
    await operator.get(path_of(registered, "changes"), params={"table": "public.orders", "key": f"id={SECRET}"})
    assert len(await audited(admin, "searches_create")) == 2
    assert SECRET not in (await admin.get("/api/v1/audit")).text


async def test_changes_are_exported_whole(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    await mined(operator, registered)
    engine.searches.page_max = 3
    first = engine.searches.changes[0]
    first["columns"][1]["after"] |= {"text": "=1+1", "cut": True}
    first["table"] = "=cmd|' /C calc'!A0"
    one = f"{path_of(registered)}/{(await operator.post(path_of(registered), json={})).json()['id']}"
    answer = await operator.get(f"{one}:export")
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    assert "attachment" in answer.headers["content-disposition"]
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert [line["number"] for line in lines] == [1, 2, 3, 4]
    assert lines[0]["before"] is None
    assert lines[0]["after"] == {"id": "5", "state": "=1+1", "note": None}
    assert (lines[0]["masked"], lines[0]["cut"], lines[0]["commit_time"]) == (
        ["email"], ["state"], "2026-11-30T09:13:01.500000Z",
    )  # fmt: skip
    assert (lines[2]["before"], lines[2]["after"]) == ({"id": "5"}, None)
    assert {query["whole"] for query in engine.searches.looked} == {"1"}
    rows = list(csv.DictReader(io.StringIO((await operator.get(f"{one}:export", params={"format": "csv"})).text)))
    assert [row["number"] for row in rows] == ["1", "2", "3", "4"]
    assert rows[0]["table"] == "'=cmd|' /C calc'!A0", "a spreadsheet would run it"
    assert json.loads(rows[0]["after"])["state"] == "=1+1"


async def test_sql_undoes_all_changes_or_some(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    await mined(operator, registered)
    engine.searches.page_max = 3
    one = f"{path_of(registered)}/{(await operator.post(path_of(registered), json={})).json()['id']}"
    script = await operator.get(f"{one}:undo")
    assert script.headers["content-type"].startswith("application/sql")
    lines = script.text.splitlines()
    assert [line for line in lines if not line.startswith("--")] == [
        "BEGIN;", """DELETE FROM "public"."orders" WHERE "id" = '5'::bigint;""", "COMMIT;"
    ]  # fmt: skip
    numbers = [line.split(":")[0] for line in lines if line.startswith("-- Change ")]
    assert numbers == ["-- Change 4", "-- Change 3", "-- Change 2", "-- Change 1"]
    some = (await operator.get(f"{one}:undo", params={"change": [1, 4]})).text
    assert "-- Change 4" in some and "-- Change 2" not in some
    engine.searches.states = ["RUNNING"]
    for what in ("undo", "export"):
        early = await operator.get(f"{one}:{what}")
        assert (early.status_code, early.json()["code"]) == (409, "search_running")


async def test_an_engine_that_is_away(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    await mined(operator, registered)
    search = (await operator.post(path_of(registered), json={})).json()["id"]
    engine.searches.refusal = (503, "engine_busy", "It has too much to do.")
    answer = await operator.get(f"{path_of(registered)}/{search}")
    assert (answer.status_code, answer.json()["code"]) == (502, "engine_refused"), "it may have the search"
    listed = (await operator.get(path_of(registered))).json()
    assert listed["unavailable"][0]["code"] == "engine_refused"
