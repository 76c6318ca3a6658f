"""Checks of a source: may its WAL be read, and can each table be replicated."""

from typing import Any

from thalweg.inspection.catalogue import Table
from thalweg.inspection.checks import Checklist, listed, quoted, quoted_table
from thalweg.inspection.connection import Connection, read_role, read_row
from thalweg.inspection.inserts_only import check_given_up
from thalweg.inspection.schemas import CheckSide, RoleFacts
from thalweg.inspection.writing import check_writing
from thalweg.kernel.capture_kinds import CaptureKind

VERSION_MIN = 140000
SYNCHRONISED_SLOTS_VERSION = 170000

SERVER = """
SELECT current_setting('server_version_num')::int AS version_number, current_setting('server_version') AS version,
       current_setting('wal_level') AS wal_level, pg_is_in_recovery() AS in_recovery, current_database() AS dbname,
       current_setting('max_replication_slots')::int AS slots_max,
       (SELECT count(*) FROM pg_replication_slots)::int AS slots_used,
       current_setting('max_wal_senders')::int AS senders_max,
       (SELECT count(*) FROM pg_stat_get_wal_senders())::int AS senders_used,
       current_setting('idle_replication_slot_timeout', true) AS idle_timeout,
       ARRAY(SELECT slot_name::text FROM pg_replication_slots WHERE slot_type = 'physical' AND NOT temporary
             AND NOT starts_with(slot_name::text, 'thalweg_') ORDER BY 1) AS standbys,
       current_setting('synchronized_standby_slots', true) AS synchronized,
       EXISTS (SELECT FROM pg_largeobject_metadata) AS large_objects,
       (SELECT rolbypassrls OR rolsuper FROM pg_roles WHERE rolname = current_user) AS bypasses_row_security,
       EXISTS (SELECT FROM pg_roles WHERE rolname = 'rds_replication'
                  AND pg_has_role(current_user, oid, 'USAGE')) AS managed_replication
"""


async def check_source(
    connection: Connection,
    tables: list[Table],
    tentative: bool,
    given_up: frozenset[tuple[str, str]] = frozenset(),
    reads_standby: bool = False,
    kind: CaptureKind = CaptureKind.LOGICAL,
) -> Checklist:
    """`tables` are those chosen, or all with `tentative`; of those `given_up` only inserts are replicated. With
    `reads_standby` the server may be a standby, which check_standby looks at."""
    checklist = Checklist(CheckSide.SOURCE, tentative)
    _, role = await read_role(connection)
    server = await read_row(connection, SERVER)
    checklist.ok("connection", "Connection", f"Connected as {role.name} to {server['dbname']}.")
    check_version(checklist, {**server, "in_recovery": server["in_recovery"] and not reads_standby})
    await check_writing(checklist, connection, "the stream's publication and heartbeats", reads_standby=reads_standby)
    _check_wal(checklist, server, kind)
    check_idle_slots(checklist, server)
    if kind is CaptureKind.WAL:
        _check_mined_failover(checklist, server)
    elif not reads_standby:
        _check_failover(checklist, server)
    _check_role(checklist, server, role)
    _check_tables(checklist, server, role, tables, given_up)
    check_given_up(checklist, tables, given_up)
    _check_left_out(checklist, server)
    return checklist


def check_version(checklist: Checklist, server: dict[str, Any]) -> None:
    title = "Server version"
    if server["version_number"] < VERSION_MIN:
        checklist.fail(
            "version",
            title,
            f"The server is PostgreSQL {server['version']}.",
            "Upgrade to PostgreSQL 14 or later.",
        )
    else:
        checklist.ok("version", title, f"PostgreSQL {server['version']}.")
    if server["in_recovery"]:
        checklist.fail(
            "primary", "Primary server", "The server is a standby: nothing can be created on it.",
            "Register the primary server instead; or the addresses of both servers, with target_session_attrs = "
            "read-write, to use whichever accepts writes. To read at the standby, from PostgreSQL 16 on, register "
            "both and choose to read from the standby.",
        )  # fmt: skip


