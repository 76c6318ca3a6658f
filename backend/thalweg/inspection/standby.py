"""A source that is read at a standby: which of its servers is what, and what keeps the standby's slots.

PostgreSQL 16 and later decode at a standby. The standby's demands on its primary show at one of the two only, so both
are asked (docs/decisions/standby-source.md).
"""

import asyncio
from dataclasses import dataclass

from thalweg.inspection import connection
from thalweg.inspection.checks import Checklist, listed, quoted
from thalweg.inspection.connection import Connection, connected, read_row, read_system_identifier
from thalweg.inspection.failure import ConnectionFailure
from thalweg.inspection.schemas import ConnectionTest, SeenServer, ServerRole
from thalweg.inspection.target import Target

DECODES_AT_A_STANDBY_FROM = 160000
MISSING_CURE = (
    "Name the servers of one cluster as hosts, the primary and one standby, and start the one that does not answer; or "
    "read from the primary."
)

STANDBY = """
SELECT current_setting('server_version_num')::int AS version_number,
       current_setting('server_version') AS version, current_user AS username,
       current_setting('hot_standby_feedback') = 'on' AS feedback, current_setting('primary_slot_name') AS own_slot,
       CASE WHEN to_regproc('pg_log_standby_snapshot') IS NOT NULL
            THEN has_function_privilege('pg_log_standby_snapshot()', 'EXECUTE') END AS may_log_snapshots
"""


@dataclass(frozen=True)
class Servers:
    seen: list[SeenServer]

    def of(self, role: ServerRole | None) -> list[SeenServer]:
        """None: of those that did not answer."""
        return [server for server in self.seen if server.role is role]


async def look_at_servers(target: Target, timeout: int) -> Servers:
    """Each server by itself. Never raises for what is wrong with one: it says it."""
    return Servers(list(await asyncio.gather(*(_look(server, timeout) for server in target.each_server))))


async def _look(target: Target, timeout: int) -> SeenServer:
    (server,) = target.servers
    try:
        async with connected(target, timeout) as connection:
            row = await read_row(
                connection, "SELECT pg_is_in_recovery() AS standby, current_setting('wal_level') AS wal_level"
            )
            return SeenServer(
                address=server.shown, role=ServerRole.STANDBY if row["standby"] else ServerRole.PRIMARY,
                system_identifier=await read_system_identifier(connection), wal_level=row["wal_level"], message=None,
            )  # fmt: skip
    except ConnectionFailure as failure:
        return SeenServer(
            address=server.shown, role=None, system_identifier=None, wal_level=None, message=failure.message
        )


def failure_of_roles(servers: Servers) -> ConnectionFailure | None:
    """A failure if the servers are not a primary and its standby."""
    primaries, standbys = servers.of(ServerRole.PRIMARY), servers.of(ServerRole.STANDBY)
    silent = "; ".join(f"{server.address}: {(server.message or '').rstrip('.')}" for server in servers.of(None))
    reasons = f" {silent}." if silent else ""
    if not standbys:
        return ConnectionFailure(
            "source_standby_missing", f"None of the servers that answer is a standby.{reasons}", MISSING_CURE
        )
    if not primaries:
        return ConnectionFailure(
            "source_read_only", f"None of the servers that answer is the primary.{reasons}", MISSING_CURE
        )
    if len(standbys) > 1 or len(primaries) > 1:
        many = standbys if len(standbys) > 1 else primaries
        what = "standbys: a stream's slot is at one of them" if len(standbys) > 1 else "primaries"
        return ConnectionFailure(
            "source_changed", f"{listed([server.address for server in many])} are several {what}.",
            "Name two servers only: the primary, and the standby to read from.",
        )  # fmt: skip
    clusters = {server.system_identifier for server in (*primaries, *standbys)} - {None}
    if len(clusters) > 1:
        return ConnectionFailure(
            "source_changed",
            f"{primaries[0].address} and {standbys[0].address} are not servers of one cluster: their system "
            "identifiers differ.",
            "Name the primary and a standby of that primary.",
        )  # fmt: skip
    return None


