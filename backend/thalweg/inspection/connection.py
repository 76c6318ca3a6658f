"""Connects to somebody's database and says in stable codes why it could not."""

import asyncio
import os
import socket
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import structlog
from psycopg import errors
from psycopg.rows import DictRow

from thalweg.inspection.bounds import BoundedConnection, Overrun
from thalweg.inspection.failure import ConnectionFailure, failure_of
from thalweg.inspection.login import TooManyRounds, log_in
from thalweg.inspection.reach import reachable_places
from thalweg.inspection.schemas import ConnectionTest, RoleFacts
from thalweg.inspection.session import (
    POOLER_CURE,
    STATEMENT_TIMEOUT_SECONDS,
    is_own,
    new_marker,
    session_options,
    settle,
)
from thalweg.inspection.target import Target
from thalweg.kernel.outside import outside
from thalweg.kernel.pem import PEM_FIELDS

log = structlog.get_logger(__name__)
Connection = BoundedConnection
LOOK_SECONDS = 60.0
"""Longer than the server's own limit for a statement: of servers that stand still and keep their connections."""
ROWS_MAX = 500_000
"""The rows of one answer, if the query has no limit: the columns of ten thousand wide tables."""
FEW_ROWS_MAX = 10_000
"""The rows of an answer about things of which servers have few, without a limit of their own: slots, sessions."""


def _refuse_old_paths(target: Target) -> None:
    """Refuses databases that were registered when certificates were paths of files."""
    paths = [name for name in PEM_FIELDS if name in target.options]
    if paths:
        raise ConnectionFailure(
            "connection_setting_refused", f"{', '.join(paths)} of this database names a file.",
            "Edit the database and give the contents of the file (PEM) instead: they are stored encrypted.",
        )  # fmt: skip


def _seconds(target: Target, timeout: int) -> int:
    """The user's connect_timeout may be shorter than ours, never longer."""
    wanted = target.options.get("connect_timeout", "")
    return min(int(wanted), timeout) if wanted.isdecimal() and int(wanted) > 0 else timeout


class _Patience:
    """Hangs up on a server after so many seconds. Cancelling the task would not do: psycopg asks the server to cancel
    the statement then, and waits for its answer."""

    def __init__(self, connection: Connection, seconds: float | None) -> None:
        self._connection = connection
        self.over = False
        self._timer = asyncio.get_running_loop().call_later(seconds, self._hang_up) if seconds is not None else None

    def _hang_up(self) -> None:
        if self._connection.closed:
            return
        self.over = True
        with socket.socket(fileno=os.dup(self._connection.pgconn.socket)) as same:
            same.shutdown(socket.SHUT_RDWR)

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


@asynccontextmanager
async def connected(
    target: Target, timeout: int, *, read_only: bool = True, limit: float | None = LOOK_SECONDS
) -> AsyncGenerator[Connection, None]:
    """In autocommit mode, read-only unless said otherwise. Raises ConnectionFailure; `timeout` is in seconds, for each
    server, `limit` for everything that follows, None where it may last. Of a database that is read at a standby,
    `read_only` sessions lead there."""
    outside("a database")
    target = target.for_reading if read_only else target.for_writing
    _refuse_old_paths(target)
    seconds = _seconds(target, timeout)
    places = await reachable_places(target, seconds)
    shown = ", ".join(place.server.shown for place in places)
    marker = new_marker()
    addresses = {"hostaddr": ",".join(place.address or "" for place in places)}
    with target.for_libpq(
        host=",".join(place.server.host for place in places),
        port=",".join(str(place.server.port) for place in places),
        **(addresses if any(place.address for place in places) else {}),
        connect_timeout=seconds, application_name="thalweg control plane",
        client_encoding="UTF8",
        options=session_options(marker),
    ) as conninfo:  # fmt: skip
        try:
            connection = await log_in(conninfo, shown, seconds * len(places))
        except TooManyRounds as error:
            raise ConnectionFailure(
                "authentication_failed", str(error),
                "Check that it is the right server; if it is, lower its scram_iterations and set the user's password "
                "again.",
            ) from error  # fmt: skip
        except Overrun as error:
            raise _overrun(error) from error
        except psycopg.OperationalError as error:
            raise failure_of(error, target) from error
        except psycopg.Error as error:
            raise ConnectionFailure(
                "database_error", str(error), "Correct the connection's settings as the message says."
            ) from error
        patience = _Patience(connection, limit)
        try:
            async with connection:
                if not await is_own(connection, marker):
                    raise ConnectionFailure(
                        "connection_pooler",
                        "The session is not the one that was opened: a pooler in between drops its settings, or hands "
                        "out other clients' sessions.", POOLER_CURE,
                    )  # fmt: skip
                await settle(connection, read_only=read_only)
                yield connection
        except errors.InsufficientPrivilege as error:
            raise ConnectionFailure(
                "insufficient_privilege", str(error).strip(), "Grant the privilege that the message names."
            ) from error
        except errors.QueryCanceled as error:
            raise ConnectionFailure(
                "database_error",
                f"{str(error).strip()} The control plane gives each statement {STATEMENT_TIMEOUT_SECONDS} s.",
                "Find out what holds up the server: a lock (pg_locks), its load, or definitions of tables that are "
                "very large.",
            ) from error  # fmt: skip
        except Overrun as error:
            raise _overrun(error) from error
        except psycopg.Error as error:
            if patience.over:
                raise ConnectionFailure(
                    "database_unreachable", f"The server accepted the login, but did not answer within {limit:g} s.",
                    "Check whether the server hangs: a full or hanging disk, a stopped process, a broken link.",
                ) from error  # fmt: skip
            raise ConnectionFailure(
                "database_error", str(error).strip(), "Read the server's message and remove its cause.",
                sqlstate=error.sqlstate,
            ) from error  # fmt: skip
        finally:
            patience.end()


