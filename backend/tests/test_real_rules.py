"""Rules of tables with the real engine: what REST takes decides which rows are at the destination."""

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
    judged = {"passed": 3, "dropped": 3, "became_inserts": 2, "became_deletes": 2}

    async def counted() -> bool:
        counts = (await admin.get(path)).json()["rule_counts"]
        return bool(counts) and counts["tables"] == [{**ORDERS, **judged}]

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
    (finding,) = told.json()["findings"]
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
        "DELETE FROM orders WHERE id IN (201, 202)",
        "INSERT INTO orders VALUES (203, 'last', 1)",
    )

    async def passed() -> bool:
        return 203 in {row[0] for row in orders(sides, "destination")}

    await eventually(passed)
    there = {row[0] for row in orders(sides, "destination")}
    assert 201 in there and 202 not in there
    assert 90 not in there and 91 not in there, "rows that were outside before are not fetched"