def _check_wal(checklist: Checklist, server: dict[str, Any], captures: CaptureKind) -> None:
    # The start of one that mines has a slot for its snapshot beside that for the WAL.
    needed, in_words = (2, "two while it starts") if captures is CaptureKind.WAL else (1, "one")
    if server["wal_level"] == "logical":
        checklist.ok("wal_level", "WAL level", "wal_level is logical.")
    else:
        checklist.fail(
            "wal_level", "WAL level", f"wal_level is {server['wal_level']}: the WAL lacks what a stream needs.",
            "Set wal_level to logical and restart the server.", "ALTER SYSTEM SET wal_level = 'logical'",
        )  # fmt: skip
    for identifier, title, kind, setting in (
        ("replication_slots", "Free replication slot", "slots", "max_replication_slots"),
        ("wal_senders", "Free WAL sender", "senders", "max_wal_senders"),
    ):
        used, most = server[f"{kind}_used"], server[f"{kind}_max"]
        if used + needed <= most:
            checklist.ok(identifier, title, f"{used} of {most} are in use.")
        else:
            taken = f"All {most}" if used >= most else f"{used} of {most}"
            checklist.fail(
                identifier, title, f"{taken} are in use; a stream needs {in_words}.",
                f"Raise {setting} and restart the server, or drop unused ones.",
                f"ALTER SYSTEM SET {setting} = {most + 10}",
            )  # fmt: skip


def check_idle_slots(checklist: Checklist, server: dict[str, Any]) -> None:
    """PostgreSQL 18 can invalidate slots that nobody reads for some time."""
    title = "Life of unread slots"
    if server["idle_timeout"] in (None, "0"):
        checklist.ok("idle_slots", title, "The server keeps a slot no matter how long it is not read.")
    else:
        checklist.warn(
            "idle_slots", title,
            f"idle_replication_slot_timeout is {server['idle_timeout']}: a stream that is stopped for longer loses its "
            "slot, and its tables must be copied again.",
            "Set it to 0, or above the longest time that a stream may stand still, and reload the server.",
            "ALTER SYSTEM SET idle_replication_slot_timeout = 0",
        )  # fmt: skip


def _check_failover(checklist: Checklist, server: dict[str, Any]) -> None:
    """Whether a stream can go on at a standby that is promoted (docs/decisions/failover.md)."""
    title, standbys = "Failover to a standby", server["standbys"]
    if not standbys:
        checklist.ok("failover", title, "No standby has a slot here.")
    elif server["version_number"] < SYNCHRONISED_SLOTS_VERSION:
        checklist.warn(
            "failover", title,
            f"There are slots of standbys ({listed(standbys)}), but before PostgreSQL 17 a standby keeps no copy of a "
            "stream's slot: when one is promoted, the tables must be copied again.",
            "Upgrade the server to 17 or later if streams are to continue after a failover.",
        )  # fmt: skip
    elif server["synchronized"]:
        checklist.ok("failover", title, f"Nothing is sent before {server['synchronized']} has it.")
    else:
        checklist.warn(
            "failover", title,
            f"There are slots of standbys ({listed(standbys)}), and synchronized_standby_slots is empty: destinations "
            "may get ahead of a standby, and when that is promoted, their tables must be copied again.",
            "Name the slots of the standbys that may be promoted, and reload the server; streams then wait for them.",
            "ALTER SYSTEM SET synchronized_standby_slots = " + ", ".join(quoted(name) for name in standbys),
        )  # fmt: skip


def _check_mined_failover(checklist: Checklist, server: dict[str, Any]) -> None:
    title, standbys = "Failover to a standby", server["standbys"]
    if not standbys:
        checklist.ok("failover", title, "No standby has a slot here.")
    else:
        checklist.warn(
            "failover", title,
            f"There are slots of standbys ({listed(standbys)}), and a stream that mines does not follow a failover: "
            "when one is promoted, the tables must be copied again.",
            "Choose logical decoding for a stream that is to continue after a failover.",
        )  # fmt: skip


def _check_role(checklist: Checklist, server: dict[str, Any], role: RoleFacts) -> None:
    if role.replication or server["managed_replication"]:
        checklist.ok("replication_attribute", "REPLICATION attribute", f"{role.name} may read the WAL.")
    else:
        checklist.fail(
            "replication_attribute", "REPLICATION attribute", f"{role.name} may not open a replication connection.",
            "Give the user the REPLICATION attribute, as a superuser.", f"ALTER ROLE {quoted(role.name)} REPLICATION",
        )  # fmt: skip
    if role.create_on_database:
        checklist.ok("create_publication", "Right to create a publication", f"{role.name} has CREATE.")
    else:
        checklist.fail(
            "create_publication", "Right to create a publication",
            f"{role.name} lacks CREATE on the database {server['dbname']}.",
            "Grant CREATE on the database to the user.",
            f"GRANT CREATE ON DATABASE {quoted(server['dbname'])} TO {quoted(role.name)}",
        )  # fmt: skip


