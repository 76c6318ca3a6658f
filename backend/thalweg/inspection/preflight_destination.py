"""Checks of a destination: may rows be written there, and do existing tables fit."""

from typing import Any

from thalweg.inspection.bookkeeping import check_bookkeeping
from thalweg.inspection.catalogue import Column, Table
from thalweg.inspection.checks import Checklist, quoted, quoted_table
from thalweg.inspection.connection import Connection, read_all, read_role, read_row
from thalweg.inspection.preflight_source import check_version
from thalweg.inspection.schemas import CheckSide, RoleFacts
from thalweg.inspection.writing import check_writing
from thalweg.kernel.words import counted

SERVER = """
SELECT current_setting('server_version_num')::int AS version_number, current_setting('server_version') AS version,
       pg_is_in_recovery() AS in_recovery, current_database() AS dbname
"""
SCHEMAS = """
SELECT nspname AS name, has_schema_privilege(oid, 'CREATE') AND has_schema_privilege(oid, 'USAGE') AS may_create
  FROM pg_namespace WHERE nspname = ANY(%(names)s)
"""

Columns = dict[tuple[str, str], list[Column]]
GRANT_PARAMETER_VERSION = 150000


async def check_destination(
    connection: Connection,
    wanted: Columns | None,
    present: list[Table],
    present_columns: Columns,
    initial_copy: bool,
    own: frozenset[tuple[str, str]] = frozenset(),
) -> Checklist:
    """`wanted` are the source's tables with their columns, or None when no tables are chosen yet: of no
    tables nothing is said. The stream's `own`
    tables, which it replicates already, may have rows."""
    checklist = Checklist(CheckSide.DESTINATION)
    _, role = await read_role(connection)
    server = await read_row(connection, SERVER)
    checklist.ok("connection", "Connection", f"Connected as {role.name} to {server['dbname']}.")
    check_version(checklist, server)
    await check_writing(checklist, connection, "rows")
    _check_role(checklist, server, role)
    await check_bookkeeping(checklist, connection, role)
    if wanted:
        existing = {table.name: table for table in present if table.name in wanted}
        await _check_schemas(checklist, connection, server, role, [name for name in wanted if name not in existing])
        _check_fit(checklist, wanted, existing, present_columns)
        _check_apart(checklist, existing)
        _check_writable(checklist, role, existing)
        new = [table for name, table in existing.items() if name not in own]
        await _check_empty(checklist, connection, new, initial_copy)
    return checklist


def check_moved(
    checklist: Checklist, moved: dict[tuple[str, str], tuple[str, str]], present: set[tuple[str, str]]
) -> None:
    """`moved`: tables that the destination has under other names, with those that they are to get there."""
    if not moved:
        return
    taken = [f"{'.'.join(there)} (of {'.'.join(name)})" for name, there in moved.items() if there in present]
    checklist.tables(
        "moved_tables", "Renamed tables", taken, "other tables have these names already.",
        "Choose other names, or rename or drop the tables that have them.", [],
        f"{counted(len(moved), 'table')} can be renamed.",
    )  # fmt: skip


def _check_role(checklist: Checklist, server: dict[str, Any], role: RoleFacts) -> None:
    user = quoted(role.name)
    if role.create_on_database:
        checklist.ok("create_schema", "Right to create schemas", f"{role.name} has CREATE on the database.")
    else:
        checklist.fail(
            "create_schema", "Right to create schemas",
            f"{role.name} lacks CREATE on the database {server['dbname']}: apply keeps its progress in the schema "
            "thalweg there.",
            "Grant CREATE on the database to the user.",
            f"GRANT CREATE ON DATABASE {quoted(server['dbname'])} TO {user}",
        )  # fmt: skip
    title = "Right to apply as a replica"
    if role.may_set_session_replication_role:
        checklist.ok("session_replication_role", title, f"{role.name} may set session_replication_role.")
        return
    grantable = server["version_number"] >= GRANT_PARAMETER_VERSION
    checklist.fail(
        "session_replication_role", title,
        f"{role.name} may not set session_replication_role, without which triggers and foreign keys would act twice.",
        "Grant the right, as a superuser." if grantable else "Use a superuser: PostgreSQL 14 cannot grant this right.",
        f"GRANT SET ON PARAMETER session_replication_role TO {user}" if grantable else f"ALTER ROLE {user} SUPERUSER",
    )  # fmt: skip


async def _check_schemas(
    checklist: Checklist,
    connection: Connection,
    server: dict[str, Any],
    role: RoleFacts,
    missing: list[tuple[str, str]],
) -> None:
    """Missing tables are created: that needs CREATE in schemas that exist (others are created by us)."""
    names = sorted({schema for schema, _ in missing})
    rows = await read_all(connection, SCHEMAS, {"names": names})
    closed = [str(row["name"]) for row in rows if not row["may_create"]]
    checklist.tables(
        "schema_create", "Right to create tables", closed, f"{role.name} may not create tables there.",
        "Grant CREATE on the schemas.",
        [f"GRANT USAGE, CREATE ON SCHEMA {quoted(name)} TO {quoted(role.name)};" for name in closed],
        f"{counted(len(missing), 'table')} will be created." if missing else "All tables are there already.",
    )  # fmt: skip


