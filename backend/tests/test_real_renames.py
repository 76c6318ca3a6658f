"""Tables with other names at the destinations, with the real engine: what REST takes decides where rows go."""

from typing import Any

import httpx

from tests.conftest import Sides
from tests.features.test_streams import STREAMS, body_of, created
from tests.support.real_engine import RealEngine
from tests.support.serving import eventually
from tests.test_collector import collector, wait_for  # noqa: F401
from tests.test_real_engine import enrol, of, thalwegd  # noqa: F401
from tests.test_real_rules import ORDERS, drop_slot

ROWS = "SELECT id, item, amount FROM {} ORDER BY id"


def rules(*renames: dict[str, Any]) -> dict[str, Any]:
    return {"include": [{"schema": "public", "table": "*"}], "renames": list(renames)}


async def test_rows_go_to_the_tables_of_other_names_also_of_those_that_change(
    admin: httpx.AsyncClient,
    registered: dict[str, str],
    sides: Sides,
    thalwegd: RealEngine,  # noqa: F811
    collector: Any,  # noqa: F811
) -> None:
    assert (await enrol(admin, thalwegd)).status_code == 201
    whole, sold = {"schema": "public", "to_schema": "archive"}, {**ORDERS, "to_table": "sold"}
    made = await created(admin, registered, rules=rules(whole, sold))
    path = f"{STREAMS}/{made['id']}"
    await wait_for(admin, path, phase="REPLICATING")
    sides.on_source("INSERT INTO orders VALUES (201, 'new', 99)", "UPDATE orders SET item = 'other' WHERE id = 1")

    async def arrives_in(table: str) -> None:
        async def same() -> bool:
            there = of(sides, sides.destination["dbname"], f"SELECT to_regclass('{table}')")
            if there == [(None,)]:
                return False
            wanted = of(sides, sides.source["dbname"], ROWS.format("orders"))
            return of(sides, sides.destination["dbname"], ROWS.format(table)) == wanted

        await eventually(same)

    await arrives_in("archive.sold")
    assert of(sides, sides.destination["dbname"], "SELECT to_regclass('public.orders')") == [(None,)]
    sides.on_destination("CREATE TABLE archive.taken (id bigint)")
    change = {"rules": rules(whole, {**sold, "to_table": "taken"}), "accept": ["renames_changed"]}
    refused = await admin.patch(path, json=change, headers={"If-Match": "*"})
    assert "archive.taken (of public.orders): other tables have these names" in refused.text
    change["rules"] = rules(whole, {**sold, "to_table": "gone"})
    assert (await admin.patch(path, json=change, headers={"If-Match": "*"})).status_code == 200
    sides.on_source("INSERT INTO orders VALUES (202, 'later', 1)")
    await arrives_in("archive.gone")
    table = next(one for one in (await admin.get(path)).json()["tables"] if one["table"] == "orders")
    assert table["destination_name"] == {"schema": "archive", "table": "gone"}
    thalwegd.stop()
    await drop_slot(sides, made)


async def test_the_preflight_tries_definitions_under_the_names_there(
    admin: httpx.AsyncClient,
    registered: dict[str, str],
    sides: Sides,
    thalwegd: RealEngine,  # noqa: F811
) -> None:
    assert (await enrol(admin, thalwegd)).status_code == 201
    user = sides.destination["user"]
    sides.on_destination(
        "CREATE SCHEMA archive", f"GRANT USAGE, CREATE ON SCHEMA archive TO {user}",
        "CREATE VIEW archive.sold AS SELECT 1 AS id",
    )  # fmt: skip
    renames = rules({**ORDERS, "to_schema": "archive", "to_table": "sold"})
    body = {name: value for name, value in body_of(registered, rules=renames).items() if name != "name"}
    answer = await admin.post("/api/v1/preflights", json=body)
    failed = [check for check in answer.json()["checks"] if check["status"] == "failed"]
    assert [check["id"] for check in failed] == ["definitions"], answer.text
    assert any("archive" in item and "sold" in item for item in failed[0]["items"]), failed
    thalwegd.stop()
