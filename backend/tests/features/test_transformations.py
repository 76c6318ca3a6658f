"""Transformations of tables: the engines are told of them, an engine checks them first, the destination's tables must
take what is sent, and nobody loses a mask by forgetting it."""

import copy
from typing import Any

import httpx

from tests.conftest import Sides
from tests.features.test_row_rules import ALL, NORTH, desired_tables
from tests.features.test_streams import STREAMS, body_of, created
from tests.features.test_table_troubles import ORDERS
from tests.support.engine_double import EngineDouble, example
from tests.support.serving import eventually
from tests.test_collector import collector  # noqa: F401

CUSTOMERS = {"schema": "public", "table": "customers"}
PARTIAL = {"type": "mask_column", "column": "name", "with": "partial", "keep_first": 1}
DROP = {"type": "drop_column", "column": "amount"}
RENAME = {"type": "rename_column", "column": "item", "to": "goods"}
MASKED: dict[str, Any] = {**ALL, "transformations": [{**CUSTOMERS, "steps": [PARTIAL]}]}


async def test_the_engine_is_told_of_them(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Any,  # noqa: F811
) -> None:
    stream = await created(operator, registered, rules=MASKED)
    (shown,) = stream["rules"]["transformations"]
    assert shown == {**CUSTOMERS, "steps": [{**PARTIAL, "value": None, "keep_last": 0}]}

    async def sent() -> bool:
        return desired_tables(engine).get("customers", {}).get("transformations") == [PARTIAL]

    await eventually(sent)
    assert "transformations" not in desired_tables(engine)["orders"]
    assert engine.checked["tables"] == [{**CUSTOMERS, "transformations": [PARTIAL]}]
    assert {table["table"]: table.get("transformations") for table in engine.rehearsed["tables"]} == {
        "customers": [PARTIAL], "orders": None,
    }  # fmt: skip