def _check_tables(
    checklist: Checklist, server: dict[str, Any], role: RoleFacts, tables: list[Table],
    given_up: frozenset[tuple[str, str]],
) -> None:  # fmt: skip
    user = quoted(role.name)
    if not tables and not checklist.tentative:
        checklist.fail(
            "tables",
            "Tables",
            "The rules choose no table.",
            "Correct the table patterns; names are case-sensitive.",
        )
        return
    usable = [table for table in tables if not table.is_partition]
    impossible = [table for table in usable if table.kind in ("foreign", "unlogged")]
    checklist.tables(
        "unsupported_tables", "Kinds of tables", [table.shown for table in impossible],
        "foreign and unlogged tables have no changes in the WAL.",
        "Leave them out with an exclude pattern, or make an unlogged table logged.",
        [f"ALTER TABLE {quoted_table(t.name)} SET LOGGED;" for t in impossible if t.kind == "unlogged"],
        "All can be replicated.",
    )  # fmt: skip
    identified = [table for table in usable if table not in impossible and table.name not in given_up]
    keyless = [keyless_table for table in identified for keyless_table in table.unidentified]
    checklist.tables(
        "table_keys", "Keys of tables", [table.shown for table in keyless],
        "neither a primary key nor a replica identity, so that updates and deletes would fail at the source.",
        "Add a primary key, or make a unique index without nulls the replica identity, or set that to FULL (slower); "
        "or leave the tables out. Or name them in inserts_only of the rules: then only inserts and truncates are "
        "replicated, and their updates and deletes are given up.",
        [f"ALTER TABLE {quoted_table(table.name)} REPLICA IDENTITY {_identity(table)};" for table in keyless],
        "Every table has a key or a replica identity, or gives up updates and deletes.",
    )  # fmt: skip
    foreign_owned = [table for table in usable if not table.facts["owned"]]
    owners = sorted({table.facts["owner"] for table in foreign_owned})
    checklist.tables(
        "table_ownership", "Ownership of tables", [table.shown for table in foreign_owned],
        f"a publication may only be made of tables that {role.name} owns; they belong to {listed(owners)}.",
        "Make the user a member of the owner's role.",
        [f"GRANT {quoted(owner)} TO {user};" for owner in owners],
        f"{role.name} owns every table, or is a member of its owner.",
    )  # fmt: skip
    unreadable = [table for table in usable if not table.facts["may_select"]]
    schemas = sorted({table.name[0] for table in unreadable if not table.facts["may_use_schema"]})
    # A member of the owner's role may read the table, and row-level security does not hold for the owner.
    closed = [table for table in unreadable if table not in foreign_owned]
    needless = "" if not foreign_owned else " Membership in the owner's role gives this right, too."
    checklist.tables(
        "table_select", "Right to read the tables", [table.shown for table in unreadable],
        f"{role.name} may not read them, which the initial copy needs.", "Grant USAGE and SELECT." + needless,
        [f"GRANT USAGE ON SCHEMA {quoted(schema)} TO {user};" for schema in schemas]
        + [f"GRANT SELECT ON {quoted_table(table.name)} TO {user};" for table in closed],
        "All can be read.",
    )  # fmt: skip
    hidden = [table for table in usable if _hides_rows(table, bool(server["bypasses_row_security"]))]
    checklist.tables(
        "row_security", "Row-level security", [table.shown for table in hidden],
        "row-level security would hide rows from the initial copy.",
        "Let the user bypass it, as a superuser." + needless,
        [f"ALTER ROLE {user} BYPASSRLS;"] if any(_stays_hidden(hidden_table, foreign_owned) for hidden_table in hidden)
        else [],
        "Hides no rows.",
    )  # fmt: skip


def _identity(table: Table) -> str:
    candidate = table.facts["candidate"]
    return f"USING INDEX {quoted(candidate)}" if candidate else "FULL"


def _stays_hidden(table: Table, foreign_owned: list[Table]) -> bool:
    return table not in foreign_owned or bool(table.facts["force_row_security"])


def _hides_rows(table: Table, bypasses: bool) -> bool:
    exempt = bypasses or (table.facts["owned"] and not table.facts["force_row_security"])
    return bool(table.facts["row_security"]) and not exempt


def _check_left_out(checklist: Checklist, server: dict[str, Any]) -> None:
    if server["large_objects"]:
        checklist.warn(
            "large_objects", "Large objects", "Large objects (pg_largeobject) are not replicated.",
            "Store such values in bytea columns.",
        )  # fmt: skip
