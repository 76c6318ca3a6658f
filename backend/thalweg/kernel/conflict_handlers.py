"""Handlers of single changes that conflict with a destination's rows: the parameter conflict_handlers. The limits are
the engine's (engine/contract/control-api.md)."""

from enum import StrEnum
from typing import Annotated, Any, Required

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from thalweg.kernel.models import FieldProblem, TableIdentifier

HANDLERS_MAX = 100


class ConflictKind(StrEnum):
    """Named as PostgreSQL 18 names them; it has none for a missing parent row."""

    INSERT_EXISTS = "insert_exists"
    UPDATE_EXISTS = "update_exists"
    UPDATE_MISSING = "update_missing"
    DELETE_MISSING = "delete_missing"
    FOREIGN_KEY_MISSING = "foreign_key_missing"
    UPDATE_ORIGIN_DIFFERS = "update_origin_differs"
    DELETE_ORIGIN_DIFFERS = "delete_origin_differs"


class LoggedKind(StrEnum):
    """ConflictKind, and what is none."""

    INSERT_EXISTS = "insert_exists"
    UPDATE_EXISTS = "update_exists"
    UPDATE_MISSING = "update_missing"
    DELETE_MISSING = "delete_missing"
    FOREIGN_KEY_MISSING = "foreign_key_missing"
    UPDATE_ORIGIN_DIFFERS = "update_origin_differs"
    DELETE_ORIGIN_DIFFERS = "delete_origin_differs"
    ERROR = "error"


class ExportFormat(StrEnum):
    """Of a conflict log."""

    NDJSON = "ndjson"
    CSV = "csv"


class HandlerAction(StrEnum):
    ERROR = "error"
    DISCARD = "discard"
    OVERWRITE = "overwrite"


class ConflictHandler(TypedDict, total=False):
    """The fate of a single change with such a conflict, while the rest of its transaction is applied."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)  # type: ignore[misc]

    kind: Required[Annotated[ConflictKind, Field(strict=False)]]
    schema: Annotated[TableIdentifier, Field(description="With `table`.", examples=["public"])]
    table: Annotated[
        TableIdentifier,
        Field(description="The table whose change failed, by its exact name. Omitted: any.", examples=["orders"]),
    ]
    action: Required[
        Annotated[
            HandlerAction,
            Field(
                strict=False,
                description="`discard`: the change is left out. `overwrite`: an INSERT takes the place of the row with "
                "its key (`insert_exists`), an UPDATE inserts the row that it lacks (`update_missing`), a row that is "
                "not as the source's was is changed or deleted all the same (`update_origin_differs`, "
                "`delete_origin_differs`). `error`: error_policies decides about the transaction.",
            ),
        ]
    ]


OVERWRITES = (
    ConflictKind.INSERT_EXISTS,
    ConflictKind.UPDATE_MISSING,
    ConflictKind.UPDATE_ORIGIN_DIFFERS,
    ConflictKind.DELETE_ORIGIN_DIFFERS,
)
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
        for member, message in _contradictions(handler)
    ]


def _problem(pointer: str, message: str) -> FieldProblem:
    return FieldProblem(pointer=pointer, code="invalid_parameter", message=message, cure=CURE)


def _contradictions(handler: ConflictHandler) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    if "table" in handler and "schema" not in handler:
        found.append(("schema", "A table is named with its schema."))
    if "schema" in handler and "table" not in handler:
        found.append(("table", "A schema is named with one of its tables."))
    if handler["action"] == HandlerAction.OVERWRITE and handler["kind"] not in OVERWRITES:
        found.append(("action", f"Only {', '.join(OVERWRITES)} can overwrite."))
    return found
