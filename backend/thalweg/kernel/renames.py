"""Names of a stream's tables at its destinations, where those are others than at the source. Everything else in a
stream names its tables as the source does."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from thalweg.kernel.models import NO_CONTROL_CHARACTERS, Body, TableIdentifier

NAME_BYTES_MAX = 63
RENAMES_MAX = 1000
RESERVED = ("information_schema", "thalweg")
"""Schemas of PostgreSQL and of Thalweg, beside those whose names begin with pg_."""
Name = tuple[str, str]
"""A table's schema and its own name."""


def _fits(name: str) -> str:
    """PostgreSQL would cut it off, and make another table."""
    if len(name.encode()) > NAME_BYTES_MAX:
        raise PydanticCustomError(
            "name_too_long", "PostgreSQL's names have {most} bytes at most, and this one has {bytes}.",
            {"most": NAME_BYTES_MAX, "bytes": len(name.encode())},
        )  # fmt: skip
    return name


DestinationName = Annotated[TableIdentifier, Field(pattern=NO_CONTROL_CHARACTERS), AfterValidator(_fits)]


class Rename(Body):
    """Another name of a table, or another schema for all tables of a schema that have no entry of their own for it."""

    schema_name: TableIdentifier = Field(alias="schema", description="Its exact name.", examples=["sales"])
    table: TableIdentifier | None = Field(
        default=None, description="Its exact name. Null: all tables of the schema.", examples=["orders"]
    )
    to_schema: DestinationName | None = Field(
        default=None,
        description="The schema at the destinations; null leaves it to the rename of the table's schema, if there is "
        "one.",
        examples=["archive"],
    )
    to_table: DestinationName | None = Field(
        default=None, description="The table's name at the destinations; null leaves it.", examples=["orders_2026"]
    )

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.table is None and (self.to_schema is None or self.to_table is not None):
            raise PydanticCustomError("rename", "A schema gets another name by to_schema alone.")
        if self.to_schema is None and self.to_table is None:
            raise PydanticCustomError("rename", "A table gets another name by to_schema, by to_table, or by both.")
        return self

    @property
    def key(self) -> tuple[str, str | None]:
        return self.schema_name, self.table

    @property
    def shown(self) -> str:
        return self.schema_name if self.table is None else f"{self.schema_name}.{self.table}"


def _once(renames: list[Rename]) -> list[Rename]:
    seen: set[tuple[str, str | None]] = set()
    problems: list[InitErrorDetails] = []
    for number, rename in enumerate(renames):
        if rename.key in seen:
            why = f"There is another name for {rename.shown} already: write it once."
            problems.append(
                InitErrorDetails(
                    type=PydanticCustomError("duplicate", "{why}", {"why": why}),
                    loc=(number, "schema" if rename.table is None else "table"), input=rename,
                )
            )  # fmt: skip
        seen.add(rename.key)
    if problems:
        raise ValidationError.from_exception_data("names at the destinations", problems)
    return renames


Renames = Annotated[list[Rename], Field(max_length=RENAMES_MAX), AfterValidator(_once)]


def is_reserved(schema: str) -> bool:
    return schema in RESERVED or schema.startswith("pg_")


class DestinationNames:
    """The names that renames give to tables."""

    def __init__(self, renames: Iterable[Rename] = ()) -> None:
        self._by_key = {rename.key: rename for rename in renames}

    def of(self, name: Name) -> Name:
        whole, own = self._by_key.get((name[0], None)), self._by_key.get(name)
        schema = whole.to_schema if whole is not None and whole.to_schema is not None else name[0]
        if own is None:
            return schema, name[1]
        return own.to_schema or schema, own.to_table or name[1]

    def with_names(self, tables: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The tables, with those names that are others, as an engine is told of them."""
        return [self._with_name(table) for table in tables]

    def _with_name(self, table: dict[str, Any]) -> dict[str, Any]:
        own = table["schema"], table["table"]
        there = self.of(own)
        rest = {member: value for member, value in table.items() if member != "destination"}
        return rest if there == own else {**rest, "destination": {"schema": there[0], "table": there[1]}}


def name_there(table: dict[str, Any]) -> Name:
    """The name at the destinations of a stream's table, given as it is stored."""
    there = table.get("destination", table)
    return there["schema"], there["table"]


def clashes(tables: list[Name], names: DestinationNames, of: list[Name]) -> list[str]:
    """Why tables, `of` those of the stream, cannot have their names at the destinations."""
    by_name: dict[Name, list[Name]] = defaultdict(list)
    for name in tables:
        by_name[names.of(name)].append(name)
    own = set(tables)
    found: list[str] = []
    for name in of:
        there = names.of(name)
        if there == name:
            continue
        shown = f"{'.'.join(name)} cannot be {'.'.join(there)} at the destinations"
        if there in own:
            found.append(f"{shown}: a table of the stream has this name.")
        elif len(by_name[there]) > 1:
            others = [".".join(other) for other in by_name[there] if other != name]
            found.append(f"{shown}: {' and '.join(others)} would be, too.")
    return found
