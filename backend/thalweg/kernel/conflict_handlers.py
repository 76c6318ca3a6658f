"""Handlers of single changes that conflict with a destination's rows: the parameter conflict_handlers. The limits are
the engine's (engine/contract/control-api.md)."""

import json
from enum import StrEnum
from typing import Annotated, Any, Required

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from thalweg.kernel.models import FieldProblem, TableIdentifier

HANDLERS = "conflict_handlers"
HANDLERS_MAX = 100
COLUMNS_MAX = 1600
ORDER_MAX = 100
EXPRESSION_MAX = 10_000


class ConflictKind(StrEnum):
    """Named as PostgreSQL 18 names them; it has none for a missing parent row."""

    INSERT_EXISTS = "insert_exists"
    UPDATE_EXISTS = "update_exists"
    UPDATE_MISSING = "update_missing"
    DELETE_MISSING = "delete_missing"
    FOREIGN_KEY_MISSING = "foreign_key_missing"
    UPDATE_ORIGIN_DIFFERS = "update_origin_differs"
    DELETE_ORIGIN_DIFFERS = "delete_origin_differs"
    MULTIPLE_UNIQUE_CONFLICTS = "multiple_unique_conflicts"


class LoggedKind(StrEnum):
    """ConflictKind, and what is none."""

    INSERT_EXISTS = "insert_exists"
    UPDATE_EXISTS = "update_exists"
    UPDATE_MISSING = "update_missing"
    DELETE_MISSING = "delete_missing"
    FOREIGN_KEY_MISSING = "foreign_key_missing"
    UPDATE_ORIGIN_DIFFERS = "update_origin_differs"
    DELETE_ORIGIN_DIFFERS = "delete_origin_differs"
    MULTIPLE_UNIQUE_CONFLICTS = "multiple_unique_conflicts"
    ERROR = "error"


class ExportFormat(StrEnum):
    """The format of an exported conflict log, and of changes that a search has found."""

    NDJSON = "ndjson"
    CSV = "csv"


class HandlerAction(StrEnum):
    ERROR = "error"
    DISCARD = "discard"
    OVERWRITE = "overwrite"
    MAXIMUM = "maximum"
    MINIMUM = "minimum"
    LATEST = "latest"
    PRIORITY = "priority"
    DELTA = "delta"
    APPEND = "append"
    MERGE = "merge"
    EXPRESSION = "expression"


class Tie(StrEnum):
    DISCARD = "discard"
    OVERWRITE = "overwrite"


