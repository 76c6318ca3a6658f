"""Rules of all scopes as one table's: their sets are united for the engine, and what cannot be united is refused."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from thalweg.kernel.row_rules import RowRules, RuleScope
from thalweg.kernel.rules_by_table import RulesByTable

ROW_RULES = TypeAdapter(RowRules)
ORDERS = ("sales", "orders")
SCOPES: dict[str, dict[str, str]] = {
    "table": {"schema": "sales", "table": "orders"},
    "schema": {"scope": "schema", "schema": "sales"},
    "global": {"scope": "global"},
}


def by_table(*rules: dict[str, Any]) -> RulesByTable:
    return RulesByTable(ROW_RULES.validate_python(list(rules)))


@pytest.mark.parametrize(
    ("table", "schema", "of_all", "told"),
    [
        (None, None, None, None),
        ([], None, None, []),
        (None, [], None, []),
        (None, None, [], []),
        ([], [], [], []),
        (["t"], None, None, ["t"]),
        (None, ["s"], None, ["s"]),
        (None, None, ["g"], ["g"]),
        (["t"], ["s"], ["g"], ["t", "s", "g"]),
        # An empty set lets nothing pass by itself, and takes nothing away from what others let pass.
        ([], None, ["g"], ["g"]),
        (["t"], [], [], ["t"]),
    ],
)
@pytest.mark.parametrize("member", ["positive", "negative"])
def test_a_set_is_the_union_of_those_of_all_scopes(
    member: str, table: list[str] | None, schema: list[str] | None, of_all: list[str] | None, told: list[str] | None
) -> None:
    sets = zip(SCOPES.values(), (table, schema, of_all), strict=True)
    rules = [{**scope, member: [{"name": name} for name in names]} for scope, names in sets if names is not None]
    # A rule says which scope it comes from, unless it is the table's own.
    of_scope = {"t": {}, "s": {"scope": "schema"}, "g": {"scope": "global"}}
    expected = {} if told is None else {member: [{"name": name, **of_scope[name]} for name in told]}
    assert by_table(*rules).for_engine(*ORDERS) == expected
    assert by_table(*rules).concerns(*ORDERS) == (told is not None)


def test_rules_concern_the_tables_of_their_scope_only() -> None:
    rules = by_table(*({**scope, "negative": [{"name": name}]} for name, scope in SCOPES.items()))

    def names(schema: str, table: str) -> list[str]:
        return [rule["name"] for rule in rules.for_engine(schema, table).get("negative", [])]

    assert names("sales", "orders") == ["table", "schema", "global"]
    assert names("sales", "parcels") == ["schema", "global"]
    assert names("public", "orders") == ["global"]
    assert rules.place_of("public", "orders", "global") == ((2, "negative", 0), RuleScope.GLOBAL)
    assert rules.place_of("sales", "parcels", "schema") == ((1, "negative", 0), RuleScope.SCHEMA)
    assert rules.place_of("sales", "orders", None) == ((0,), None)
    assert rules.place_of("sales", "parcels", "table") == ((), None)


def named(scope: str, *names: str, **rule: Any) -> dict[str, Any]:
    return {**SCOPES[scope], "positive": [{"name": name, **rule} for name in names]}


MANY = [f"r{number}" for number in range(60)]


@pytest.mark.parametrize(
    ("rules", "place"),
    [
        ([{"scope": "global", "schema": "sales", "positive": []}], (0, "schema")),
        ([{"scope": "global", "table": "orders", "positive": []}], (0, "table")),
        ([{"scope": "schema", "positive": []}], (0, "schema")),
        ([{"scope": "schema", "schema": "sales", "table": "orders", "positive": []}], (0, "table")),
        ([{"schema": "sales", "positive": []}], (0, "table")),
        ([{"scope": "database", "positive": []}], (0, "scope")),
        ([named("global", "a"), named("global", "b")], (1, "scope")),
        ([named("schema", "a"), named("schema", "b")], (1, "schema")),
        ([named("global", "a"), named("schema", "b", "a")], (1, "positive", 1, "name")),
        ([named("table", "a"), named("schema", "a")], (0, "positive", 0, "name")),
        ([named("table", "a"), named("global", "a")], (0, "positive", 0, "name")),
        ([named("global", "a", subset=True), named("schema", "b")], (1, "positive", 0, "subset")),
        ([named("table", "a", subset=True), named("global", "b")], (0, "positive", 0, "subset")),
        ([named("table", *MANY), named("global", *(f"g{name}" for name in MANY))], (0,)),
    ],
)
def test_what_no_engine_could_be_told_is_refused_where_it_is(
    rules: list[dict[str, Any]], place: tuple[str | int, ...]
) -> None:
    with pytest.raises(ValidationError) as refused:
        ROW_RULES.validate_python(rules)
    assert [error["loc"] for error in refused.value.errors()] == [place]


def test_tables_of_other_schemas_do_not_clash() -> None:
    other = {"schema": "public", "table": "orders", "positive": [{"name": "a", "subset": True}]}
    ROW_RULES.validate_python([named("schema", "a"), other])
