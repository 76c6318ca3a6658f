"""The statements that read a database's performance facts, against a real server."""

import asyncio
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import psycopg
import pytest

from tests.conftest import Sides
from thalweg.inspection import sessions
from thalweg.inspection.performance import read_destination
from thalweg.inspection.target import Target

APPLY = Path(__file__).resolve().parents[2] / "engine" / "src" / "apply"


def target(side: dict[str, Any]) -> Target:
    return Target(**{name: side[name] for name in ("host", "port", "dbname", "user", "password", "sslmode")})


async def test_who_holds_a_lock_of_a_whole_table_is_told(sides: Sides) -> None:
    writer = sides.destination["user"]
    sides.on_destination("CREATE TABLE locked (id int PRIMARY KEY)", f"ALTER TABLE locked OWNER TO {writer}")
    own = {name: sides.destination[name] for name in ("host", "port", "dbname", "user", "password")}
    async with (
        await psycopg.AsyncConnection.connect(**own, application_name="psql") as holder,
        await psycopg.AsyncConnection.connect(**own, application_name="thalweg any server 1") as applier,
    ):
        await holder.execute("LOCK TABLE locked IN ACCESS EXCLUSIVE MODE")
        waiting = asyncio.create_task(applier.execute("INSERT INTO locked VALUES (1)"))
        where, name, pid = target(sides.destination), [("public", "locked")], holder.info.backend_pid
        async with asyncio.timeout(30):
            while (facts := await read_destination(where, "any", name, 5)).waits.share("Lock:") < 100:
                pass
        await holder.rollback()
        await waiting
    (blocker,) = facts.waits.blockers.values()
    assert (blocker.pid, blocker.application) == (pid, "psql")
    assert blocker.statement == "LOCK TABLE locked IN ACCESS EXCLUSIVE MODE"
    assert (blocker.username, blocker.state) == (writer, "idle in transaction")


async def test_statistics_of_io_are_read_where_the_server_has_them(sides: Sides) -> None:
    facts = await read_destination(target(sides.destination), "any", [], 5)
    assert facts.failure is None
    with psycopg.connect(sides.cluster.url("postgres").replace("+psycopg", "")) as connection:
        has_them = connection.info.server_version >= 160_000
    assert ("relation reads" in facts.io) == has_them


async def test_a_busy_machine_does_not_make_the_network_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """One look of ten finds it at rest."""
    times = iter([0.0, 0.009] * 6 + [1.0, 1.0003] + [2.0, 2.009] * 3)
    monkeypatch.setattr(sessions, "monotonic", lambda: next(times))
    monkeypatch.setattr(sessions, "read_all", AsyncMock(return_value=[]))
    monkeypatch.setattr(sessions, "LOOK_PAUSE_SECONDS", 0)
    waits = await sessions.look_at(AsyncMock(), "any", "any %")
    assert (waits.looks, waits.round_trip_ms) == (10, 0.3)


async def test_the_session_that_records_progress_is_counted_apart(sides: Sides) -> None:
    """Its commits are synchronous, and those of the appliers are not."""
    own = {name: sides.destination[name] for name in ("host", "port", "dbname", "user", "password")}
    async with (
        await psycopg.AsyncConnection.connect(**own, application_name="thalweg any progress") as recorder,
        await psycopg.AsyncConnection.connect(**own, application_name="thalweg any applier 1") as applier,
    ):
        await applier.execute("BEGIN")
        sleeping = asyncio.create_task(recorder.execute("SELECT pg_sleep(2)"))
        await asyncio.sleep(0.2)
        facts = await read_destination(target(sides.destination), "any", [], 5)
        await sleeping
    assert (facts.waits.share("Timeout:"), facts.waits.recording_share("Timeout:") >= 50) == (0.0, True)
    assert facts.waits.recording_share("IPC:SyncRep") == 0.0


def test_the_engine_names_that_session_so_and_its_appliers_commit_asynchronously() -> None:
    assert 'connect_options("progress")' in (APPLY / "apply.cc").read_text()
    assert "SET synchronous_commit = off" in (APPLY / "applier" / "destination_session.cc").read_text()