class ConflictHandler(TypedDict, total=False):
    """The fate of a single change with such a conflict, while the rest of its transaction is applied."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)  # type: ignore[misc]

    kind: Required[Annotated[ConflictKind, Field(strict=False)]]
    schema: Annotated[TableIdentifier, Field(description="With `table`.", examples=["public"])]
    table: Annotated[
        TableIdentifier,
        Field(
            description="The table whose change failed, by its exact name in the stream. Omitted: any.",
            examples=["orders"],
        ),
    ]
    action: Required[
        Annotated[
            HandlerAction,
            Field(
                strict=False,
                description="`discard`: the change is left out. `overwrite`: an INSERT takes the place of the row with "
                "its key (`insert_exists`), an UPDATE inserts the row that it lacks (`update_missing`), a row that is "
                "not as the source's was is changed or deleted all the same (`update_origin_differs`, "
                "`delete_origin_differs`). Of two rows, for `insert_exists` and `update_origin_differs`: `maximum` and "
                "`minimum`: the one with the higher or lower value of the column `by` wins; `latest`: the one with the "
                "later value of `by`, or without it the one that was committed later; `priority`: the one whose value "
                "of `by` stands first in `order`. Of the columns in `columns`, each for itself: `delta`, for "
                "`update_origin_differs`: the difference of the source's two values is added; `append`: the elements "
                "of the source's array that the destination's lacks are appended; `merge`: the members of a jsonb "
                "object that the source has changed are changed; `expression`: the column gets the value of "
                "`expression`. `error`: error_policies decides about the transaction.",
            ),
        ]
    ]
    columns: Annotated[
        list[TableIdentifier],
        Field(
            min_length=1,
            max_length=COLUMNS_MAX,
            description="The group of columns that the handler decides about, by their names at the destination. A "
            "handler of the kind and table without it, behind these, decides about all others. Omitted: all. With "
            "`table`.",
        ),
    ]
    by: Annotated[
        TableIdentifier,
        Field(
            description="The column that decides, for `maximum`, `minimum`, `latest` and `priority`.",
            examples=["changed_at"],
        ),
    ]
    order: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=250)]],
        Field(
            min_length=1,
            max_length=ORDER_MAX,
            description="Values of `by` for `priority`, as a cast to text writes them, the best first. All others, and "
            "NULL, stand behind them.",
            examples=[["headquarters", "branch"]],
        ),
    ]
    expression: Annotated[
        str,
        Field(
            min_length=1,
            max_length=EXPRESSION_MAX,
            description="SQL for `expression`, which the destination computes with the rights of its user. It reads "
            "the source's row as `new` and, before an UPDATE, `old`, and the destination's as `t`. Functions outside "
            "pg_catalog need their schema. Only admins may write one.",
            examples=["greatest(new.price, t.price)"],
        ),
    ]
    tie: Annotated[
        Tie,
        Field(strict=False, description="The row whose values stay where both are the same; `discard` if omitted."),
    ]


OVERWRITES = (
    ConflictKind.INSERT_EXISTS,
    ConflictKind.UPDATE_MISSING,
    ConflictKind.UPDATE_ORIGIN_DIFFERS,
    ConflictKind.DELETE_ORIGIN_DIFFERS,
)
COMBINES = (ConflictKind.INSERT_EXISTS, ConflictKind.UPDATE_ORIGIN_DIFFERS)
"""There are two rows of which one can be made."""
COMPARES = (HandlerAction.MAXIMUM, HandlerAction.MINIMUM, HandlerAction.LATEST, HandlerAction.PRIORITY)
BY_COLUMN = (HandlerAction.DELTA, HandlerAction.APPEND, HandlerAction.MERGE, HandlerAction.EXPRESSION)
"""Each column of a group for itself, whatever the others are."""
_HANDLERS: TypeAdapter[list[ConflictHandler]] = TypeAdapter(
    Annotated[list[ConflictHandler], Field(max_length=HANDLERS_MAX)]
)
CURE = (
    'Write for example [{"kind": "insert_exists", "action": "overwrite"}, {"kind": "delete_missing", "action": '
    '"discard"}].'
)


def wrong_handlers(value: Any, at: str) -> list[FieldProblem]:
    """Faults of the parameter's value, each with its place below `at`."""
    try:
        handlers = _HANDLERS.validate_python(value)
    except ValidationError as error:
        return [
            _problem(at + "".join(f"/{part}" for part in found["loc"])[:200], found["msg"])
            for found in error.errors(include_url=False, include_input=False)[:HANDLERS_MAX]
        ]
    return [
        _problem(f"{at}/{number}/{member}", message)
        for number, handler in enumerate(handlers)
        for member, message in [*_contradictions(handler), *_shared(handlers[:number], handler)]
    ]


def conflict_handlers(value: Any) -> list[ConflictHandler]:
    """Reads a value that was checked."""
    return _HANDLERS.validate_python(value)


def with_expressions(value: Any) -> set[str]:
    """Handlers with SQL in a value, which may be wrong still: each whole, as text that can be compared."""
    handlers = value if isinstance(value, list) else []
    return {
        json.dumps(handler, sort_keys=True)
        for handler in handlers
        if isinstance(handler, dict) and isinstance(handler.get("expression"), str)
    }


def looks_at_columns(handler: ConflictHandler) -> bool:
    """Whether the databases say if it fits."""
    return "columns" in handler or "by" in handler or handler["action"] == HandlerAction.LATEST


