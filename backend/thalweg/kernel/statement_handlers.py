"""Statements that are executed at a destination instead of a change, after it, in the place of one that fails, or at
the end of each transaction: the parameter statement_handlers. The limits are the engine's
(engine/contract/control-api.md)."""

from enum import StrEnum
from typing import Annotated, Any, Required

from pydantic import ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails
from typing_extensions import TypedDict

from thalweg.kernel.bind_names import COLUMN_KINDS, ERROR_KINDS, BindFault, bind_names
from thalweg.kernel.error_policies import CODES, EXPECTED_ERROR, ErrorName
from thalweg.kernel.models import FieldProblem, TableIdentifier

STATEMENTS = "statement_handlers"
HANDLERS_MAX = 100
STATEMENT_BYTES_MAX = 16_384
NAMES_MAX = 1_000
"""The engine has no such limit: its search for each name among the others takes the longer, the more there are."""
ERRORS_MAX = 100
OF_CHANGES = (*COLUMN_KINDS, "operation", "schema", "table")


class HandlerMoment(StrEnum):
    INSTEAD = "instead"
    AFTER = "after"
    PRECOMMIT = "precommit"
    ERROR = "error"


class RowOperation(StrEnum):
    INSERT = "INSERT"
    UPDATE = "UPDATE"
    DELETE = "DELETE"


class StatementHandler(TypedDict, total=False):
    """A statement that the destination executes in the transaction of the change, as the stream's own user there."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)  # type: ignore[misc]

    when: Required[
        Annotated[
            HandlerMoment,
            Field(
                strict=False,
                description="`instead`: of each change, which is not made itself. `after`: behind each change. "
                "`precommit`: once for each transaction of the source that has changes, behind the last of them. "
                "`error`: in the place of each change that fails by its data.",
            ),
        ]
    ]
    schema: Annotated[TableIdentifier, Field(description="With `table`.", examples=["public"])]
    table: Annotated[
        TableIdentifier,
        Field(
            description="The table whose changes these are, by its exact name in the stream. Omitted: any; `instead` "
            "has one, `precommit` none.",
            examples=["orders"],
        ),
    ]
    operations: Annotated[
        list[Annotated[RowOperation, Field(strict=False)]],
        Field(min_length=1, max_length=len(RowOperation), description="Omitted: all. `precommit` has none."),
    ]
    errors: Annotated[
        list[ErrorName],
        Field(
            min_length=1,
            max_length=ERRORS_MAX,
            description="SQLSTATEs for `error`, the first two characters of one (its class), or codes "
            f"({', '.join(CODES)}). Omitted: any error of a row's data.",
            examples=[["23505"]],
        ),
    ]
    statement: Required[
        Annotated[
            str,
            StringConstraints(min_length=1, max_length=STATEMENT_BYTES_MAX),
            Field(
                description="One INSERT, UPDATE, DELETE, MERGE or SELECT, perhaps behind WITH. Values have names: "
                "`:new.column`, `:old.column`, `:operation`, `:schema`, `:table`, `:commit_time`, `:commit_lsn`, "
                "`:xid`; of `error` also `:sqlstate`, `:error`, `:constraint`, `:kind`. "
                "Names of objects need their schema: only pg_catalog is searched.",
                examples=["INSERT INTO audit.changes VALUES (:operation, :new.id, :commit_time)"],
            ),
        ]
    ]


_HANDLERS: TypeAdapter[list[StatementHandler]] = TypeAdapter(
    Annotated[list[StatementHandler], Field(max_length=HANDLERS_MAX)]
)
CURE = (
    'Write for example [{"when": "after", "schema": "public", "table": "orders", "operations": ["UPDATE"], '
    '"statement": "INSERT INTO audit.orders VALUES (:new.id, :new.amount)"}].'
)


def statement_handlers(value: Any) -> list[StatementHandler]:
    """The handlers of a value that was checked."""
    return _HANDLERS.validate_python(value)


def wrong_statements(value: Any, at: str) -> list[FieldProblem]:
    """Faults of the parameter's value, each with its place below `at`."""
    try:
        handlers = _HANDLERS.validate_python(value)
    except ValidationError as error:
        return [
            _problem(at + "".join(f"/{part}" for part in found["loc"])[:200], _in_words(found))
            for found in error.errors(include_url=False, include_input=False)[:HANDLERS_MAX]
        ]
    return [
        _problem(f"{at}/{number}/{member}", message)
        for number, handler in enumerate(handlers)
        for member, message in _contradictions(handler)
    ]


def _in_words(found: ErrorDetails) -> str:
    """An error's name is described by what it may be, not by the pattern that it does not match."""
    return EXPECTED_ERROR if found["type"] == "string_pattern_mismatch" and "errors" in found["loc"] else found["msg"]


def _problem(pointer: str, message: str) -> FieldProblem:
    return FieldProblem(pointer=pointer, code="invalid_parameter", message=message, cure=CURE)


def _contradictions(handler: StatementHandler) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    if "table" in handler and "schema" not in handler:
        found.append(("schema", "Name the schema and the table together."))
    if "schema" in handler and "table" not in handler:
        found.append(("table", "Name one of the schema's tables."))
    when, operations = handler["when"], handler.get("operations", [])
    if when == HandlerMoment.INSTEAD and "table" not in handler:
        found.append(("table", "A statement takes the place of the changes of one table: name it."))
    if when == HandlerMoment.PRECOMMIT:
        found += [
            (member, "A handler that stands at the end of a transaction has none.")
            for member in ("table", "operations")
            if member in handler
        ]
    if len(set(operations)) < len(operations):
        found.append(("operations", "Name each operation once."))
    if "errors" in handler and when != HandlerMoment.ERROR:
        found.append(("errors", "Only a handler whose `when` is `error` has them."))
    if len(set(handler.get("errors", []))) < len(handler.get("errors", [])):
        found.append(("errors", "Name each error once."))
    fault = _statement_fault(handler)
    return [*found, ("statement", fault)] if fault else found


def _statement_fault(handler: StatementHandler) -> str | None:
    statement = handler["statement"]
    if "\0" in statement:
        return "It must not contain a zero byte."
    if len(statement.encode()) > STATEMENT_BYTES_MAX:
        return f"It has more than {STATEMENT_BYTES_MAX:,} bytes."
    try:
        bound = bind_names(statement)
    except BindFault as fault:
        return f"{str(fault)[0].upper()}{str(fault)[1:]}."
    if len(bound.names) > NAMES_MAX:
        return f"It has more than {NAMES_MAX:,} names."
    if bound.into is not None:
        return f"SELECT … INTO {bound.into} would make a table for each change: write INSERT INTO … SELECT."
    for name in bound.names:
        if handler["when"] == HandlerMoment.PRECOMMIT and name.kind in OF_CHANGES:
            return (
                f"{name.written} is of a change: at the end of a transaction there are :commit_time, :commit_lsn and "
                ":xid."
            )
        if handler["when"] != HandlerMoment.ERROR and name.kind in ERROR_KINDS:
            return f"{name.written} is of an error: only a handler whose `when` is `error` has it."
        if name.kind in COLUMN_KINDS and "table" not in handler:
            return f"{name.written} is a column of one table: name the table."
    return None
