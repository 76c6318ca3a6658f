"""The holder of a lock that a real engine's apply waits for is named soon, although all went well until then."""

import asyncio
import time
from typing import Any

import httpx
import psycopg

from tests.conftest import Sides
from tests.features.test_streams import STREAMS
from tests.test_collector import collector, wait_for  # noqa: F401
from tests.test_real_engine import stream, thalwegd  # noqa: F401

WELL_SECONDS, SPAN_SECONDS = 28, 60
NAMED_SECONDS = 24.0
"""The holder is named within about five; a busy machine may take longer. It takes as long as it went well until the
wait fills half of the span."""


async def test_the_holder_of_a_lock_is_named_with_what_it_executes(
    operator: httpx.AsyncClient,
    stream: dict[str, Any],  # noqa: F811
    sides: Sides,
) -> None:
    await wait_for(operator, f"{STREAMS}/{stream['id']}", phase="REPLICATING")
    own = {name: sides.destination[name] for name in ("host", "port", "dbname", "user", "password")}
    for number in range(4 * WELL_SECONDS):
        sides.on_source(f"INSERT INTO orders VALUES ({1000 + number}, 'well', 1)")
        await asyncio.sleep(0.25)

    async def named() -> list[dict[str, Any]]:
        scope = {"stream_id": stream["id"], "window_seconds": SPAN_SECONDS}
        answer = (await operator.get("/api/v1/advisor/analysis", params=scope)).json()
        return [found for found in answer["findings_ranked"] if found["code"] == "apply_lock_contention"]

    async with await psycopg.AsyncConnection.connect(**own, application_name="month end report") as holder:
        await holder.execute("LOCK TABLE orders IN EXCLUSIVE MODE")
        begun = time.monotonic()
        sides.on_source("INSERT INTO orders VALUES (2000, 'waits', 1)")
        while not (found := await named()):
            assert time.monotonic() - begun < NAMED_SECONDS
            await asyncio.sleep(1)
        pid = holder.info.backend_pid
        await holder.rollback()
    who = f"Session {pid} (month end report) of {sides.destination['user']}, idle in transaction for "
    assert found[0]["explanation"].startswith(who)
    assert "executed last: LOCK TABLE orders IN EXCLUSIVE MODE" in found[0]["explanation"]
    assert found[0]["evidence"][0]["statistic"] == "BLOCKED BY"
