"""Checks whether the columns that conflict_handlers name fit what the handlers do with them."""

from thalweg.inspection.catalogue import Column
from thalweg.inspection.checks import Checklist, listed
from thalweg.inspection.connection import Connection, read_all
from thalweg.kernel.conflict_handlers import ConflictHandler, HandlerAction

Columns = dict[tuple[str, str], list[Column]]

CHECK = "handler_columns"
TITLE = "Columns of conflict_handlers"
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
    by = there.get(handler.get("by", ""))
    delta = handler.get("columns", []) if handler["action"] == HandlerAction.DELTA else []
    found += [
        f"{shown}.{one} is of type {there[one].type}, which is none of PostgreSQL's own: only their operators are used"
        for one in [*delta, *([handler["by"]] if "by" in handler else [])]
        if one in there and there[one].type not in own
    ]
    if by is not None and _base(by) in UNORDERED:
        found.append(f"{shown}.{by.name} is of type {by.type}, whose values have no order")
    found += [
        f"{shown}.{one} is of type {there[one].type}, to which no difference can be added"
        for one in delta
        if one in there and not _is_additive(there[one])
    ]
    return found


def _is_additive(column: Column) -> bool:
    base = _base(column)
    return base not in NOT_ADDITIVE and not base.endswith(("[]", "range"))


def _base(column: Column) -> str:
    """Without modifiers, "timestamp(0) with time zone", for example; an array stays one."""
    head, _, rest = column.type.partition("(")
    return head + rest.partition(")")[2]
