"""Row rules: which of a table's rows are copied, and which of its changes are captured. A rule is for one table,
for those of a schema, or for all; engines are told of them table by table. They read the conditions; the limits here
are theirs, or narrower (engine/contract/control-api.md)."""

from collections.abc import Callable, Iterable, Mapping
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
"""May have several lines. PostgreSQL stores no null character."""


class RuledOperation(StrEnum):
    INSERT = "INSERT"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    TRUNCATE = "TRUNCATE"


class OnError(StrEnum):
    """A rule's policy for changes for which its condition cannot be evaluated."""

    STOP = "stop"
    AS_TRUE = "as_true"
    AS_FALSE = "as_false"


class RowRule(Body):
    """Decides whether a row or change of a table is replicated."""

    name: RuleName = Field(description="Once among the rules that concern a table.", examples=["north_only"])
    operations: Annotated[list[RuledOperation], Field(min_length=1, max_length=len(RuledOperation))] | None = Field(
        default=None, description="The operations that it is for, each once. Null: all."
    )
    condition: Condition | None = Field(
        default=None,
        description="A condition as in SQL's WHERE, at most 64 KiB: see the language of rules. Null: always.",
        examples=["region = 'north'"],
    )
    subset: StrictBool = Field(
        default=False,
        description="The destination keeps exactly the rows for which the rules are true: an update that brings a row "
        "in becomes an insert, and one that takes it out becomes a delete. All positive rules that concern a "
        "table make a subset, or none; such a rule names no operations.",
    )
    on_error: OnError = Field(
        default=OnError.STOP,
        description="The rule's policy for a change for which its condition cannot be evaluated, because a value did "
        "not come (rule_undecidable) or because it fails (rule_failed): `stop` stops the stream in front of the "
        "change, unless other rules decide; `as_true` counts the rule as true for it, and `as_false` as not true, as "
        "NULL is. Such changes are counted (`by_policy`) and logged. An initial copy knows no policy: a condition that "
        "fails for a row stops it.",
    )


RowRuleSet = Annotated[list[RowRule], Field(max_length=RULES_PER_TABLE_MAX)]
Place = tuple[str | int, ...]
Key = tuple[str | None, str | None]
"""The scope's names: schema and table, a schema and None, or None and None for all tables."""
SETS = ("positive", "negative")


class RuleScope(StrEnum):
    TABLE = "table"
    SCHEMA = "schema"
    GLOBAL = "global"


def keys_of(schema: str | None, table: str | None) -> tuple[Key, Key, Key]:
    """The keys of the rules that concern a table, its own first; without a table, of those for the whole schema."""
    return (schema, table), (schema, None), (None, None)


def scope_of(key: Key) -> RuleScope:
    schema, table = key
    if table is not None:
        return RuleScope.TABLE
    return RuleScope.GLOBAL if schema is None else RuleScope.SCHEMA


class ScopedRules(Body):
    """The rules of one scope. All rules that concern a table, its own, its schema's and the global ones, decide
    together: a change passes unless a negative rule is true for it, and if a positive one is, where one of them has a
    positive set. Positive sets that are all empty let nothing pass."""

    scope: RuleScope = Field(
        default=RuleScope.TABLE,
        description="Which tables of the stream they concern, also those that it gets later. `global`: all.",
    )
    schema_name: TableIdentifier | None = Field(
        default=None, alias="schema", description="Its exact name. Null for the scope `global`.", examples=["public"]
    )
    table: TableIdentifier | None = Field(
        default=None, description="Its exact name. Only for the scope `table`.", examples=["orders"]
    )
    positive: RowRuleSet | None = Field(default=None, description="Null: no such set.")
    negative: RowRuleSet | None = Field(default=None, description="Null: no such set.")

    @property
    def key(self) -> Key:
        return self.schema_name, self.table

    def rules(self) -> Iterable[tuple[Place, RowRule]]:
        """Each with its place below these."""
        for member, rules in zip(SETS, (self.positive, self.negative), strict=True):
            for number, rule in enumerate(rules or []):
                yield (member, number), rule

    @model_validator(mode="after")
    def _can_be_kept(self) -> Self:
        problems = self._misplaced()
        if self.positive is None and self.negative is None:
            problems.append(((), "Give positive or negative rules, or leave this out."))
        seen: set[str] = set()
        for place, rule in self.rules():
            if rule.name in seen:
                problems.append(((*place, "name"), "Another rule has this name."))
            seen.add(rule.name)
            if rule.operations and len(set(rule.operations)) < len(rule.operations):
                problems.append(((*place, "operations"), "It names an operation twice."))
        if sum(1 for _ in self.rules()) > RULES_PER_TABLE_MAX:
            problems.append(((), TOO_MANY))
        problems += _subsets(self.positive or [], self.negative or [])
        _refuse(problems, self)
        return self

    def _misplaced(self) -> list[tuple[Place, str]]:
        problems: list[tuple[Place, str]] = []
        for member, name, scopes in (
            ("schema", self.schema_name, (RuleScope.TABLE, RuleScope.SCHEMA)),
            ("table", self.table, (RuleScope.TABLE,)),
        ):
            if self.scope in scopes and name is None:
                problems.append(((member,), f"Rules of the scope {self.scope} name a {member}."))
            elif self.scope not in scopes and name is not None:
                problems.append(((member,), f"Rules of the scope {self.scope} name no {member}."))
        return problems


