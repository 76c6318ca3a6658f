"""Searches in the log with the real engine: a row's life is found, and the SQL made of it undoes it at the source."""

from typing import Any

import httpx

from tests.conftest import Sides
from tests.features.test_searches import path_of
from tests.features.test_streams import STREAMS, body_of, created
from tests.support.real_engine import RealEngine
from tests.support.serving import eventually
from tests.test_collector import collector, wait_for  # noqa: F401
from tests.test_real_engine import enrol, of, thalwegd  # noqa: F401

NASTY = 'it\'s a \\ "row";\n--'
LIFE = ["INSERT", "UPDATE", "DELETE"]


async def test_a_row_s_life_is_found_and_undone(
    admin: httpx.AsyncClient,
    registered: dict[str, str],
    sides: Sides,
    thalwegd: RealEngine,  # noqa: F811
    collector: Any,  # noqa: F811
) -> None:
    assert (await enrol(admin, thalwegd)).status_code == 201
    made = await created(admin, registered, capture_kind="wal")
    await wait_for(admin, f"{STREAMS}/{made['id']}", phase="REPLICATING")
    sides.on_source(
        "INSERT INTO orders VALUES (201, 'new', 99)",
        f"UPDATE orders SET item = $x${NASTY}$x$, amount = NULL WHERE id = 201",
        "DELETE FROM orders WHERE id = 201",
        "UPDATE orders SET item = 'another' WHERE id = 7",
    )
    query = {"table": "public.orders", "key": "id=201"}

    async def found() -> Any:
        answer = await admin.get(path_of(registered, "changes"), params=query)
        if answer.status_code == 409:  # Nothing is kept yet.
            return None
        assert answer.status_code == 200, answer.text
        result = answer.json()
        return result if [change["operation"] for change in result["changes"]] == LIFE else None

    result = await eventually(found)
    assert (result["state"], result["truncated"], result["stream_id"]) == ("DONE", False, made["id"])
    insertion, update, deletion = result["changes"]
    assert len({change["xid"] for change in result["changes"]}) == 3
    assert (update["before_is"], deletion["before_is"]) == ("followed", "followed")
    texts = {
        column["name"]: (column["before"]["text"], column["after"]["text"], column["key"])
        for column in update["columns"]
    }
    assert texts == {"id": ("201", "201", True), "item": ("new", NASTY, False), "amount": ("99.00", None, False)}
    assert insertion["undo"] == """DELETE FROM "public"."orders" WHERE "id" = '201'::bigint;"""

    def row() -> list[tuple[Any, ...]]:
        return of(sides, sides.source["dbname"], "SELECT item, amount::text FROM orders WHERE id = 201")

    one = f"{path_of(registered)}/{result['id']}"
    for number, wanted in ((3, [(NASTY, None)]), (2, [("new", "99.00")]), (1, [])):
        script = await admin.get(f"{one}:undo", params={"change": number})
        assert script.status_code == 200, script.text
        sides.on_source(script.text.replace("BEGIN;", "").replace("COMMIT;", ""))
        assert row() == wanted, script.text
    listed = (await admin.get(path_of(registered))).json()
    assert listed["reason"] is None and result["id"] in [search["id"] for search in listed["searches"]]
    wrong = await admin.get(path_of(registered, "changes"), params={**query, "key": "id=x"})
    assert (wrong.status_code, wrong.json()["errors"][0]["pointer"]) == (422, "/query/key/id")
    assert (await admin.delete(one)).status_code == 204
    assert (await admin.get(one)).status_code == 404


async def test_rows_are_undone_whole(
    admin: httpx.AsyncClient,
    registered: dict[str, str],
    sides: Sides,
    thalwegd: RealEngine,  # noqa: F811
    collector: Any,  # noqa: F811
) -> None:
    """With the whole old row in the log, all kinds of changes are undone in one script: also of a table with columns
    that a server computes."""
    sides.on_source(
        "ALTER TABLE customers ADD loud text GENERATED ALWAYS AS (upper(name)) STORED, "
        "ADD number int GENERATED ALWAYS AS IDENTITY, ADD tags text[], REPLICA IDENTITY FULL",
        "INSERT INTO customers VALUES (1, 'ann', DEFAULT, DEFAULT, '{a,NULL}'), (2, 'bob', DEFAULT, DEFAULT, '{}')",
    )
    assert (await enrol(admin, thalwegd)).status_code == 201
    asked = await admin.post(STREAMS, json=body_of(registered, capture_kind="wal"))
    consents = [check["consent"] for check in asked.json()["checks"]]
    made = await created(admin, registered, capture_kind="wal", accept=consents)
    await wait_for(admin, f"{STREAMS}/{made['id']}", phase="REPLICATING")
    rows = "SELECT * FROM customers ORDER BY id"
    before = of(sides, sides.source["dbname"], rows)
    sides.on_source(
        "BEGIN; UPDATE customers SET name = 'anna', tags = NULL WHERE id = 1; DELETE FROM customers WHERE id = 2; "
        "INSERT INTO customers VALUES (3, 'cyd'); UPDATE customers SET id = 4 WHERE id = 3; COMMIT"
    )

    async def found() -> Any:
        answer = await admin.get(path_of(registered, "changes"), params={"table": "public.customers"})
        result = answer.json() if answer.status_code == 200 else {"changes": []}
        return result if len(result["changes"]) >= 4 else None

    result = await eventually(found)
    last = result["changes"][-4:]
    assert [change["operation"] for change in last] == ["UPDATE", "DELETE", "INSERT", "UPDATE"]
    assert [change["undo"] is not None for change in last] == [True] * 4, last
    numbers = [change["number"] for change in last]
    script = await admin.get(f"{path_of(registered)}/{result['id']}:undo", params={"change": numbers})
    sides.on_source(script.text)
    assert of(sides, sides.source["dbname"], rows) == before, script.text