def _overrun(error: Overrun) -> ConnectionFailure:
    return ConnectionFailure(
        "database_error", str(error),
        "Check that it is the right server; if it is, find out what makes its answers so large: a default, a check or "
        "a comment of hundreds of megabytes, or very many objects of one kind.",
    )  # fmt: skip


FACTS = """
SELECT current_setting('server_version') AS version,
       current_setting('server_version_num')::int AS version_number,
       (SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()) AS tls,
       r.rolname AS name, r.rolsuper AS superuser, r.rolreplication AS replication,
       has_database_privilege(current_database(), 'CREATE') AS create_on_database
  FROM pg_roles r WHERE r.rolname = current_user
"""


async def read_row(connection: Connection, query: str, parameters: dict[str, Any] | None = None) -> DictRow:
    """The one row of a query that always gives one."""
    rows = await read_all(connection, query, parameters, FEW_ROWS_MAX)
    if not rows:
        raise ConnectionFailure("database_error", "A catalogue query gave no row.", "Report it with the version.")
    return rows[0]


async def read_all(
    connection: Connection, query: str, parameters: dict[str, Any] | None = None, rows_max: int = ROWS_MAX
) -> list[DictRow]:
    """Ends the session in a ConnectionFailure if the server sends more than `rows_max` rows, or too many bytes."""
    return await connection.rows_of(query, parameters, rows_max)


async def may_set_replication_role(connection: Connection) -> bool:
    """Tries it: managed services give the right in ways that the catalogue does not show."""
    try:
        async with connection.transaction(force_rollback=True):
            await connection.execute("SET LOCAL session_replication_role = replica")
    except errors.InsufficientPrivilege:
        return False
    return True


async def read_role(connection: Connection) -> tuple[DictRow, RoleFacts]:
    facts = await read_row(connection, FACTS)
    role = RoleFacts(
        name=facts["name"], superuser=facts["superuser"], replication=facts["replication"] or facts["superuser"],
        create_on_database=facts["create_on_database"],
        may_set_session_replication_role=await may_set_replication_role(connection),
    )  # fmt: skip
    return facts, role


async def read_system_identifier(connection: Connection) -> str | None:
    """None when the user may not read it (it needs pg_monitor on some services)."""
    try:
        row = await read_row(connection, "SELECT system_identifier::text AS id FROM pg_control_system()")
    except errors.InsufficientPrivilege:
        return None
    return str(row["id"])


async def _facts_of(target: Target, timeout: int) -> ConnectionTest:
    started = time.monotonic()
    async with connected(target, timeout) as connection:
        connect_ms = (time.monotonic() - started) * 1000
        before = time.monotonic()
        await connection.execute("SELECT 1")
        latency_ms = (time.monotonic() - before) * 1000
        facts, role = await read_role(connection)
        identifier = await read_system_identifier(connection)
    return ConnectionTest(
        reachable=True, latency_ms=round(latency_ms, 3), connect_ms=round(connect_ms, 3),
        version=str(facts["version"]).split(" ")[0], version_number=facts["version_number"],
        system_identifier=identifier, role=role, tls=facts["tls"], code=None, message=None, cure=None, sql=None,
    )  # fmt: skip


async def test_connection(target: Target, timeout: int) -> ConnectionTest:
    """Never raises for what is wrong with the database, or with what poses as one: the answer says it."""
    try:
        return await _facts_of(target, timeout)
    except (LookupError, TypeError, ValueError) as error:
        log.warning("database_answers_nonsense", server=f"{target.host}:{target.port}", error=repr(error))
        failure = ConnectionFailure(
            "database_error", "The server answered the queries of the test with something else than was asked for.",
            "Check that host and port are those of a PostgreSQL server.",
        )  # fmt: skip
    except ConnectionFailure as found:
        failure = found
    return ConnectionTest(
        reachable=failure.code not in ("database_unreachable", "address_not_allowed"), latency_ms=None,
        connect_ms=None, version=None, version_number=None, system_identifier=None, role=None, tls=None,
        code=failure.code, message=failure.message, cure=failure.cure, sql=failure.sql,
    )  # fmt: skip
