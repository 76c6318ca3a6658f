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


async def check_handlers(
    checklist: Checklist, connection: Connection, handlers: list[ConflictHandler], sent: Columns, present: Columns
) -> None:
    """`sent` are the columns as they are sent, `present` those of the destination, to which `connection` leads."""
    ruled = [handler for handler in handlers if "columns" in handler or "by" in handler]
    if ruled:
        faults = [fault for handler in ruled for fault in _faults(handler, sent, present)]
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


def _faults(handler: ConflictHandler, sent: Columns, present: Columns) -> list[str]:
    name = handler["schema"], handler["table"]
    shown = ".".join(name)
    if name not in sent:
        return [f"{shown} is no table of the stream"]
    come = {column.name for column in sent[name]}
    there = {column.name: column for column in [*sent[name], *present.get(name, [])]}
    found = []
    for column in [*handler.get("columns", []), *([handler["by"]] if "by" in handler else [])]:
        if column not in come:
            found.append(f"changes of {shown} have no column {column}")
        elif there[column].generated:
            found.append(f"the destination generates {shown}.{column} by itself")
    by = there.get(handler.get("by", ""))
    if by is not None and _base(by) in UNORDERED:
        found.append(f"{shown}.{by.name} is of type {by.type}, whose values have no order")
    if handler["action"] == HandlerAction.DELTA:
        found += [
            f"{shown}.{one} is of type {there[one].type}, to which no difference can be added"
            for one in handler.get("columns", [])
            if one in there and _base(there[one]) in NOT_ADDITIVE
        ]
    return found


def _base(column: Column) -> str:
    """Without modifiers, "timestamp(0) with time zone", for example; an array stays one."""
    head, _, rest = column.type.partition("(")
    return head + rest.partition(")")[2]
