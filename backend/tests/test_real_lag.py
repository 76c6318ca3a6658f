"""The lag of real engines against what the databases themselves say: running, stopped, and with a dead engine."""

from typing import Any

import httpx
import psycopg
import pytest
from fastapi import FastAPI

from tests.conftest import Sides, Users
from tests.features.test_streams import STREAMS, created
from tests.support.real_engine import RealEngine
from tests.support.serving import eventually
from tests.test_collector import collector, wait_for  # noqa: F401
from tests.test_commands import Shell, shell, with_token  # noqa: F401
from tests.test_fan_out import reports, two  # noqa: F401
from tests.test_real_engine import enrol, of, same_rows, slot, stream, thalwegd  # noqa: F401
from thalweg.kernel.settings import Settings
from thalweg.live import lag as lags

MIB = 1 << 20
HELD = """
SELECT pg_current_wal_lsn() - confirmed_flush_lsn, pg_current_wal_lsn() - restart_lsn, active
  FROM pg_replication_slots WHERE slot_name = '{}'
"""


@pytest.fixture(autouse=True)
def quick(app: FastAPI, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sources are read often, and growth is known after half a second."""
    settings.sources_interval = 0.1
    monkeypatch.setattr(lags, "GROWTH_SPAN_MIN", lags.GROWTH_WINDOW / 120)


def write(sides: Sides, megabytes: int) -> None:
    sides.on_source(*["SELECT pg_logical_emit_message(true, 'a test', repeat('x', 1000000))"] * megabytes)


async def as_the_source_says(
    client: httpx.AsyncClient, sides: Sides, path: str, name: str, at_least: int
) -> dict[str, Any]:
    """Waits until the stream shows the slot's own numbers: the end of a source never stands quite still."""

    async def agrees() -> dict[str, Any] | None:
        behind, retained, active = of(sides, "postgres", HELD.format(name))[0]
        shown = dict((await client.get(path)).json())
        seen = shown["slot"]
        if seen is None or seen["active"] != active or shown["lag"]["bytes"] is None:
            return None
        close = abs(shown["lag"]["bytes"] - behind) < MIB // 4 and abs(seen["retained_bytes"] - retained) < MIB // 4
        return shown if close and behind >= at_least else None

    return dict(await eventually(agrees))


async def test_stopped_and_with_a_dead_engine_it_is_what_the_slot_holds(
    operator: httpx.AsyncClient,
    stream: dict[str, Any],  # noqa: F811
    sides: Sides,
    thalwegd: RealEngine,  # noqa: F811
) -> None:
    path, name = f"{STREAMS}/{stream['id']}", slot(stream)
    stop = (await operator.post(f"{path}:stop")).json()["operation_id"]
    await wait_for(operator, f"/api/v1/operations/{stop}", state="succeeded")
    write(sides, 3)
    shown = await as_the_source_says(operator, sides, path, name, 3 * MIB * 9 // 10)
    assert shown["status"] == "DISABLED"
    assert shown["health"]["level"] == "stopped"
    assert "MiB of WAL at the source, of all its databases" in shown["health"]["reason"]
    assert shown["lag"]["age_seconds"] > 0
    assert shown["destinations"][0]["lag"]["bytes"] == shown["lag"]["bytes"]

    thalwegd.stop()
    write(sides, 2)
    shown = await wait_for(operator, path, status="UNKNOWN", phase="UNKNOWN")
    assert (await operator.get("/api/v1/overview")).json()["streams"][0]["phase"] == "UNKNOWN"
    shown = await as_the_source_says(operator, sides, path, name, 5 * MIB * 9 // 10)
    assert (shown["phase"], shown["destinations"][0]["phase"]) == ("UNKNOWN", "UNKNOWN")
    assert shown["health"]["level"] == "unknown"
    assert "MiB of WAL at the source, of all its databases" in shown["health"]["reason"]

    thalwegd.start()
    await operator.post(f"{path}:start")
    await wait_for(operator, path, phase="REPLICATING")
    sides.on_source("INSERT INTO orders VALUES (900, 'after it', 1)")
    await same_rows(sides)

    async def caught_up() -> dict[str, Any] | None:
        """Nothing is known of the lag before the first samples."""
        shown = dict((await operator.get(path)).json())
        lag = shown["lag"]
        known = lag["bytes"] is not None and lag["age_seconds"] is not None
        well = known and lag["bytes"] < MIB // 4 and lag["age_seconds"] < 5
        return shown if well and shown["health"]["level"] == "ok" else None

    await eventually(caught_up)


async def test_an_aborted_stream_falls_behind_as_its_slot_says(
    operator: httpx.AsyncClient,
    stream: dict[str, Any],  # noqa: F811
    sides: Sides,
) -> None:
    path, name = f"{STREAMS}/{stream['id']}", slot(stream)
    sides.on_destination("DROP TABLE orders")
    sides.on_source("INSERT INTO orders VALUES (903, 'nowhere to go', 1)")
    await wait_for(operator, path, status="ABORTED")
    write(sides, 3)
    before = await as_the_source_says(operator, sides, path, name, 3 * MIB * 9 // 10)
    write(sides, 2)
    shown = await as_the_source_says(operator, sides, path, name, 5 * MIB * 9 // 10)
    assert (shown["status"], shown["health"]["level"]) == ("ABORTED", "error")
    assert shown["lag"]["bytes"] - before["lag"]["bytes"] > MIB
    assert shown["destinations"][0]["lag"]["bytes"] == shown["lag"]["bytes"]
    assert "MiB of WAL at the source, of all its databases" in shown["health"]["reason"]

    async def grows() -> bool:
        write(sides, 1)
        return ((await operator.get(path)).json()["lag"]["growth_bytes_per_second"] or 0) > 0

    await eventually(grows)


async def test_a_lock_at_the_destination_makes_it_older_by_the_second(
    operator: httpx.AsyncClient,
    stream: dict[str, Any],  # noqa: F811
    sides: Sides,
) -> None:
    """No latency is known while nothing comes through; the lag has an age all the same."""
    path = f"{STREAMS}/{stream['id']}"

    async def aged() -> dict[str, Any] | None:
        shown = dict((await operator.get(path)).json())
        old = shown["phase"] == "REPLICATING" and (shown["lag"]["age_seconds"] or 0) > 2
        return shown if old and shown["lag"]["growth_bytes_per_second"] is not None else None

    end = {"host": "127.0.0.1", "port": sides.cluster.port, "user": "postgres", "dbname": sides.destination["dbname"]}
    with psycopg.connect(**end) as session:
        session.execute("LOCK TABLE orders IN ACCESS EXCLUSIVE MODE")
        sides.on_source("INSERT INTO orders VALUES (901, 'held up', 1)")
        shown = await eventually(aged)
        assert shown["lag"]["bytes"] > 0
    await same_rows(sides)


async def test_each_destination_has_its_own_and_the_rate_is_the_sources(
    operator: httpx.AsyncClient,
    admin: httpx.AsyncClient,
    registered: dict[str, str],
    reports: str,  # noqa: F811
    sides: Sides,
    thalwegd: RealEngine,  # noqa: F811
    collector: Any,  # noqa: F811
) -> None:
    assert (await enrol(admin, thalwegd)).status_code == 201
    made = await created(operator, registered, **two(registered, reports))
    path = f"{STREAMS}/{made['id']}"
    running = await wait_for(operator, path, phase="REPLICATING")
    well, away = (destination["id"] for destination in running["destinations"])
    paused = (await operator.post(f"{path}/destinations/{away}:stop")).json()["operation_id"]
    await wait_for(operator, f"/api/v1/operations/{paused}", state="succeeded")
    write(sides, 2)
    sides.on_source("INSERT INTO orders VALUES (902, 'to one only', 1)")
    await same_rows(sides)

    async def apart() -> dict[str, Any] | None:
        shown = dict((await operator.get(path)).json())
        bytes_of = {destination["id"]: destination["lag"]["bytes"] for destination in shown["destinations"]}
        told = None not in bytes_of.values() and bytes_of[away] > 2 * MIB * 9 // 10 and bytes_of[well] < MIB // 4
        return shown if told else None

    shown = await eventually(apart)
    assert shown["lag"]["bytes"] == max(destination["lag"]["bytes"] for destination in shown["destinations"])
    started = (await operator.post(f"{path}/destinations/{away}:start")).json()["operation_id"]
    await wait_for(operator, f"/api/v1/operations/{started}", state="succeeded")
    sides.on_source("UPDATE orders SET amount = amount + 1 WHERE id < 50")
    await same_rows(sides)

    async def counted_once() -> bool:
        """The stream's rate is capture's, not the sum of what both have applied.

        It is written again and again: what a component made anew does before it is first read has no rate."""
        sides.on_source("UPDATE orders SET amount = amount + 1 WHERE id < 50")
        samples = (await operator.get(f"{path}/samples", params={"seconds": 60})).json()["samples"]
        captured = {
            sample["at"]: sample["components"][0]["lcrs_per_second"] for sample in samples if sample["components"]
        }
        assert all(sample["lcrs_per_second"] == captured[sample["at"]] for sample in samples if sample["components"])
        return any(captured.values())

    await eventually(counted_once)
    deleted = (await operator.delete(path)).json()["operation_id"]
    await wait_for(operator, f"/api/v1/operations/{deleted}", state="succeeded")


async def test_status_of_the_command_line_tells_of_a_dead_engine(
    users: Users,
    shell: Shell,  # noqa: F811
    operator: httpx.AsyncClient,
    stream: dict[str, Any],  # noqa: F811
    thalwegd: RealEngine,  # noqa: F811
) -> None:
    status = with_token(shell, users)
    well = await status("status")
    assert well.code == 0, well.out
    assert "ago  Healthy: Replicating." in well.out
    thalwegd.stop()
    await wait_for(operator, f"{STREAMS}/{stream['id']}", phase="UNKNOWN")
    dead = await status("status")
    assert dead.code == 1
    assert "REPLICATING" not in dead.out and "Replicating" not in dead.out
    assert "→" in dead.out and "1 of 1 engine does not answer" in dead.out
