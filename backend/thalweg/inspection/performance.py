"""Reads what a source's and a destination's own catalogues reveal about the performance of a running stream.

All queries work with the privileges of the stream's own user; facts that may not be read, or are not in this version,
are left out.
"""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime

from psycopg import errors

from thalweg.inspection.catalogue import Table, read_tables
from thalweg.inspection.connection import Connection, connected, read_all, read_row
from thalweg.inspection.failure import ConnectionFailure
from thalweg.inspection.sessions import NOT_SEEN, Blocker, Waits, look_at, without_values
from thalweg.inspection.target import Target
from thalweg.kernel.clock import now

STATEMENT_TIMEOUT = "3s"
SETTINGS = (
    "synchronous_commit", "fsync", "synchronous_standby_names", "wal_buffers", "logical_decoding_work_mem",
    "max_wal_size", "wal_sender_timeout", "full_page_writes", "wal_compression", "checkpoint_timeout",
)  # fmt: skip
TRIGGERS = """
SELECT n.nspname AS schema, c.relname AS "table", t.tgname AS name, t.tgenabled::text AS mode,
       p.proname AS function
  FROM pg_trigger t
  JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_proc p ON p.oid = t.tgfoid
 WHERE NOT t.tgisinternal AND t.tgenabled IN ('A', 'R')
"""
ACTIVITY = """
SELECT schemaname AS schema, relname AS "table", seq_scan, seq_tup_read, coalesce(idx_scan, 0) AS idx_scan,
       n_tup_ins AS inserts, n_tup_upd AS updates, n_tup_del AS deletes, n_live_tup AS rows
  FROM pg_stat_user_tables
"""
UNIQUE_COLUMNS = """
SELECT s.schemaname AS schema, s.tablename AS "table", array_agg(s.attname::text ORDER BY a.attnum) AS columns
  FROM pg_stats s
  JOIN pg_attribute a ON a.attrelid = format('%%I.%%I', s.schemaname, s.tablename)::regclass AND a.attname = s.attname
 WHERE s.n_distinct = -1 AND a.attnotnull AND s.schemaname = ANY(%(schemas)s)
 GROUP BY s.schemaname, s.tablename
"""
"""Columns whose values all differ, as the planner's statistics have it: what could be a key."""
INDEXED = """
SELECT DISTINCT n.nspname AS schema, c.relname AS "table"
  FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE i.indisvalid AND i.indpred IS NULL AND n.nspname = ANY(%(schemas)s)
"""
WAL = "SELECT wal_sync, wal_sync_time, wal_buffers_full FROM pg_stat_wal"
IO = """
SELECT object, sum(reads)::float8 AS reads, sum(read_time)::float8 AS read_ms, sum(writes)::float8 AS writes,
       sum(write_time)::float8 AS write_ms, sum(evictions)::float8 AS evictions, sum(fsyncs)::float8 AS fsyncs,
       sum(fsync_time)::float8 AS fsync_ms
  FROM pg_stat_io WHERE backend_type IN ('client backend', 'walwriter') GROUP BY object
"""
"""From PostgreSQL 16 on; WAL is in it from 18 on, where pg_stat_wal has lost its times."""
SLOT = """
SELECT s.active, s.wal_status, s.plugin::text AS plugin,
       pg_wal_lsn_diff(pg_current_wal_lsn(), s.restart_lsn)::bigint AS retained_bytes,
       st.spill_txns, st.spill_bytes, st.stream_txns, st.stream_bytes, st.total_bytes
  FROM pg_replication_slots s LEFT JOIN pg_stat_replication_slots st USING (slot_name)
 WHERE s.slot_name = %(slot)s
"""
OLDEST = """
SELECT a.pid, a.application_name AS application, a.usename::text AS username, a.state,
       extract(epoch FROM now() - a.xact_start)::float8 AS seconds, left(a.query, 2000) AS statement,
       NULL AS gid, age(a.backend_xid) AS age
  FROM pg_stat_activity a
 WHERE a.backend_xid IS NOT NULL AND a.datname = current_database()
UNION ALL
SELECT NULL, NULL, p.owner::text, NULL, extract(epoch FROM now() - p.prepared)::float8, NULL, p.gid, age(p.transaction)
  FROM pg_prepared_xacts p WHERE p.database = current_database()
 ORDER BY age DESC LIMIT 1
"""
"""The oldest transaction that has written. Of other users' sessions only pg_monitor sees which have."""
EXTENSION = """
SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'thalweg_datalayer') AS installed,
       EXISTS (SELECT FROM pg_available_extensions WHERE name = 'thalweg_datalayer') AS available
"""

