"""Row rules with the real engine: what REST takes decides which rows are at the destination."""

import itertools
from collections.abc import AsyncGenerator
from typing import Any

import httpx
import pytest

from tests.conftest import Sides
from tests.features.test_streams import STREAMS, body_of, created
from tests.support.real_engine import RealEngine
from tests.support.serving import eventually
from tests.test_collector import collector, wait_for  # noqa: F401
from tests.test_real_engine import enrol, of, orders, slot, thalwegd  # noqa: F401

ORDERS = {"schema": "public", "table": "orders"}
CHEAP = {"name": "cheap", "condition": "amount < 50", "subset": True}
KEPT = {"name": "no_deletes_of_gifts", "operations": ["DELETE"], "condition": "old.item = 'gift'"}
RULES = {"include": [{"schema": "public", "table": "*"}], "row_rules": [{**ORDERS, "positive": [CHEAP]}]}


def cheap(sides: Sides) -> list[tuple[Any, ...]]:
    return of(sides, sides.source["dbname"], "SELECT id, item, amount FROM orders WHERE amount < 50 ORDER BY id")


async def in_line(sides: Sides) -> None:
    async def same() -> bool:
        return orders(sides, "destination") == cheap(sides)

    await eventually(same)


@pytest.fixture
async def ruled(
    admin: httpx.AsyncClient,
    registered: dict[str, str],
    sides: Sides,
    thalwegd: RealEngine,  # noqa: F811
    collector: Any,  # noqa: F811
) -> AsyncGenerator[dict[str, Any], None]:
    """A stream that replicates a subset. Its slot is removed in the end: the databases must go."""
    assert (await enrol(admin, thalwegd)).status_code == 201
    refused = await admin.post(STREAMS, json=body_of(registered, rules=RULES))
    (undecidable,) = refused.json()["checks"]
    assert undecidable["id"] == "row_rules" and "(rule_undecidable)" in undecidable["items"][0]
    sides.on_source("ALTER TABLE orders REPLICA IDENTITY FULL")
    made = await created(admin, registered, rules=RULES)
    yield await wait_for(admin, f"{STREAMS}/{made['id']}", phase="REPLICATING")
    thalwegd.stop()
    await drop_slot(sides, made)


async def drop_slot(sides: Sides, made: dict[str, Any]) -> None:
    async def slot_is_gone() -> bool:
        rows = of(sides, "postgres", f"SELECT active FROM pg_replication_slots WHERE slot_name = '{slot(made)}'")
        if rows == [(False,)]:
            of(sides, "postgres", f"SELECT pg_drop_replication_slot('{slot(made)}')")
        return not rows

    await eventually(slot_is_gone)


async def test_a_subset_follows_its_rows(
    admin: httpx.AsyncClient, registered: dict[str, str], sides: Sides, ruled: dict[str, Any]
) -> None:
    assert [row[0] for row in orders(sides, "destination")] == list(range(1, 50))  # the copy
    sides.on_source(
        "INSERT INTO orders VALUES (101, 'in', 1), (102, 'out', 99), (103, 'neither', NULL)",
        "UPDATE orders SET amount = 7 WHERE id IN (60, 70)",
        "UPDATE orders SET amount = 700 WHERE id IN (6, 7)",
        "UPDATE orders SET item = 'still in' WHERE id = 8",
        "DELETE FROM orders WHERE id IN (9, 90)",
    )
    await in_line(sides)
    path = f"{STREAMS}/{ruled['id']}"
    judged = {"scopes": ["table"], "passed": 3, "became_inserts": 2, "became_deletes": 2, "by_policy": 0}

    async def counted() -> bool:
        counts = (await admin.get(path)).json()["rule_counts"]
        if not counts:
            return False
        (table,) = counts["tables"]
        # Two inserts are dropped. Where the source evaluates the rules for them, it does not send them.
        dropped = 1 if table.pop("at_source") == ["INSERT"] else 3
        return table.pop("at_engine_because") is not None and table == {**ORDERS, **judged, "dropped": dropped}

    await eventually(counted)

    # Other rules concern later changes only, and an engine refuses those that do not fit.
    headers = {"If-Match": "*"}
    wrong = {**RULES, "row_rules": [{**ORDERS, "negative": [{"name": "typo", "condition": "1 = 1 AND\n itm = 'x'"}]}]}
    refused = await admin.patch(path, json={"rules": wrong, "accept": ["row_rules_changed"]}, headers=headers)
    (error,) = refused.json()["errors"]
    assert error["code"] == "row_rules" and refused.json()["checks"][0]["items"][0].startswith(
        "public.orders, rule typo, line 2, column 2: "
    )
    told = await admin.post(
        f"{STREAMS}:check-rules", json={"source_id": registered["source"], "row_rules": wrong["row_rules"]}
    )
    (finding,) = told.json()["problems"]
    assert (finding["code"], finding["line"], finding["column"], finding["offset"]) == ("rule_refused", 2, 2, 11)

    other = {**RULES, "row_rules": [{**ORDERS, "negative": [KEPT]}]}
    changed = await admin.patch(path, json={"rules": other, "accept": ["row_rules_changed"]}, headers=headers)
    assert changed.status_code == 200, changed.text
    probes = itertools.count(301)

    async def in_force() -> bool:
        sides.on_source(f"INSERT INTO orders VALUES ({next(probes)}, 'dear', 500)")
        return any(row[0] > 300 for row in orders(sides, "destination"))

    await eventually(in_force)
    sides.on_source(
        "INSERT INTO orders VALUES (201, 'gift', 500), (202, 'toy', 500)",
        # In one transaction: two would be applied in any order.
        "WITH gone AS (DELETE FROM orders WHERE id IN (201, 202)) INSERT INTO orders VALUES (203, 'last', 1)",
    )

    async def passed() -> bool:
        return 203 in {row[0] for row in orders(sides, "destination")}

    await eventually(passed)
    there = {row[0] for row in orders(sides, "destination")}
    assert 201 in there and 202 not in there
    assert 90 not in there and 91 not in there, "rows that were outside before are not fetched"


