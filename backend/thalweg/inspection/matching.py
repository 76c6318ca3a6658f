"""Matches tables with rules. Patterns are compiled once; `*` and `?` only, without backtracking blow-up."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from thalweg.kernel.rules import TableRule, TableRules


def matches(pattern: str, text: str) -> bool:
    """Greedy match with one point to come back to: at most len(pattern) * len(text) steps."""
    at = here = 0
    star, resume = -1, 0
    while here < len(text):
        if at < len(pattern) and pattern[at] == "*":
            star, resume = at, here
            at += 1
        elif at < len(pattern) and pattern[at] in ("?", text[here]):
            at, here = at + 1, here + 1
        elif star >= 0:
            resume += 1
            at, here = star + 1, resume
        else:
            return False
    return all(character == "*" for character in pattern[at:])


def _rule_matches(rule: TableRule, schema: str, table: str) -> bool:
    return matches(rule.schema_name, schema) and matches(rule.table, table)


@dataclass(frozen=True)
class Selection:
    chosen: list[tuple[str, str]]
    unmatched: list[TableRule]
    """Include rules that match no table at all: probably typing errors."""


def select_tables(rules: TableRules, tables: Iterable[tuple[str, str]]) -> Selection:
    tables = list(tables)
    exact, patterns = _split(rules.include)
    without = _split(rules.exclude)
    used: set[int] = set()
    chosen = [table for table in tables if _included(table, exact, patterns, used) and not _hit(table, *without)]
    unmatched = [rule for index, rule in enumerate(rules.include) if index not in used]
    return Selection(chosen, unmatched)


Indexed = tuple[int, TableRule]


def _split(rules: list[TableRule]) -> tuple[dict[tuple[str, str], list[int]], list[Indexed]]:
    """Rules without wildcards are looked up instead of tried: most rules of a long list are such."""
    exact: dict[tuple[str, str], list[int]] = {}
    patterns: list[Indexed] = []
    is_plain: Callable[[str], bool] = lambda text: not set(text) & {"*", "?"}  # noqa: E731
    for index, rule in enumerate(rules):
        if is_plain(rule.schema_name) and is_plain(rule.table):
            exact.setdefault((rule.schema_name, rule.table), []).append(index)
        else:
            patterns.append((index, rule))
    return exact, patterns


def _included(
    table: tuple[str, str], exact: dict[tuple[str, str], list[int]], patterns: list[Indexed], used: set[int]
) -> bool:
    """Marks every rule that hits, not only the first: the others are not typing errors either."""
    hits = list(exact.get(table, ())) + [index for index, rule in patterns if _rule_matches(rule, *table)]
    used.update(hits)
    return bool(hits)


def _hit(table: tuple[str, str], exact: dict[tuple[str, str], list[int]], patterns: list[Indexed]) -> bool:
    return table in exact or any(_rule_matches(rule, *table) for _, rule in patterns)