Name = tuple[str, str]


@dataclass(frozen=True)
class Trigger:
    table: Name
    name: str
    function: str
    mode: str
    """A: always; R: only for replicas, as apply's sessions are."""


@dataclass(frozen=True)
class Activity:
    """The activity of one table; counts are since the statistics were reset."""

    seq_scan: int
    seq_tup_read: int
    idx_scan: int
    inserts: int
    updates: int
    deletes: int
    rows: int


@dataclass
class Facts:
    """Facts of one database for one stream. `failure` gives the reason if there are none."""

    queried_at: datetime
    failure: ConnectionFailure | None = None
    settings: dict[str, str] = field(default_factory=dict)
    waits: Waits = field(default_factory=Waits)


@dataclass
class SourceFacts(Facts):
    slot: dict[str, object] | None = None
    keys: dict[Name, list[str]] = field(default_factory=dict)
    """Key columns of the stream's tables."""
    oldest_open: Blocker | None = None
    """The session of the oldest open transaction that has written. None: there is none, or it may not be seen."""
    oldest_prepared: str | None = None
    """The gid of a prepared transaction that is older than any session's."""


@dataclass
class DestinationFacts(Facts):
    keyless: list[Name] = field(default_factory=list)
    """Tables without a primary key or a usable unique index."""
    indexed: set[Name] = field(default_factory=set)
    """Tables without a key that have a non-unique index, by which rows may well be found."""
    candidates: dict[Name, list[str]] = field(default_factory=dict)
    """For tables without a key, the columns that could be one."""
    triggers: list[Trigger] = field(default_factory=list)
    before: dict[Name, Activity] = field(default_factory=dict)
    after: dict[Name, Activity] = field(default_factory=dict)
    wal: dict[str, float] = field(default_factory=dict)
    """Growth of pg_stat_wal during the look."""
    io: dict[str, float] = field(default_factory=dict)
    """Growth of pg_stat_io during the look, as `<object> <operation>`, such as `relation reads`. Empty before 16."""
    data_layer_installed: bool = False
    data_layer_available: bool = False


async def read_source(target: Target, stream_id: str, tables: list[Name], timeout: int) -> SourceFacts:
    """Never raises for what is wrong with the database."""
    facts = SourceFacts(now())
    try:
        async with connected(target, timeout) as connection:
            await connection.execute(f"SET statement_timeout = '{STATEMENT_TIMEOUT}'".encode())
            name = f"thalweg_{stream_id}"
            facts.settings = await _settings(connection)
            rows = await read_all(connection, SLOT, {"slot": name})
            facts.slot = dict(rows[0]) if rows else None
            wanted = set(tables)
            facts.keys = {
                table.name: table.key_columns for table in await read_tables(connection) if table.name in wanted
            }
            await _read_oldest(connection, facts)
            facts.waits = await look_at(connection, name, name, walsender=True)
    except ConnectionFailure as failure:
        facts.failure = failure
    return facts


