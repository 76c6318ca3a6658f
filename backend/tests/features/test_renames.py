"""Names of tables at the destinations: worked out by the control plane, told to engines table by table, and refused
where they are typed if no table could have them."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import Sides, Users
from tests.features.test_row_rules import ALL, NORTH, desired_tables
from tests.features.test_streams import STREAMS, body_of, created
from tests.features.test_table_troubles import ORDERS, trouble, until
from tests.support.engine_double import EngineDouble
from tests.support.serving import eventually
from tests.test_collector import collector  # noqa: F401
from tests.test_commands import Shell, shell, with_token  # noqa: F401
from thalweg.kernel.renames import DestinationNames, Rename

CUSTOMERS = {"schema": "public", "table": "customers"}
WHOLE = {"schema": "public", "to_schema": "archive"}
SOLD = {**ORDERS, "to_table": "sold"}
NAMED: dict[str, Any] = {**ALL, "renames": [WHOLE, SOLD]}
THERE = {
    "customers": {"schema": "archive", "table": "customers"}, "orders": {"schema": "archive", "table": "sold"},
}  # fmt: skip
HEADERS = {"If-Match": "*"}


def test_what_a_tables_own_entry_does_not_say_its_schemas_does() -> None:
    names = DestinationNames(
        [
            Rename(schema_name="a", to_schema="b"),
            Rename(schema_name="a", table="t", to_table="u"),
            Rename(schema_name="a", table="s", to_schema="c"),
            Rename(schema_name="x", table="t", to_schema="y", to_table="z"),
        ]
    )
    asked = [("a", "t"), ("a", "s"), ("a", "other"), ("x", "t"), ("x", "other")]
    assert [names.of(name) for name in asked] == [
        ("b", "u"), ("c", "s"), ("b", "other"), ("y", "z"), ("x", "other"),
    ]  # fmt: skip


async def test_engines_are_told_of_each_tables_name(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Any,  # noqa: F811
) -> None:
    masked = {**CUSTOMERS, "steps": [{"type": "mask_column", "column": "name", "with": "partial", "keep_first": 1}]}
    rules = {**NAMED, "transformations": [masked], "row_rules": [{**CUSTOMERS, "positive": [NORTH]}]}
    stream = await created(operator, registered, rules=rules)
    assert stream["rules"]["renames"] == [
        {**WHOLE, "table": None, "to_table": None}, {**SOLD, "to_schema": None},
    ]  # fmt: skip
    shown = {table["table"]: table["destination_name"] for table in stream["tables"]}
    assert shown == THERE

    async def sent() -> bool:
        return {name: table.get("destination") for name, table in desired_tables(engine).items()} == THERE

    await eventually(sent)
    rehearsed = {table["table"]: table["destination"] for table in engine.rehearsed["tables"]}
    assert rehearsed == THERE
    assert all("destination" not in table for table in engine.checked["tables"]), "a check of rules reads the source"


async def test_a_table_that_keeps_its_name_is_told_as_before(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Any,  # noqa: F811
) -> None:
    stream = await created(operator, registered, rules={**ALL, "renames": [SOLD, {**CUSTOMERS, "to_schema": "public"}]})
    shown = {table["table"]: table["destination_name"] for table in stream["tables"]}
    assert shown == {"customers": CUSTOMERS, "orders": {"schema": "public", "table": "sold"}}

    async def sent() -> bool:
        return desired_tables(engine).get("orders", {}).get("destination") is not None

    await eventually(sent)
    assert "destination" not in desired_tables(engine)["customers"]


@pytest.mark.parametrize(
    ("renames", "pointer", "says"),
    [
        ([{**ORDERS, "to_table": "customers"}], "/0/to_table", "a table of the stream has this name"),
        (
            [{**ORDERS, "to_table": "customers"}, {**CUSTOMERS, "to_table": "clients"}],
            "/0/to_table", "a table of the stream has this name",
        ),
        (
            [{**ORDERS, "to_table": "sold"}, {**CUSTOMERS, "to_table": "sold"}],
            "/0/to_table", "public.customers would be, too",
        ),
        ([{**ORDERS, "to_schema": "pg_catalog"}], "/0/to_schema", "a schema of PostgreSQL"),
        ([{"schema": "public", "to_schema": "thalweg"}], "/0/to_schema", "a schema of PostgreSQL or of Thalweg"),
        ([SOLD, {"schema": "elsewhere", "to_schema": "b"}], "/1/schema", "no table of the schema elsewhere"),
        ([{"schema": "public", "table": "nothing", "to_table": "b"}], "/0/table", "no table public.nothing"),
    ],
)  # fmt: skip
async def test_a_name_that_no_table_can_have_is_refused_where_it_is_typed(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, renames: list[Any],
    pointer: str, says: str,
) -> None:  # fmt: skip
    refused = await operator.post(STREAMS, json=body_of(registered, rules={**ALL, "renames": renames}))
    assert refused.status_code == 409, refused.text
    assert ("renames", "failed") in {(check["id"], check["status"]) for check in refused.json()["checks"]}
    first = next(error for error in refused.json()["errors"] if error["code"] == "renames")
    assert first["pointer"] == f"/rules/renames{pointer}" and says in first["message"], first


async def test_what_makes_no_sense_is_refused_at_its_place(
    operator: httpx.AsyncClient, registered: dict[str, str]
) -> None:
    async def place(*renames: Any) -> str:
        answer = await operator.post(STREAMS, json=body_of(registered, rules={**ALL, "renames": list(renames)}))
        assert answer.status_code == 422, answer.text
        return str(answer.json()["errors"][0]["pointer"]).removeprefix("/rules/renames")

    assert await place({"schema": "public"}) == "/0"
    assert await place({"schema": "public", "to_schema": "a", "to_table": "b"}) == "/0"
    assert await place(ORDERS) == "/0"
    assert await place({**ORDERS, "to_table": ""}) == "/0/to_table"
    assert await place({**ORDERS, "to_table": "t" * 64}) == "/0/to_table"
    assert await place({**ORDERS, "to_table": "ä" * 32}) == "/0/to_table", "64 bytes, which PostgreSQL would cut"
    assert await place(SOLD, {**ORDERS, "to_schema": "b"}) == "/1/table"
    assert await place(WHOLE, {**WHOLE, "to_schema": "b"}) == "/1/schema"


async def test_the_destinations_table_is_compared_under_its_name(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, sides: Sides
) -> None:
    user = sides.destination["user"]
    sides.on_destination(
        "CREATE SCHEMA archive", f"GRANT USAGE, CREATE ON SCHEMA archive TO {user}",
        "CREATE TABLE archive.sold (id bigint PRIMARY KEY)", f"ALTER TABLE archive.sold OWNER TO {user}",
    )  # fmt: skip
    refused = await operator.post(STREAMS, json=body_of(registered, rules=NAMED))
    (check,) = refused.json()["checks"]
    assert check["id"] == "existing_tables" and "archive.sold (column" in check["detail"], check
    assert 'ALTER TABLE "archive"."sold" ADD COLUMN "item"' in check["sql"]
    sides.on_destination("DROP TABLE archive.sold", "CREATE TABLE public.orders (other text)")
    await created(operator, registered, rules=NAMED)


async def test_a_table_with_other_columns_is_asked_for_under_its_name(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    drop = {**ORDERS, "steps": [{"type": "drop_column", "column": "amount"}]}
    refused = await operator.post(STREAMS, json=body_of(registered, rules={**NAMED, "transformations": [drop]}))
    (check,) = refused.json()["checks"]
    assert check["id"] == "transformed_tables" and check["sql"].startswith('CREATE TABLE "archive"."sold" ('), check


async def test_other_streams_are_compared_by_the_names_there(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    only_orders = {"include": [ORDERS], "renames": [SOLD]}
    await created(operator, registered, rules=only_orders)
    again = body_of(registered, rules={"include": [CUSTOMERS], "renames": [{**CUSTOMERS, "to_table": "sold"}]})
    refused = await operator.post(STREAMS, json={**again, "name": "another"})
    (check,) = [one for one in refused.json()["checks"] if one["status"] == "failed"]
    assert check["id"] == "other_streams" and "public.sold" in check["detail"], check
    apart = body_of(registered, rules={"include": [ORDERS]})
    made = await operator.post(STREAMS, json={**apart, "name": "another"})
    assert made.status_code == 202, made.text


async def test_tables_are_renamed_at_destinations_only_with_consent(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, sides: Sides,
    collector: Any,  # noqa: F811
) -> None:  # fmt: skip
    path = f"{STREAMS}/{(await created(operator, registered, rules=NAMED))['id']}"
    same = await operator.patch(path, json={"rules": NAMED}, headers=HEADERS)
    assert same.status_code == 200, same.text
    asked = await operator.patch(path, json={"rules": {**ALL, "renames": [WHOLE]}}, headers=HEADERS)
    (check,) = asked.json()["checks"]
    assert (check["id"], check["status"], check["items"]) == (
        "renames_changed", "consent", ["public.orders: archive.sold becomes archive.orders"],
    )  # fmt: skip
    assert [error["pointer"] for error in asked.json()["errors"]] == ["/rules/renames"]
    body = {"rules": {**ALL, "renames": [WHOLE]}, "accept": [check["consent"]]}
    sides.on_destination(
        "CREATE SCHEMA archive", f"GRANT USAGE, CREATE ON SCHEMA archive TO {sides.destination['user']}",
        "CREATE TABLE archive.orders (LIKE pg_catalog.pg_class)",
    )  # fmt: skip
    taken = await operator.patch(path, json=body, headers=HEADERS)
    assert taken.status_code == 409
    assert "moved_tables" in [one["id"] for one in taken.json()["checks"]], taken.text
    sides.on_destination("DROP TABLE archive.orders")
    changed = await operator.patch(path, json=body, headers=HEADERS)
    assert changed.status_code == 200, changed.text

    async def told() -> bool:
        there = desired_tables(engine).get("orders", {}).get("destination")
        return bool(there == {"schema": "archive", "table": "orders"})

    await eventually(told)


async def test_the_command_line_reads_them_from_a_file(
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Any,  # noqa: F811
    shell: Shell,  # noqa: F811
    users: Users,
    tmp_path: Path,
) -> None:
    run = with_token(shell, users)
    names = tmp_path / "names.json"
    names.write_text(json.dumps([WHOLE, SOLD]))
    choice = ["--include", "public.*", "--renames", str(names)]
    checked = await run("preflight", *choice, "--source", "shop", "--to", "warehouse")
    assert checked.code == 0 and "2 of 2 tables have other names there" in checked.out, checked
    made = await run("streams", "create", "s", *choice, "--source", "shop", "--to", "warehouse", "--wait")
    assert made.code == 0, made.err
    listed = await run("streams", "tables", "list", "s")
    assert "public.orders → archive.sold" in listed.out
    refused = await run("streams", "rules", "s", "--include", "public.*")
    assert (refused.code, "renames_changed" in refused.err) == (1, True)


async def test_a_rename_at_the_source_takes_the_name_at_the_destinations_along(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, collector: Any,  # noqa: F811
) -> None:  # fmt: skip
    called = {"schema": "public", "table": "purchases"}
    engine.troubles["orders"] = {"trouble": trouble("RENAMED", "follow", renamed_to=called)}
    path = f"{STREAMS}/{(await created(operator, registered, rules=NAMED))['id']}"
    await until(operator, path, "RENAMED")
    followed = (await operator.post(f"{path}/tables:follow", json=ORDERS)).json()
    assert {**called, "to_schema": None, "to_table": "sold"} in followed["rules"]["renames"]
    shown = {table["table"]: table["destination_name"] for table in followed["tables"]}
    assert shown == {"customers": THERE["customers"], "purchases": THERE["orders"]}


async def test_a_rename_at_the_source_that_would_meet_another_name_is_not_followed(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, collector: Any,  # noqa: F811
) -> None:  # fmt: skip
    called = {"schema": "public", "table": "clients"}
    engine.troubles["orders"] = {"trouble": trouble("RENAMED", "follow", renamed_to=called)}
    rules = {**ALL, "renames": [{**CUSTOMERS, "to_table": "clients"}]}
    path = f"{STREAMS}/{(await created(operator, registered, rules=rules))['id']}"
    await until(operator, path, "RENAMED")
    refused = await operator.post(f"{path}/tables:follow", json=ORDERS)
    assert refused.status_code == 409 and "a table of the stream has this name" in refused.text
    assert (await operator.get(path)).json()["rules"]["renames"][0]["to_table"] == "clients"
