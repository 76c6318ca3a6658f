"""Finds the owner of each slot of a server and its fate, and drops orphans."""

from dataclasses import dataclass
from datetime import datetime

from psycopg import sql
from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.audit import record, snapshot
from thalweg.db.models import DatabaseRow, SourceReadingRow
from thalweg.db.readings import forget_slot, readings_of
from thalweg.features.slots import repository
from thalweg.features.slots.schemas import (
    ServerSlot,
    SlotDatabase,
    SlotEngine,
    SlotOwner,
    SlotServer,
    SlotServers,
    SlotStream,
)
from thalweg.inspection.failure import ConnectionFailure
from thalweg.inspection.slots import SlotState, drop_slot_at, version_text, why_lost
from thalweg.inspection.target import target_of
from thalweg.kernel.clock import now
from thalweg.kernel.context import Context
from thalweg.kernel.lsn import lsn_text
from thalweg.kernel.problems import Problem, not_found
from thalweg.live.slots import slot_of
from thalweg.live.sources import SLOT_PREFIX, SourceReading, reading_of


@dataclass(frozen=True)
class Owners:
    """Possible owners of slots."""

    streams: dict[str, str]
    """Names by id."""
    unknown: dict[str, SlotEngine]
    """Engines by the id of a stream that they have and the store does not know."""


async def list_slots(context: Context) -> SlotServers:
    databases = await repository.databases(context.session)
    streams = await repository.streams(context.session)
    owners = await _owners(context.session)
    readings = {row.database_id: row for row in await readings_of(context.session, [row.id for row in databases])}
    sources = {row.source_id for row in streams}
    at = now()
    servers = [
        _server(rows, [readings[row.id] for row in rows if row.id in readings], owners, at)
        for rows in by_server(sorted(databases, key=lambda row: row.id not in sources), readings)
    ]
    return SlotServers(servers=sorted(servers, key=lambda server: server.address))


def by_server(databases: list[DatabaseRow], readings: dict[str, SourceReadingRow]) -> list[list[DatabaseRow]]:
    """Groups the databases in their order. Those of one address are of one server, and those of several, where the
    same running server answered."""
    servers: list[tuple[set[object], list[DatabaseRow]]] = []
    for row in databases:
        marks: set[object] = {_address_of(row)} | _running(readings.get(row.id))
        found = [server for server in servers if server[0] & marks]
        servers = [server for server in servers if server not in found]
        together = [database for _, rows in found for database in rows]
        servers.append((marks.union(*(known for known, _ in found)), [*together, row]))
    return [sorted(rows, key=databases.index) for _, rows in servers]


def _running(row: SourceReadingRow | None) -> set[object]:
    """Nothing where it is not known which server answered."""
    state = reading.state if row is not None and (reading := reading_of(row)) is not None else None
    if state is None or state.system_identifier is None or state.started_at is None:
        return set()
    return {(state.system_identifier, state.started_at)}


def _address_of(row: DatabaseRow) -> str:
    """A standby is another server than its primary, even with the same hosts."""
    return f"{row.servers} (standby)" if row.read_from == "standby" else row.servers


def _server(databases: list[DatabaseRow], rows: list[SourceReadingRow], owners: Owners, at: datetime) -> SlotServer:
    address, *others = dict.fromkeys(_address_of(row) for row in databases)
    asked = max(rows, key=lambda row: row.asked_at, default=None)
    reading = _latest(rows)
    state = reading.state if reading is not None else None
    failures = {row.database_id: row.failure for row in rows if row.failure is not None}
    silent = len(failures) == len(rows)
    return SlotServer(
        address=address,
        other_addresses=others,
        databases=[
            SlotDatabase(id=row.id, name=row.name, dbname=row.dbname, failure=failures.get(row.id))
            for row in databases
        ],
        version=version_text(state.version) if state is not None else None,
        asked_at=asked.asked_at if asked is not None else None,
        read_at=reading.read_at if reading is not None else None,
        failure=asked.failure if asked is not None and silent else None,
        current_lsn=lsn_text(state.current_lsn) if state is not None else None,
        slots_max=state.slots_max if state is not None else None,
        keep_bytes=state.keep_bytes if state is not None else None,
        slots=[_slot(reading, slot, owners, at) for slot in reading.state.slots.values()]
        if reading is not None else [],
    )  # fmt: skip


def _latest(rows: list[SourceReadingRow]) -> SourceReading | None:
    """Chooses among the readings of one server's databases."""
    known = [reading for row in rows if (reading := reading_of(row)) is not None]
    return max(known, key=lambda candidate: candidate.read_at, default=None)


def _slot(reading: SourceReading, state: SlotState, owners: Owners, at: datetime) -> ServerSlot:
    owner, stream, engine = owner_of(state.name, owners)
    return ServerSlot(
        **slot_of(reading, state, at).model_dump(), owner=owner, stream=stream, engine=engine,
        why_no_forecast=why_no_forecast(reading, state),
        drop_sql=_drop_sql(state.name) if owner is SlotOwner.ORPHAN else None,
    )  # fmt: skip