def _shared(before: list[ConflictHandler], handler: ConflictHandler) -> list[tuple[str, str]]:
    """Two handlers must not decide about one column, or one would never be used; and no time of a commit beside a group
    of columns."""

    def place(earlier: ConflictHandler) -> tuple[str, str]:
        return earlier.get("schema", ""), earlier.get("table", "")

    same_kind = [earlier for earlier in before if earlier["kind"] == handler["kind"]]
    columns = handler.get("columns", [])
    found = []
    if any("columns" not in earlier and place(earlier) in (place(handler), ("", "")) for earlier in same_kind):
        member = "columns" if columns else "table" if "table" in handler else "kind"
        cure = "put it behind" if columns else "this one would never be used"
        found.append((member, f"A handler of the kind before it decides about {_what(handler)}: {cure}."))
    groups = [
        earlier
        for earlier in same_kind
        if "columns" in earlier and ("table" not in handler or place(earlier) == place(handler))
    ]
    if groups and _is_of_commits(handler):
        found.append(("by", "Name the column that decides: changes of a group of columns give the row another time."))
    taken = {column for earlier in groups for column in earlier["columns"]}
    return found + [
        ("columns", f"{column} is in the group of a handler before.") for column in columns if column in taken
    ]


def _what(handler: ConflictHandler) -> str:
    return "this table" if "table" in handler else "all tables"


def _is_of_commits(handler: ConflictHandler) -> bool:
    return handler["action"] == HandlerAction.LATEST and "by" not in handler


def _problem(pointer: str, message: str) -> FieldProblem:
    return FieldProblem(pointer=pointer, code="invalid_parameter", message=message, cure=CURE)


def _contradictions(handler: ConflictHandler) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    if "table" in handler and "schema" not in handler:
        found.append(("schema", "Name the schema and the table together."))
    if "schema" in handler and "table" not in handler:
        found.append(("table", "Name one of the schema's tables."))
    if handler["action"] == HandlerAction.OVERWRITE and handler["kind"] not in OVERWRITES:
        found.append(("action", f"Only {', '.join(OVERWRITES)} can overwrite."))
    return found + _misfits(handler)


def _misfits(handler: ConflictHandler) -> list[tuple[str, str]]:
    """Faults of members that only some actions and kinds have."""
    found: list[tuple[str, str]] = []
    action, columns = handler["action"], handler.get("columns", [])
    two_rows = handler["kind"] in COMBINES
    if action in (*COMPARES, *BY_COLUMN[1:]) and not two_rows:
        found.append(("action", f"Only {' and '.join(COMBINES)} have two rows of which one wins."))
    if action == HandlerAction.DELTA and handler["kind"] != ConflictKind.UPDATE_ORIGIN_DIFFERS:
        found.append(("action", "Only update_origin_differs has old values to which a difference can be added."))
    if action in BY_COLUMN and not columns:
        found.append(("columns", f"Name the columns that {action} decides."))
    if action == HandlerAction.EXPRESSION and len(columns) > 1:
        found.append(("columns", "Name one column: each needs an expression of its own."))
    if columns and not two_rows:
        found.append(("columns", f"Only handlers of {' and '.join(COMBINES)} decide about groups of columns."))
    if columns and "table" not in handler:
        found.append(("columns", "Columns belong to one table: name the table."))
    if len(set(columns)) < len(columns):
        found.append(("columns", "Name each column once."))
    if action in COMPARES and action != HandlerAction.LATEST and "by" not in handler:
        found.append(("by", "Name the column that decides."))
    if columns and _is_of_commits(handler):
        found.append(("by", "Name the column that decides: a commit time belongs to the whole row, not to a group."))
    if "by" in handler and "table" not in handler:
        found.append(("by", "The column belongs to one table: name the table."))
    found += [
        (member, f"Only {', '.join(COMPARES)} have it.")
        for member in ("by", "tie")
        if member in handler and action not in COMPARES
    ]
    return found + _own_members(handler)


def _own_members(handler: ConflictHandler) -> list[tuple[str, str]]:
    """Faults of members that one action has, and needs."""
    action, order = handler["action"], handler.get("order", [])
    found = []
    if "order" not in handler and action == HandlerAction.PRIORITY:
        found.append(("order", "List the values of the column, the best first."))
    if "expression" not in handler and action == HandlerAction.EXPRESSION:
        found.append(("expression", "Write what the column gets."))
    if len(set(order)) < len(order):
        found.append(("order", "Name each value once."))
    own = {"order": HandlerAction.PRIORITY, "expression": HandlerAction.EXPRESSION}
    return found + [(member, f"Only {of} has it.") for member, of in own.items() if member in handler and action != of]