TENS = {"scope": "global", "negative": [{"name": "no_tens", "condition": "id % 10 = 0"}]}
SMALL = {
    "scope": "schema",
    "schema": "sales",
    "positive": [{"name": "small", "condition": "amount < 50", "subset": True}],
}
LATE = {**ORDERS, "positive": [{"name": "late", "condition": "id > 20"}]}
SCOPED = {"include": [{"schema": "public"}, {"schema": "sales"}], "row_rules": [TENS, SMALL, LATE]}
SEVENS = {"scope": "global", "negative": [{"name": "no_sevens", "condition": "id % 7 = 0"}]}
WHERE = {
    "public.orders": "id > 20 AND NOT id % 10 = 0",
    "public.customers": "NOT id % 10 = 0",
    "sales.invoices": "amount < 50 AND NOT id % 10 = 0",
    "sales.credits": "amount < 50 AND NOT id % 10 = 0",
}
"""By each table's name: what its own rules, its schema's and the global ones mean together."""


def make_table(sides: Sides, name: str) -> None:
    sides.on_source(
        f"CREATE TABLE {name} (id bigint PRIMARY KEY, amount int)",
        f"ALTER TABLE {name} REPLICA IDENTITY FULL",
        f"ALTER TABLE {name} OWNER TO {sides.source['user']}",
        f"INSERT INTO {name} SELECT n, n * 37 % 100 FROM generate_series(1, 100) n",
    )


async def as_where_says(sides: Sides, *names: str) -> None:
    """The destination has the source's rows for which the conditions are true, by PostgreSQL's own word."""
    for name in names:
        rows = f"SELECT * FROM {name} WHERE {{}} ORDER BY id"

        async def same(rows: str = rows, where: str = f"({WHERE[name]}) AND NOT id % 7 = 0") -> bool:
            wanted = of(sides, sides.source["dbname"], rows.format(where))
            return bool(wanted) and of(sides, sides.destination["dbname"], rows.format("true")) == wanted

        await eventually(same)


async def test_rules_of_all_scopes_decide_together(
    admin: httpx.AsyncClient,
    registered: dict[str, str],
    sides: Sides,
    thalwegd: RealEngine,  # noqa: F811
    collector: Any,  # noqa: F811
) -> None:
    assert (await enrol(admin, thalwegd)).status_code == 201
    sides.on_source(f"CREATE SCHEMA sales AUTHORIZATION {sides.source['user']}")
    make_table(sides, "sales.invoices")
    sides.on_source("INSERT INTO customers SELECT n, 'name' FROM generate_series(1, 100) n")
    too_wide = {
        **SCOPED,
        "row_rules": [
            {"scope": "global", "negative": [{"name": "dear", "operations": ["INSERT"], "condition": "amount > 5"}]}
        ],
    }
    (error,) = (await admin.post(STREAMS, json=body_of(registered, rules=too_wide))).json()["errors"]
    assert error["pointer"] == "/rules/row_rules/0/negative/0/condition"
    assert error["message"].startswith("public.customers, rule dear of all tables, line 1, column 1")

    one: dict[str, Any] = {"destinations": [{"database_id": registered["destination"], "row_rules": [SEVENS]}]}
    made = await created(admin, registered, rules=SCOPED, **one)
    path = f"{STREAMS}/{made['id']}"
    await wait_for(admin, path, phase="REPLICATING")
    await as_where_says(sides, "public.orders", "public.customers", "sales.invoices")  # the copy
    sides.on_source(
        "INSERT INTO orders SELECT n, 'item', n FROM generate_series(101, 200) n",
        "DELETE FROM orders WHERE id IN (21, 22, 30, 35)",
        "INSERT INTO customers SELECT n, 'name' FROM generate_series(101, 200) n",
        "UPDATE customers SET name = 'other' WHERE id % 3 = 0",
        "UPDATE sales.invoices SET amount = 100 - amount WHERE id < 80",
        "DELETE FROM sales.invoices WHERE id > 90",
    )
    await as_where_says(sides, "public.orders", "public.customers", "sales.invoices")

    make_table(sides, "sales.credits")
    added = await admin.patch(path, json={"rules": SCOPED}, headers={"If-Match": "*"})
    assert added.status_code == 200, added.text

    async def copied() -> bool:
        rows = "SELECT 1 FROM pg_class WHERE relname = 'credits' AND relnamespace = 'sales'::regnamespace"
        return bool(of(sides, sides.destination["dbname"], rows))

    await eventually(copied)
    await as_where_says(sides, "sales.credits")
    sides.on_source("UPDATE sales.credits SET amount = 100 - amount", "DELETE FROM sales.credits WHERE id < 5")
    await as_where_says(sides, "sales.credits", "sales.invoices")

    body = {
        "source_id": registered["source"], "table": {"schema": "sales", "table": "credits"},
        "row_rules": SCOPED["row_rules"], "sample": 5,
    }  # fmt: skip
    tried = (await admin.post(f"{STREAMS}:test-rules", json=body)).json()
    assert [(rule["rule"], rule["scope"]) for rule in tried["changes"][0]["rules"]] == [
        ("no_tens", "global"), ("small", "schema")
    ]  # fmt: skip
    thalwegd.stop()
    await drop_slot(sides, made)