async def read_destination(target: Target, stream_id: str, tables: list[Name], timeout: int) -> DestinationFacts:
    """Never raises for what is wrong with the database."""
    facts = DestinationFacts(now())
    try:
        async with connected(target.for_writing, timeout) as connection:
            await connection.execute(f"SET statement_timeout = '{STATEMENT_TIMEOUT}'".encode())
            facts.settings = await _settings(connection)
            before, io_before = await _wal(connection), await _io(connection)
            facts.before = await _activity(connection, set(tables))
            name = f"thalweg {stream_id}"
            facts.waits = await look_at(connection, name, f"{name} %", recorder=f"{name} progress")
            facts.after = await _activity(connection, set(tables))
            # After the look: a table that another session has locked may keep this from its end, the waits tell whose.
            await _read_tables(connection, facts, set(tables))
            after, io_after = await _wal(connection), await _io(connection)
            facts.wal = {name: after[name] - before.get(name, 0.0) for name in after}
            facts.io = {name: io_after[name] - io_before.get(name, 0.0) for name in io_after}
            extension = await read_row(connection, EXTENSION)
            facts.data_layer_installed, facts.data_layer_available = extension["installed"], extension["available"]
    except ConnectionFailure as failure:
        facts.failure = failure
    return facts


async def _settings(connection: Connection) -> dict[str, str]:
    rows = await read_all(
        connection, "SELECT name, current_setting(name) AS value FROM pg_settings WHERE name = ANY(%(names)s)",
        {"names": list(SETTINGS)},
    )  # fmt: skip
    return {row["name"]: row["value"] for row in rows}


async def _read_oldest(connection: Connection, facts: SourceFacts) -> None:
    for row in await read_all(connection, OLDEST):
        facts.oldest_prepared = row["gid"]
        if row["pid"] is not None:
            facts.oldest_open = Blocker(
                row["pid"], row["application"] or "", row["username"], row["state"], row["seconds"],
                without_values(row["statement"] or "", NOT_SEEN),
            )  # fmt: skip


async def _read_tables(connection: Connection, facts: DestinationFacts, wanted: set[Name]) -> None:
    found: list[Table] = [table for table in await read_tables(connection) if table.name in wanted]
    facts.keyless = [table.name for table in found if not table.facts["primary_key"] and not table.facts["has_unique"]]
    if facts.keyless:
        schemas = sorted({schema for schema, _ in facts.keyless})
        indexed = {(row["schema"], row["table"]) for row in await read_all(connection, INDEXED, {"schemas": schemas})}
        facts.indexed = indexed & set(facts.keyless)
        for row in await read_all(connection, UNIQUE_COLUMNS, {"schemas": schemas}):
            if (row["schema"], row["table"]) in facts.keyless:
                facts.candidates[row["schema"], row["table"]] = row["columns"][:1]
    facts.triggers = [
        Trigger((row["schema"], row["table"]), row["name"], row["function"], row["mode"])
        for row in await read_all(connection, TRIGGERS)
        if (row["schema"], row["table"]) in wanted
    ]


async def _activity(connection: Connection, wanted: set[Name]) -> dict[Name, Activity]:
    found: dict[Name, Activity] = {}
    for row in await read_all(connection, ACTIVITY):
        values = dict(row)
        name = (str(values.pop("schema")), str(values.pop("table")))
        if name in wanted:
            found[name] = Activity(**values)
    return found


async def _wal(connection: Connection) -> dict[str, float]:
    """Empty where the server is too old, or the user may not."""
    try:
        row = await read_row(connection, WAL)
    except (errors.UndefinedTable, errors.UndefinedColumn, errors.InsufficientPrivilege):
        return {}
    return {name: float(value or 0) for name, value in row.items()}


async def _io(connection: Connection) -> dict[str, float]:
    """Empty where the server is too old. Figures that a kind of object does not have (reads of WAL) are left out."""
    try:
        rows = await read_all(connection, IO)
    except errors.UndefinedTable:
        return {}
    return {
        f"{row['object']} {name}": value
        for row in rows
        for name, value in row.items()
        if name != "object" and value is not None
    }


async def read_both(
    source: Target, destination: Target, stream_id: str, tables: dict[Name, Name], timeout: int
) -> tuple[SourceFacts, DestinationFacts]:
    """At the same time: it is one moment of the path. `tables`: with their names at the destination, by which facts
    name them."""
    here, there = await asyncio.gather(
        read_source(source, stream_id, list(tables), timeout),
        read_destination(destination, stream_id, list(tables.values()), timeout),
    )
    here.keys = {tables[name]: columns for name, columns in here.keys.items()}
    return here, there
