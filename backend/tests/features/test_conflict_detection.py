"""The parameter conflict_detection: checked where it is typed, and against both databases."""

from typing import Any

import httpx
import pytest

from tests.conftest import Sides
from tests.features.test_streams import STREAMS, body_of, created
from tests.support.engine_double import EngineDouble

ORDERS = {"schema": "public", "table": "orders"}
CHECKS = ("old_values", "compared_columns")


async def test_entries_are_checked_at_their_places(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    wrong: list[tuple[Any, str]] = [
        ("all", ""),
        ([{"table": "orders"}], "/0/schema"),
        ([{"schema": "public"}], "/0/table"),
        ([{"columns": ["amount"]}], "/0/columns"),
        ([{**ORDERS, "columns": []}], "/0/columns"),
        ([{**ORDERS, "columns": ["amount", "amount"]}], "/0/columns"),
        ([{**ORDERS, "kind": "insert_exists"}], "/0/kind"),
        ([ORDERS, ORDERS], "/1"),
        ([{}, ORDERS], "/1"),
        ([{"schema": "public", "table": f"t{n}"} for n in range(1001)], ""),
    ]
    for detection, place in wrong:
        answer = await operator.post(STREAMS, json=body_of(registered, parameters={"conflict_detection": detection}))
        assert answer.status_code == 422, detection
        problem = answer.json()["errors"][0]
        assert problem["pointer"] == f"/parameters/conflict_detection{place}"
        assert "columns" in problem["cure"]


async def test_a_table_without_old_values_is_refused_with_its_cure(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, sides: Sides
) -> None:
    body = body_of(registered, parameters={"conflict_detection": [ORDERS]})
    refused = await operator.post(STREAMS, json=body)
    (error,) = refused.json()["errors"]
    assert (refused.status_code, error["code"], error["pointer"]) == (409, "old_values", "/source_id")
    assert "public.orders" in error["message"] and "customers" not in error["message"]
    assert error["sql"] == 'ALTER TABLE "public"."orders" REPLICA IDENTITY FULL;'
    sides.on_source(error["sql"])
    assert (await operator.post(STREAMS, json=body)).status_code == 202


async def test_columns_of_the_identity_are_told_without_full(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    parameters = {"conflict_detection": [{**ORDERS, "columns": ["id"]}]}
    assert (await operator.post(STREAMS, json=body_of(registered, parameters=parameters))).status_code == 202


async def test_every_table_may_be_meant_and_those_without_old_values_are_named(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, sides: Sides
) -> None:
    sides.on_source("ALTER TABLE orders REPLICA IDENTITY FULL")
    body = body_of(registered, parameters={"conflict_detection": [{}]})
    del body["name"]
    preflight = await operator.post("/api/v1/preflights", json=body)
    (check,) = [one for one in preflight.json()["checks"] if one["id"] == "old_values"]
    assert (check["status"], check["side"]) == ("warning", "source")
    assert check["sql"] == 'ALTER TABLE "public"."customers" REPLICA IDENTITY FULL;'


async def test_every_partition_needs_whole_old_rows(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, sides: Sides
) -> None:
    owner = sides.source["user"]
    sides.on_source(
        "CREATE TABLE parts (id bigint PRIMARY KEY, note text) PARTITION BY RANGE (id)",
        "CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (100)",
        "ALTER TABLE parts REPLICA IDENTITY FULL",
        f"ALTER TABLE parts OWNER TO {owner}",
        f"ALTER TABLE parts_1 OWNER TO {owner}",
    )
    detection = [{"schema": "public", "table": "parts"}]
    refused = await operator.post(STREAMS, json=body_of(registered, parameters={"conflict_detection": detection}))
    (error,) = refused.json()["errors"]
    assert error["sql"] == 'ALTER TABLE "public"."parts_1" REPLICA IDENTITY FULL;'


async def test_columns_that_do_not_fit_are_refused(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, sides: Sides
) -> None:
    sides.on_source("ALTER TABLE orders REPLICA IDENTITY FULL")
    steps = [
        {"type": "rename_column", "column": "item", "to": "thing"},
        {"type": "mask_column", "column": "thing", "with": "constant", "value": "x"},
    ]
    rules = {
        "include": [{"schema": "public", "table": "*"}],
        "transformations": [{"schema": "public", "table": "orders", "steps": steps}],
    }
    made = (
        "CREATE TABLE orders (id bigint PRIMARY KEY, thing text NOT NULL, amount numeric(12,2))",
        f"ALTER TABLE orders OWNER TO {sides.destination['user']}",
    )
    sides.on_destination(*made)
    for named, why in [
        ({**ORDERS, "columns": ["amount", "weight"]}, "changes of public.orders have no column weight"),
        ({**ORDERS, "columns": ["item"]}, "changes of public.orders have no column item"),
        ({**ORDERS, "columns": ["thing"]}, "a transformation makes the values of public.orders.thing"),
        ({"schema": "public", "table": "nothing"}, "public.nothing is no table of the stream"),
    ]:
        body = body_of(registered, rules=rules, parameters={"conflict_detection": [named]})
        refused = await operator.post(STREAMS, json=body)
        errors = {error["code"]: error["message"] for error in refused.json()["errors"]}
        assert refused.status_code == 409 and why in errors["compared_columns"], refused.text


async def test_handlers_that_do_not_fit_their_columns_are_refused(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, sides: Sides
) -> None:
    stream = await created(operator, registered)
    path = f"{STREAMS}/{stream['id']}"
    of_orders = {"kind": "update_origin_differs", **ORDERS}
    for handler, code, why in [
        ({**of_orders, "action": "delta", "columns": ["item"]}, "handler_columns", "item is of type text"),
        ({**of_orders, "action": "discard", "columns": ["weight"]}, "handler_columns", "no column weight"),
        ({**of_orders, "action": "maximum", "by": "weight"}, "handler_columns", "no column weight"),
        (
            {**of_orders, "table": "nothing", "action": "maximum", "by": "a"},
            "handler_columns",
            "no table of the stream",
        ),
        ({**of_orders, "action": "latest"}, "commit_times", "does not keep the times"),
    ]:
        body = {"parameters": {"conflict_handlers": [handler]}}
        refused = await operator.patch(path, json=body, headers={"If-Match": "*"})
        (error,) = refused.json()["errors"]
        assert (refused.status_code, error["code"]) == (409, code) and why in error["message"], refused.text
        assert error["pointer"] == "/parameters/conflict_handlers"
    fitting = [
        {**of_orders, "action": "delta", "columns": ["amount"]},
        {**of_orders, "action": "maximum", "by": "item", "tie": "overwrite"},
    ]
    kept = await operator.patch(path, json={"parameters": {"conflict_handlers": fitting}}, headers={"If-Match": "*"})
    assert kept.status_code == 200, kept.text
    assert kept.json()["parameters"]["conflict_handlers"] == fitting


async def test_only_types_of_postgresql_are_compared_and_added(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, sides: Sides
) -> None:
    made = (
        "CREATE TYPE mood AS ENUM ('low', 'high')",
        "CREATE TABLE moods (id bigint PRIMARY KEY, mood mood, days daterange, counts integer[], amount numeric(8, 2))",
    )
    sides.on_source(*made, f"ALTER TABLE moods OWNER TO {sides.source['user']}")
    sides.on_destination(*made, f"ALTER TABLE moods OWNER TO {sides.destination['user']}")
    stream = await created(operator, registered)
    of_moods = {"kind": "update_origin_differs", "schema": "public", "table": "moods"}
    for handler, why in [
        ({"action": "maximum", "by": "mood"}, "mood is of type public.mood, which is none of PostgreSQL's own"),
        ({"action": "delta", "columns": ["mood"]}, "mood is of type public.mood, which is none of PostgreSQL's own"),
        ({"action": "delta", "columns": ["days"]}, "days is of type daterange, to which no difference"),
        ({"action": "delta", "columns": ["counts"]}, "counts is of type integer[], to which no difference"),
        ({"action": "delta", "columns": ["amount"]}, ""),
        ({"action": "latest", "by": "days"}, ""),
    ]:
        body = {"parameters": {"conflict_handlers": [{**of_moods, **handler}]}}
        answer = await operator.patch(f"{STREAMS}/{stream['id']}", json=body, headers={"If-Match": "*"})
        if why:
            (error,) = answer.json()["errors"]
            assert error["code"] == "handler_columns" and why in error["message"], answer.text
        else:
            assert answer.status_code == 200, answer.text


async def test_a_new_value_of_a_stream_is_checked_like_a_first_one(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, sides: Sides
) -> None:
    stream = await created(operator, registered)
    path = f"{STREAMS}/{stream['id']}"
    place = f"{path}/destinations/{stream['destinations'][0]['id']}"
    body = {"parameters": {"conflict_detection": [ORDERS]}}
    for at in (path, place):
        refused = await operator.patch(at, json=body, headers={"If-Match": "*"})
        (error,) = refused.json()["errors"]
        assert (refused.status_code, error["code"]) == (409, "old_values")
        assert error["pointer"] == "/parameters/conflict_detection"
        assert "Nothing was changed." in refused.json()["cure"]
    sides.on_source("ALTER TABLE orders REPLICA IDENTITY FULL")
    for at in (path, place):
        changed = await operator.patch(at, json=body, headers={"If-Match": "*"})
        assert changed.status_code == 200, changed.text
    off = await operator.patch(path, json={"parameters": {"conflict_detection": []}}, headers={"If-Match": "*"})
    assert off.status_code == 200


async def test_what_each_column_of_a_group_gets_has_to_fit_it(
    admin: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, sides: Sides
) -> None:
    made = (
        "CREATE TABLE notes (id bigint PRIMARY KEY, tags text[], places point[], facts jsonb, raw json, site text)",
        "ALTER TABLE notes OWNER TO {}",
    )
    sides.on_source(made[0], made[1].format(sides.source["user"]))
    sides.on_destination(made[0], made[1].format(sides.destination["user"]))
    stream = await created(admin, registered)
    of_notes = {"kind": "update_origin_differs", "schema": "public", "table": "notes"}

    def expression(text: str, column: str = "site") -> dict[str, Any]:
        return {"action": "expression", "columns": [column], "expression": text}

    for handler, code, why in [
        ({"action": "append", "columns": ["site"]}, "handler_columns", "site is of type text, which is no array"),
        ({"action": "append", "columns": ["places"]}, "handler_columns", "places is of type point[], which is no"),
        ({"action": "merge", "columns": ["raw"]}, "handler_columns", "raw is of type json, whose members"),
        ({"action": "priority", "by": "place", "order": ["a"]}, "handler_columns", "no column place"),
        (expression("new.sites"), "handler_expressions", "column new.sites does not exist"),
        (expression("new.site ||"), "handler_expressions", "syntax error"),
        (expression("1); DROP TABLE public.notes; SELECT (1"), "handler_expressions", "at character 2 closes none"),
        (expression("new.site", "facts"), "handler_expressions", "it is of type text, the column of type jsonb"),
        (expression("new.id::integer", "id"), "", ""),
        (expression("new.tags::varchar[]", "tags"), "", ""),
        (expression("new.id"), "", ""),
        (expression("coalesce(new.site, t.site, old.site, '%') -- any"), "", ""),
        ({"action": "priority", "by": "raw", "order": ["a", "b"]}, "", ""),
        ({"action": "append", "columns": ["tags"]}, "", ""),
        ({"action": "merge", "columns": ["facts"]}, "", ""),
    ]:
        body = {"parameters": {"conflict_handlers": [{**of_notes, **handler}]}}
        answer = await admin.patch(f"{STREAMS}/{stream['id']}", json=body, headers={"If-Match": "*"})
        if why:
            (error,) = answer.json()["errors"]
            assert error["code"] == code and why in error["message"], answer.text
        else:
            assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("public.evil()) UNION ALL SELECT (1", "the parenthesis at character 14 closes none of the expression"),
        ("public.evil()) UNION ALL SELECT (public.evil()", "the parenthesis at character 14 closes none"),
        ("(public.evil()", "the parenthesis at character 1 is not closed"),
        ("'\\' || ') UNION ALL SELECT (public.evil() --'", ""),
        ("E'a' -- b\n'\\' || ') UNION ALL SELECT (public.evil() --'", "the parenthesis at character 19 closes none"),
        ("(SELECT public.evil() UNION ALL SELECT public.evil())", ""),
        ("public.evil() || ')' || $$)$$ /* ) */ || E'\\')'", ""),
    ],
)
async def test_a_check_of_an_expression_executes_none_of_it(
    admin: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, sides: Sides, text: str, why: str
) -> None:
    user = sides.destination["user"]
    sides.on_destination(
        "CREATE SEQUENCE called",
        f"GRANT ALL ON SEQUENCE called TO {user}",
        f"ALTER ROLE {user} SET standard_conforming_strings = off",
        "CREATE FUNCTION evil() RETURNS text LANGUAGE plpgsql AS "
        "$$ BEGIN PERFORM nextval('public.called'); RAISE 'called'; END $$",
        "CREATE TABLE orders (id bigint PRIMARY KEY, item text NOT NULL, amount numeric(12,2))",
        f"ALTER TABLE orders OWNER TO {user}",
    )
    stream = await created(admin, registered)
    handler = {"kind": "insert_exists", **ORDERS, "action": "expression", "columns": ["item"], "expression": text}
    body = {"parameters": {"conflict_handlers": [handler]}}
    answer = await admin.patch(f"{STREAMS}/{stream['id']}", json=body, headers={"If-Match": "*"})
    if why:
        (error,) = answer.json()["errors"]
        assert (answer.status_code, error["code"]) == (409, "handler_expressions") and why in error["message"]
    else:
        assert answer.status_code == 200, answer.text