def failure_of_version(number: int | None, version: str | None) -> ConnectionFailure | None:
    if number is None or number >= DECODES_AT_A_STANDBY_FROM:
        return None
    return ConnectionFailure(
        "unsupported_version", f"The standby runs PostgreSQL {version}; decoding at a standby needs 16 or later.",
        "Read from the primary, or upgrade both servers to 16 or later.",
    )  # fmt: skip


async def test_connection(target: Target, timeout: int) -> ConnectionTest:
    """Never raises for what is wrong with the database: the answer says it."""
    result = await connection.test_connection(target, timeout)
    if not target.reads_standby:
        return result
    servers = await look_at_servers(target, timeout)
    failure = failure_of_roles(servers) or failure_of_version(result.version_number, result.version)
    update: dict[str, object] = {"servers": servers.seen}
    if result.code is None and failure is not None:
        update |= {"code": failure.code, "message": failure.message, "cure": failure.cure}
    return result.model_copy(update=update)


async def check_standby(checklist: Checklist, reader: Connection, target: Target, timeout: int) -> None:
    """`reader` leads to the standby, where there is one."""
    standby = await read_row(reader, STANDBY)
    title = "Standby to read from"
    servers = await look_at_servers(target, timeout)
    failure = failure_of_roles(servers) or failure_of_version(standby["version_number"], standby["version"])
    if failure is not None:
        checklist.fail("standby", title, failure.message, failure.cure)
        return
    (primary,), (read,) = servers.of(ServerRole.PRIMARY), servers.of(ServerRole.STANDBY)
    checklist.ok("standby", title, f"{read.address} is read, {primary.address} is written.")
    if primary.wal_level == "logical":
        checklist.ok("primary_wal_level", "WAL level of the primary", "wal_level is logical.")
    else:
        checklist.fail(
            "primary_wal_level", "WAL level of the primary", f"wal_level is {primary.wal_level} at {primary.address}.",
            "Set it to logical at the primary as well, and restart the primary.",
            "ALTER SYSTEM SET wal_level = 'logical'",
        )  # fmt: skip
    _check_kept(checklist, standby["feedback"], standby["own_slot"])
    _check_snapshots(checklist, standby["may_log_snapshots"], standby["username"])


def _check_kept(checklist: Checklist, feedback: bool, own_slot: str) -> None:
    if feedback:
        checklist.ok("standby_feedback", "Catalogue rows for the standby", "hot_standby_feedback is on.")
    else:
        checklist.fail(
            "standby_feedback", "Catalogue rows for the standby",
            "hot_standby_feedback is off: the primary removes rows of its catalogues that the stream's slot needs, and "
            "the slot is lost.",
            "Turn it on at the standby, and reload the standby's configuration.",
            "ALTER SYSTEM SET hot_standby_feedback = on",
        )  # fmt: skip
    if own_slot:
        checklist.ok("standby_slot", "Slot of the standby", f"The primary keeps {own_slot} for the standby.")
    else:
        checklist.warn(
            "standby_slot", "Slot of the standby",
            "The standby has no slot at its primary: while it is away, the primary removes rows of its catalogues, and "
            "the stream's slot is lost.",
            "Create a physical slot at the primary, and name it as primary_slot_name at the standby.",
            "SELECT pg_create_physical_replication_slot('standby'); -- at the primary\n"
            "ALTER SYSTEM SET primary_slot_name = 'standby'; -- at the standby",
        )  # fmt: skip


def _check_snapshots(checklist: Checklist, may: bool | None, user: str) -> None:
    title = "Right to begin a copy at once"
    if may:
        checklist.ok("standby_snapshot", title, f"{user} may call pg_log_standby_snapshot().")
    else:
        checklist.warn(
            "standby_snapshot", title,
            f"{user} may not call pg_log_standby_snapshot(): a copy waits, 15 seconds or longer, until the "
            "primary logs by itself which transactions run.",
            "Grant the right at the primary.",
            f"GRANT EXECUTE ON FUNCTION pg_log_standby_snapshot() TO {quoted(user)}",
        )  # fmt: skip
