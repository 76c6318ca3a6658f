"""Checks whether a destination can execute statement_handlers, and whether changes bring what those name."""

from dataclasses import dataclass

import psycopg

from thalweg.inspection.catalogue import Column, Table
from thalweg.inspection.checks import Checklist, listed, quoted_table
from thalweg.inspection.connection import Connection, read_all
from thalweg.inspection.old_values import brings_all, known_columns
from thalweg.inspection.schemas import ReplicaIdentity
from thalweg.kernel.bind_names import BindName, BoundStatement, bind_names
from thalweg.kernel.rules import TableRules
from thalweg.kernel.statement_handlers import HandlerMoment, RowOperation, StatementHandler
from thalweg.kernel.transformations import TableTransformations

Columns = dict[tuple[str, str], list[Column]]

CHECK = "statement_handlers"
TITLE = "Statements of statement_handlers"
SOURCE_CHECK = "statement_values"
SOURCE_TITLE = "Values for statement_handlers"
TYPES = {"commit_time": "timestamptz", "commit_lsn": "pg_lsn", "xid": "bigint"}
"""The engine's, of values that are no column's; the others are text."""
STORED_APART = frozenset({"text", "character varying", "character", "bytea", "json", "jsonb", "xml"})
"""Types whose values are often too large for their row."""
UNDEFINED_TABLE, UNDEFINED_OBJECT, UNDEFINED_SCHEMA = "42P01", "42704", "3F000"
BASE_TYPES = """
WITH RECURSIVE base (named, type) AS (
    SELECT named, to_regtype(named)::oid FROM unnest(%(types)s::text[]) AS named
     UNION ALL SELECT named, typbasetype FROM base JOIN pg_type t ON t.oid = base.type WHERE typtype = 'd'
)
SELECT named, format_type(base.type, NULL) AS type FROM base JOIN pg_type t ON t.oid = base.type WHERE typtype <> 'd'
"""
PREPARED = "thalweg_statement"


async def check_statements(
    source: Checklist, destination: Checklist, connection: Connection, handlers: list[StatementHandler],
    tables: list[Table], sent: Columns, present: Columns, rules: TableRules,
) -> None:  # fmt: skip
    """`tables` are those of the source whose updates and deletes are replicated, `sent` the columns of all as they are
    sent, `present` those of the destination, to which `connection` leads; all by the stream's names."""
    if not handlers:
        return
    awaited = [rules.names.of(name) for name in sent if name not in present]
    faults: list[str] = []
    unknown: list[str] = []
    for number, handler in enumerate(handlers, 1):
        bound = bind_names(handler["statement"])
        fault = _misnamed(handler, bound, sent)
        if fault is None:
            types = await _types(connection, handler, bound, sent, present)
            refusal = await _refusal(connection, bound, types)
            if refusal is not None and _may_come(refusal, awaited):
                unknown.append(f"Statement {number}{refusal.words}")
            elif refusal is not None:
                fault = refusal.words
        if fault is not None:
            faults.append(f"Statement {number}{fault}")
    _tell(destination, faults, unknown)
    _check_values(source, handlers, tables, sent, rules.transformations)


def _may_come(refusal: "_Refusal", awaited: list[tuple[str, str]]) -> bool:
    """The server misses one of the stream's tables, its schema, or perhaps one of its types."""
    if refusal.sqlstate == UNDEFINED_TABLE:
        return any(f'"{schema}.{table}"' in refusal.words for schema, table in awaited)
    if refusal.sqlstate == UNDEFINED_SCHEMA:
        return any(f'"{schema}"' in refusal.words for schema, _ in awaited)
    return refusal.sqlstate == UNDEFINED_OBJECT and bool(awaited)


def _tell(checklist: Checklist, faults: list[str], unknown: list[str]) -> None:
    if faults:
        checklist.fail(
            CHECK, TITLE, f"{'; '.join(faults)}.",
            "Correct the statements. Names of tables and functions need their schema there: only pg_catalog is "
            "searched.",
        )  # fmt: skip
    elif unknown:
        checklist.warn(
            CHECK, TITLE, f"{'; '.join(unknown)}. It may come with the stream's tables, which are not all there.",
            "If a statement needs more than these tables, create that at the destination first.",
        )  # fmt: skip
    else:
        checklist.ok(CHECK, TITLE, "The destination can execute them.")


def _misnamed(handler: StatementHandler, bound: BoundStatement, sent: Columns) -> str | None:
    if "table" not in handler:
        return None
    name = handler["schema"], handler["table"]
    if name not in sent:
        return f" is of {'.'.join(name)}, which is no table of the stream"
    come = {column.name for column in sent[name]}
    lacking = [bind.written for bind in bound.names if bind.column and bind.column not in come]
    return f": changes of {'.'.join(name)} do not have {listed(lacking)}" if lacking else None


