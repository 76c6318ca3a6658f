"""Settings of the control plane's own sessions at a user's database, and the detection of poolers.

The settings come with the startup packet. There they win over those of the database and of the role (ALTER ROLE ...
SET), and a connection pooler refuses or drops them. With SET they would stay behind in a pooled session, for users of
that pool. A refused or silently dropped setting reveals a pooler. A pooler that passes settings on hands out sessions
that others have begun: each of ours has its own marker, and stays at one server process.

Two settings follow once the session is known to be ours. libpq reads default_transaction_read_only at the start to find
out whether a server is what target_session_attrs asks for, and must find what the server says; older servers do not
know transaction_timeout.
"""

import secrets

from psycopg import AsyncConnection
from psycopg.rows import DictRow

STATEMENT_TIMEOUT_SECONDS = 20
IDLE_TRANSACTION_SECONDS = 60
KNOWN = "SELECT current_setting('thalweg.session', true) AS marker, pg_backend_pid() AS pid"
MARKER_BYTES = 8
LOOKS = 3
"""At a session that somebody hands on: each is a transaction of its own."""
TRANSACTION_TIMEOUT_VERSION = 170000
POOLER_CURE = (
    "Enter the host and port of the database server itself: a pooler hands one session to several clients, and "
    "replication needs its own."
)


def new_marker() -> str:
    return secrets.token_hex(MARKER_BYTES)


def session_options(marker: str) -> str:
    """`marker` is the session's own."""
    settings = {
        # A user who may create in a schema of the path could put a function of theirs before the server's own.
        "search_path": "pg_catalog",
        "default_transaction_isolation": r"read\ committed",
        "statement_timeout": f"{STATEMENT_TIMEOUT_SECONDS}s",
        "lock_timeout": "0",
        "idle_in_transaction_session_timeout": f"{IDLE_TRANSACTION_SECONDS}s",
        "idle_session_timeout": "0",
        # A look at the catalogue of 300 tables takes 90 ms, and 7 s with compiled expressions.
        "jit": "off",
        "thalweg.session": marker,
    }
    return " ".join(f"-c {name}={value}" for name, value in settings.items())


def is_poolers_refusal(message: str) -> bool:
    """PgBouncer's, and that of Amazon's RDS Proxy."""
    return "unsupported startup parameter" in message or "command-line options" in message


async def is_own(connection: AsyncConnection[DictRow], marker: str) -> bool:
    """False: something between has dropped the settings, or hands out sessions of others. Nothing may be set in this
    session then. A program that passes everything on reports the server's process as the server does."""
    pid: int | None = None
    for _ in range(LOOKS):
        cursor = await connection.execute(KNOWN)
        row = await cursor.fetchone()
        if row is None or row["marker"] != marker or pid not in (None, row["pid"]):
            return False
        pid = row["pid"]
        if pid == connection.info.backend_pid:
            break
    return True


async def settle(connection: AsyncConnection[DictRow], *, read_only: bool) -> None:
    """Settles a session that is_own. Without `read_only`, the server's or the role's setting for writing stays."""
    settings = ["SET default_transaction_read_only = on"] if read_only else []
    if connection.info.server_version >= TRANSACTION_TIMEOUT_VERSION:
        settings.append("SET transaction_timeout = 0")
    if settings:
        await connection.execute("; ".join(settings).encode())
