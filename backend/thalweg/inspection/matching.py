"""Matches tables with rules. A pattern's parts between its `*` are found one after another, each at its first place: no
name is tried twice."""

import asyncio
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

from thalweg.kernel.outside import outside
from thalweg.kernel.rules import RULES_MAX, TablePattern, TableRules

Tables = dict[str, dict[str, None]]
"""The names of the tables of each schema."""
WILDCARDS = re.compile(r"[*?]")
STARS = re.compile(r"\*+")


def matches(pattern: str, text: str) -> bool:
    """`*` stands for any characters, `?` for one."""
    return _compiled(pattern)(text)


@lru_cache(maxsize=4 * RULES_MAX)
def _compiled(pattern: str) -> Callable[[str], bool]:
    if not WILDCARDS.search(pattern):
        return lambda text: text == pattern
    first, *between = STARS.split(pattern)
    if not between:
        whole = _part(first)
        return lambda text: whole.fullmatch(text) is not None
    last = between.pop()
    begins, ends, others = _part(first), _part(last), [_part(part) for part in between]
    around = len(first) + len(last)

    def match(text: str) -> bool:
        end = len(text) - len(last)
        if len(text) < around or not begins.match(text) or not ends.match(text, end):
            return False
        here = len(first)
        for part in others:
            found = part.search(text, here, end)
            if found is None:
                return False
            here = found.end()
        return True

    return match


def _part(text: str) -> re.Pattern[str]:
    """Has one length only, so that there is nothing to try again."""
    return re.compile(re.escape(text).replace(r"\?", "."), re.DOTALL)


@dataclass(frozen=True)
class Selection:
    chosen: list[tuple[str, str]]
    unmatched: list[TablePattern]
    """Include patterns that match no table at all: probably typing errors."""


async def select_tables(rules: TableRules, tables: Sequence[tuple[str, str]]) -> Selection:
    """In a thread: a thousand patterns and tens of thousands of tables take seconds."""
    outside("a thread")
    return await asyncio.to_thread(selection_of, rules, tables)


def selection_of(rules: TableRules, tables: Sequence[tuple[str, str]]) -> Selection:
    names: Tables = {}
    for schema, table in tables:
        names.setdefault(schema, {})[table] = None
    included, used = _hit(rules.include, names)
    excluded, _ = _hit(rules.exclude, names)
    chosen = [table for table in tables if table in included and table not in excluded]
    unmatched = [rule for index, rule in enumerate(rules.include) if index not in used]
    return Selection(chosen, unmatched)


def _hit(rules: list[TablePattern], names: Tables) -> tuple[set[tuple[str, str]], set[int]]:
    """The tables that a rule hits, and the numbers of the rules that hit one: every such rule, not only the first."""
    hit: set[tuple[str, str]] = set()
    used: set[int] = set()
    schemas: dict[str, list[str]] = {}
    tried: dict[tuple[str, str], bool] = {}
    for index, rule in enumerate(rules):
        if rule.schema_name not in schemas:
            schemas[rule.schema_name] = _matching(rule.schema_name, names)
        for schema in schemas[rule.schema_name]:
            key = schema, STARS.sub("*", rule.table)
            if key not in tried:
                found = _matching(key[1], names[schema])
                tried[key] = bool(found)
                hit.update((schema, table) for table in found)
            if tried[key]:
                used.add(index)
    return hit, used


def _matching(pattern: str, names: Collection[str]) -> list[str]:
    """Names without wildcards are looked up instead of tried: most rules of a long list are such."""
    if not WILDCARDS.search(pattern):
        return [pattern] if pattern in names else []
    match = _compiled(pattern)
    return [name for name in names if match(name)]
