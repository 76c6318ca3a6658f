"""A stream whose source's WAL is mined, with the real engine: made over REST, it replicates, and leaves no slot."""

from typing import Any

import httpx

from tests.conftest import Sides
from tests.features.test_streams import STREAMS, created
from tests.support.real_engine import RealEngine
from tests.support.serving import eventually
from tests.test_collector import collector, wait_for  # noqa: F401
from tests.test_real_engine import enrol, of, thalwegd  # noqa: F401

ROWS = "SELECT id, item, amount FROM orders ORDER BY id"
SLOTS = "SELECT slot_type FROM pg_replication_slots WHERE slot_name = 'thalweg_{}'"


async def test_a_stream_that_mines_is_made_over_rest(
    admin: httpx.AsyncClient,
    registered: dict[str, str],
    sides: Sides,
    thalwegd: RealEngine,  # noqa: F811
    collector: Any,  # noqa: F811
) -> None:
    assert (await enrol(admin, thalwegd)).status_code == 201
    made = await created(admin, registered, capture_kind="wal")
    path = f"{STREAMS}/{made['id']}"
    await wait_for(admin, path, phase="REPLICATING")
    assert of(sides, sides.source["dbname"], SLOTS.format(made["id"])) == [("physical",)]
    sides.on_source(
        "INSERT INTO orders VALUES (201, 'new', 99)", "UPDATE orders SET item = 'other' WHERE id = 1",
        "DELETE FROM orders WHERE id = 2",
    )  # fmt: skip

    async def same() -> bool:
        wanted = of(sides, sides.source["dbname"], ROWS)
        return (201, "new", 99) in [(row[0], row[1], int(row[2])) for row in wanted] and (
            of(sides, sides.destination["dbname"], ROWS) == wanted
        )

    await eventually(same)

    async def shows_its_parts() -> bool:
        samples = (await admin.get(f"{path}/samples")).json()["samples"]
        components = samples[-1]["components"] if samples else []
        parts = {part["id"]: part["sub_component"] for part in components if part["type"] == "CAPTURE"}
        return parts == {"capture": None, "shipment": "WAL SHIPMENT", "builder": "LOGMINER BUILDER"}

    await eventually(shows_its_parts)
    assert (await admin.delete(path)).status_code == 202

    async def is_gone() -> bool:
        return (await admin.get(path)).status_code == 404

    await eventually(is_gone)
    assert of(sides, sides.source["dbname"], SLOTS.format(made["id"])) == []
