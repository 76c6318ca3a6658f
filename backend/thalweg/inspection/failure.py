"""Why somebody's database could not be used, in stable codes."""

import re
from dataclasses import dataclass

import psycopg
from psycopg import sql

from thalweg.inspection.session import POOLER_CURE, is_poolers_refusal
from thalweg.inspection.target import Target
from thalweg.kernel.row_values import state_quotes_rows
from thalweg.kernel.words import capitalised, ended

OTHER_SERVER = (
    "session is read-only", "session is not read-only", "server is in hot standby mode",
    "server is not in hot standby mode",
)  # fmt: skip
"""libpq's reasons to pass over a server that let it in, for the sake of target_session_attrs."""


NEXT_SENTENCE = re.compile(r"(?<![.?!:])\n\t(?=[A-Z])")
"""libpq begins further sentences on lines of their own, without a full stop before them."""
NO_ENTRY_WITHOUT_TLS = re.compile(r"no pg_hba\.conf entry .*(no encryption|SSL off)")


@dataclass
class ConnectionFailure(Exception):
    """`code` is one of ConnectionTest.code's. `sqlstate` is that of a statement which the server refused, if one did:
    then the message is the server's, and may quote rows."""

    code: str
    message: str
    cure: str
    sql: str | None = None
    sqlstate: str | None = None

    @property
    def message_without_rows(self) -> str:
        """For what viewers may read, too."""
        if self.sqlstate is None or not state_quotes_rows(self.sqlstate):
            return self.message
        return f"The server refused the statement. Its SQLSTATE: {self.sqlstate}."


def _as_sql(statement: str, **names: str) -> str:
    """A statement to show: names quoted as identifiers."""
    return sql.SQL(statement).format(**{key: sql.Identifier(value) for key, value in names.items()}).as_string()


def _without_fallbacks(message: str) -> str:
    """With sslmode prefer, libpq tries a server again without TLS after any failure, and tells both. Where the server
    lets nobody in without TLS, the second says nothing of the cause."""
    attempts = [attempt for attempt in re.split(r"(?=connection to server )", message) if attempt.strip()]
    servers = ["", *(attempt.split(" failed: ")[0] for attempt in attempts)]
    parts = [
        attempt
        for attempt, server, before in zip(attempts, servers[1:], servers[:-1], strict=True)
        if server != before or not NO_ENTRY_WITHOUT_TLS.search(attempt)
    ]
    return "".join(parts).strip()


def failure_of(error: psycopg.Error, target: Target) -> ConnectionFailure:
    """From libpq's message: a failed connection attempt carries no SQLSTATE."""
    text = NEXT_SENTENCE.sub(". ", str(error))
    message = _without_fallbacks(re.sub(r"\s+", " ", text).strip())
    shown = ended(capitalised(message.split(" failed: ")[-1]))
    lowered = message.lower()
    if is_poolers_refusal(lowered):
        return ConnectionFailure("connection_pooler", shown, POOLER_CURE)
    if "unrecognized configuration parameter" in lowered:
        return ConnectionFailure(
            "unsupported_version",
            f"The server is older than PostgreSQL 14: {shown}",
            "Upgrade to PostgreSQL 14 or later.",
        )
    if any(said in lowered for said in OTHER_SERVER):
        wanted = target.options.get("target_session_attrs", "")
        return ConnectionFailure(
            "database_error", f"No server that answers is {wanted}, which target_session_attrs asks for: {shown}",
            "Name all servers of the database as hosts and start the one that is meant, or set target_session_attrs to "
            "any. A session counts as read-only also where default_transaction_read_only of the server, the database "
            "or the user is on.",
        )  # fmt: skip
    if ("ssl" in lowered and "pg_hba" not in lowered) or "certificate" in lowered:
        return ConnectionFailure(
            "tls_failed", shown,
            "Check the TLS mode: the server may have no TLS (choose prefer), or its certificate may not be "
            "trusted (give the root certificate, sslrootcert).",
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
