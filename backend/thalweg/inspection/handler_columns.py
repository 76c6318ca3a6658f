"""Checks whether the columns that conflict_handlers name fit what the handlers do with them."""

from collections.abc import Callable

from psycopg import errors, sql

from thalweg.inspection.catalogue import Column
from thalweg.inspection.checks import Checklist, listed
from thalweg.inspection.connection import Connection, read_all
from thalweg.kernel.bind_names import BindFault, check_expression
from thalweg.kernel.conflict_handlers import ConflictHandler, HandlerAction

Columns = dict[tuple[str, str], list[Column]]

CHECK = "handler_columns"
TITLE = "Columns of conflict_handlers"
EXPRESSIONS_CHECK = "handler_expressions"
EXPRESSIONS_TITLE = "Expressions of conflict_handlers"
CURSOR = "thalweg_expression"
TIMES_CHECK = "commit_times"
TIMES_TITLE = "Commit times for conflict_handlers"
UNORDERED = frozenset({"json", "xml", "point", "line", "lseg", "box", "path", "polygon", "circle"})
NOT_ADDITIVE = UNORDERED | {
    "text", "character varying", "character", "boolean", "date", "timestamp without time zone",
    "timestamp with time zone", "time without time zone", "time with time zone", "uuid", "jsonb", "bytea", "bit",
    "bit varying", "inet", "cidr", "macaddr", "tsvector", "tsquery",
}  # fmt: skip


OWN_TYPES = """
SELECT named.type FROM unnest(%(types)s::text[]) AS named (type) JOIN pg_type t ON t.oid = to_regtype(named.type)
 WHERE t.typnamespace = 'pg_catalog'::regnamespace
"""


ASSIGNED = """
WITH given AS (SELECT unnest(%(oids)s::oid[]) AS oid),
     wanted AS (SELECT coalesce(nullif(typbasetype, 0), oid) AS oid, typcategory FROM pg_type
                 WHERE oid = %(to)s::regtype)
SELECT format_type(given.oid, NULL) AS type,
       given.oid = wanted.oid OR wanted.typcategory = 'S'
       OR EXISTS (SELECT FROM pg_cast c, pg_type g, pg_type w
                   WHERE g.oid = given.oid AND w.oid = wanted.oid AND c.castcontext IN ('a', 'i')
                     AND (c.castsource, c.casttarget) IN ((g.oid, w.oid), (g.typelem, w.typelem))) AS fits
  FROM given, wanted
"""
"""Whether an UPDATE may assign a value of the type: what casts say, and that everything becomes text."""


async def check_handlers(
    checklist: Checklist, connection: Connection, handlers: list[ConflictHandler], sent: Columns, present: Columns
) -> None:
    """`sent` are the columns as they are sent, `present` those of the destination, to which `connection` leads."""
    ruled = [handler for handler in handlers if "columns" in handler or "by" in handler]
    if ruled:
        own = await _own_types(connection, ruled, sent, present)
        faults = [fault for handler in ruled for fault in _faults(handler, sent, present, own)]
        if faults:
            checklist.fail(
                CHECK, TITLE, f"{listed(list(dict.fromkeys(faults)))}.",
                "Name columns of the destination's table that changes bring, of types that fit what the handler does.",
            )  # fmt: skip
        else:
            checklist.ok(CHECK, TITLE, "They are there, and of types that fit.")
            await _check_expressions(checklist, connection, ruled, sent, present)
    if any(handler["action"] == HandlerAction.LATEST and "by" not in handler for handler in handlers):
        (row,) = await read_all(connection, "SELECT current_setting('track_commit_timestamp') = 'on' AS tracks", {})
        if row["tracks"]:
            checklist.ok(TIMES_CHECK, TIMES_TITLE, "The destination keeps the times of its commits.")
        else:
            checklist.fail(
                TIMES_CHECK, TIMES_TITLE, "The destination does not keep the times of its commits.",
                "Let the server keep them, and restart it. Or name a column in the handler's by.",
                "ALTER SYSTEM SET track_commit_timestamp = on",
            )  # fmt: skip


def _there(handler: ConflictHandler, sent: Columns, present: Columns) -> dict[str, Column]:
    name = handler["schema"], handler["table"]
    return {column.name: column for column in [*sent.get(name, []), *present.get(name, [])]}


async def _own_types(
    connection: Connection, handlers: list[ConflictHandler], sent: Columns, present: Columns
) -> set[str]:
    """PostgreSQL's own, whose operators the apply finds: it looks for no others."""
    types = {
        column.type
        for handler in handlers
        for column in _there(handler, sent, present).values()
        if column.name in [*handler.get("columns", []), handler.get("by")]
    }
    return {row["type"] for row in await read_all(connection, OWN_TYPES, {"types": sorted(types)})}


