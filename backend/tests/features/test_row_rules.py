"""Row rules: the engines are told of them, an engine checks them, and nobody loses them by forgetting them."""

import copy
import json
from typing import Any

import httpx
import pytest

from tests.conftest import Sides
from tests.features.test_streams import STREAMS, body_of, created
from tests.features.test_table_troubles import ORDERS, trouble, until
from tests.support.audit import asked_for
from tests.support.engine_double import EngineDouble, example
from tests.support.serving import eventually
from tests.test_collector import collector  # noqa: F401

ALL = {"include": [{"schema": "public", "table": "*"}], "exclude": []}
NORTH = {"name": "north_only", "condition": "region = 'north'", "subset": True}
NO_PURGES = {"name": "no_purges", "operations": ["DELETE", "TRUNCATE"]}
ROW_RULES = [
    {**ORDERS, "positive": [NORTH]},
    {"schema": "public", "table": "customers", "positive": [], "negative": [NO_PURGES]},
]
RULED = {**ALL, "row_rules": ROW_RULES}
CHECK = f"{STREAMS}:check-rules"
TRY = f"{STREAMS}:test-rules"


def desired_tables(engine: EngineDouble) -> dict[str, dict[str, Any]]:
    streams = engine.desired.get("streams") or [{"tables": []}]
    return {table["table"]: table for table in streams[0]["tables"]}


async def test_the_engine_is_told_of_the_rules(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    sides: Sides,
    collector: Any,  # noqa: F811
) -> None:
    stream = await created(operator, registered, rules=RULED)
    first, second = stream["rules"]["row_rules"]
    positive = [{**NORTH, "operations": None, "on_error": "stop"}]
    assert first == {"scope": "table", **ORDERS, "positive": positive, "negative": None}
    assert second["negative"] == [{**NO_PURGES, "condition": None, "subset": False, "on_error": "stop"}]
    assert {table["table"]: table["filtered"] for table in stream["tables"]} == {"customers": True, "orders": True}
    of_engine = {
        "customers": {"positive": [], "negative": [NO_PURGES]},
        "orders": {"positive": [NORTH]},
    }

    async def sent() -> bool:
        return {name: table.get("rules") for name, table in desired_tables(engine).items()} == of_engine

    await eventually(sent)
    # The check comes first, with the same words; the rehearsal is of definitions, which rules do not concern.
    assert {table["table"]: table["rules"] for table in engine.checked["tables"]} == of_engine
    assert f"dbname={sides.source['dbname']}" in engine.checked["source"]["conninfo"]
    assert all("rules" not in table for table in engine.rehearsed["tables"])


async def test_the_stream_tells_what_its_rules_have_decided(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Any,  # noqa: F811
) -> None:
    stream = await created(operator, registered, rules={**ALL, "row_rules": [{**ORDERS, "positive": [NORTH]}]})
    path = f"{STREAMS}/{stream['id']}"
    assert stream["rule_counts"] is None, "nobody has told yet"

    async def told() -> bool:
        return (await operator.get(path)).json()["rule_counts"] is not None

    await eventually(told)
    counts = (await operator.get(path)).json()["rule_counts"]
    assert counts["counted_since"] == "2026-11-21T00:00:01.400000Z"
    assert counts["tables"] == [
        {
            **ORDERS,
            "scopes": ["table"],
            "passed": 10,
            "dropped": 2,
            "became_inserts": 1,
            "became_deletes": 0,
            "by_policy": 3,
            "at_source": ["INSERT"],
            "at_engine_because": "an update may bring a row into the subset, or take it out",
        }
    ]


