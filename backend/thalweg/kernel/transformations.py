"""Transformations of tables: what becomes of their columns before changes leave the engine that captures, and while
rows are copied. Whether they fit their table is for an engine to say; the limits here are its own
(engine/contract/control-api.md)."""

from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, StrictInt, StringConstraints, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from thalweg.kernel.models import Body, TableIdentifier

STEPS_MAX = 1000
KEPT_MAX = 1000
CONSTANT_LENGTH_MAX = 16_000

Column = Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=r"^[^\x00]*$")]
Kept = Annotated[StrictInt, Field(ge=0, le=KEPT_MAX)]


class MaskWith(StrEnum):
    NULL = "null"
    CONSTANT = "constant"
    PARTIAL = "partial"


class DropColumn(Body):
    type: Literal["drop_column"]
    column: Column = Field(description="Its name as the steps before this one have left it.", examples=["email"])


class RenameColumn(Body):
    type: Literal["rename_column"]
    column: Column = Field(description="Its name as the steps before this one have left it.")
    to: Column


class MaskColumn(Body):
    """Replaces every value of a column, so that the original one is nowhere but at the source and in the engine that
    captures."""

    type: Literal["mask_column"]
    column: Column = Field(description="Its name as the steps before this one have left it.")
    with_: MaskWith = Field(
        alias="with",
        description="`null`; `constant`, a value that all rows get; `partial`, which keeps some of the first and last "
        "characters of a text, with an asterisk for each of the others. A text that has no others is all asterisks.",
    )
    value: Annotated[str, StringConstraints(max_length=CONSTANT_LENGTH_MAX, pattern=r"^[^\x00]*$")] | None = Field(
        default=None, description="The constant, as PostgreSQL writes a value of the column's type. Else null."
    )
    keep_first: Kept = Field(default=0, description="Characters that `partial` keeps. Else 0.")
    keep_last: Kept = Field(default=0, description="Characters that `partial` keeps. Else 0.")

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> Self:
        if (self.value is None) == (self.with_ is MaskWith.CONSTANT):
            raise PydanticCustomError("mask", "A mask has a value where it is a constant, and only there.")
        if (self.keep_first or self.keep_last) and self.with_ is not MaskWith.PARTIAL:
            raise PydanticCustomError("mask", "Only the mask `partial` keeps characters.")
        return self


Transformation = Annotated[DropColumn | RenameColumn | MaskColumn, Field(discriminator="type")]


class TableTransformations(Body):
    schema_name: TableIdentifier = Field(alias="schema", description="Its exact name.", examples=["public"])
    table: TableIdentifier = Field(description="Its exact name.", examples=["customers"])
    steps: Annotated[list[Transformation], Field(min_length=1, max_length=STEPS_MAX)] = Field(
        description="Carried out in this order. A key can be renamed, but neither dropped nor masked."
    )

    @property
    def key(self) -> tuple[str, str]:
        return self.schema_name, self.table

    def for_engine(self) -> list[dict[str, Any]]:
        return [step.model_dump(mode="json", by_alias=True, exclude_defaults=True) for step in self.steps]

    def sent_name(self, column: str) -> str | None:
        """The name under which a column of the source is sent. None: it is dropped."""
        name = column
        for step in self.steps:
            if step.column != name:
                continue
            if isinstance(step, DropColumn):
                return None
            if isinstance(step, RenameColumn):
                name = step.to
        return name

    @property
    def null_columns(self) -> set[str]:
        """Names as sent of the columns that are masked with NULL."""
        names: set[str] = set()
        for step in self.steps:
            if isinstance(step, MaskColumn) and step.with_ is MaskWith.NULL:
                names.add(step.column)
            elif isinstance(step, RenameColumn) and step.column in names:
                names = (names - {step.column}) | {step.to}
            elif isinstance(step, DropColumn):
                names.discard(step.column)
        return names


def _once(tables: list[TableTransformations]) -> list[TableTransformations]:
    seen: set[tuple[str, str]] = set()
    problems: list[InitErrorDetails] = []
    for number, one in enumerate(tables):
        if one.key in seen:
            why = f"There are transformations of {'.'.join(one.key)} already: write them once."
            error = PydanticCustomError("duplicate", "{why}", {"why": why})
            problems.append(InitErrorDetails(type=error, loc=(number, "table"), input=one))
        seen.add(one.key)
    if problems:
        raise ValidationError.from_exception_data("transformations of tables", problems)
    return tables


Transformations = Annotated[list[TableTransformations], Field(max_length=1000), AfterValidator(_once)]
