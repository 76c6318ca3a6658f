"""History over an outage of the control plane, with a real engine: what the collector missed is in the chart."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import httpx

from tests.conftest import Sides
from tests.features.test_streams import STREAMS, created
from tests.support.real_engine import RealEngine
from tests.support.serving import eventually
from tests.test_collector import wait_for
from tests.test_real_engine import enrol, of, thalwegd  # noqa: F401
from thalweg.kernel.context import Resources
from thalweg.kernel.tasks import stop_task
from thalweg.workers.collector import Collector

AWAY = 5
"""Seconds without a collector: the engine samples once a second, so that each of them would be a hole."""


@asynccontextmanager
async def collecting(resources: Resources) -> AsyncGenerator[None, None]:
    task = asyncio.create_task(Collector(resources).run())
    try:
        yield
    finally:
        await stop_task(task)


class Load:
    """One row after the other, until it is stopped; `rows` have committed."""

    def __init__(self, sides: Sides) -> None:
        self.rows = 0
        self._sides = sides
        self._ends = False
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while not self._ends:
            await asyncio.to_thread(self._sides.on_source, f"INSERT INTO orders VALUES ({1000 + self.rows}, 'load', 1)")
            self.rows += 1

    async def stop(self) -> None:
        self._ends = True
        await self._task


async def gone(client: httpx.AsyncClient, path: str) -> bool:
    return (await client.get(path)).status_code == 404


async def test_a_chart_has_no_hole_where_the_collector_was_away(
    admin: httpx.AsyncClient, registered: dict[str, str], sides: Sides, resources: Resources,
    thalwegd: RealEngine,  # noqa: F811
) -> None:  # fmt: skip
    async with collecting(resources):
        assert (await enrol(admin, thalwegd)).status_code == 201
        stream = await created(admin, registered, parameters={"heartbeat_interval": 1})
        path = f"{STREAMS}/{stream['id']}"
        await wait_for(admin, path, phase="REPLICATING")
        begun = datetime.now(UTC) + timedelta(seconds=1)
        load = Load(sides)
        await asyncio.sleep(3)
    try:
        await asyncio.sleep(AWAY)
        away_until = datetime.now(UTC)
        async with collecting(resources):
            await asyncio.sleep(2)
            await load.stop()
            statistics = ["lcrs_per_second", "components.capture.time_percent.idle"]

            async def chart() -> dict[str, list[float | None]] | None:
                """Once it reaches beyond the outage."""
                until = away_until + timedelta(seconds=1)
                query = {"statistic": statistics, "since": begun.isoformat(), "until": until.isoformat()}
                answer = (await admin.get(f"{path}/history", params=query)).json()
                values = {series["statistic"]: series["values"] for series in answer["series"]}
                assert answer["step_seconds"] == 1
                return None if values["lcrs_per_second"][-1] is None else values

            values = await eventually(chart)
            assert all(None not in values[name] for name in statistics), values
            assert len(values["lcrs_per_second"]) >= AWAY + 2

            marker = await admin.post(f"{path}/markers", json={"label": "behind the load"})
            shown = await wait_for(admin, marker.headers["location"], state="ARRIVED")
            assert [hop["stage"] for hop in shown["hops"]] == ["CAPTURE", "ENQUEUE", "DEQUEUE", "DISPATCH", "COMMIT"]
            arrived = of(sides, sides.destination["dbname"], "SELECT count(*) FROM orders WHERE id >= 1000")
            assert arrived == [(load.rows,)]
            known = [value for value in values["lcrs_per_second"] if value is not None]
            # Not twice. A sample's second is not quite one where the machine is busy.
            assert 0 < sum(known) <= 1.2 * load.rows
            await admin.delete(path)
            await eventually(lambda: gone(admin, path), 30)
    finally:
        await load.stop()