TOO_MANY = f"At most {RULES_PER_TABLE_MAX} rules can concern a table."


def _subsets(positive: list[RowRule], negative: list[RowRule]) -> list[tuple[Place, str]]:
    problems: list[tuple[Place, str]] = []
    for number, rule in enumerate(negative):
        if rule.subset:
            problems.append((("negative", number, "subset"), "A negative rule makes no subset."))
    for number, rule in enumerate(positive):
        if rule.subset and rule.operations:
            problems.append((("positive", number, "subset"), "A rule that makes a subset names no operations."))
        if rule.subset != positive[0].subset:
            problems.append((("positive", number, "subset"), "All positive rules make a subset, or none."))
    return problems


def _agree(row_rules: list[ScopedRules]) -> list[ScopedRules]:
    """Rules that may concern the same table must be fit to be one table's rules, as an engine is told of them."""
    by_key: dict[Key, ScopedRules] = {}
    problems: list[tuple[Place, str]] = []
    for number, rules in enumerate(row_rules):
        if rules.key in by_key:
            member = {RuleScope.TABLE: "table", RuleScope.SCHEMA: "schema", RuleScope.GLOBAL: "scope"}[rules.scope]
            problems.append(((number, member), f"There are rules for {in_words(rules.key)} already: write them once."))
        by_key.setdefault(rules.key, rules)
    for number, rules in enumerate(row_rules):
        wider = {RuleScope.TABLE: ((rules.schema_name, None), (None, None)), RuleScope.SCHEMA: ((None, None),)}
        others = [by_key[key] for key in wider.get(rules.scope, ()) if key in by_key]
        problems += [((number, *place), why) for place, why in _clashes(rules, others)]
    _refuse(problems, row_rules)
    return row_rules


def _clashes(rules: ScopedRules, wider: list[ScopedRules]) -> list[tuple[Place, str]]:
    """With those of wider scopes, which concern the same tables."""
    problems: list[tuple[Place, str]] = []
    for other in wider:
        names = {rule.name for _, rule in other.rules()}
        where = in_words(other.key)
        for place, rule in rules.rules():
            if rule.name in names:
                problems.append(((*place, "name"), f"A rule of {where} has this name, and concerns the table too."))
        if rules.positive and other.positive and rules.positive[0].subset != other.positive[0].subset:
            problems.append(
                (
                    ("positive", 0, "subset"),
                    f"All positive rules that concern a table make a subset, or none; see those of {where}.",
                )
            )
    if sum(1 for rule_set in (rules, *wider) for _ in rule_set.rules()) > RULES_PER_TABLE_MAX:
        problems.append(((), f"{TOO_MANY[:-1]}, those of wider scopes included."))
    return problems


def _refuse(problems: list[tuple[Place, str]], value: Any) -> None:
    """Each problem at its own place below the value."""
    if problems:
        raise ValidationError.from_exception_data(
            "row rules",
            [
                InitErrorDetails(
                    type=PydanticCustomError("rule_refused", "{why}", {"why": why}), loc=place, input=value
                )
                for place, why in problems
            ],
        )


def in_words(key: Key) -> str:
    schema, table = key
    if table is not None:
        return f"{schema}.{table}"
    return "all tables" if schema is None else f"the schema {schema}"


def problem_in_words(problem: Mapping[str, Any]) -> str:
    """`problem` is what an engine says of a rule, as the REST API has it."""
    wider = {RuleScope.SCHEMA: (problem["schema"], None), RuleScope.GLOBAL: (None, None)}
    of_scope = f" of {in_words(wider[problem['scope']])}" if problem["scope"] in wider else ""
    rule = [f"rule {problem['rule']}{of_scope}"] if problem["rule"] is not None else []
    place = [f"line {problem['line']}, column {problem['column']}"] if problem["line"] is not None else []
    table = [f"{problem['schema']}.{problem['table']}"] if problem["table"] is not None else []
    return f"{', '.join([*table, *rule, *place])}: {problem['message'].rstrip('.')} ({problem['code']})."


RowRules = Annotated[list[ScopedRules], Field(max_length=1000), AfterValidator(_agree)]


def stored(row_rules: list[ScopedRules]) -> list[dict[str, Any]]:
    """A destination's rules as the store keeps them."""
    return [rules.model_dump(mode="json", by_alias=True) for rules in row_rules]
