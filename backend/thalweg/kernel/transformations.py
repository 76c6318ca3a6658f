"""Transformations of tables: what becomes of their columns before changes leave the engine that captures, and while
rows are copied. Whether they fit their table is for an engine to say; the limits here are its own
(engine/contract/control-api.md)."""

import secrets
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, StrictInt, StringConstraints, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from thalweg.kernel.models import NO_CONTROL_CHARACTERS, Body, TableIdentifier
from thalweg.kernel.row_rules import Condition

STEPS_MAX = 1000
COLUMNS_MAX = 1600
KEPT_MAX = 1000
CONSTANT_LENGTH_MAX = 16_000
KEY_LENGTH_MIN = 32
KEY_LENGTH_MAX = 256
KEY_VARIETY_MIN = 8
"""Different characters of a masking key: a random one of the least length has more in any usual alphabet."""

Column = Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=r"^[^\x00]*$")]
Constant = Annotated[str, StringConstraints(max_length=CONSTANT_LENGTH_MAX, pattern=r"^[^\x00]*$")]
Kept = Annotated[StrictInt, Field(ge=0, le=KEPT_MAX)]


def _various(key: str) -> str:
    """A key that is guessed undoes the masks of values that can be listed, such as telephone numbers."""
    count = len(set(key))
    if count < KEY_VARIETY_MIN:
        different = "only one character" if count == 1 else f"only {count} different characters"
        why = f"The masking key has {different}: it is easily guessed, and with it what the masks hide."
        cure = f"Give a random key with {KEY_VARIETY_MIN} or more different ones, such as `openssl rand -hex 32` makes."
        raise PydanticCustomError("mask_key", "{why}", {"why": why, "cure": cure})
    return key


MaskKey = Annotated[
    str,
    StringConstraints(min_length=KEY_LENGTH_MIN, max_length=KEY_LENGTH_MAX, pattern=NO_CONTROL_CHARACTERS),
    AfterValidator(_various),
]
MASK_KEY = (
    "The key of the masks `hash` and `digits`, which is kept as passwords are and never returned. Equal values become "
    "equal ones in all tables, and in all streams with the same key. At least 8 of its characters are different. "
)


class MaskWith(StrEnum):
    NULL = "null"
    CONSTANT = "constant"
    PARTIAL = "partial"
    HASH = "hash"
    DIGITS = "digits"


