"""Connects to somebody's database and says in stable codes why it could not."""

import asyncio
import re
import socket
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import AsyncConnection, errors, sql
from psycopg.rows import DictRow, dict_row

from thalweg.inspection.schemas import ConnectionTest, RoleFacts
from thalweg.inspection.target import Target
from thalweg.kernel.outside import outside

STATEMENT_TIMEOUT_SECONDS = 20

Connection = AsyncConnection[DictRow]


@dataclass
class ConnectionFailure(Exception):
    """`code` is one of ConnectionTest.code's."""

    code: str
    message: str
    cure: str
    sql: str | None = None


def _as_sql(statement: str, **names: str) -> str:
    """A statement to show: names quoted as identifiers."""
    return sql.SQL(statement).format(**{key: sql.Identifier(value) for key, value in names.items()}).as_string()


async def _check_reachable(target: Target, timeout: float) -> None:
    """A plain TCP connection first: it tells an unreachable host from a refusing server whatever its language."""
    if target.host.startswith("/"):
        return
    try:
        async with asyncio.timeout(timeout):
            _, writer = await asyncio.open_connection(target.host, target.port)
    except TimeoutError as error:
        raise ConnectionFailure(
            "database_unreachable", f"{target.host}:{target.port} did not answer within {timeout:g} s.",
            "Check the host and the port, and that no firewall drops the connection.",
        ) from error  # fmt: skip
    except (socket.gaierror, UnicodeError) as error:
        raise ConnectionFailure(
            "database_unreachable", f"The host name {target.host} cannot be resolved.",
            "Check the host name, or use an IP address.",
        ) from error  # fmt: skip
    except OSError as error:
        raise ConnectionFailure(
            "database_unreachable", f"{target.host}:{target.port}: {error.strerror or error}.",
            "Check host and port, that the server runs, and that listen_addresses lets it listen there.",
        ) from error  # fmt: skip
    writer.close()


def _failure_of(error: psycopg.Error, target: Target) -> ConnectionFailure:
    """From libpq's message: a failed connection attempt carries no SQLSTATE."""
    message = re.sub(r"\s+", " ", str(error)).strip()
    shown = message.split(" failed: ")[-1]
    lowered = message.lower()
    if ("ssl" in lowered and "pg_hba" not in lowered) or "certificate" in lowered:
        return ConnectionFailure(
            "tls_failed", shown,
            "Check the TLS mode: the server may have no TLS (choose prefer), or its certificate may not be "
            "trusted (give sslrootcert).",
        )  # fmt: skip
    if re.search(r'database "?.*"? does not exist', lowered):
        return ConnectionFailure(
            "unknown_database", shown, "Correct the database's name, or create the database.",
            _as_sql("CREATE DATABASE {name}", name=target.dbname),
        )  # fmt: skip
    if "pg_hba.conf" in lowered:
        return ConnectionFailure(
            "authentication_failed", shown,
            "Add a line to the server's pg_hba.conf that lets this host in, such as "
            f"“host {target.dbname} {target.user} ADDRESS/32 scram-sha-256”, and reload the server.",
            "SELECT pg_reload_conf()",
        )  # fmt: skip
    if any(word in lowered for word in ("password", "authentication", "role ", "not permitted to log in")):
        return ConnectionFailure(
            "authentication_failed", shown,
            "Correct the user and the password, or set the password at the server.",
            _as_sql("ALTER ROLE {user} PASSWORD '...'", user=target.user),
        )  # fmt: skip
    if "permission denied" in lowered:
        return ConnectionFailure(
            "insufficient_privilege", shown, "Let the user connect to the database.",
            _as_sql("GRANT CONNECT ON DATABASE {name} TO {user}", name=target.dbname, user=target.user),
        )  # fmt: skip
    if any(word in lowered for word in ("timeout expired", "could not connect", "connection refused", "closed")):
        return ConnectionFailure(
            "database_unreachable", shown, "Check host and port, and that a PostgreSQL server listens there."
        )
    return ConnectionFailure("database_error", shown, "Read the server's message and remove its cause.")