async def test_only_tables_with_rules_are_checked(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    stream = await created(operator, registered)
    assert engine.checked == {} and not any(table["filtered"] for table in stream["tables"])
    row_rules = ROW_RULES[:1]
    await operator.post(
        "/api/v1/preflights",
        json={
            "source_id": registered["source"], "destinations": [{"database_id": registered["destination"]}],
            "rules": {**ALL, "row_rules": row_rules, "inserts_only": [ORDERS]},
        },
    )  # fmt: skip
    assert engine.checked["tables"] == [{**ORDERS, "inserts_only": True, "rules": {"positive": [NORTH]}}]


async def test_a_finding_stops_the_creation(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    engine.rule_problems = example("rules-check")["problems"]
    refused = await operator.post(STREAMS, json=body_of(registered, rules=RULED))
    assert refused.status_code == 409
    (check,) = refused.json()["checks"]
    assert (check["id"], check["side"], check["status"]) == ("row_rules", "source", "failed")
    assert check["items"][0] == (
        'public.orders, rule north_only, line 1, column 1: the table public.orders has no column "regoin" '
        "(rule_refused)."
    )
    assert check["items"][1].startswith('public.orders, rule no_tests: The rule "no_tests"')
    assert len(check["items"]) == len([finding for finding in engine.rule_problems if finding["certain"]])
    assert check["items"][2].endswith("(missing_table).")
    for cure in ("at the place", "REPLICA IDENTITY", "create the table"):
        assert cure in check["cure"]
    errors = refused.json()["errors"]
    assert [(error["code"], error["message"]) for error in errors] == [("row_rules", item) for item in check["items"]]
    assert "at the place" in errors[0]["cure"] and "REPLICA IDENTITY" not in errors[0]["cure"]
    assert errors[0]["pointer"] == "/rules/row_rules/0/positive/0/condition"
    assert (await operator.get(STREAMS)).json()["items"] == []


async def test_what_only_some_updates_would_meet_is_a_warning(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    engine.rule_problems = [finding for finding in example("rules-check")["problems"] if not finding["certain"]]
    preflight = await operator.post(
        "/api/v1/preflights",
        json={
            "source_id": registered["source"], "destinations": [{"database_id": registered["destination"]}],
            "rules": RULED,
        },
    )  # fmt: skip
    (check,) = [check for check in preflight.json()["checks"] if check["id"] == "row_rules"]
    assert check["status"] == "warning" and "REPLICA IDENTITY" in check["cure"]
    assert len(check["items"]) == 1 and check["items"][0].startswith('public.orders, rule own: The rule "own"')
    await created(operator, registered, rules=RULED)


async def test_an_engine_that_knows_no_rules(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    engine.knows_rules = False
    refused = await operator.post(STREAMS, json=body_of(registered, rules=RULED))
    (error,) = refused.json()["errors"]
    assert (refused.status_code, error["code"]) == (409, "row_rules") and "upgrade it" in error["cure"]
    assert error["pointer"] == "/rules/row_rules"
    asked = await operator.post(CHECK, json={"source_id": registered["source"], "row_rules": ROW_RULES})
    assert (asked.status_code, asked.json()["code"]) == (502, "engine_refused") and "upgrade it" in asked.json()["cure"]
    await created(operator, registered)


async def test_a_policy_is_a_part_of_its_rule(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Any,  # noqa: F811
) -> None:
    def ruled(policy: str) -> dict[str, Any]:
        return {**ALL, "row_rules": [{**ORDERS, "positive": [{**NORTH, "on_error": policy}]}]}

    stream = await created(operator, registered, rules=ruled("stop"))
    assert engine.checked["tables"][0]["rules"] == {"positive": [NORTH]}, "nobody need know the member"
    path = f"{STREAMS}/{stream['id']}"
    headers = {"If-Match": stream["etag"]}
    asked = await operator.patch(path, json={"rules": ruled("as_true")}, headers=headers)
    (check,) = asked.json()["checks"]
    assert (check["id"], check["items"]) == ("row_rules_changed", ["public.orders"])
    given = {"rules": ruled("as_true"), "accept": [check["consent"]]}
    changed = await operator.patch(path, json=given, headers=headers)
    assert changed.json()["rules"]["row_rules"][0]["positive"][0]["on_error"] == "as_true", changed.text

    async def sent() -> bool:
        rules = desired_tables(engine).get("orders", {}).get("rules")
        return bool(rules == {"positive": [{**NORTH, "on_error": "as_true"}]})

    await eventually(sent)
    for wrong in (True, "true", "skip", None):
        refused = await operator.post(CHECK, json={"source_id": registered["source"], **ruled(wrong), "exclude": []})
        assert refused.json()["errors"][0]["pointer"] == "/row_rules/0/positive/0/on_error", refused.text


async def test_an_engine_that_knows_no_policies(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    engine.knows_policies = False
    row_rules = [{**ORDERS, "positive": [{**NORTH, "on_error": "as_false"}]}]
    refused = await operator.post(STREAMS, json=body_of(registered, rules={**ALL, "row_rules": row_rules}))
    (error,) = refused.json()["errors"]
    assert (refused.status_code, error["code"]) == (409, "row_rules")
    assert "knows no on_error" in error["cure"] and "/on_error: is not a known field" in error["message"]
    body = {"source_id": registered["source"], "row_rules": row_rules}
    for asked in (
        await operator.post(CHECK, json=body),
        await operator.post(TRY, json={**body, "table": ORDERS}),
    ):
        assert (asked.status_code, asked.json()["code"]) == (502, "engine_refused"), asked.text
        assert "knows no on_error" in asked.json()["cure"]
    assert (await operator.get(STREAMS)).json()["items"] == []
    await created(operator, registered, rules=RULED)


async def test_rules_of_a_table_that_the_stream_does_not_have(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    elsewhere = {**RULED, "row_rules": [{**ROW_RULES[0], "table": "order"}]}
    refused = await operator.post(STREAMS, json=body_of(registered, rules=elsewhere))
    (error,) = refused.json()["errors"]
    assert error["code"] == "row_rules" and "public.order." in error["message"]
    assert error["pointer"] == "/rules/row_rules/0/table"


async def test_changed_rules_need_somebody_s_word(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Any,  # noqa: F811
) -> None:
    path = f"{STREAMS}/{(await created(operator, registered, rules=RULED))['id']}"
    headers = {"If-Match": "*"}
    same = await operator.patch(path, json={"rules": RULED}, headers=headers)
    assert same.status_code == 200, same.text
    # A client that knows no rules would take them all away.
    asked = await operator.patch(path, json={"rules": ALL}, headers=headers)
    (check,) = asked.json()["checks"]
    assert (check["id"], check["status"]) == ("row_rules_changed", "consent")
    assert check["items"] == ["public.customers", "public.orders"]
    assert [error["pointer"] for error in asked.json()["errors"]] == ["/rules/row_rules"]

    south = copy.deepcopy(RULED)
    south["row_rules"][0]["positive"][0]["condition"] = "region = 'south'"
    asked = await operator.patch(path, json={"rules": south}, headers=headers)
    (check,) = asked.json()["checks"]
    assert check["items"] == ["public.orders"]
    west = copy.deepcopy(RULED)
    west["row_rules"][0]["positive"][0]["condition"] = "region = 'west'"
    other = await operator.patch(path, json={"rules": west, "accept": [check["consent"]]}, headers=headers)
    assert other.status_code == 409, "the consent was to other rules of the same table"
    given = await operator.patch(path, json={"rules": south, "accept": [check["consent"]]}, headers=headers)
    assert given.status_code == 200, given.text

    async def sent() -> bool:
        rules = desired_tables(engine).get("orders", {}).get("rules")
        return bool(rules and rules["positive"][0]["condition"] == "region = 'south'")

    await eventually(sent)


async def test_a_rename_keeps_the_rules(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Any,  # noqa: F811
) -> None:
    called = {"schema": "sales", "table": "purchases"}
    engine.troubles["orders"] = {"trouble": trouble("RENAMED", "follow", renamed_to=called)}
    path = f"{STREAMS}/{(await created(operator, registered, rules=RULED))['id']}"
    await until(operator, path, "RENAMED")
    followed = (await operator.post(f"{path}/tables:follow", json=ORDERS)).json()
    names = [(rule["schema"], rule["table"]) for rule in followed["rules"]["row_rules"]]
    assert names == [("sales", "purchases"), ("public", "customers")]
    assert {table["table"]: table["filtered"] for table in followed["tables"]}["purchases"]


async def test_whoever_writes_a_rule_is_told_the_place(
    operator: httpx.AsyncClient, viewer: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    findings = [finding for finding in example("rules-check")["problems"] if finding.pop("step") is None]
    engine.rule_problems = findings
    body = {"source_id": registered["source"], "row_rules": ROW_RULES, "inserts_only": [ORDERS]}
    told = (await operator.post(CHECK, json=body)).json()["problems"]
    ours = ("cure", "scope")
    assert [{name: value for name, value in problem.items() if name not in ours} for problem in told] == findings
    assert all(problem["cure"] for problem in told) and told[0]["scope"] == "table"
    assert engine.checked["tables"][0] == {**ORDERS, "inserts_only": True, "rules": {"positive": [NORTH]}}
    assert (await viewer.post(CHECK, json=body)).status_code == 403
    unknown = await operator.post(CHECK, json={**body, "capture_engine_id": "nobodyknows1"})
    assert [error["pointer"] for error in unknown.json()["errors"]] == ["/capture_engine_id"]


async def test_rules_are_tried_on_rows(
    admin: httpx.AsyncClient,
    operator: httpx.AsyncClient,
    viewer: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
) -> None:
    moved = {"operation": "UPDATE", "old": {"id": 7, "region": None}, "new": {"id": "7", "region": "north"}}
    dated = {**moved, "tag": "branch", "commit_time": "2026-03-01T09:00:00.000001+01:00"}
    body = {
        "source_id": registered["source"], "table": ORDERS, "row_rules": ROW_RULES, "sample": 5,
        "changes": [moved, dated],
    }  # fmt: skip
    told = await operator.post(TRY, json=body)
    answer = example("rules-test")
    for change in answer["changes"]:
        change["commit_time"] = change["commit_time"] and change["commit_time"].replace(".000000Z", "Z")
        change["rules"] = [{**rule, "scope": "table", "counts_as": None} for rule in change["rules"]]
        change["error"] = change["error"] and {**change["error"], "sqlstate": change["error"]["sqlstate"] or None}
    assert told.json() == answer, told.text
    for policy, counts_as in (("as_true", "TRUE"), ("as_false", "FALSE"), ("stop", None)):
        decided = [{**ORDERS, "positive": [{**NORTH, "on_error": policy}]}]
        judged = (await operator.post(TRY, json={**body, "row_rules": decided})).json()["changes"]
        # Of them one is undecidable before, and one fails.
        assert [change["rules"][0]["counts_as"] for change in judged] == [None, counts_as, counts_as]
    entry = (await asked_for(admin))[0]
    assert (entry["action"], entry["actor_name"], entry["target_type"], entry["target_name"], entry["after"]) == (
        "streams_test_rules", "operator", "database", "shop", {**ORDERS, "rows": len(answer["changes"]) - 2},
    )  # fmt: skip
    asked = {name: engine.checked[name] for name in ("source_name", "tables", "sample", "changes")}
    assert asked == {
        "source_name": "shop", "tables": [{**ORDERS, "rules": {"positive": [NORTH]}}], "sample": 5,
        "changes": [moved, {**moved, "tag": "branch", "commit_micros": 1_772_352_000_000_001}],
    }  # fmt: skip
    engine.rule_problems = example("rules-check")["problems"]
    found = (await operator.post(TRY, json=body)).json()["problems"]
    assert [finding["code"] for finding in found] == [finding["code"] for finding in engine.rule_problems]
    assert all(finding["cure"] for finding in found)
    assert (await viewer.post(TRY, json=body)).status_code == 403
    for changed, pointer in (
        ({"table": {**ORDERS, "table": "parcels"}}, "/row_rules"),
        ({"sample": 101}, "/sample"),
        ({"changes": [{"operation": "INSERT"}]}, "/changes/0"),
        ({"changes": [{"operation": "DELETE", "old": {}, "new": {}}]}, "/changes/0"),
        ({"changes": [{"operation": "INSERT", "new": {"id": []}}]}, "/changes/0/new/id"),
        ({"changes": [{**moved, "commit_time": "1999-12-31T23:59:59Z"}]}, "/changes/0"),
        ({"changes": [{**moved, "commit_time": "2026-03-01T08:00:00"}]}, "/changes/0/commit_time"),
    ):
        wrong = (await operator.post(TRY, json={**body, **changed})).json()
        assert wrong["errors"][0]["pointer"].startswith(pointer), wrong
    for number in ("1e999", "NaN", "9" * 4200):  # what a reader of JSON may take, and no writer gives back
        text = json.dumps({**body, "changes": [{"operation": "INSERT", "new": {"id": "here"}}]}).replace(
            '"here"', number
        )
        refused = await operator.post(TRY, content=text, headers={"Content-Type": "application/json"})
        assert refused.status_code == 422, refused.text
    engine.knows_rules = False
    assert (await operator.post(TRY, json=body)).json()["type"].endswith("engine_refused")


async def test_rules_are_tried_on_changes_of_a_stream(
    admin: httpx.AsyncClient,
    operator: httpx.AsyncClient,
    viewer: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Any,  # noqa: F811
) -> None:
    stream = await created(operator, registered, name="north", rules=RULED)
    recent = {"stream_id": stream["id"], "limit": 7, "wait_ms": 100}
    body = {"source_id": registered["source"], "table": ORDERS, "row_rules": ROW_RULES, "sample": 0, "recent": recent}
    told = (await operator.post(TRY, json=body)).json()
    assert engine.checked["recent"] == {"stream": stream["id"], "limit": 7, "wait_ms": 100}
    shown, said = told["changes"][1], example("rules-test")["changes"][1]
    members = ("origin", "old", "new", "old_not_sent", "new_not_sent", "hidden")
    assert [shown[name] for name in members] == [said[name] for name in members]
    assert told["recent_end"] == "TIME"
    entry = (await asked_for(admin))[0]
    assert (entry["target_name"], entry["after"]) == ("shop", {**ORDERS, "rows": 3, "stream": "north"})
    assert (await viewer.post(TRY, json=body)).status_code == 403

    async def refused(**changed: Any) -> dict[str, Any]:
        answer = await operator.post(TRY, json={**body, **changed})
        assert answer.status_code >= 400, answer.text
        return dict(answer.json())

    for code, status, message, kind, words in (
        ("changes_not_captured", 409, "The stream does not have the table", "conflict", "No changes of north: The"),
        ("unknown_stream", 404, "There is no stream", "conflict", "has not taken north up yet"),
        ("invalid_request", 400, "/recent: is not a known field", "engine_refused", "shows no changes of streams"),
        ("invalid_request", 400, "/changes: wrong", "engine_refused", "/changes: wrong"),
    ):
        engine.recent_refusal = status, code, message
        problem = await refused()
        assert (problem["type"].rpartition(":")[2], words in problem["detail"]) == (kind, True), problem
        assert problem["cure"]
    engine.recent_refusal = None
    other = await refused(source_id=registered["destination"])
    assert other["errors"][0]["pointer"] == "/recent/stream_id"
    unknown = await refused(recent={"stream_id": "nobodyknows1"})
    assert unknown["type"].endswith("not_found")
    for wrong in ({"limit": 101}, {"limit": 0}, {"wait_ms": 5001}):
        problem = await refused(recent={**recent, **wrong})
        assert problem["errors"][0]["pointer"] == f"/recent/{next(iter(wrong))}"
    assert (await operator.post(f"{STREAMS}/{stream['id']}:stop")).status_code == 202
    stopped = await refused()
    assert "north is stopped" in stopped["detail"] and "Start the stream" in stopped["cure"]


async def test_engines_of_earlier_versions_tell_no_origin(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = example("rules-test")
    del older["recent_end"]
    for change in older["changes"]:
        for name in ("origin", "old_not_sent", "new_not_sent", "hidden"):
            del change[name]
    monkeypatch.setattr("tests.support.engine_double.example", lambda _: older)
    changes = [{"operation": "INSERT", "new": {"id": 1}}]
    body = {"source_id": registered["source"], "table": ORDERS, "row_rules": ROW_RULES, "changes": changes}
    told = (await operator.post(TRY, json=body)).json()
    assert [change["origin"] for change in told["changes"]] == ["REQUEST", "TABLE", "TABLE"]
    assert (told["recent_end"], told["changes"][0]["hidden"]) == (None, [])


@pytest.mark.parametrize("schema", ["pg_catalog", "information_schema", "thalweg", "pg_toast"])
async def test_tables_of_postgresql_and_thalweg_are_not_read(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, schema: str
) -> None:
    table = {"schema": schema, "table": "pg_authid"}
    rules = {"source_id": registered["source"], "row_rules": [{**table, "positive": [{"name": "all"}]}]}
    for path, body, pointer in (
        (TRY, {**rules, "table": table}, "/table/schema"),
        (CHECK, rules, "/row_rules/0/schema"),
    ):
        refused = await operator.post(path, json=body)
        assert refused.status_code == 422, refused.text
        assert (refused.json()["errors"][0]["pointer"], "no stream can have it" in refused.text) == (pointer, True)
    assert engine.checked == {}


async def test_tried_rows_have_the_tables_order_of_columns(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, sides: Sides
) -> None:
    sides.on_source("ALTER TABLE orders RENAME item TO region; ALTER TABLE orders RENAME id TO number")
    sides.on_source("ALTER TABLE orders ADD id bigint")
    told = await operator.post(TRY, json={"source_id": registered["source"], "table": ORDERS, "row_rules": ROW_RULES})
    assert [list(change["new"]) for change in told.json()["changes"]] == [["region", "id"]] * 3, told.text


RULE = {"name": "r"}


@pytest.mark.parametrize(
    ("tables", "pointer"),
    [
        ([{}], "/0"),
        ([{"positive": [RULE]}, {"negative": []}], "/1/table"),
        ([{"neutral": []}], "/0/neutral"),
        ([{"positive": [{"condition": "true"}]}], "/0/positive/0/name"),
        ([{"positive": [{"name": ""}]}], "/0/positive/0/name"),
        ([{"positive": [{"name": "ä" * 32}]}], "/0/positive/0/name"),
        ([{"positive": [{**RULE, "condition": ""}]}], "/0/positive/0/condition"),
        ([{"positive": [{**RULE, "condition": "ä" * 32769}]}], "/0/positive/0/condition"),
        ([{"positive": [{**RULE, "condition": "a\0"}]}], "/0/positive/0/condition"),
        ([{"positive": [{**RULE, "operations": []}]}], "/0/positive/0/operations"),
        ([{"positive": [{**RULE, "operations": ["MERGE"]}]}], "/0/positive/0/operations/0"),
        ([{"positive": [{**RULE, "operations": ["INSERT", "INSERT"]}]}], "/0/positive/0/operations"),
        ([{"positive": [{**RULE, "operations": ["INSERT"], "subset": True}]}], "/0/positive/0/subset"),
        ([{"positive": [{**RULE, "subset": True}, {"name": "s"}]}], "/0/positive/1/subset"),
        ([{"negative": [{**RULE, "subset": True}]}], "/0/negative/0/subset"),
        ([{"positive": [RULE], "negative": [RULE]}], "/0/negative/0/name"),
        ([{"positive": [{"name": f"r{number}"} for number in range(101)]}], "/0/positive"),
        ([{side: [{"name": f"{side}{number}"} for number in range(51)] for side in ("positive", "negative")}], "/0"),
    ],
)
async def test_rules_that_nobody_can_keep(
    operator: httpx.AsyncClient, registered: dict[str, str], tables: list[dict[str, Any]], pointer: str
) -> None:
    rules = {**ALL, "row_rules": [{**ORDERS, **table} for table in tables]}
    refused = await operator.post(STREAMS, json=body_of(registered, rules=rules))
    assert refused.status_code == 422, refused.text
    assert [error["pointer"] for error in refused.json()["errors"]] == [f"/rules/row_rules{pointer}"]


async def test_the_longest_condition_is_taken(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    longest = "-- é\n" + "x" * (65536 - 6)
    rules = {**ALL, "row_rules": [{**ORDERS, "negative": [{"name": "é" * 31, "condition": longest}]}]}
    stream = await created(operator, registered, rules=rules)
    assert stream["rules"]["row_rules"][0]["negative"][0]["condition"] == longest
