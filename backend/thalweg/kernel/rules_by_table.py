"""The rules that concern each table, gathered from those of all scopes."""

from collections.abc import Iterable
from typing import Any

from thalweg.kernel.row_rules import SETS, OnError, Place, RuleScope, ScopedRules, keys_of


class RulesByTable:
    def __init__(self, row_rules: Iterable[ScopedRules]) -> None:
        self._by_key = {rules.key: (number, rules, _sets_for_engine(rules)) for number, rules in enumerate(row_rules)}

    def concerns(self, schema: str, table: str) -> bool:
        return any(key in self._by_key for key in keys_of(schema, table))

    def for_engine(self, schema: str, table: str) -> dict[str, Any]:
        """The member `rules` of a table in the desired document: each set is the union of those of all scopes, and
        there is one where any scope has it. Empty: nothing concerns the table."""
        found = [self._by_key[key][2] for key in keys_of(schema, table) if key in self._by_key]
        return {
            member: [rule for sets in found for rule in sets.get(member, [])]
            for member in SETS
            if any(member in sets for sets in found)
        }

    def place_of(self, schema: str | None, table: str | None, rule: str | None) -> tuple[Place, RuleScope | None]:
        """The place of a rule that concerns the table, in the list of all; without `rule`, the place of the table's own
        rules. Without a table: the place of a rule of the schema, or of a global one."""
        for key in keys_of(schema, table):
            if key in self._by_key:
                number, rules, _ = self._by_key[key]
                for place, candidate in rules.rules():
                    if candidate.name == rule:
                        return (number, *place), rules.scope
        return ((self._by_key[schema, table][0],) if (schema, table) in self._by_key else ()), None

    def policy_of(self, schema: str, table: str, rule: str) -> OnError:
        """The policy of a rule that concerns the table."""
        for key in keys_of(schema, table):
            for _, candidate in self._by_key[key][1].rules() if key in self._by_key else ():
                if candidate.name == rule:
                    return candidate.on_error
        return OnError.STOP


def _sets_for_engine(rules: ScopedRules) -> dict[str, Any]:
    """Each rule says where it comes from, unless it is the table's own: the engine's messages name it so."""
    sets = rules.model_dump(mode="json", include=set(SETS), exclude_defaults=True)
    scope = {} if rules.scope is RuleScope.TABLE else {"scope": rules.scope.value}
    return {member: [{**rule, **scope} for rule in of_set] for member, of_set in sets.items()}
