"""Creates an index at somebody's database while that is written to, and drops it again.

Both run CONCURRENTLY: they wait for transactions that are older, and block no writer. An interrupted one leaves an
index that is not valid, which the next try drops first. Source: PostgreSQL's documentation of CREATE INDEX and of
progress reporting.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from psycopg import errors, sql

from thalweg.inspection.connection import Connection, connected, read_all
from thalweg.inspection.failure import ConnectionFailure
from thalweg.inspection.target import Target

LOOK_SECONDS = 1.0
RIGHT = """
SELECT pg_has_role(c.relowner, 'USAGE') AS owns, has_schema_privilege(n.oid, 'CREATE') AS creates,
       pg_get_userbyid(c.relowner)::text AS owner, current_user::text AS username
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = %(schema)s AND c.relname = %(table)s
"""
VALID = """
SELECT c.oid, i.indisvalid AS valid
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_index i ON i.indexrelid = c.oid
 WHERE n.nspname = %(schema)s AND c.relname = %(name)s
"""
PROGRESS = """
SELECT pid, phase, index_relid, blocks_done, blocks_total, tuples_done, tuples_total
  FROM pg_stat_progress_create_index
"""
PHASES = (
    "initializing", "waiting for writers before build", "building index", "waiting for writers before validation",
    "index validation", "waiting for old snapshots",
)  # fmt: skip


@dataclass(frozen=True)
class IndexName:
    schema: str
    table: str
    name: str

    @property
    def drop_sql(self) -> str:
        return f"DROP INDEX CONCURRENTLY IF EXISTS {sql.Identifier(self.schema, self.name).as_string()};"


@dataclass(frozen=True)
class IndexProgress:
    """`step` of `len(PHASES)`."""

    step: int
    text: str


Tell = Callable[[IndexProgress], Awaitable[None]]


async def check_may_create(target: Target, index: IndexName, statement: str, timeout: int) -> None:
    """Raises ConnectionFailure: with the SQL to run by hand where the user may not, or where the name is taken."""
    async with connected(target.for_writing, timeout) as connection:
        rows = await read_all(connection, RIGHT, {"schema": index.schema, "table": index.table})
        if not rows:
            raise ConnectionFailure(
                "database_error", f"There is no table {index.schema}.{index.table} any more.", "Take another run."
            )
        (right,) = rows
        if not (right["owns"] and right["creates"]):
            missing = "is not its owner" if not right["owns"] else f"may not create in schema {index.schema}"
            raise ConnectionFailure(
                "insufficient_privilege",
                f"Only the owner can create an index on {index.schema}.{index.table}: "
                f"user {right['username']} {missing}.",
                f"Run the SQL as {right['owner']} or as a superuser, then take another run.", statement,
            )  # fmt: skip
        if await _state(connection, index) is not None:
            raise ConnectionFailure(
                "conflict", f"There is an index {index.schema}.{index.name} already.",
                "Look at it; drop it if it is not valid. Then take another run.", index.drop_sql,
            )  # fmt: skip


async def create_index(target: Target, index: IndexName, statement: str, timeout: int, tell: Tell) -> None:
    """Goes on where an earlier try has got to. Raises ConnectionFailure; then nothing is left of it."""
    async with (
        connected(target, timeout, read_only=False, limit=None) as connection,
        connected(target.for_writing, timeout, limit=None) as watch,
    ):
        await connection.execute("SET statement_timeout = 0")
        while (found := await _state(connection, index)) is None or not found[1]:
            running = None if found is None else await _progress(watch, "index_relid", found[0])
            if found is None:
                await _build(connection, watch, index, statement, tell)
            elif running is None:
                await connection.execute(index.drop_sql.encode())
            else:
                await tell(running)
                await asyncio.sleep(LOOK_SECONDS)


async def _build(connection: Connection, watch: Connection, index: IndexName, statement: str, tell: Tell) -> None:
    build = asyncio.create_task(connection.execute(statement.encode()))
    try:
        await _watch(build, watch, connection.info.backend_pid, tell)
    except errors.DuplicateTable:
        # An earlier try's session had not got so far when we looked, and was before us: see what came of it.
        if await _state(connection, index) is None:
            raise
    except errors.UniqueViolation as error:
        await connection.execute(index.drop_sql.encode())
        raise ConnectionFailure(
            "database_error", f"The key is not unique there: {str(error).strip().splitlines()[-1].strip()}.",
            "Find the rows that share a key, or create an index by hand that is not unique.", statement,
            sqlstate=error.sqlstate,
        ) from error  # fmt: skip
    except errors.Error:
        await connection.execute(index.drop_sql.encode())
        raise
    finally:
        build.cancel()


async def drop_index(target: Target, index: IndexName, timeout: int) -> None:
    async with connected(target, timeout, read_only=False, limit=None) as connection:
        await connection.execute("SET statement_timeout = 0")
        await connection.execute(index.drop_sql.encode())


async def _watch(build: "asyncio.Task[Any]", watch: Connection, pid: int, tell: Tell) -> None:
    while not build.done():
        await asyncio.wait([build], timeout=LOOK_SECONDS)
        if not build.done() and (seen := await _progress(watch, "pid", pid)) is not None:
            await tell(seen)
    await build


async def _state(connection: Connection, index: IndexName) -> tuple[int, bool] | None:
    """(oid, valid); None where it is not there."""
    rows = await read_all(connection, VALID, {"schema": index.schema, "name": index.name})
    return (rows[0]["oid"], rows[0]["valid"]) if rows else None


async def _progress(connection: Connection, by: str, wanted: int) -> IndexProgress | None:
    """Progress of the build in that session (pid), or of that index (index_relid)."""
    for row in await read_all(connection, PROGRESS):
        if row[by] == wanted:
            phase = row["phase"] or PHASES[0]
            step = next((number for number, name in enumerate(PHASES) if phase.startswith(name)), 0)
            share = _share(row["blocks_done"], row["blocks_total"]) or _share(row["tuples_done"], row["tuples_total"])
            return IndexProgress(step, f"{phase}{share}")
    return None


def _share(done: int | None, total: int | None) -> str:
    return f", {100 * done // total} %" if done is not None and total else ""
