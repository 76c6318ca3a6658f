"""Transformations of tables with the real engine: what REST takes decides what the destination gets."""

import hashlib
import hmac
from typing import Any

import httpx

from tests.conftest import Sides
from tests.features.test_streams import STREAMS, body_of, created
from tests.support.real_engine import RealEngine
from tests.support.serving import eventually
from tests.test_collector import collector, wait_for  # noqa: F401
from tests.test_real_engine import enrol, of, thalwegd  # noqa: F401
from tests.test_real_rules import ORDERS, drop_slot

STEPS: list[dict[str, Any]] = [
    {"type": "mask_column", "column": "item", "with": "partial", "keep_first": 1},
    {"type": "mask_column", "column": "amount", "with": "constant", "value": "5"},
]


def rules(steps: list[dict[str, Any]]) -> dict[str, Any]:
    return {"include": [{"schema": "public", "table": "*"}], "transformations": [{**ORDERS, "steps": steps}]}


async def test_copies_and_changes_are_masked(
    admin: httpx.AsyncClient,
    registered: dict[str, str],
    sides: Sides,
    thalwegd: RealEngine,  # noqa: F811
    collector: Any,  # noqa: F811
) -> None:
    assert (await enrol(admin, thalwegd)).status_code == 201
    refused = await admin.post(STREAMS, json=body_of(registered, rules=rules(STEPS)))
    (error,) = refused.json()["errors"]
    assert error["pointer"] == "/rules/transformations/0/steps/1", "the column's type writes it 5.00"
    assert "numeric(12,2): 5.00" in error["message"]
    steps = [STEPS[0], {**STEPS[1], "value": "5.00"}]
    made = await created(admin, registered, rules=rules(steps))
    await wait_for(admin, f"{STREAMS}/{made['id']}", phase="REPLICATING")
    sides.on_source("INSERT INTO orders VALUES (201, 'secret', 99)", "UPDATE orders SET item = 'other' WHERE id = 1")
    masked = "SELECT id, left(item, 1) || repeat('*', length(item) - 1), 5.00 FROM orders ORDER BY id"

    async def same() -> bool:
        wanted = of(sides, sides.source["dbname"], masked)
        return of(sides, sides.destination["dbname"], "SELECT id, item, amount FROM orders ORDER BY id") == wanted

    await eventually(same)
    thalwegd.stop()
    await drop_slot(sides, made)


async def test_copies_and_changes_are_hashed_with_the_streams_key(
    admin: httpx.AsyncClient,
    registered: dict[str, str],
    sides: Sides,
    thalwegd: RealEngine,  # noqa: F811
    collector: Any,  # noqa: F811
) -> None:
    assert (await enrol(admin, thalwegd)).status_code == 201
    key = "planted key of at least 32 characters"
    hashes = rules([{"type": "mask_column", "column": "item", "with": "hash"}])
    made = await created(admin, registered, rules=hashes, mask_key=key)
    await wait_for(admin, f"{STREAMS}/{made['id']}", phase="REPLICATING")
    sides.on_source("INSERT INTO orders VALUES (201, 'secret', 99)", "UPDATE orders SET item = 'other' WHERE id = 1")
    query = "SELECT id, item FROM orders ORDER BY id"

    async def same() -> bool:
        wanted = [
            (number, hmac.new(key.encode(), item.encode(), hashlib.sha256).hexdigest())
            for number, item in of(sides, sides.source["dbname"], query)
        ]
        return of(sides, sides.destination["dbname"], query) == wanted

    await eventually(same)
    thalwegd.stop()
    await drop_slot(sides, made)


async def test_copies_and_changes_are_computed_and_cast(
    admin: httpx.AsyncClient,
    registered: dict[str, str],
    sides: Sides,
    thalwegd: RealEngine,  # noqa: F811
    collector: Any,  # noqa: F811
) -> None:
    assert (await enrol(admin, thalwegd)).status_code == 201
    sides.on_destination(
        "CREATE TABLE orders (id bigint PRIMARY KEY, item text, amount double precision, total numeric)",
        f"ALTER TABLE orders OWNER TO {sides.destination['user']}",
    )

    def total(expression: str) -> dict[str, Any]:
        return {"type": "add_column", "column": "total", "data_type": "numeric", "expression": expression}

    async def refusal(*steps: dict[str, Any]) -> dict[str, str]:
        """The step's place and the message."""
        refused = await admin.post(STREAMS, json=body_of(registered, rules=rules(list(steps))))
        return {one["pointer"]: one["message"] for one in refused.json()["errors"]}

    masked = await refusal(STEPS[0], total("amount + length(item)"))
    assert '"item", which is masked' in masked["/rules/transformations/0/steps/1"]
    unknown = await refusal(total("amount +\n now()"))
    assert "line 2, column 2" in unknown["/rules/transformations/0/steps/0"]
    cast = {"type": "cast_column", "column": "amount", "data_type": "double precision"}
    both = rules([total("amount * 2 + length(item)"), cast])
    made = await created(admin, registered, rules=both)
    await wait_for(admin, f"{STREAMS}/{made['id']}", phase="REPLICATING")
    sides.on_source("INSERT INTO orders VALUES (201, 'other', 99)", "UPDATE orders SET amount = 1.25 WHERE id = 1")
    query = "SELECT id, item, amount::double precision, amount * 2 + length(item) FROM orders ORDER BY id"

    async def same() -> bool:
        sent = of(sides, sides.destination["dbname"], "SELECT id, item, amount, total FROM orders ORDER BY id")
        return sent == of(sides, sides.source["dbname"], query)

    await eventually(same)
    thalwegd.stop()
    await drop_slot(sides, made)
