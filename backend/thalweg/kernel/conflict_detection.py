"""The columns in which a destination's rows are compared with the source's old ones: the parameter conflict_detection.
The limits are the engine's (engine/contract/control-api.md)."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from thalweg.kernel.models import FieldProblem, TableIdentifier

DETECTION = "conflict_detection"
TABLES_MAX = 1000
COLUMNS_MAX = 1600


class ComparedTable(TypedDict, total=False):
    """A table whose rows are compared before an update or delete: a row that is not as the source's row was before is a
    conflict."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)  # type: ignore[misc]

    schema: Annotated[TableIdentifier, Field(description="With `table`.", examples=["public"])]
    table: Annotated[
        TableIdentifier,
        Field(description="The destination's table, by its exact name. Omitted: any.", examples=["orders"]),
    ]
    columns: Annotated[
        list[TableIdentifier],
        Field(
            min_length=1,
            max_length=COLUMNS_MAX,
            description="The columns to compare, by their names at the destination. Omitted: all of which the change "
            "brings the old value. With `table`.",
            examples=[["amount"]],
        ),
    ]


_TABLES: TypeAdapter[list[ComparedTable]] = TypeAdapter(Annotated[list[ComparedTable], Field(max_length=TABLES_MAX)])
CURE = (
    'Write for example [{"schema": "public", "table": "orders"}, {"schema": "public", "table": "stock", "columns": '
    '["amount"]}], or [{}] for all columns of all tables.'
)


def compared_tables(value: Any) -> list[ComparedTable]:
    """Reads a value that was checked."""
    return _TABLES.validate_python(value)


def wrong_detection(value: Any, at: str) -> list[FieldProblem]:
    """Faults of the parameter's value, each with its place below `at`."""
    try:
        tables = _TABLES.validate_python(value)
    except ValidationError as error:
        return [
            _problem(at + "".join(f"/{part}" for part in found["loc"])[:200], found["msg"])
            for found in error.errors(include_url=False, include_input=False)[:TABLES_MAX]
        ]
    found: list[FieldProblem] = []
    decided: set[tuple[str, str]] = set()
    for number, table in enumerate(tables):
        found += [_problem(f"{at}/{number}/{member}", message) for member, message in _contradictions(table)]
        key = table.get("schema", ""), table.get("table", "")
        if decided & {key, ("", "")}:
            found.append(
                _problem(
                    f"{at}/{number}", "An earlier entry already covers this table: write one entry for each table."
                )
            )
        decided.add(key)
    return found


def _problem(pointer: str, message: str) -> FieldProblem:
    return FieldProblem(pointer=pointer, code="invalid_parameter", message=message, cure=CURE)


def _contradictions(table: ComparedTable) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    if "table" in table and "schema" not in table:
        found.append(("schema", "Name the schema and the table together."))
    if "schema" in table and "table" not in table:
        found.append(("table", "Name one of the schema's tables."))
    columns = table.get("columns", [])
    if columns and "table" not in table:
        found.append(("columns", "Columns belong to one table: name the table."))
    if len(set(columns)) < len(columns):
        found.append(("columns", "Name each column once."))
    return found
