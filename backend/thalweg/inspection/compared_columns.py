"""Checks whether conflict_detection gets what it compares: old values from the source, columns at the destination."""

from thalweg.inspection.catalogue import Column, Table, read_columns, read_tables
from thalweg.inspection.checks import Checklist, failed_connection, listed, quoted_table
from thalweg.inspection.connection import connected
from thalweg.inspection.failure import ConnectionFailure
from thalweg.inspection.handler_columns import check_handlers
from thalweg.inspection.old_values import brings_all, known_columns
from thalweg.inspection.schemas import Check, CheckSide, ReplicaIdentity
from thalweg.inspection.sent_columns import sent_columns
from thalweg.inspection.statements import check_statements
from thalweg.inspection.target import Target
from thalweg.kernel.conflict_detection import ComparedTable
from thalweg.kernel.conflict_handlers import ConflictHandler
from thalweg.kernel.rules import TableRules
from thalweg.kernel.statement_handlers import StatementHandler
from thalweg.kernel.transformations import TableTransformations

Columns = dict[tuple[str, str], list[Column]]

SOURCE_CHECK = "old_values"
SOURCE_TITLE = "Old values for conflict_detection"
CHECK = "compared_columns"
TITLE = "Columns of conflict_detection"


async def inspect_conflicts(
    source: Target, destination: Target, compared: list[ComparedTable], handlers: list[ConflictHandler],
    statements: list[StatementHandler], names: set[tuple[str, str]], rules: TableRules, timeout: int,
) -> list[Check]:  # fmt: skip
    """For a stream that has these tables already. Never raises for what is wrong with a database: a check says it."""
    side = CheckSide.SOURCE
    at_source, at_destination = Checklist(CheckSide.SOURCE), Checklist(CheckSide.DESTINATION)
    try:
        async with connected(source, timeout) as connection:
            tables = [table for table in await read_tables(connection) if table.name in names]
            sent = sent_columns(await read_columns(connection, tables), rules.transformations)
        side = CheckSide.DESTINATION
        async with connected(destination.for_writing, timeout) as connection:
            by_name = {rules.names.of(name): name for name in names}
            there = [table for table in await read_tables(connection) if table.name in by_name]
            present = {by_name[name]: of_table for name, of_table in (await read_columns(connection, there)).items()}
            await check_handlers(at_destination, connection, handlers, sent, present)
            changed = [table for table in tables if table.name not in rules.given_up]
            await check_statements(at_source, at_destination, connection, statements, changed, sent, present, rules)
    except ConnectionFailure as failure:
        return failed_connection(side, failure)
    check_compared(at_source, at_destination, compared, changed, sent, present, rules.transformations)
    return [*at_source.checks, *at_destination.checks]


def check_compared(
    source: Checklist, destination: Checklist, compared: list[ComparedTable], tables: list[Table],
    sent: Columns, present: Columns, transformations: list[TableTransformations],
) -> None:  # fmt: skip
    """`tables` are those of the source whose updates and deletes are replicated, `sent` the columns of all as they are
    sent, `present` those of the destination."""
    if not compared:
        return
    by_table = {transformation.key: transformation for transformation in transformations}
    named = {
        (compared_table["schema"], compared_table["table"]): compared_table
        for compared_table in compared
        if "table" in compared_table
    }
    takes_all = len(named) < len(compared)
    _check_old_values(source, named, takes_all, tables, by_table)
    faults = [
        fault
        for name, compared_table in named.items()
        for fault in _faults(name, compared_table, sent, present, by_table.get(name))
    ]  # fmt: skip
    if faults:
        destination.fail(
            CHECK, TITLE, f"{listed(faults)}.",
            "Name tables of the stream, and columns that are sent as the source has them and are stored as they come.",
        )  # fmt: skip
    else:
        destination.ok(CHECK, TITLE, "They are sent and stored as the source has them.")


def _check_old_values(
    checklist: Checklist, named: dict[tuple[str, str], ComparedTable], takes_all: bool, tables: list[Table],
    by_table: dict[tuple[str, str], TableTransformations],
) -> None:  # fmt: skip
    blind = [
        table
        for table in tables
        if (table.name in named or takes_all)
        and not brings_all(table)
        and not _brings(table, named.get(table.name), by_table.get(table.name))
    ]
    if not blind:
        checklist.ok(SOURCE_CHECK, SOURCE_TITLE, "Changes bring the old values of what is compared.")
        return
    detail = (
        f"{listed([table.shown for table in blind])}: updates and deletes bring the old values of their key only, so "
        "that conflicts in other columns are not noticed."
    )
    cure = (
        "Set REPLICA IDENTITY to FULL (the source writes whole old rows to its WAL), of each partition, too. Or take "
        "the table out of conflict_detection."
    )
    sql = "\n".join(
        f"ALTER TABLE {quoted_table(part.name)} REPLICA IDENTITY FULL;"
        for table in blind
        for part in [table, *table.leaves]
        if part.identity is not ReplicaIdentity.FULL
    )
    if any(table.name in named for table in blind):
        checklist.fail(SOURCE_CHECK, SOURCE_TITLE, detail, cure, sql)
    else:
        checklist.warn(SOURCE_CHECK, SOURCE_TITLE, detail, cure, sql)


def _brings(table: Table, compared: ComparedTable | None, transformations: TableTransformations | None) -> bool:
    """The columns of the list are in the identity. That of a partition may be another one than the whole table's."""
    return (
        compared is not None
        and "columns" in compared
        and set(compared["columns"]) <= known_columns(table, transformations)
    )


def _faults(
    name: tuple[str, str], compared: ComparedTable, sent: Columns, present: Columns,
    transformations: TableTransformations | None,
) -> list[str]:  # fmt: skip
    shown = ".".join(name)
    if name not in sent:
        return [f"{shown} is no table of the stream"]
    columns = {column.name for column in sent[name]}
    generated = {column.name for column in present.get(name, []) if column.generated}
    made = transformations.made_columns if transformations else set()
    found = []
    for column in compared.get("columns", []):
        if column not in columns:
            found.append(f"changes of {shown} have no column {column}")
        elif column in made:
            found.append(f"a transformation makes the values of {shown}.{column}")
        elif column in generated:
            found.append(f"the destination generates {shown}.{column} by itself")
    return found
