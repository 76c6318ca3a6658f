"""Rules for a schema and for all tables: an engine is told of them table by table, also of those that come later."""

import json
from pathlib import Path
from typing import Any

import httpx

from tests.conftest import Sides, Users
from tests.features.test_destination_rules import destinations_of
from tests.features.test_row_rules import ALL, CHECK, TRY, desired_tables
from tests.features.test_streams import STREAMS, body_of, created
from tests.features.test_table_troubles import NAMED, ORDERS, trouble, until
from tests.support.engine_double import EngineDouble, example
from tests.support.serving import eventually
from tests.test_collector import collector  # noqa: F401
from tests.test_commands import Shell, shell, with_token  # noqa: F401

ANY = {"If-Match": "*"}
CUSTOMERS = {"schema": "public", "table": "customers"}
NO_TESTS = {"name": "no_tests", "condition": "tag = 'test'"}
SOME = {"name": "some", "condition": "id > 10"}
OWN = {"name": "own", "condition": "amount > 5"}
GLOBAL = {"scope": "global", "negative": [NO_TESTS]}
OF_SCHEMA = {"scope": "schema", "schema": "public", "positive": [SOME]}
OF_ORDERS = {**ORDERS, "positive": [OWN]}
SCOPED = [GLOBAL, OF_SCHEMA, OF_ORDERS]
SOME_OF_SCHEMA = {**SOME, "scope": "schema"}
NO_TESTS_GLOBAL = {**NO_TESTS, "scope": "global"}
OF_ENGINE = {
    "customers": {"positive": [SOME_OF_SCHEMA], "negative": [NO_TESTS_GLOBAL]},
    "orders": {"positive": [OWN, SOME_OF_SCHEMA], "negative": [NO_TESTS_GLOBAL]},
}


def found(schema: str, table: str, rule: str) -> dict[str, Any]:
    """An engine's finding: the rule names a column that the table does not have."""
    return {**example("rules-check")["problems"][0], "schema": schema, "table": table, "rule": rule}


async def test_an_engine_is_told_table_by_table(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Any,  # noqa: F811
) -> None:
    one: dict[str, Any] = {"destinations": [{"database_id": registered["destination"], "row_rules": SCOPED}]}
    stream = await created(operator, registered, rules={**ALL, "row_rules": SCOPED}, **one)
    kept = [(rules["scope"], rules["schema"], rules["table"]) for rules in stream["rules"]["row_rules"]]
    assert kept == [("global", None, None), ("schema", "public", None), ("table", "public", "orders")]
    (destination,) = stream["destinations"]
    assert destination["row_rules"] == stream["rules"]["row_rules"]
    assert all(table["filtered"] for table in destination["tables"])

    async def sent() -> bool:
        return {name: table.get("rules") for name, table in desired_tables(engine).items()} == OF_ENGINE

    await eventually(sent)
    own = {rules["table"]: rules for rules in destinations_of(engine)["warehouse"]["rules"]}
    assert own == {name: {"schema": "public", "table": name, **rules} for name, rules in OF_ENGINE.items()}

    async def counted() -> dict[str, Any] | None:
        shown = (await operator.get(f"{STREAMS}/{stream['id']}")).json()
        both = (shown["rule_counts"], shown["destinations"][0]["rule_counts"])
        return {"both": both} if all(both) else None

    for counts in (await eventually(counted))["both"]:
        scopes = {table["table"]: table["scopes"] for table in counts["tables"]}
        assert scopes == {"customers": ["schema", "global"], "orders": ["table", "schema", "global"]}