@asynccontextmanager
async def connected(target: Target, timeout: int, *, read_only: bool = True) -> AsyncGenerator[Connection, None]:
    """In autocommit mode, read-only unless said otherwise. Raises ConnectionFailure; `timeout` is in seconds."""
    outside("a database")
    await _check_reachable(target, timeout)
    conninfo = target.conninfo(
        connect_timeout=target.options.get("connect_timeout", timeout),
        application_name="thalweg control plane",
    )
    try:
        connection = await AsyncConnection.connect(conninfo, autocommit=True, row_factory=dict_row)
    except psycopg.OperationalError as error:
        raise _failure_of(error, target) from error
    except psycopg.Error as error:
        raise ConnectionFailure(
            "database_error", str(error), "Correct the connection's settings as the message says."
        ) from error
    try:
        async with connection:
            await connection.execute(f"SET statement_timeout = '{STATEMENT_TIMEOUT_SECONDS}s'")
            if read_only:
                await connection.execute("SET default_transaction_read_only = on")
            yield connection
    except errors.InsufficientPrivilege as error:
        raise ConnectionFailure(
            "insufficient_privilege", str(error).strip(), "Grant the privilege that the message names."
        ) from error
    except psycopg.Error as error:
        raise ConnectionFailure(
            "database_error", str(error).strip(), "Read the server's message and remove its cause."
        ) from error


FACTS = """
SELECT current_setting('server_version') AS version,
       current_setting('server_version_num')::int AS version_number,
       (SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()) AS tls,
       r.rolname AS name, r.rolsuper AS superuser, r.rolreplication AS replication,
       has_database_privilege(current_database(), 'CREATE') AS create_on_database
  FROM pg_roles r WHERE r.rolname = current_user
"""


async def read_one(connection: Connection, query: str, parameters: dict[str, Any] | None = None) -> DictRow:
    """The one row of a query that always gives one."""
    cursor = await connection.execute(query.encode(), parameters)
    row = await cursor.fetchone()
    if row is None:
        raise ConnectionFailure("database_error", "A catalogue query gave no row.", "Report it with the version.")
    return row


async def read_all(connection: Connection, query: str, parameters: dict[str, Any] | None = None) -> list[DictRow]:
    cursor = await connection.execute(query.encode(), parameters)
    return await cursor.fetchall()


async def may_set_replication_role(connection: Connection) -> bool:
    """Tries it: managed services give the right in ways that the catalogue does not show."""
    try:
        async with connection.transaction(force_rollback=True):
            await connection.execute("SET LOCAL session_replication_role = replica")
    except errors.InsufficientPrivilege:
        return False
    return True


async def read_role(connection: Connection) -> tuple[DictRow, RoleFacts]:
    facts = await read_one(connection, FACTS)
    role = RoleFacts(
        name=facts["name"], superuser=facts["superuser"], replication=facts["replication"] or facts["superuser"],
        create_on_database=facts["create_on_database"],
        may_set_session_replication_role=await may_set_replication_role(connection),
    )  # fmt: skip
    return facts, role


async def read_system_identifier(connection: Connection) -> str | None:
    """None when the user may not read it (it needs pg_monitor on some services)."""
    try:
        row = await read_one(connection, "SELECT system_identifier::text AS id FROM pg_control_system()")
    except errors.InsufficientPrivilege:
        return None
    return str(row["id"])


async def test_connection(target: Target, timeout: int) -> ConnectionTest:
    """Never raises for what is wrong with the database: the answer says it."""
    started = time.monotonic()
    try:
        async with connected(target, timeout) as connection:
            connect_ms = (time.monotonic() - started) * 1000
            before = time.monotonic()
            await connection.execute("SELECT 1")
            latency_ms = (time.monotonic() - before) * 1000
            facts, role = await read_role(connection)
            identifier = await read_system_identifier(connection)
    except ConnectionFailure as failure:
        return ConnectionTest(
            reachable=failure.code != "database_unreachable", latency_ms=None, connect_ms=None, version=None,
            version_number=None, system_identifier=None, role=None, tls=None,
            code=failure.code, message=failure.message, cure=failure.cure, sql=failure.sql,
        )  # fmt: skip
    return ConnectionTest(
        reachable=True, latency_ms=round(latency_ms, 3), connect_ms=round(connect_ms, 3),
        version=str(facts["version"]).split(" ")[0], version_number=facts["version_number"],
        system_identifier=identifier, role=role, tls=facts["tls"], code=None, message=None, cure=None, sql=None,
    )  # fmt: skip