async def _owners(session: AsyncSession) -> Owners:
    unknown = {
        stream["id"]: SlotEngine(id=row.id, name=row.name)
        for row in await repository.engines(session)
        for stream in row.unknown_streams
    }
    return Owners({row.id: row.name for row in await repository.streams(session)}, unknown)


def owner_of(name: str, owners: Owners) -> tuple[SlotOwner, SlotStream | None, SlotEngine | None]:
    """A stream's copies have temporary slots that begin as its own does."""
    if not name.startswith(SLOT_PREFIX):
        return SlotOwner.OTHER, None, None
    identifier = stream_id_in(name)
    if identifier in owners.streams:
        return SlotOwner.STREAM, SlotStream(id=identifier, name=owners.streams[identifier]), None
    if identifier in owners.unknown:
        return SlotOwner.UNKNOWN_STREAM, None, owners.unknown[identifier]
    return SlotOwner.ORPHAN, None, None


def stream_id_in(name: str) -> str:
    return name.removeprefix(SLOT_PREFIX).split("_")[0]


def why_no_forecast(reading: SourceReading, state: SlotState) -> str | None:
    growth = reading.growth.get(state.name)
    if reading.seconds_to_full(state) is not None:
        return None
    if state.wal_status == "lost":
        return f"It is lost. {why_lost(state.invalidation_reason)[0]}"
    if state.restart_lsn is None:
        return "It keeps no WAL yet."
    if reading.keeps_up(state):
        return "Its reader keeps up: the WAL kept for it is released from time to time."
    if growth is None:
        return "It has not been observed long enough to know whether it grows."
    if growth <= 0:
        return "It does not grow."
    if state.safe_bytes is not None and state.safe_bytes <= 0:
        return "Its limit is reached: max_slot_wal_keep_size takes it at the next checkpoint."
    if state.safe_bytes is not None and state.name in reading.unsteady:
        return "Its growth is not steady enough to tell, or has not been observed long enough."
    if state.safe_bytes is not None:
        return "At the present growth it has room for more than 30 days."
    return (
        "It grows until the disk is full: max_slot_wal_keep_size sets no limit, and PostgreSQL does not report how "
        "much room its disk has."
    )


def _drop_sql(name: str) -> str:
    return sql.SQL("SELECT pg_drop_replication_slot({})").format(sql.Literal(name)).as_string()


async def drop_slot(context: Context, database_id: str, name: str) -> None:
    row = await context.session.get(DatabaseRow, database_id)
    if row is None:
        raise not_found("database", database_id)
    owner, stream, engine = owner_of(name, await _owners(context.session))
    if owner is SlotOwner.OTHER:
        raise Problem(
            "slot_not_ours", f"{name} is not one that Thalweg makes.",
            "Drop it with the tool that created it, or by SQL.",
            _drop_sql(name),
        )  # fmt: skip
    if stream is not None:
        raise Problem(
            "slot_owned", f"{name} belongs to the stream {stream.name}: without it, changes are lost.",
            "Delete the stream: its slot goes with it.",
        )  # fmt: skip
    if engine is not None:
        raise Problem(
            "slot_owned",
            f"{name} belongs to the stream {stream_id_in(name)} of the engine {engine.name}: the engine runs that "
            "stream, but the control plane does not know it.",
            "Have the engine drop the stream, on the Engines page or with: thalweg engines drop-stream "
            f"{engine.name} {stream_id_in(name)}. Its slot goes with it. Where the engine is gone for good, remove the "
            "engine first.",
        )  # fmt: skip
    target, what = target_of(row, context.resources), ("database", row.id, row.name)
    databases = await repository.databases(context.session)
    readings = {
        known.database_id: known
        for known in await readings_of(context.session, [database.id for database in databases])
    }
    (server,) = (rows for rows in by_server(databases, readings) if row in rows)
    same_server = sorted(database.id for database in server)
    before = _as_read(_latest([readings[known] for known in same_server if known in readings]), name)
    # In the audit log before it is asked of the server; a refusal is written, too.
    record(context, "slots_drop", what, before=before, after={"slot": name})
    await context.release()
    try:
        there = await drop_slot_at(target, name, context.resources.settings.database_connect_timeout)
    except ConnectionFailure as failure:
        record(context, "slots_drop", what, after={"slot": name, "refused": failure.code})
        await context.release()
        raise Problem(failure.code, failure.message, failure.cure, failure.sql) from failure
    if not there:
        record(context, "slots_drop", what, after={"slot": name, "refused": "not_found"})
        await context.release()
        raise Problem("not_found", f"The server has no slot {name}.", "It may have been dropped in the meantime.")
    for database in same_server:
        await forget_slot(context.session, database, name)


def _as_read(reading: SourceReading | None, name: str) -> dict[str, object]:
    state = reading.state.slots.get(name) if reading is not None else None
    return {"slot": name} if reading is None or state is None else snapshot(slot_of(reading, state, now())) or {}
