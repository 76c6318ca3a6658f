"""Rules of tables: which of a table's rows are copied, and which of its changes are captured. The engine reads the
conditions; the limits here are its own, or narrower (engine/contract/control-api.md)."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, StrictBool, StringConstraints, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from thalweg.kernel.models import NO_CONTROL_CHARACTERS, Body, TableIdentifier

NAME_BYTES_MAX = 63
CONDITION_BYTES_MAX = 64 << 10
RULES_PER_TABLE_MAX = 100


def _within(bytes_max: int) -> Callable[[str], str]:
    def within(text: str) -> str:
        if len(text.encode()) > bytes_max:
            raise PydanticCustomError(
                "string_too_long", "It should have at most {bytes_max} bytes.", {"bytes_max": bytes_max}
            )
        return text

    return within


RuleName = Annotated[
    str,
    StringConstraints(min_length=1, max_length=NAME_BYTES_MAX, pattern=NO_CONTROL_CHARACTERS),
    AfterValidator(_within(NAME_BYTES_MAX)),
]
Condition = Annotated[
    str,
    StringConstraints(min_length=1, max_length=CONDITION_BYTES_MAX, pattern=r"^[^\x00]*$"),
    AfterValidator(_within(CONDITION_BYTES_MAX)),
]
"""Of several lines, perhaps. PostgreSQL stores no null character."""


class RuledOperation(StrEnum):
    INSERT = "INSERT"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    TRUNCATE = "TRUNCATE"


class RowRule(Body):
    name: RuleName = Field(description="Once in a table.", examples=["north_only"])
    operations: Annotated[list[RuledOperation], Field(min_length=1, max_length=len(RuledOperation))] | None = Field(
        default=None, description="The operations that it is for, each once. Null: all."
    )
    condition: Condition | None = Field(
        default=None,
        description="What may stand behind SQL's WHERE, at most 64 KiB: see the language of rules. Null: always.",
        examples=["region = 'north'"],
    )
    subset: StrictBool = Field(
        default=False,
        description="The destination keeps exactly the rows for which the rules are true: an update that brings a row "
        "in becomes an insert, and one that takes it out becomes a delete. All positive rules of a table make a "
        "subset, or none; such a rule names no operations.",
    )


RowRuleSet = Annotated[list[RowRule], Field(max_length=RULES_PER_TABLE_MAX)]
Place = tuple[str | int, ...]


class TableRowRules(Body):
    """The rules of one table. A change passes unless a negative rule is true for it, and if a positive one is, where
    there is a positive set. An empty positive set lets nothing pass."""

    schema_name: TableIdentifier = Field(alias="schema", examples=["public"])
    table: TableIdentifier = Field(description="Its exact name.", examples=["orders"])
    positive: RowRuleSet | None = Field(default=None, description="Null: no such set.")
    negative: RowRuleSet | None = Field(default=None, description="Null: no such set.")

    @property
    def table_name(self) -> tuple[str, str]:
        return self.schema_name, self.table

    def for_engine(self) -> dict[str, Any]:
        """The member `rules` of a table in the desired document."""
        return self.model_dump(mode="json", include={"positive", "negative"}, exclude_defaults=True)

    @model_validator(mode="after")
    def _can_be_kept(self) -> Self:
        problems: list[tuple[Place, str]] = []
        sets = {"positive": self.positive, "negative": self.negative}
        if self.positive is None and self.negative is None:
            problems.append(((), "Give positive or negative rules, or leave the table out."))
        if sum(len(rules or []) for rules in sets.values()) > RULES_PER_TABLE_MAX:
            problems.append(((), f"A table has at most {RULES_PER_TABLE_MAX} rules."))
        seen: set[str] = set()
        for member, rules in sets.items():
            for number, rule in enumerate(rules or []):
                if rule.name in seen:
                    problems.append(((member, number, "name"), "Another rule of the table has this name."))
                seen.add(rule.name)
                if rule.operations and len(set(rule.operations)) < len(rule.operations):
                    problems.append(((member, number, "operations"), "It names an operation twice."))
        problems += _subsets(self.positive or [], self.negative or [])
        _refuse(problems, self)
        return self


def _subsets(positive: list[RowRule], negative: list[RowRule]) -> list[tuple[Place, str]]:
    problems: list[tuple[Place, str]] = []
    for number, rule in enumerate(negative):
        if rule.subset:
            problems.append((("negative", number, "subset"), "A negative rule makes no subset."))
    for number, rule in enumerate(positive):
        if rule.subset and rule.operations:
            problems.append((("positive", number, "subset"), "A rule that makes a subset names no operations."))
        if rule.subset != positive[0].subset:
            problems.append((("positive", number, "subset"), "All positive rules of a table make a subset, or none."))
    return problems


def _once(tables: list[TableRowRules]) -> list[TableRowRules]:
    seen: set[tuple[str, str]] = set()
    problems: list[tuple[Place, str]] = []
    for number, table in enumerate(tables):
        if table.table_name in seen:
            problems.append(((number, "table"), "The table has rules already: name it once."))
        seen.add(table.table_name)
    _refuse(problems, tables)
    return tables


def _refuse(problems: list[tuple[Place, str]], value: Any) -> None:
    """Each problem at its own place below the value."""
    if problems:
        raise ValidationError.from_exception_data(
            "rules of tables",
            [
                InitErrorDetails(
                    type=PydanticCustomError("rule_refused", "{why}", {"why": why}), loc=place, input=value
                )
                for place, why in problems
            ],
        )


def finding_in_words(finding: Mapping[str, Any]) -> str:
    """`finding` is what an engine says of a rule, as the contract and the REST API have it."""
    rule = f", rule {finding['rule']}" if finding["rule"] is not None else ""
    place = f", line {finding['line']}, column {finding['column']}" if finding["line"] is not None else ""
    table = f"{finding['schema']}.{finding['table']}"
    return f"{table}{rule}{place}: {finding['message'].rstrip('.')} ({finding['code']})."


RowRules = Annotated[list[TableRowRules], Field(max_length=1000), AfterValidator(_once)]


def stored(row_rules: list[TableRowRules]) -> list[dict[str, Any]]:
    """As the store keeps those of a destination."""
    return [rules.model_dump(mode="json", by_alias=True) for rules in row_rules]