def _faults(handler: ConflictHandler, sent: Columns, present: Columns, own: set[str]) -> list[str]:
    name = handler["schema"], handler["table"]
    shown = ".".join(name)
    if name not in sent:
        return [f"{shown} is no table of the stream"]
    come = {column.name for column in sent[name]}
    there = _there(handler, sent, present)
    found = []
    for column in [*handler.get("columns", []), *([handler["by"]] if "by" in handler else [])]:
        if column not in come:
            found.append(f"changes of {shown} have no column {column}")
        elif there[column].generated:
            found.append(f"the destination generates {shown}.{column} by itself")
    action = handler["action"]
    columns = [there[column] for column in handler.get("columns", []) if column in there]
    by = [there[handler["by"]]] if handler.get("by") in there and action != HandlerAction.PRIORITY else []
    operated = [*(columns if action in (HandlerAction.DELTA, HandlerAction.APPEND) else []), *by]
    found += [
        f"{shown}.{column.name} is of type {column.type}, which is none of PostgreSQL's own: only their operators are "
        "used"
        for column in operated
        if column.type not in own
    ]
    found += [
        f"{shown}.{column.name} is of type {column.type}, whose values have no order"
        for column in by
        if _base(column) in UNORDERED
    ]
    fits, lack = MISFITS.get(action, (lambda _: True, ""))
    return found + [f"{shown}.{column.name} is of type {column.type}, {lack}" for column in columns if not fits(column)]


async def _check_expressions(
    checklist: Checklist, connection: Connection, handlers: list[ConflictHandler], sent: Columns, present: Columns
) -> None:
    """Whether the destination can make sense of each, without a row."""
    faults = []
    for handler in handlers:
        if "expression" in handler:
            fault = await _fault_of_expression(connection, handler, _there(handler, sent, present))
            if fault is not None:
                faults.append(f"{handler['schema']}.{handler['table']}.{handler['columns'][0]}: {fault}")
    if faults:
        checklist.fail(
            EXPRESSIONS_CHECK, EXPRESSIONS_TITLE, f"{listed(faults)}.",
            "Correct the expression: it reads columns of new, old and t, and names what is outside pg_catalog with its "
            "schema.",
        )  # fmt: skip
    elif any("expression" in handler for handler in handlers):
        checklist.ok(EXPRESSIONS_CHECK, EXPRESSIONS_TITLE, "The destination accepts them.")


async def _fault_of_expression(
    connection: Connection, handler: ConflictHandler, columns: dict[str, Column]
) -> str | None:
    """A cursor from which nothing is fetched: the server plans it, and tells the type. It executes nothing, but to plan
    it evaluates IMMUTABLE functions of constants."""
    try:
        check_expression(handler["expression"])
    except BindFault as fault:
        return str(fault)
    row = sql.SQL(", ").join(
        sql.SQL("NULL::{} AS {}").format(sql.SQL(column.type), sql.Identifier(name)) for name, column in columns.items()
    )
    (wanted,) = (columns[name] for name in handler["columns"])
    statement = sql.SQL(
        "SELECT ({expression}\n) FROM (SELECT {row}) AS new, (SELECT {row}) AS old, (SELECT {row}) AS t WHERE false"
    ).format(expression=sql.SQL(handler["expression"]), row=row)
    try:
        async with connection.transaction(force_rollback=True):
            await connection.execute("SET LOCAL search_path = pg_catalog")
            # check_expression reads quotes so.
            await connection.execute("SET LOCAL standard_conforming_strings = on")
            async with connection.cursor(name=CURSOR) as cursor:
                await cursor.execute(statement)
                described = cursor.description or []
    except errors.QueryCanceled:
        raise
    except errors.DatabaseError as error:
        return error.diag.message_primary or str(error)
    (assigned,) = await read_all(
        connection, ASSIGNED, {"oids": [column.type_code for column in described], "to": wanted.type}
    )
    return None if assigned["fits"] else f"it is of type {assigned['type']}, the column of type {wanted.type}"


def _is_additive(column: Column) -> bool:
    base = _base(column)
    return base not in NOT_ADDITIVE and not base.endswith(("[]", "range"))


def _base(column: Column) -> str:
    """Without modifiers, "timestamp(0) with time zone", for example; an array stays one."""
    head, _, rest = column.type.partition("(")
    return head + rest.partition(")")[2]


def _is_array(column: Column) -> bool:
    return column.type.endswith("[]") and _base(column).removesuffix("[]") not in UNORDERED


MISFITS: dict[HandlerAction, tuple[Callable[[Column], bool], str]] = {
    HandlerAction.DELTA: (_is_additive, "to which no difference can be added"),
    HandlerAction.APPEND: (_is_array, "which is no array whose elements can be compared"),
    HandlerAction.MERGE: (lambda column: column.type == "jsonb", "whose members cannot be merged: only jsonb's can"),
}
"""By action: whether a column of the group fits, and else what it lacks."""
