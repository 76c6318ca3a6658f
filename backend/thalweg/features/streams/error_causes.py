"""Causes of parked transactions in words, with what most likely cures each."""

from enum import StrEnum
from typing import NamedTuple

from thalweg.engine_client.documents import ROW_DIFFERS, SEVERAL_ROWS, UNWRITTEN
from thalweg.engine_client.error_codes import ErrorCode


class CauseKind(StrEnum):
    DUPLICATE_KEY = "duplicate_key"
    MISSING_ROW = "missing_row"
    ROW_DIFFERS = "row_differs"
    ROW_NOT_WRITTEN = "row_not_written"
    SEVERAL_ROWS = "several_rows"
    MISSING_PARENT = "missing_parent"
    NULL_REFUSED = "null_refused"
    CHECK_VIOLATED = "check_violated"
    VALUE_TOO_LONG = "value_too_long"
    VALUE_REFUSED = "value_refused"
    MISSING_PRIVILEGE = "missing_privilege"
    TRIGGER = "trigger"
    TABLE_DIFFERS = "table_differs"
    COPY_INCONSISTENT = "copy_inconsistent"
    WAITS = "waits"
    FREED = "freed"
    OTHER = "other"


class Likely(NamedTuple):
    kind: CauseKind
    title: str
    cure: str


BY_CODE: dict[str, Likely] = {
    ErrorCode.PARKED_BEHIND: Likely(
        CauseKind.WAITS, "They wait behind other parked transactions",
        "Nothing by itself: they follow when those in front of them are executed or discarded.",
    ),
    ErrorCode.PARKED_FREED: Likely(
        CauseKind.FREED, "The transactions that they waited for are gone",
        "Compare the rows on both sides, then execute or discard them; neither happens by itself.",
    ),
    ErrorCode.INITIAL_COPY_INCONSISTENT: Likely(
        CauseKind.COPY_INCONSISTENT, "A row of the initial copy cannot be rebuilt",
        "Copy the table again: that also settles its parked transactions.",
    ),
    ErrorCode.DESTINATION_TABLE_DIFFERS: Likely(
        CauseKind.TABLE_DIFFERS, "The destination's table does not fit the source's",
        "Add the column or change the type that a transaction's message names, at the destination, then execute them.",
    ),
}  # fmt: skip
BY_SQLSTATE = {
    "23505": Likely(
        CauseKind.DUPLICATE_KEY, "The destination has a row with this key already",
        "Open one and compare the rows. Correct or delete the destination's row, then execute them; if the "
        "destination's rows are right, discard them. Find out what else writes to the table.",
    ),
    "23503": Likely(
        CauseKind.MISSING_PARENT, "The row that is referred to is missing at the destination",
        "Insert the missing parent rows, or execute the parked transactions of the referenced table first. If the "
        "stream leaves that table out, include it or drop the foreign key at the destination.",
    ),
    "23502": Likely(
        CauseKind.NULL_REFUSED, "A column of the destination must not be null",
        "Drop the column's NOT NULL at the destination, or fill the column at the source, then execute them.",
    ),
    "23": Likely(
        CauseKind.CHECK_VIOLATED, "A constraint that only the destination has refuses the row",
        "Drop the constraint at the destination or make it as wide as the source's, then execute them.",
    ),
    "22001": Likely(
        CauseKind.VALUE_TOO_LONG, "A value is too long for the destination's column",
        "Give the column the source's type at the destination (ALTER TABLE ... ALTER COLUMN ... TYPE), then execute "
        "them.",
    ),
    "22P02": Likely(
        CauseKind.VALUE_REFUSED, "A value is none of the destination's type",
        "If the message names an enum, add the label at the destination (ALTER TYPE ... ADD VALUE); else give the "
        "column the source's type there. Then execute them.",
    ),
    "22": Likely(
        CauseKind.VALUE_REFUSED, "A value does not fit the destination's column",
        "Give the column the source's type at the destination, then execute them. Also look at triggers that fire "
        "ALWAYS, and statement handlers, that compute with the value.",
    ),
    "P0": Likely(
        CauseKind.TRIGGER, "A function at the destination raises an error",
        "Read the message: a trigger that fires ALWAYS or REPLICA, or a function that a statement handler calls, "
        "refuses the row. Mend the function, or have the trigger not fire for replicated rows (ALTER TABLE ... ENABLE "
        "TRIGGER), then execute them.",
    ),
    "42501": Likely(
        CauseKind.MISSING_PRIVILEGE, "A privilege is missing at the destination, or a policy refuses the row",
        "Grant the privilege that the message names to the role that applies: the engine's user, or the role that was "
        "chosen. If the message names row-level security, change the table's policy or choose another role; the "
        "engine's user itself needs BYPASSRLS. Then execute them.",
    ),
    "42": Likely(
        CauseKind.TRIGGER, "A function at the destination uses something that does not exist there",
        "A trigger that fires ALWAYS or REPLICA, or a statement handler, names a table, column or function that is "
        "missing: create it or mend the trigger's function or the statement, then execute them.",
    ),
}  # fmt: skip
"""By the beginning of the SQLSTATE; the longer ones stand first."""
MISSING_ROW = Likely(
    CauseKind.MISSING_ROW, "The destination has no such row",
    "Open one and compare. Insert the row as it was at the source before the change, then execute them; or copy the "
    "table again. Find out what else deletes from the table.",
)  # fmt: skip
BY_ROW = {
    ROW_DIFFERS: Likely(
        CauseKind.ROW_DIFFERS, "The destination's row is not as the source's was before the change",
        "Open one and compare. Execute them to make the changes all the same, or discard them if the destination's "
        "rows are right. For later ones, a conflict handler of update_origin_differs or delete_origin_differs decides.",
    ),
    UNWRITTEN: Likely(
        CauseKind.ROW_NOT_WRITTEN, "The row is there, but the destination does not write it",
        "A trigger that is enabled ALWAYS or REPLICA keeps it, or a column GENERATED ALWAYS AS IDENTITY has another "
        "value: change the trigger or the column, then execute them.",
    ),
    SEVERAL_ROWS: Likely(
        CauseKind.SEVERAL_ROWS, "The destination has several rows with this key: a unique index is missing",
        "Delete the rows that are too many and create the primary key or unique index again at the destination, as "
        "the source has it; then execute them.",
    ),
}  # fmt: skip
"""By the engine's words for a row that is there."""
OTHER = Likely(
    CauseKind.OTHER, "The destination refuses the change", "Open one: its message says what the server refuses."
)


def likely(code: str, sqlstate: str, words: str = "") -> Likely:
    """`code` is an engine's, maybe of a newer version; `sqlstate` is empty where the server did not refuse. `words`:
    the message, or what it says of the row."""
    if code in BY_CODE:
        return BY_CODE[code]
    if not sqlstate and code == ErrorCode.APPLY_CONFLICT:
        return next((of_row for said, of_row in BY_ROW.items() if said in words), MISSING_ROW)
    return next((words for state, words in BY_SQLSTATE.items() if sqlstate.startswith(state)), OTHER)
