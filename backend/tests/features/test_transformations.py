"""Transformations of tables: the engines are told of them, an engine checks them first, the destination's tables must
take what is sent, and nobody loses a mask by forgetting it."""

import copy
import json
from pathlib import Path
from typing import Any

import httpx

from tests.conftest import Sides, Users
from tests.features.test_row_rules import ALL, NORTH, desired_tables
from tests.features.test_streams import STREAMS, body_of, created
from tests.features.test_table_troubles import ORDERS
from tests.support.engine_double import EngineDouble, example
from tests.support.serving import eventually
from tests.test_collector import collector  # noqa: F401
from tests.test_commands import Shell, shell, with_token  # noqa: F401

CUSTOMERS = {"schema": "public", "table": "customers"}
PARTIAL = {"type": "mask_column", "column": "name", "with": "partial", "keep_first": 1}
DROP = {"type": "drop_column", "column": "amount"}
COMPUTED = {"type": "add_column", "column": "what", "data_type": "text", "expression": "name || id::text"}
RENAME = {"type": "rename_column", "column": "item", "to": "goods"}
HASH = {"type": "mask_column", "column": "name", "with": "hash"}
HASHED: dict[str, Any] = {**ALL, "transformations": [{**CUSTOMERS, "steps": [HASH]}]}
KEY = "planted key of at least 32 characters"
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


def told_key(engine: EngineDouble) -> str | None:
    streams = engine.desired["streams"]
    return streams[0].get("mask_key") if streams else None


async def test_a_key_that_was_not_given_is_made_once_and_never_shown(
    admin: httpx.AsyncClient,
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Any,  # noqa: F811
) -> None:
    stream = await created(operator, registered, rules=MASKED)
    path = f"{STREAMS}/{stream['id']}"
    assert (stream["mask_key_set"], stream["mask_key_version"]) == (False, None)
    hashed = {"rules": HASHED, "accept": ["transformations_changed"]}
    changed = await operator.patch(path, json=hashed, headers={"If-Match": "*"})
    assert changed.status_code == 200, changed.text
    assert changed.json()["mask_key_set"] is True

    async def told() -> bool:
        return told_key(engine) is not None

    await eventually(told)
    key = str(told_key(engine))
    assert len(key) == 64
    again = await operator.patch(path, json={**hashed, "name": "another"}, headers={"If-Match": "*"})
    assert again.status_code == 200
    assert again.json()["mask_key_version"] == changed.json()["mask_key_version"] is not None

    async def renamed() -> bool:
        return bool(engine.desired["streams"][0]["name"] == "another")

    await eventually(renamed)
    assert told_key(engine) == key
    for answer in (changed, again, await admin.get(path), await admin.get(STREAMS), await admin.get("/api/v1/audit")):
        assert answer.status_code == 200 and key not in answer.text
    # Without a mask that needs it no engine is told of it: an earlier one would refuse it.
    unmasked = {"rules": ALL, "accept": ["transformations_changed"]}
    assert (await operator.patch(path, json=unmasked, headers={"If-Match": "*"})).status_code == 200

    async def untold() -> bool:
        return "mask_key" not in engine.desired["streams"][0]

    await eventually(untold)


async def test_a_key_can_be_given_and_is_changed_only_with_consent(
    admin: httpx.AsyncClient,
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Any,  # noqa: F811
) -> None:
    stream = await created(operator, registered, rules=HASHED, mask_key=KEY)
    path = f"{STREAMS}/{stream['id']}"
    headers = {"If-Match": "*"}
    same = await operator.patch(path, json={"rules": HASHED, "mask_key": KEY}, headers=headers)
    assert same.status_code == 200, same.text
    body = {"rules": HASHED, "mask_key": KEY + "!"}
    asked = await operator.patch(path, json=body, headers=headers)
    (check,) = asked.json()["checks"]
    assert (check["id"], check["status"], check["items"]) == ("mask_key_changed", "consent", ["public.customers"])
    assert [error["pointer"] for error in asked.json()["errors"]] == ["/mask_key"]
    assert told_key(engine) in (None, KEY)
    changed = await operator.patch(path, json={**body, "accept": [check["consent"]]}, headers=headers)
    assert changed.status_code == 200, changed.text

    async def told() -> bool:
        return told_key(engine) == KEY + "!"

    await eventually(told)
    audit = await admin.get("/api/v1/audit")
    updates = [entry for entry in audit.json()["items"] if entry["action"] == "streams_update"]
    assert updates[0]["after"]["mask_key"] == "changed"
    for answer in (same, asked, changed, audit):
        assert KEY not in answer.text