def _check_fit(checklist: Checklist, wanted: Columns, existing: dict[tuple[str, str], Table], present: Columns) -> None:
    differences: list[str] = []
    cures: list[str] = []
    for name in existing:
        found, repairs = _differences(name, wanted[name], present.get(name, []))
        if found:
            differences.append(f"{'.'.join(name)} ({'; '.join(found)})")
            cures.extend(repairs)
    checklist.tables(
        "existing_tables", "Existing tables", differences, "they do not fit the source's tables.",
        "Change the destination's tables, or drop them and let the engine create them.", cures,
        f"{len(existing)} of {len(wanted)} exist and fit." if existing else "None of the tables exists yet.",
    )  # fmt: skip
    keyless = [table for table in existing.values() if not table.facts["primary_key"] and not table.facts["has_unique"]]
    if keyless:
        checklist.warn(
            "destination_keys", "Keys of existing tables",
            f"{', '.join(table.shown for table in keyless)}: no primary key or unique index, so that updates and "
            "deletes must search the whole table.",
            "Add a primary key at the destination.",
        )  # fmt: skip


def _check_apart(checklist: Checklist, existing: dict[tuple[str, str], Table]) -> None:
    """Tables that are replicated by themselves are no partitions of each other at the destination: as after a DETACH at
    the source alone. A row of one would be a row of both."""
    roots = {table.oid: table for table in existing.values()}
    within = [(table, roots[root]) for table in existing.values() if (root := table.facts["root"]) in roots]
    within = [(table, root) for table, root in within if table is not root]
    checklist.tables(
        "separate_tables", "Separate tables", [f"{table.shown} (of {root.shown})" for table, root in within],
        "they are partitions of another of the stream's tables at the destination, and tables of their own at the "
        "source.",
        "Detach them at the destination, too, and truncate those that are to be copied.",
        [f"ALTER TABLE {quoted_table(root.name)} DETACH PARTITION {quoted_table(table.name)};"
         for table, root in within],
        "No table is a partition of another one.",
    )  # fmt: skip


def _differences(name: tuple[str, str], wanted: list[Column], present: list[Column]) -> tuple[list[str], list[str]]:
    there = {column.name: column for column in present}
    table = quoted_table(name)
    found: list[str] = []
    cures: list[str] = []
    for column in wanted:
        match = there.pop(column.name, None)
        if match is None:
            found.append(f"column {column.name} is missing")
            cures.append(f"ALTER TABLE {table} ADD COLUMN {quoted(column.name)} {column.type};")
        elif match.type != column.type:
            found.append(f"column {column.name} is {match.type} instead of {column.type}")
            cures.append(f"ALTER TABLE {table} ALTER COLUMN {quoted(column.name)} TYPE {column.type};")
    for extra in there.values():
        if extra.not_null and not extra.has_default and not extra.generated:
            found.append(f"column {extra.name} is not in the source, NOT NULL and without a default")
            cures.append(f"ALTER TABLE {table} ALTER COLUMN {quoted(extra.name)} DROP NOT NULL;")
    return found, cures


def _check_writable(checklist: Checklist, role: RoleFacts, existing: dict[tuple[str, str], Table]) -> None:
    closed = [table for table in existing.values() if not (table.facts["may_write"] and table.facts["may_select"])]
    user = quoted(role.name)
    checklist.tables(
        "table_write", "Right to write existing tables", [table.shown for table in closed],
        f"{role.name} lacks a privilege on them.", "Grant the privileges.",
        [f"GRANT USAGE ON SCHEMA {quoted(schema)} TO {user};" for schema in sorted({t.name[0] for t in closed})]
        + [f"GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON {quoted_table(t.name)} TO {user};" for t in closed],
        "All can be written.",
    )  # fmt: skip


async def _with_rows(connection: Connection, tables: list[Table]) -> list[Table]:
    """One statement for all of them."""
    if not tables:
        return []
    looks = (
        f"SELECT {at} AS at WHERE EXISTS (SELECT FROM {quoted_table(table.name)})"  # noqa: S608
        for at, table in enumerate(tables)
    )
    rows = await read_all(connection, " UNION ALL ".join(looks))
    return [tables[row["at"]] for row in rows]


async def _check_empty(checklist: Checklist, connection: Connection, tables: list[Table], initial_copy: bool) -> None:
    filled = await _with_rows(connection, [table for table in tables if table.facts["may_select"]])
    names = [table.shown for table in filled]
    title = "Empty tables"
    if filled and not initial_copy:
        checklist.warn(
            "empty_tables", title, f"{', '.join(names)} have rows, and there will be no initial copy.",
            "Make sure that they hold what the source holds.",
        )  # fmt: skip
        return
    checklist.tables(
        "empty_tables", title, names, "they already have rows, which the initial copy would clash with.",
        "Truncate them, or set the parameter initial_copy to off.",
        [f"TRUNCATE {', '.join(quoted_table(table.name) for table in filled)};"] if filled else [],
        "No existing table has rows." if tables else "There is no existing table that would be copied.",
    )  # fmt: skip
