"""Removes what a stream's engine has made in both databases, where the engine is lost and cannot do it itself.

The same steps as the engine's own (engine/src/daemon/stream_removal.cc), with the same database users. Objects that are
gone already are fine. Sessions that the lost engine has left open are ended first: they would hold the slot and row
locks.
"""

import asyncio
import time

from psycopg import errors

from thalweg.inspection.bookkeeping import CURE, doubts_about_bookkeeping
from thalweg.inspection.connection import Connection, connected, read_all, read_row
from thalweg.inspection.failure import ConnectionFailure
from thalweg.inspection.target import Target

SLOT_PATIENCE_SECONDS = 10
SCHEMA_LOCK = 7520113906284133  # what engines take before they create or drop schema thalweg
# Each has rows by stream; the last two keep the schema alive while they have any.
TABLES = ("copy_range", "stream_table", "instantiation", "conflict_log", "error_queue", "apply_progress", "stream")
OF_INSTANTIATION = ("copy_range", "stream_table", "instantiation")
OF_APPLY = ("conflict_log", "error_queue_chunk", "error_queue", "apply_progress", "stream", "schema_version")


async def remove_stream_objects(
    stream_id: str, source: Target | None, destinations: list[Target], timeout: int
) -> list[str]:
    """Removes the stream's objects; returns a sentence with its SQL for each database where something is left behind.
    `source` is None if another engine removes slot and publication. `timeout` is the time to connect, in seconds."""
    left = []
    if source is not None:
        try:
            await _remove_at_source(stream_id, source, timeout)
        except ConnectionFailure as failure:
            left.append(_left("source", source, failure, source_sql(stream_id)))
    for destination in destinations:
        try:
            await _remove_at_destination(stream_id, destination, timeout)
        except ConnectionFailure as failure:
            left.append(_left("destination", destination, failure, destination_sql(stream_id)))
    return left


def source_sql(stream_id: str) -> str:
    name = f"thalweg_{stream_id}"
    return f"SELECT pg_drop_replication_slot('{name}'); DROP PUBLICATION IF EXISTS {name}, {name}_inserts;"


def destination_sql(stream_id: str) -> str:
    deletes = " ".join(f"DELETE FROM thalweg.{table} WHERE stream_id = '{stream_id}';" for table in TABLES)  # noqa: S608
    return f"{deletes} With the last stream, unless others use it: DROP SCHEMA thalweg CASCADE;"


def _left(side: str, target: Target, failure: ConnectionFailure, sql: str) -> str:
    where = f"{','.join(server.shown for server in target.servers)}/{target.dbname}"
    return f"Left behind at the {side} {where} ({failure.message.rstrip('.')}): {sql}"


async def _end_sessions(connection: Connection, pattern: str) -> None:
    """Those of the engine, which run under this same user; waits until they are gone."""
    await connection.execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        "WHERE usename = current_user AND datname = current_database() AND pid <> pg_backend_pid() "
        "AND application_name LIKE %s",
        (pattern,),
    )


async def _remove_at_source(stream_id: str, target: Target, timeout: int) -> None:
    """The slot is at a standby, where one is read, or at what was promoted; the publication is the primary's. A server
    that does not answer may have the slot, which will hold its WAL when it is back."""
    for server in target.each_server if target.reads_standby else [target]:
        await _remove_slot(stream_id, server, timeout)
    async with connected(target, timeout, read_only=False) as connection:
        name = f"thalweg_{stream_id}"
        await connection.execute(f"DROP PUBLICATION IF EXISTS {name}, {name}_inserts".encode())


async def _remove_slot(stream_id: str, target: Target, timeout: int) -> None:
    name = f"thalweg_{stream_id}"
    deadline = time.monotonic() + SLOT_PATIENCE_SECONDS
    async with connected(target, timeout, read_only=False) as connection:
        while True:
            await _end_sessions(connection, name.replace("_", r"\_"))
            try:
                await connection.execute(
                    "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = ANY(%s)",
                    ([name, f"{name}_next"],),
                )
                break
            except errors.UndefinedObject:
                break
            except errors.ObjectInUse as error:
                if time.monotonic() > deadline:
                    raise ConnectionFailure("slot_in_use", str(error).strip(), "Stop the slot's reader.") from error
                await asyncio.sleep(0.2)


async def _remove_at_destination(stream_id: str, target: Target, timeout: int) -> None:
    async with connected(target, timeout, read_only=False) as connection:
        await _end_sessions(connection, f"thalweg {stream_id} %")
        async with connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock(%s)", (SCHEMA_LOCK,))
            if doubts := await doubts_about_bookkeeping(connection):
                raise ConnectionFailure("database_error", f"The schema thalweg cannot be trusted: {doubts}.", CURE)
            there = await _tables(connection)
            for table in TABLES:
                if table in there:
                    statement = f"DELETE FROM thalweg.{table} WHERE stream_id = %s"  # noqa: S608
                    await connection.execute(statement.encode(), (stream_id,))
            await _drop_unused(connection, there)


async def _tables(connection: Connection) -> set[str]:
    rows = await read_all(
        connection,
        "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace('thalweg') AND relkind = 'r'",
    )
    return {str(row["relname"]) for row in rows}


async def _drop_unused(connection: Connection, there: set[str]) -> None:
    """The instantiation's tables and apply's go each with their last stream, the schema with the last of both."""
    for tables, users in ((OF_INSTANTIATION, OF_INSTANTIATION[1:]), (OF_APPLY, OF_APPLY[4:5])):
        if not set(users) <= there:
            continue
        used = " OR ".join(f"EXISTS (SELECT FROM thalweg.{table})" for table in users)
        if not (await read_row(connection, f"SELECT {used} AS used"))["used"]:
            listed = ", ".join(f"thalweg.{table}" for table in tables)
            await connection.execute(f"DROP TABLE IF EXISTS {listed}".encode())
    left = await read_row(
        connection,
        "SELECT to_regnamespace('thalweg') IS NULL OR EXISTS (SELECT FROM pg_depend "
        "WHERE refclassid = 'pg_namespace'::regclass AND refobjid = to_regnamespace('thalweg')) AS keep",
    )
    if not left["keep"]:
        await connection.execute("DROP SCHEMA thalweg")