async def test_the_command_line_reads_a_key_from_a_file(
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Any,  # noqa: F811
    shell: Shell,  # noqa: F811
    users: Users,
    tmp_path: Path,
) -> None:
    run = with_token(shell, users)
    masks, key = tmp_path / "masks.json", tmp_path / "key"
    masks.write_text(json.dumps(HASHED["transformations"]))
    key.write_text(f"{KEY}\n")
    choice = ["s", "--include", "public.*", "--transformations", str(masks), "--mask-key-file", str(key)]
    made = await run("streams", "create", *choice, "--source", "shop", "--to", "warehouse", "--wait")
    assert (made.code, KEY in made.out + made.err) == (0, False)
    assert told_key(engine) == KEY
    key.write_text("another key of at least 32 characters")
    refused = await run("streams", "rules", *choice)
    assert (refused.code, "mask_key_changed" in refused.err) == (1, True)
    assert (await run("streams", "rules", *choice, "--accept", "mask_key_changed")).code == 0

    async def told() -> bool:
        return told_key(engine) == "another key of at least 32 characters"

    await eventually(told)


async def test_a_key_that_can_be_guessed_or_goes_nowhere_is_refused(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    short = "thirty-one characters are short"
    refused = await operator.post(STREAMS, json=body_of(registered, rules=HASHED, mask_key=short))
    assert refused.status_code == 422 and short not in refused.text
    assert [error["pointer"] for error in refused.json()["errors"]] == ["/mask_key"]
    for same, has in (("a" * 64, "only one character"), ("01" * 32, "only 2 different"), ("0123456" * 6, "only 7")):
        refused = await operator.post(STREAMS, json=body_of(registered, rules=HASHED, mask_key=same))
        (error,) = refused.json()["errors"]
        assert (refused.status_code, error["pointer"], has in error["message"]) == (422, "/mask_key", True)
        assert "openssl rand" in error["cure"] and same not in refused.text
    stream = await created(operator, registered, rules=HASHED)
    path = f"{STREAMS}/{stream['id']}"
    refused = await operator.patch(path, json={"mask_key": KEY}, headers={"If-Match": "*"})
    assert refused.status_code == 422 and "with the rules" in refused.text and KEY not in refused.text


async def test_a_finding_stops_the_creation_at_the_step(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    (finding,) = [one for one in example("rules-check")["problems"] if one["step"] is not None]
    engine.rule_problems = [{**finding, "step": 0}]
    refused = await operator.post(STREAMS, json=body_of(registered, rules=MASKED))
    assert refused.status_code == 409
    (check,) = refused.json()["checks"]
    assert (check["id"], check["side"], check["status"]) == ("transformations", "source", "failed")
    (error,) = refused.json()["errors"]
    assert (error["pointer"], error["cure"]) == (
        "/rules/transformations/0/steps/0", "Correct the transformation that the line names.",
    )  # fmt: skip
    engine.rule_problems = []
    elsewhere = {**ALL, "transformations": [{"schema": "public", "table": "elsewhere", "steps": [PARTIAL]}]}
    refused = await operator.post(STREAMS, json=body_of(registered, rules=elsewhere))
    assert [one["pointer"] for one in refused.json()["errors"]] == ["/rules/transformations/0/table"]
    engine.knows_rules = False
    refused = await operator.post(STREAMS, json=body_of(registered, rules=MASKED))
    (check,) = refused.json()["checks"]
    assert check["id"] == "transformations" and "does not know them all" in check["cure"]


async def test_what_may_stop_the_stream_is_told_and_stops_nothing(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    """An expression over a long value, which an update brings only if it changes."""
    (finding,) = [one for one in example("rules-check")["problems"] if one["step"] is not None]
    engine.rule_problems = [{**finding, "step": None, "certain": False, "message": "A value may not come."}]
    rules = {**ALL, "transformations": [{**CUSTOMERS, "steps": [COMPUTED]}]}
    body = body_of(registered, rules=rules)
    answer = await operator.post("/api/v1/preflights", json={name: body[name] for name in body if name != "name"})
    (check,) = [one for one in answer.json()["checks"] if one["id"] == "transformations"]
    assert (check["status"], check["items"]) == ("warning", ["public.customers: A value may not come."])
    assert "REPLICA IDENTITY" in check["cure"]
    engine.rule_problems.append({**finding, "step": 0})
    refused = await operator.post(STREAMS, json=body)
    assert refused.status_code == 409
    assert "/rules/transformations/0/steps/0" in [one["pointer"] for one in refused.json()["errors"]]


async def test_a_computed_column_and_a_cast_go_to_the_engine_and_are_compared(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    sides: Sides,
    collector: Any,  # noqa: F811
) -> None:
    cast = {"type": "cast_column", "column": "amount", "data_type": "double precision"}
    total = {"type": "add_column", "column": "total", "data_type": "numeric", "expression": "id * 1.5"}
    steps = [total, cast, {"type": "rename_column", "column": "amount", "to": "sum"}]
    rules = {**ALL, "transformations": [{**ORDERS, "steps": steps}]}
    refused = await operator.post(STREAMS, json=body_of(registered, rules=rules))
    (check,) = refused.json()["checks"]
    assert check["id"] == "transformed_tables"
    assert '"sum" double precision' in check["sql"] and '"total" numeric' in check["sql"]
    # A cast alone makes another table than the source's.
    alone = {**ALL, "transformations": [{**ORDERS, "steps": [cast]}]}
    refused = await operator.post(STREAMS, json=body_of(registered, rules=alone))
    assert '"amount" double precision' in refused.json()["checks"][0]["sql"]
    sides.on_destination(
        "CREATE TABLE orders (id bigint PRIMARY KEY, item text, sum numeric(12,2), total numeric)",
        f"ALTER TABLE orders OWNER TO {sides.destination['user']}",
    )
    refused = await operator.post(STREAMS, json=body_of(registered, rules=rules))
    assert "column sum is numeric(12,2) instead of double precision" in refused.text
    sides.on_destination("ALTER TABLE orders ALTER sum TYPE double precision")
    stream = await created(operator, registered, rules=rules)
    shown = stream["rules"]["transformations"][0]["steps"]
    assert (shown[0]["expression"], shown[0]["value"]) == ("id * 1.5", None)

    async def sent() -> bool:
        return desired_tables(engine).get("orders", {}).get("transformations") == steps

    await eventually(sent)


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
    stream = await created(operator, registered, rules=rules)
    sides.on_destination("ALTER TABLE orders ADD made text GENERATED ALWAYS AS (upper(item)) STORED")
    renamed = {**ALL, "transformations": [{**ORDERS, "steps": [DROP, {**RENAME, "to": "made"}]}]}
    change = {"rules": renamed, "accept": ["transformations_changed"]}
    refused = await operator.patch(f"{STREAMS}/{stream['id']}", json=change, headers={"If-Match": "*"})
    assert refused.status_code == 409, refused.text
    (check,) = refused.json()["checks"]
    assert check["id"] == "transformed_tables" and "column made is generated there" in check["detail"], check
    assert check["sql"] == 'ALTER TABLE "public"."orders" ALTER COLUMN "made" DROP EXPRESSION;'


async def test_what_is_kept_and_added_must_be_there(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, sides: Sides
) -> None:
    keep = {"type": "keep_columns", "columns": ["id", "goods"]}
    add = {"type": "add_column", "column": "site", "data_type": "text", "value": "north"}
    place = {"type": "rename_column", "column": "site", "to": "place"}
    rules = {**ALL, "transformations": [{**ORDERS, "steps": [RENAME, keep, add, place]}]}
    refused = await operator.post(STREAMS, json=body_of(registered, rules=rules))
    (check,) = refused.json()["checks"]
    assert check["sql"] == (
        'CREATE TABLE "public"."orders" ("id" bigint NOT NULL, "goods" text NOT NULL, "place" text, '
        'PRIMARY KEY ("id"));'
    )
    assert engine.checked["tables"] == [{**ORDERS, "transformations": [RENAME, keep, add, place]}]
    sides.on_destination(
        "CREATE TABLE orders (id bigint PRIMARY KEY, goods text, place integer)",
        f"ALTER TABLE orders OWNER TO {sides.destination['user']}",
    )
    refused = await operator.post(STREAMS, json=body_of(registered, rules=rules))
    assert "column place is integer instead of text" in refused.text, "the type of an added column is compared"
    sides.on_destination("ALTER TABLE orders ALTER place TYPE text")
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
    assert (await place({"type": "cast_column", "column": "name"})).startswith("/0")
    assert (await place({"type": "cast_column", "column": "name", "data_type": "inet"})).startswith("/0")
    added = {"type": "add_column", "column": "site", "data_type": "text"}
    assert (await place(added)).startswith("/0")
    assert (await place({**added, "value": "x", "expression": "name"})).startswith("/0")
    assert (await place({**added, "expression": ""})).startswith("/0")
    assert (await place({**added, "data_type": "inet", "value": "x"})).startswith("/0")
    assert (await place({"type": "keep_columns", "columns": []})).startswith("/0")
    assert (await place(PARTIAL, {"type": "drop_column"})).startswith("/1")
    assert (await place({**mask, "with": "constant"})).startswith("/0")
    assert (await place({**mask, "with": "null", "value": "x"})).startswith("/0")
    assert (await place({**mask, "with": "null", "keep_last": 1})).startswith("/0")
    assert (await place({**mask, "with": "hash", "value": "x"})).startswith("/0")
    assert (await place({**mask, "with": "partial", "keep_last": 1001})).startswith("/0")
    twice = [{**CUSTOMERS, "steps": [PARTIAL]}] * 2
    answer = await operator.post(STREAMS, json=body_of(registered, rules={**ALL, "transformations": twice}))
    assert [error["pointer"] for error in answer.json()["errors"]] == ["/rules/transformations/1/table"]