KEYED = (MaskWith.HASH, MaskWith.DIGITS)


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
        "characters of a text, with an asterisk for each of the others. A text that has no others is all asterisks; "
        "`hash`, 64 hexadecimal digits or as many as the column holds, by which equal values stay equal: HMAC-SHA256 "
        "with the stream's `mask_key`; `digits`, which puts another digit in the place of each, by the whole value and "
        "the `mask_key`, and leaves everything else as it is.",
    )
    value: Constant | None = Field(
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


class KeepColumns(Body):
    """Drops all other columns, also those that the table gets later."""

    type: Literal["keep_columns"]
    columns: Annotated[list[Column], Field(min_length=1, max_length=COLUMNS_MAX)] = Field(
        description="Their names as the steps before this one have left them."
    )


class AddedType(StrEnum):
    BIGINT = "bigint"
    BOOLEAN = "boolean"
    CHARACTER_VARYING = "character varying"
    DATE = "date"
    DOUBLE_PRECISION = "double precision"
    INTEGER = "integer"
    JSONB = "jsonb"
    NUMERIC = "numeric"
    SMALLINT = "smallint"
    TEXT = "text"
    TIMESTAMP_WITH_TIME_ZONE = "timestamp with time zone"
    TIMESTAMP = "timestamp without time zone"
    UUID = "uuid"


class AddColumn(Body):
    """Behind the source's columns. All rows get the same value, or each gets that of an expression over its columns. It
    may be part of the destination's key, unless its expression reads columns that are not of the source's."""

    type: Literal["add_column"]
    column: Column = Field(examples=["site"])
    data_type: AddedType
    value: Constant | None = Field(
        default=None,
        description="A value of the type as PostgreSQL writes it. Null: there is an expression.",
        examples=["north"],
    )
    expression: Condition | None = Field(
        default=None,
        description="In the language of rules, cast to the type: over the source's columns, under their names as the "
        "steps before this one have left them, and `schema`, `table` and `source`. It reads no column that a step "
        "masks, casts or adds before it. Null: there is a value.",
        examples=["price * amount"],
    )

    @model_validator(mode="after")
    def _has_one_of_both(self) -> Self:
        if (self.value is None) == (self.expression is None):
            raise PydanticCustomError("added_column", "An added column has either a value or an expression.")
        return self


class CastColumn(Body):
    """The destination gets each value as PostgreSQL's cast makes it. Columns of the key cannot be cast."""

    type: Literal["cast_column"]
    column: Column = Field(description="Its name as the steps before this one have left it.", examples=["amount"])
    data_type: AddedType = Field(description="No `jsonb`. The cast may not depend on PostgreSQL's settings.")


Transformation = Annotated[
    DropColumn | RenameColumn | MaskColumn | KeepColumns | AddColumn | CastColumn, Field(discriminator="type")
]


class TableTransformations(Body):
    schema_name: TableIdentifier = Field(alias="schema", description="Its exact name.", examples=["public"])
    table: TableIdentifier = Field(description="Its exact name.", examples=["customers"])
    steps: Annotated[list[Transformation], Field(min_length=1, max_length=STEPS_MAX)] = Field(
        description="Carried out in this order. A key can be renamed, but neither dropped nor masked."
    )

    @property
    def key(self) -> tuple[str, str]:
        return self.schema_name, self.table

    @property
    def needs_key(self) -> bool:
        return needs_key(self.for_engine())

    def for_engine(self) -> list[dict[str, Any]]:
        return [step.model_dump(mode="json", by_alias=True, exclude_defaults=True) for step in self.steps]

    def sent_name(self, column: str) -> str | None:
        """The name under which a column of the source is sent. None: it is dropped."""
        return _name_after(column, self.steps)

    @property
    def null_columns(self) -> set[str]:
        """Names as sent of the columns that are masked with NULL."""
        return {
            name
            for at, step in enumerate(self.steps)
            if isinstance(step, MaskColumn) and step.with_ is MaskWith.NULL
            and (name := _name_after(step.column, self.steps[at + 1 :])) is not None
        }  # fmt: skip

    @property
    def made_columns(self) -> set[str]:
        """Names as sent of the columns that are masked, cast or added: their values are not the source's."""
        masked = {
            name
            for at, step in enumerate(self.steps)
            if isinstance(step, MaskColumn) and (name := _name_after(step.column, self.steps[at + 1 :])) is not None
        }
        return masked | set(self.added_columns) | set(self.cast_columns)

    @property
    def added_columns(self) -> dict[str, AddedType]:
        """Names as sent of those that the source does not have, in their order, with their types."""
        return {
            name: step.data_type
            for at, step in enumerate(self.steps)
            if isinstance(step, AddColumn) and (name := _name_after(step.column, self.steps[at + 1 :])) is not None
        }

    @property
    def cast_columns(self) -> dict[str, AddedType]:
        """Names as sent of those that are cast, with their types."""
        return {
            name: step.data_type
            for at, step in enumerate(self.steps)
            if isinstance(step, CastColumn) and (name := _name_after(step.column, self.steps[at + 1 :])) is not None
        }


def _name_after(column: str, steps: Sequence[Transformation]) -> str | None:
    """None: one of them drops it."""
    name = column
    for step in steps:
        if isinstance(step, KeepColumns):
            if name not in step.columns:
                return None
        elif step.column == name:
            if isinstance(step, DropColumn):
                return None
            if isinstance(step, RenameColumn):
                name = step.to
    return name


def needs_key(steps: list[dict[str, Any]]) -> bool:
    """Whether any of the steps, in the form that engines get, needs the masking key."""
    return any(step.get("with") in KEYED for step in steps)


def new_mask_key() -> str:
    return secrets.token_hex(32)


def _once(tables: list[TableTransformations]) -> list[TableTransformations]:
    seen: set[tuple[str, str]] = set()
    problems: list[InitErrorDetails] = []
    for number, transformation in enumerate(tables):
        if transformation.key in seen:
            why = f"There are transformations of {'.'.join(transformation.key)} already: write them once."
            error = PydanticCustomError("duplicate", "{why}", {"why": why})
            problems.append(InitErrorDetails(type=error, loc=(number, "table"), input=transformation))
        seen.add(transformation.key)
    if problems:
        raise ValidationError.from_exception_data("transformations of tables", problems)
    return tables


Transformations = Annotated[list[TableTransformations], Field(max_length=1000), AfterValidator(_once)]