async def test_a_finding_stops_the_creation_at_the_step(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    (finding,) = [one for one in example("rules-check")["findings"] if one["step"] is not None]
    engine.rule_findings = [{**finding, "step": 0}]
    refused = await operator.post(STREAMS, json=body_of(registered, rules=MASKED))
    assert refused.status_code == 409
    (check,) = refused.json()["checks"]
    assert (check["id"], check["side"], check["status"]) == ("transformations", "source", "failed")
    (error,) = refused.json()["errors"]
    assert (error["pointer"], error["cure"]) == (
        "/rules/transformations/0/steps/0", "Correct the transformation that the line names.",
    )  # fmt: skip
    engine.rule_findings = []
    elsewhere = {**ALL, "transformations": [{"schema": "public", "table": "elsewhere", "steps": [PARTIAL]}]}
    refused = await operator.post(STREAMS, json=body_of(registered, rules=elsewhere))
    assert [one["pointer"] for one in refused.json()["errors"]] == ["/rules/transformations/0/table"]
    engine.knows_rules = False
    refused = await operator.post(STREAMS, json=body_of(registered, rules=MASKED))
    (check,) = refused.json()["checks"]
    assert check["id"] == "transformations" and "knows no transformations" in check["cure"]


async def test_the_destination_must_take_what_is_sent(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, sides: Sides
) -> None:
    null = {"type": "mask_column", "column": "goods", "with": "null"}
    rules = {**ALL, "transformations": [{**ORDERS, "steps": [DROP, RENAME, null]}]}
    refused = await operator.post(STREAMS, json=body_of(registered, rules=rules))
    (check,) = refused.json()["checks"]
    assert (check["id"], check["side"], check["status"]) == ("transformed_tables", "destination", "failed")
    assert check["sql"] == 'CREATE TABLE "public"."orders" ("id" bigint NOT NULL, "goods" text, PRIMARY KEY ("id"));'
    sides.on_destination(
        "CREATE TABLE orders (id bigint PRIMARY KEY, item text, goods text NOT NULL)",
        f"ALTER TABLE orders OWNER TO {sides.destination['user']}",
    )
    refused = await operator.post(STREAMS, json=body_of(registered, rules=rules))
    (check,) = refused.json()["checks"]
    assert check["sql"] == 'ALTER TABLE "public"."orders" ALTER COLUMN "goods" DROP NOT NULL;'
    sides.on_destination("ALTER TABLE orders ALTER COLUMN goods DROP NOT NULL")
    await created(operator, registered, rules=rules)


async def test_nobody_loses_a_mask_by_forgetting_it(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    path = f"{STREAMS}/{(await created(operator, registered, rules=MASKED))['id']}"
    headers = {"If-Match": "*"}
    same = await operator.patch(path, json={"rules": MASKED}, headers=headers)
    assert same.status_code == 200, same.text
    asked = await operator.patch(path, json={"rules": ALL}, headers=headers)
    (check,) = asked.json()["checks"]
    assert (check["id"], check["status"], check["items"]) == (
        "transformations_changed",
        "consent",
        ["public.customers"],
    )
    assert [error["pointer"] for error in asked.json()["errors"]] == ["/rules/transformations"]
    more = copy.deepcopy(MASKED)
    more["transformations"][0]["steps"][0]["keep_first"] = 2
    other = await operator.patch(path, json={"rules": more, "accept": [check["consent"]]}, headers=headers)
    assert other.status_code == 409, "the consent was to other transformations"
    changed = await operator.patch(path, json={"rules": ALL, "accept": [check["consent"]]}, headers=headers)
    assert changed.status_code == 200 and changed.json()["rules"]["transformations"] == []


async def test_a_destination_has_no_rules_for_such_a_table(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    own = [{**CUSTOMERS, "positive": [NORTH]}]
    to: dict[str, Any] = {"destinations": [{"database_id": registered["destination"], "row_rules": own}]}
    refused = await operator.post(STREAMS, json=body_of(registered, rules=MASKED, **to))
    (check,) = refused.json()["checks"]
    assert check["id"] == "destination_row_rules" and "public.customers" in check["detail"]
    stream = await created(operator, registered, rules=MASKED)
    path = f"{STREAMS}/{stream['id']}/destinations/{stream['destinations'][0]['id']}"
    refused = await operator.patch(
        path, json={"row_rules": own, "accept": ["row_rules_changed"]}, headers={"If-Match": "*"}
    )
    assert refused.status_code == 409
    assert [error["pointer"] for error in refused.json()["errors"]] == ["/row_rules"]


async def test_what_makes_no_sense_is_refused_at_its_place(
    operator: httpx.AsyncClient, registered: dict[str, str]
) -> None:
    async def place(*steps: Any) -> str:
        transformations = [{**CUSTOMERS, "steps": list(steps)}]
        answer = await operator.post(
            STREAMS, json=body_of(registered, rules={**ALL, "transformations": transformations})
        )
        assert answer.status_code == 422, answer.text
        return str(answer.json()["errors"][0]["pointer"]).removeprefix("/rules/transformations/0/steps")

    mask = {"type": "mask_column", "column": "name"}
    assert await place() == ""
    assert (await place({"type": "add_column", "column": "name"})).startswith("/0")
    assert (await place(PARTIAL, {"type": "drop_column"})).startswith("/1")
    assert (await place({**mask, "with": "constant"})).startswith("/0")
    assert (await place({**mask, "with": "null", "value": "x"})).startswith("/0")
    assert (await place({**mask, "with": "null", "keep_last": 1})).startswith("/0")
    assert (await place({**mask, "with": "partial", "keep_last": 1001})).startswith("/0")
    twice = [{**CUSTOMERS, "steps": [PARTIAL]}] * 2
    answer = await operator.post(STREAMS, json=body_of(registered, rules={**ALL, "transformations": twice}))
    assert [error["pointer"] for error in answer.json()["errors"]] == ["/rules/transformations/1/table"]
