"""A fan-out with the real engine: what happens to one destination is not the other's, nor the source's, affair."""

import itertools
from collections.abc import AsyncGenerator
from datetime import timedelta
from typing import Any

import httpx
import psycopg
import pytest

from tests.conftest import Sides
from tests.features.test_streams import STREAMS, created
from tests.support.real_engine import RealEngine
from tests.support.relay import Relay, relaying
from tests.support.serving import eventually
from tests.test_collector import collector, wait_for  # noqa: F401
from tests.test_fan_out import reports, two  # noqa: F401
from tests.test_real_engine import enrol, of, orders, same_rows, slot, thalwegd  # noqa: F401
from thalweg.kernel.clock import now

Running = Any


def position(sides: Sides, query: str) -> int:
    return int(of(sides, "postgres", f"SELECT ({query}) - '0/0'::pg_lsn")[0][0])


async def charts(operator: httpx.AsyncClient, path: str, *statistics: str) -> dict[str, list[float | None]]:
    """The last minute, second by second."""
    asked = {"statistic": list(statistics), "since": (now() - timedelta(seconds=60)).isoformat()}
    answer = await operator.get(f"{path}/history", params=asked)
    assert answer.status_code == 200, answer.text
    return {series["statistic"]: series["values"] for series in answer.json()["series"]}


@pytest.fixture
def reports_name(sides: Sides) -> str:
    return f"{sides.destination['dbname']}_reports"


@pytest.fixture
async def relay(sides: Sides) -> AsyncGenerator[Relay, None]:
    async with relaying(sides.cluster.port) as made:
        yield made


async def test_a_dead_destination_holds_up_nobody_and_is_dropped(
    operator: httpx.AsyncClient,
    admin: httpx.AsyncClient,
    registered: dict[str, str],
    reports: str,  # noqa: F811
    reports_name: str,
    relay: Relay,
    sides: Sides,
    thalwegd: RealEngine,  # noqa: F811
    collector: Running,  # noqa: F811
) -> None:
    assert (await enrol(admin, thalwegd)).status_code == 201
    change = {"port": relay.port, "password": sides.destination["password"]}
    assert (await admin.patch(f"/api/v1/databases/{reports}", json=change, headers={"If-Match": "*"})).is_success
    stream = await created(operator, registered, **two(registered, reports))
    path = f"{STREAMS}/{stream['id']}"

    running = await wait_for(operator, path, phase="REPLICATING")
    assert [destination["rows_copied"] for destination in running["destinations"]] == [100, 100]
    names = [destination["id"] for destination in running["destinations"]]
    numbers = itertools.count(200)

    async def both_have_the_sources_rate() -> bool:
        """In a second in which both have applied something, the stream's is what was captured: not their sum."""
        sides.on_source(f"INSERT INTO orders VALUES ({next(numbers)}, 'to be charted', 1)")
        charted = await charts(operator, path, "lcrs_per_second", "destinations.*.lcrs_per_second",
                               "components.*.lcrs_per_second")  # fmt: skip
        if not all(f"components.{name}:reader.lcrs_per_second" in charted for name in names):
            return False  # no second has been charted since both apply
        destinations = [charted[f"destinations.{name}.lcrs_per_second"] for name in names]
        points = zip(
            charted["lcrs_per_second"], charted["components.capture.lcrs_per_second"], *destinations, strict=True
        )
        return any(min(parts) > 0 and captured > 0 and total == pytest.approx(captured, rel=1e-3)
                   for total, captured, *parts in points if None not in (total, captured, *parts))  # fmt: skip

    await eventually(both_have_the_sources_rate)
    await relay.sever()
    sides.on_source("INSERT INTO orders SELECT n, repeat(md5(n::text), 20), 1 FROM generate_series(1000, 9000) n")
    written = position(sides, "SELECT pg_current_wal_flush_lsn()")
    await same_rows(sides)

    async def on_disk() -> dict[str, Any] | None:
        """The session that takes the dead one to its disk starts the other anew as well."""
        shown = (await operator.get(path)).json()
        well, away = shown["destinations"]
        settled = away["phase"] == "RETRYING" and away["backlog"]["state"] == "ON DISK" and away["backlog"]["lcrs"]
        return dict(shown) if settled and away["lag"]["bytes"] and well["phase"] == "REPLICATING" else None

    shown = await eventually(on_disk)
    well, away = shown["destinations"]
    assert (well["error"], away["error"]["cure"] != "") == (None, True)
    assert shown["health"]["reason"].startswith("The engine is retrying Reports 2.0; warehouse continues. ")

    async def slot_moves() -> bool:
        confirmed = f"SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = '{slot(stream)}'"
        return position(sides, confirmed) >= written

    await eventually(slot_moves)
    dropped = await operator.delete(f"{path}/destinations/{away['id']}", params={"force": True})
    told = await wait_for(operator, f"/api/v1/operations/{dropped.json()['operation_id']}", state="succeeded")
    assert "DELETE FROM thalweg" in told["error"]["message"]
    sides.on_source("INSERT INTO orders VALUES (20000, 'after it', 1)")
    await same_rows(sides)

    # The same database again: copied anew beside the one that goes on, once its old rows are out of the way.
    await relay.mend()
    sides.cluster.execute("TRUNCATE orders, customers", "DROP SCHEMA thalweg CASCADE", dbname=reports_name)
    again = await operator.post(f"{path}/destinations", json={"database_id": reports})
    assert again.status_code == 202, again.text
    await wait_for(operator, f"/api/v1/operations/{again.json()['operation_id']}", state="succeeded")
    sides.on_source("UPDATE orders SET amount = 7 WHERE id = 20000")

    async def equal() -> bool:
        try:
            return of(sides, reports_name, "SELECT id, item, amount FROM orders ORDER BY id") == orders(sides, "source")
        except psycopg.errors.UndefinedTable:
            return False

    await eventually(equal)
    deleted = (await operator.delete(path)).json()["operation_id"]
    await wait_for(operator, f"/api/v1/operations/{deleted}", state="succeeded")
    assert of(sides, reports_name, "SELECT to_regnamespace('thalweg')") == [(None,)]