async def test_a_rule_fits_every_table_that_it_concerns(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    others = {"message": 'there is no column "tag"'}
    engine.rule_problems = [
        found("public", "customers", "no_tests"), {**found("public", "orders", "no_tests"), **others}
    ]  # fmt: skip
    refused = await operator.post(STREAMS, json=body_of(registered, rules={**ALL, "row_rules": SCOPED}))
    errors = refused.json()["errors"]
    assert {error["pointer"] for error in errors} == {"/rules/row_rules/0/negative/0/condition"}
    assert [error["message"].partition(", line")[0] for error in errors] == [
        "public.customers, rule no_tests of all tables", "public.orders, rule no_tests of all tables"
    ]  # fmt: skip
    assert all("narrow its scope" in error["cure"] for error in errors)
    assert {table["table"]: table["rules"] for table in engine.checked["tables"]} == OF_ENGINE

    engine.rule_problems = [found("public", "customers", "some")]
    one: dict[str, Any] = {"destinations": [{"database_id": registered["destination"], "row_rules": SCOPED}]}
    (error,) = (await operator.post(STREAMS, json=body_of(registered, **one))).json()["errors"]
    assert error["pointer"] == "/destinations/0/row_rules/1/positive/0/condition"
    assert error["message"].startswith("public.customers, rule some of the schema public, line 1")


async def test_what_is_wrong_with_a_rule_for_all_its_tables_is_said_once(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    engine.rule_problems = [
        found("public", table, rule) for rule in ("no_tests", "some") for table in ("customers", "orders")
    ]
    errors = (await operator.post(STREAMS, json=body_of(registered, rules={**ALL, "row_rules": SCOPED}))).json()
    assert {error["pointer"]: error["message"].partition(", line")[0] for error in errors["errors"]} == {
        "/rules/row_rules/0/negative/0/condition": "rule no_tests of all tables",
        "/rules/row_rules/1/positive/0/condition": "rule some of the schema public",
    }
    assert [error["cure"].partition(" at ")[0] for error in errors["errors"]] == ["Correct the rule"] * 2
    (check,) = [check for check in errors["checks"] if check["id"] == "row_rules"]
    assert check["detail"].startswith("The rules of 2 of 2 tables cannot") and len(check["items"]) == 2

    body = {"source_id": registered["source"], "row_rules": SCOPED, "include": ALL["include"]}
    told = (await operator.post(CHECK, json=body)).json()["problems"]
    assert [(finding["schema"], finding["table"], finding["rule"], finding["scope"]) for finding in told] == [
        (None, None, "no_tests", "global"), ("public", None, "some", "schema")
    ]  # fmt: skip


async def test_a_schema_that_the_stream_does_not_have(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    elsewhere = {**ALL, "row_rules": [GLOBAL, {**OF_SCHEMA, "schema": "sales"}]}
    (error,) = (await operator.post(STREAMS, json=body_of(registered, rules=elsewhere))).json()["errors"]
    assert (error["pointer"], error["message"]) == (
        "/rules/row_rules/1/schema", "The stream does not have the schema sales."
    )  # fmt: skip
    wrong = {**ALL, "row_rules": [GLOBAL, {**OF_ORDERS, "negative": [NO_TESTS]}]}
    refused = await operator.post(STREAMS, json=body_of(registered, rules=wrong))
    assert refused.status_code == 422
    assert [error["pointer"] for error in refused.json()["errors"]] == ["/rules/row_rules/1/negative/0/name"]


async def test_a_table_that_comes_later_has_them(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    sides: Sides,
    engine: EngineDouble,
    collector: Any,  # noqa: F811
) -> None:
    one: dict[str, Any] = {"destinations": [{"database_id": registered["destination"], "row_rules": [GLOBAL]}]}
    rules = {**NAMED, "row_rules": [OF_SCHEMA]}
    path = f"{STREAMS}/{(await created(operator, registered, rules=rules, **one))['id']}"
    sides.on_source(
        "CREATE TABLE parcels (id bigint PRIMARY KEY)", f"ALTER TABLE parcels OWNER TO {sides.source['user']}"
    )
    more = {**rules, "include": [*NAMED["include"], {"schema": "public", "table": "parcels"}]}
    engine.rule_problems = [found("public", "parcels", "some")]
    (first, *_) = (await operator.patch(path, json={"rules": more}, headers=ANY)).json()["errors"]
    assert first["pointer"] == "/rules/row_rules/0/positive/0/condition"
    assert first["message"].startswith("public.parcels, rule some of the schema public")
    engine.rule_problems = []
    changed = await operator.patch(path, json={"rules": more}, headers=ANY)
    assert changed.status_code == 200, changed.text

    async def sent() -> bool:
        return desired_tables(engine).get("parcels", {}).get("rules") == {"positive": [SOME_OF_SCHEMA]}

    await eventually(sent)
    told = {rules["table"]: rules for rules in destinations_of(engine)["warehouse"]["rules"]}
    assert told["parcels"] == {"schema": "public", "table": "parcels", "negative": [NO_TESTS_GLOBAL]}


async def test_changed_rules_of_a_scope_need_a_word_for_each_table(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    path = f"{STREAMS}/{(await created(operator, registered, rules={**ALL, 'row_rules': SCOPED}))['id']}"
    asked = await operator.patch(path, json={"rules": {**ALL, "row_rules": SCOPED[1:]}}, headers=ANY)
    (check,) = asked.json()["checks"]
    assert (check["id"], check["items"]) == ("row_rules_changed", ["public.customers", "public.orders"])
    asked = await operator.patch(path, json={"rules": {**ALL, "row_rules": SCOPED[:2]}}, headers=ANY)
    assert asked.json()["checks"][0]["items"] == ["public.orders"]
    # Only the scope of the schema's rule is another: it decides alike.
    of_all = {"scope": "global", "positive": [SOME], "negative": [NO_TESTS]}
    moved = await operator.patch(path, json={"rules": {**ALL, "row_rules": [of_all, OF_ORDERS]}}, headers=ANY)
    assert moved.status_code == 200, moved.text


async def test_a_renamed_table_stays_under_its_rules(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Any,  # noqa: F811
) -> None:
    called = {"schema": "sales", "table": "purchases"}
    engine.troubles["orders"] = {"trouble": trouble("RENAMED", "follow", renamed_to=called)}
    rules = {**NAMED, "row_rules": SCOPED}
    path = f"{STREAMS}/{(await created(operator, registered, rules=rules))['id']}"
    await until(operator, path, "RENAMED")
    refused = await operator.post(f"{path}/tables:follow", json=ORDERS)
    assert refused.status_code == 409 and "rules of the schema public" in refused.json()["detail"]
    without = {"rules": {**NAMED, "row_rules": [GLOBAL, OF_ORDERS]}, "accept": ["row_rules_changed"]}
    assert (await operator.patch(path, json=without, headers=ANY)).status_code == 200
    followed = (await operator.post(f"{path}/tables:follow", json=ORDERS)).json()
    assert [(rules["schema"], rules["table"]) for rules in followed["rules"]["row_rules"]] == [
        (None, None), ("sales", "purchases")
    ]  # fmt: skip


async def test_whoever_writes_them_names_the_tables(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    body: dict[str, Any] = {"source_id": registered["source"], "row_rules": SCOPED[:2]}
    (error,) = (await operator.post(CHECK, json=body)).json()["errors"]
    assert error["pointer"] == "/row_rules/0" and "include" in error["cure"]
    engine.rule_problems = [found("public", "customers", "no_tests")]
    named = {**body, "include": [{"schema": "public", "table": "c*"}, CUSTOMERS]}
    (finding,) = (await operator.post(CHECK, json=named)).json()["problems"]
    assert (finding["scope"], finding["table"]) == ("global", "customers") and "narrow its scope" in finding["cure"]
    assert engine.checked["tables"] == [{**CUSTOMERS, "rules": OF_ENGINE["customers"]}]
    excluded = {**named, "exclude": [CUSTOMERS]}
    assert (await operator.post(CHECK, json=excluded)).json()["errors"][0]["pointer"] == "/row_rules/0"


async def test_what_is_tried_says_where_each_rule_comes_from(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    north = {"scope": "global", "positive": [{"name": "north_only"}]}
    body = {"source_id": registered["source"], "table": ORDERS, "row_rules": [OF_ORDERS, north]}
    told = (await operator.post(TRY, json=body)).json()
    assert {rule["scope"] for change in told["changes"] for rule in change["rules"]} == {"global"}
    assert engine.checked["tables"] == [
        {**ORDERS, "rules": {"positive": [OWN, {"name": "north_only", "scope": "global"}]}}
    ]


async def test_the_command_line_takes_them(
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Any,  # noqa: F811
    shell: Shell,  # noqa: F811
    users: Users,
    tmp_path: Path,
) -> None:
    run = with_token(shell, users)
    file = tmp_path / "rules.json"
    north = {"name": "north_only", "condition": "regoin = 'north'"}
    file.write_text(json.dumps([{"scope": "global", "positive": [north]}]))
    engine.rule_problems = [found("public", "customers", "north_only")]
    check = ["rules", "check", str(file), "--source", "shop"]
    assert "include" in (await run(*check)).err
    refused = await run(*check, "--include", "public.*")
    assert "public.customers, rule north_only of all tables, line 1, column 1" in refused.out
    assert "    regoin = 'north'\n    ^\n" in refused.out
    assert engine.checked["tables"][0]["table"] == "customers" and len(engine.checked["tables"]) == 2
    await run(*check, "--include", "public.*", "--exclude", "public.orders")
    assert [table["table"] for table in engine.checked["tables"]] == ["customers"]
    engine.rule_problems = []
    test = ["rules", "test", str(file)]
    assert "names no tables" in (await run(*test, "--source", "shop")).err
    assert "north_only (global) null before, true after" in (await run(*test, "public.orders", "--source", "shop")).out
    choice = ["--source", "shop", "--to", "warehouse", "--include", "public.*", "--row-rules", str(file), "--wait"]
    assert (await run("streams", "create", "s", *choice)).code == 0
    assert ["public.customers", "global", "10"] in [
        line.split()[:3] for line in (await run("streams", "show", "s")).out.splitlines()
    ]