async def _types(
    connection: Connection, handler: StatementHandler, bound: BoundStatement, sent: Columns, present: Columns
) -> list[str]:
    """The types of the parameters as the engine gives them: the destination column's, or the base type of a domain."""
    name = handler.get("schema", ""), handler.get("table", "")
    columns = {column.name: column.type for column in [*sent.get(name, []), *present.get(name, [])]}
    named = {columns[bind.column] for bind in bound.names if bind.column}
    rows = await read_all(connection, BASE_TYPES, {"types": sorted(named)}) if named else []
    base = {row["named"]: row["type"] for row in rows}

    def type_of(bind: BindName) -> str:
        return base.get(columns[bind.column], columns[bind.column]) if bind.column else TYPES.get(bind.kind, "text")

    return [type_of(bind) for bind in bound.names]


@dataclass(frozen=True)
class _Refusal:
    """`words` follow the number of the statement."""

    words: str
    sqlstate: str | None


async def _refusal(connection: Connection, bound: BoundStatement, types: list[str]) -> _Refusal | None:
    """The server's objection. The statement is planned, not executed, with the rights that an execution needs. To plan
    it, the server evaluates IMMUTABLE functions of constants. A request in the extended protocol has one statement
    only."""
    listed_types = f" ({', '.join(types)})" if types else ""
    prepare = f"PREPARE {PREPARED}{listed_types} AS "
    values = f"({', '.join('NULL' for _ in types)})" if types else ""
    prepared = False
    try:
        async with connection.transaction(force_rollback=True):
            await connection.execute("SET LOCAL standard_conforming_strings = on")
            await connection.execute(f"{prepare}{bound.sql}".encode(), binary=True)
            prepared = True
            await connection.execute(f"EXPLAIN EXECUTE {PREPARED}{values}".encode())
    except (psycopg.OperationalError, psycopg.InterfaceError):
        raise
    except psycopg.Error as error:
        message = (error.diag.message_primary or str(error).strip()).rstrip(".")
        place = int(error.diag.statement_position or 0) - len(prepare) - 1
        known = not prepared and place >= 0
        at = f" at character {bound.place_of(place) + 1}" if known else ""
        return _Refusal(f"{at}: {message}", error.sqlstate)
    finally:
        if prepared and not connection.closed:
            await connection.execute(f"DEALLOCATE {PREPARED}".encode())
    return None


def _check_values(
    checklist: Checklist, handlers: list[StatementHandler], tables: list[Table], sent: Columns,
    transformations: list[TableTransformations],
) -> None:  # fmt: skip
    """Old values, and large ones that an update leaves as they are, come for sure only with REPLICA IDENTITY FULL."""
    by_table = {transformation.key: transformation for transformation in transformations}
    blind: dict[str, Table] = {}
    doubtful: dict[str, Table] = {}
    for handler in handlers:
        table = next((known for known in tables if known.name == (handler.get("schema"), handler.get("table"))), None)
        if table is None or brings_all(table) or not _of_old_rows(handler):
            continue
        known = known_columns(table, by_table.get(table.name))
        types = {column.name: column.type for column in sent.get(table.name, [])}
        updates = RowOperation.UPDATE in handler.get("operations", list(RowOperation))
        for bind in bind_names(handler["statement"]).names:
            shown = f"{bind.written} of {table.shown}"
            if bind.kind == "old" and bind.column not in known:
                blind[shown] = table
            elif (
                bind.kind == "new"
                and updates
                and bind.column not in known
                and _may_be_large(types.get(bind.column, ""))
            ):
                doubtful[shown] = table
    cure = (
        "Set REPLICA IDENTITY to FULL (the source writes whole old rows to its WAL), of each partition, too. Or take "
        "the value out of the statement."
    )
    if blind:
        checklist.fail(
            SOURCE_CHECK, SOURCE_TITLE,
            f"{listed(list(blind))}: updates and deletes bring the old values of their key only.", cure,
            _full([*blind.values(), *doubtful.values()]),
        )  # fmt: skip
    elif doubtful:
        checklist.warn(
            SOURCE_CHECK, SOURCE_TITLE,
            f"{listed(list(doubtful))}: an update does not bring a large value that it leaves as it is. The change "
            "fails then.", cure, _full(list(doubtful.values())),
        )  # fmt: skip
    elif any("table" in handler for handler in handlers):
        checklist.ok(SOURCE_CHECK, SOURCE_TITLE, "Changes bring what the statements name.")


def _of_old_rows(handler: StatementHandler) -> bool:
    operations = handler.get("operations", list(RowOperation))
    return handler["when"] != HandlerMoment.PRECOMMIT and set(operations) != {RowOperation.INSERT}


def _may_be_large(type_name: str) -> bool:
    return type_name.partition("(")[0] in STORED_APART or type_name.endswith("[]")


def _full(tables: list[Table]) -> str:
    return "\n".join(
        f"ALTER TABLE {quoted_table(part.name)} REPLICA IDENTITY FULL;"
        for table in {each.name: each for each in tables}.values()
        for part in [table, *table.leaves]
        if part.identity is not ReplicaIdentity.FULL
    )