async def test_sql_in_parameters_is_for_admins(
    admin: httpx.AsyncClient, operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    of_orders = {"kind": "insert_exists", **ORDERS}
    written = {**of_orders, "action": "expression", "columns": ["amount"], "expression": "t.amount"}
    mine = {"conflict_handlers": [written]}
    for parameters, ours in [(mine, {}), ({}, mine)]:
        body = body_of(registered, parameters=parameters)
        body["destinations"][0]["parameters"] = ours
        refused = await operator.post(STREAMS, json=body)
        assert (refused.status_code, refused.json()["code"]) == (403, "permission_denied"), refused.text
        del body["name"]
        assert (await operator.post("/api/v1/preflights", json=body)).status_code == 403
    stream = await created(operator, registered)
    path = f"{STREAMS}/{stream['id']}"
    place = f"{path}/destinations/{stream['destinations'][0]['id']}"
    for at, text in [(path, "t.amount"), (place, "t.amount + 0")]:
        one = {**written, "expression": text}
        its = {"conflict_handlers": [one]}
        refused = await operator.patch(at, json={"parameters": its}, headers={"If-Match": "*"})
        assert refused.status_code == 403 and "Only administrators" in refused.json()["detail"]
        if at == path:
            body = {"rules": {"include": [{"schema": "public", "table": "*"}]}, "parameters": its}
            assert (await operator.patch(at, json=body, headers={"If-Match": "*"})).status_code == 403
        assert (await admin.patch(at, json={"parameters": its}, headers={"If-Match": "*"})).status_code == 200
        kept = {"conflict_handlers": [one, {"kind": "delete_missing", "action": "discard"}]}
        left = await operator.patch(at, json={"parameters": kept}, headers={"If-Match": "*"})
        assert left.status_code == 200, left.text
        for changed in ({"expression": "new.amount"}, {"kind": "update_origin_differs"}, {"columns": ["item"]}):
            other = {"conflict_handlers": [{**one, **changed}]}
            assert (await operator.patch(at, json={"parameters": other}, headers={"If-Match": "*"})).status_code == 403
