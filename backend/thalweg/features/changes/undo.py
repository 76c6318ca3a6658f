"""The SQL that undoes a change which a search has found, or the reason why there is none. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from thalweg.engine_client.search_documents import ChangeOperation, FoundChange, FoundColumn, FoundValue
from thalweg.features.changes.sql_text import equals, identifier, shown, typed
from thalweg.kernel.words import counted, listed

NAMED_MAX = 5
WHOLE_ROWS = "Search by key over a longer span, or set REPLICA IDENTITY FULL for the changes to come."
ALIKE = (
    "Only all of its columns together identify the row: it is found while it is as this change left it, and of several "
    "that are alike, one is changed."
)


@dataclass(frozen=True)
class Undo:
    """Without `sql`, `note` says why there is none; beside it, what is uncertain."""

    sql: str | None
    note: str | None = None


@dataclass
class CannotUndo(Exception):
    reason: str


def undo_of(change: FoundChange) -> Undo:
    try:
        match change.operation:
            case ChangeOperation.INSERT:
                return _statement(change, " ".join(("DELETE FROM", _table(change))))
            case ChangeOperation.DELETE:
                return Undo(_insertion(change))
            case ChangeOperation.UPDATE:
                return _statement(change, " ".join(("UPDATE", _table(change), "SET", _assignments(change))))
        raise CannotUndo("The WAL does not have the rows that a TRUNCATE removes.")
    except CannotUndo as found:
        return Undo(None, found.reason)


def script_part(change: FoundChange, undo: Undo) -> str:
    """For `script_of`. A change without SQL is a comment."""
    what = f"-- Change {change.number}: {change.operation} of transaction {change.xid}"
    at = change.commit_time.isoformat().replace("+00:00", "Z")
    if undo.sql is None:
        return f"{what}, committed at {at}, is NOT undone: {undo.note}\n"
    if undo.note is None:
        return f"{what}, committed at {at}\n{undo.sql}\n"
    return f"{what}, committed at {at}\n-- {undo.note}\n{_or_error(undo.sql, change.number)}\n"


def _or_error(sql: str, number: int) -> str:
    """A statement that finds nothing would pass for one that has undone the change."""
    quote = "$undo$"
    while quote in sql:
        quote = f"{quote[:-1]}_$"
    error = f"The row of change {number} is not as the change left it: nothing is undone."
    check = f"IF NOT FOUND THEN RAISE EXCEPTION '{error}'; END IF;"
    return f"DO {quote}\n#variable_conflict use_column\nBEGIN\n{sql}\n{check}\nEND {quote};"


def script_of(parts: Sequence[str], left_out: int, *, is_part: bool = False) -> Iterator[str]:
    """One transaction that undoes changes, the newest first; `parts` are in the order of their commits. `is_part`: the
    search has ended early."""
    yield f"-- Undoes {counted(len(parts) - left_out, 'change')}, the newest first.\n"
    if is_part:
        yield "-- The search has ended early: later changes of these rows are NOT undone, and are overwritten.\n"
    if left_out:
        yield f"-- {counted(left_out, 'change')} cannot be undone: the comments in their places say why.\n"
    yield "-- Read it before you run it: later changes of these rows are overwritten, and triggers act.\n"
    yield "BEGIN;\n"
    yield from reversed(parts)
    yield "COMMIT;\n"


def _table(change: FoundChange) -> str:
    return f"{identifier(change.schema_name)}.{identifier(change.table)}"


def _statement(change: FoundChange, beginning: str) -> Undo:
    """For the row as the change left it."""
    keys = [column for column in change.columns if column.key]
    by_key = 0 < len(keys) < len(change.columns)
    row = keys if by_key else change.columns
    if not row:
        raise CannotUndo("No column identifies the row.")
    values = [(column, _left(column)) for column in row]
    _check_unmasked(values)
    _check_known([column for column, value in values if value is None], "value")
    _check_whole((column, value) for column, value in values if value is not None)
    condition = " AND ".join(equals(column.name, value.text, column.type) for column, value in values if value)
    if by_key:
        return Undo(f"{beginning} WHERE {condition};")
    one = " ".join(("SELECT tableoid, ctid FROM", _table(change), "WHERE", condition, "LIMIT 1"))
    return Undo(f"{beginning} WHERE (tableoid, ctid) = ({one});", ALIKE)


def _left(column: FoundColumn) -> FoundValue | None:
    """An UPDATE leaves a long value as it was, and its new row does not have it."""
    return column.after if column.after is not None else column.before


def _assignments(change: FoundChange) -> str:
    written = [column for column in change.columns if column.after is not None]
    _check_unmasked((column, value) for column in written for value in (column.before, column.after))
    _check_known([column for column in written if column.before is None], "old value")
    _check_whole((column, value) for column in written for value in (column.before, column.after) if value is not None)
    sets = [
        f"{identifier(column.name)} = {typed(column.before.text, column.type)}"
        for column in written
        if column.before is not None and column.after is not None and column.before.text != column.after.text
    ]
    if not sets:
        raise CannotUndo("It has changed no value.")
    return ", ".join(sets)


def _insertion(change: FoundChange) -> str:
    values = [(column, column.before) for column in change.columns]
    _check_unmasked(values)
    _check_known([column for column, value in values if value is None], "old value")
    _check_whole((column, value) for column, value in values if value is not None)
    if not values:
        return f"INSERT INTO {_table(change)} DEFAULT VALUES;"
    names = ", ".join(identifier(column.name) for column, _ in values)
    texts = ", ".join(typed(value.text, column.type) for column, value in values if value is not None)
    return " ".join(("INSERT INTO", _table(change), f"({names}) OVERRIDING SYSTEM VALUE VALUES ({texts});"))


def _check_known(missing: Sequence[FoundColumn], what: str) -> None:
    if missing:
        raise CannotUndo(f"The WAL does not have the {what} of {_names(missing)}. {WHOLE_ROWS}")


def _check_unmasked(values: Iterable[tuple[FoundColumn, FoundValue | None]]) -> None:
    """Before it is asked what is known: nothing else helps."""
    masked = [column for column, value in values if value is not None and value.masked]
    if masked:
        raise CannotUndo(f"The stream masks {_names(masked)}.")


def _check_whole(values: Iterable[tuple[FoundColumn, FoundValue]]) -> None:
    cut = [column for column, value in values if value.cut]
    if cut:
        raise CannotUndo(f"The value of {_names(cut)} is longer than what was read of it.")


def _names(columns: Sequence[FoundColumn]) -> str:
    """Each once, in their order."""
    names = list(dict.fromkeys(shown(column.name) for column in columns))
    others = len(names) - NAMED_MAX
    return listed(names if others <= 0 else [*names[:NAMED_MAX], f"{others} more"])
