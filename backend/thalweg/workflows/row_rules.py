"""The row rules before they are used: an engine tries them against the source. Its problems become a check."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import httpx

from thalweg.db.models import EngineRow
from thalweg.engine_client.access import client_of
from thalweg.engine_client.client import EngineFailure
from thalweg.engine_client.error_codes import ErrorCode
from thalweg.engine_client.rule_documents import EngineRuleProblem
from thalweg.features.streams.rule_schemas import RuleProblem
from thalweg.features.streams.schemas import Json
from thalweg.inspection.checks import Checklist, listed
from thalweg.inspection.schemas import Check, CheckSide
from thalweg.inspection.target import Target
from thalweg.kernel.context import Context
from thalweg.kernel.models import FieldProblem
from thalweg.kernel.row_rules import RuleScope, ScopedRules, in_words, keys_of, problem_in_words
from thalweg.kernel.rules_by_table import RulesByTable


@dataclass(frozen=True)
class Owner:
    """The stream or a destination, as the one that has rules. `check` is the id of the check on them."""

    check: str
    title: str
    name: str


STREAM = Owner("row_rules", "Row rules", "the stream")
DESTINATION = Owner("destination_row_rules", "Rules of the destination", "the destination")
CHANGED = "row_rules_changed"
CURES: dict[str, str] = {
    ErrorCode.RULE_REFUSED: "Correct the rule at the place that its line names.",
    ErrorCode.RULE_UNDECIDABLE: "Set the table's REPLICA IDENTITY to FULL if its line says so. Or let the rule "
    "read only key columns, or name no other operation than INSERT. Or let its on_error say what it counts as then.",
    ErrorCode.MISSING_TABLE: "Take the table's rules away, or create the table.",
}
TOO_WIDE = (
    "The rule must fit every table that it concerns. Correct it at the place that its line names, or narrow its scope: "
    "give it to a schema whose tables it fits, or to these tables only."
)
TOO_OLD = "This engine knows no rules: upgrade it to the version of the control plane, or leave the rules out."
TOO_OLD_FOR_POLICIES = (
    "This engine knows no on_error of rules: upgrade it to the version of the control plane, or take on_error out of "
    "the rules."
)


def with_rules(tables: list[Json], row_rules: list[ScopedRules]) -> list[Json]:
    """The tables with those rules that are theirs, as an engine is told of them."""
    by_table = RulesByTable(row_rules)
    ruled = [(table, by_table.for_engine(table["schema"], table["table"])) for table in tables]
    return [{**table, "rules": rules} if rules else table for table, rules in ruled]


async def check_row_rules(
    context: Context, engines: list[EngineRow], source: Target, tables: list[Json], row_rules: list[ScopedRules],
    owner: Owner,
) -> tuple[list[Check], list[FieldProblem]]:  # fmt: skip
    """`engines` are those that need the rules, the capturing one first; `tables` are the stream's. The problems are
    those of single rules, each with its place in the list of rules."""
    checklist = Checklist(CheckSide.SOURCE)
    if not row_rules:
        return [], []
    problems = await _check(context, checklist, engines, source, tables, row_rules, owner)
    return checklist.checks, problems


async def _check(
    context: Context, checklist: Checklist, engines: list[EngineRow], source: Target, tables: list[Json],
    row_rules: list[ScopedRules], owner: Owner,
) -> list[FieldProblem]:  # fmt: skip
    lost = without_tables(row_rules, tables)
    if lost:
        cure = "Correct the name, include such a table, or take these rules away."
        names = listed([in_words(row_rules[at].key) for at in lost])
        checklist.fail(
            owner.check, owner.title, f"There are rules for tables that the stream does not have: {names}.", cure
        )
        return [
            _problem(
                owner, f"/{at}/{row_rules[at].scope}", f"The stream does not have {in_words(row_rules[at].key)}.", cure
            )
            for at in lost
        ]
    ruled = [table for table in with_rules(tables, row_rules) if "rules" in table]
    transformed = [f"{table['schema']}.{table['table']}" for table in ruled if table.get("transformations")]
    if owner is DESTINATION and transformed:
        # The copy would judge the source's rows, and changes are judged as they are sent.
        checklist.fail(
            owner.check, owner.title, f"A destination can have no rules for tables with transformations: "
            f"{listed(transformed)}.", "Give the stream these rules, or take the transformations away.",
        )  # fmt: skip
        return []
    ruled = [{name: value for name, value in table.items() if name != "transformations"} for table in ruled]
    try:
        problems = await ask_all(context, engines, source, ruled)
    except Unasked as unasked:
        failure = unasked.failure
        checklist.fail(
            owner.check, owner.title, f"{unasked.engine} could not check the rules: {failure.message}",
            cure_of_age(failure) or failure.cure or "Check again in a moment.",
        )  # fmt: skip
        return []
    by_table = RulesByTable(row_rules)
    shown = rule_problems(problems, by_table, ruled)
    certain = [problem for problem in shown if problem.certain]
    refused = _tables_of([problem for problem in problems if problem.certain])
    if certain:
        checklist.fail(
            owner.check, owner.title,
            f"The rules of {len(refused)} of {len(ruled)} tables cannot be kept: {owner.name} would stop.",
            _cures(certain), None, [_in_words(problem) for problem in certain],
        )  # fmt: skip
    elif shown:
        checklist.warn(
            owner.check, owner.title,
            f"The rules of {len(_tables_of(problems))} of {len(ruled)} tables read values that an update may not "
            f"bring: {owner.name} would stop in front of it.",
            _cures(shown), None, [_in_words(problem) for problem in shown],
        )  # fmt: skip
    else:
        checklist.ok(owner.check, owner.title, f"{engines[0].name} can keep the rules of {len(ruled)} tables.")
    return [_problem(owner, _place(problem, by_table), _in_words(problem), problem.cure) for problem in certain]


def _tables_of(problems: Iterable[EngineRuleProblem]) -> set[tuple[str, str]]:
    return {(problem.schema_name, problem.table) for problem in problems}


def _cures(problems: list[RuleProblem]) -> str:
    return " ".join(dict.fromkeys(problem.cure for problem in problems))


def _problem(owner: Owner, place: str, message: str, cure: str) -> FieldProblem:
    return FieldProblem(pointer=place, code=owner.check, message=message, cure=cure)


def without_tables(row_rules: list[ScopedRules], tables: list[Json]) -> list[int]:
    """The places of rules that concern none of the tables."""
    chosen = {key for table in tables for key in keys_of(table["schema"], table["table"])}
    return [at for at, rules in enumerate(row_rules) if rules.key not in chosen]


def rule_problems(problems: list[EngineRuleProblem], by_table: RulesByTable, tables: list[Json]) -> list[RuleProblem]:
    """`tables`: all that the rules were tried with. A fault that a rule of a wider scope has in each of its tables,
    such as a syntax error, is reported once, without a table."""
    missing = _tables_of(problem for problem in problems if problem.code == ErrorCode.MISSING_TABLE)
    tried = {(table["schema"], table["table"]) for table in tables} - missing
    by_place: dict[tuple[Any, ...], list[EngineRuleProblem]] = {}
    for problem in problems:
        place = (*by_table.place_of(*_named(problem)), problem.code, problem.message, problem.offset)
        by_place.setdefault(place, []).append(problem)
    merged: list[RuleProblem] = []
    for (place, scope, code, *_), alike in by_place.items():
        concerned = {name for name in tried if by_table.place_of(*name, alike[0].rule) == (place, scope)}
        if code == ErrorCode.RULE_REFUSED and len(alike) > 1 and _tables_of(alike) == concerned:
            once = {"schema": alike[0].schema_name if scope is RuleScope.SCHEMA else None, "table": None}
            merged.append(RuleProblem(**alike[0].model_dump(by_alias=True) | once, scope=scope, cure=CURES[code]))
        else:
            cure = _cure_of(code, scope)
            merged += [RuleProblem(**problem.model_dump(by_alias=True), scope=scope, cure=cure) for problem in alike]
    return merged


def _named(problem: EngineRuleProblem) -> tuple[str, str, str | None]:
    return problem.schema_name, problem.table, problem.rule


def _place(problem: RuleProblem, by_table: RulesByTable) -> str:
    """The place of the rule, or of its condition, in the list of all rules; else the place of the table's own rules."""
    place, scope = by_table.place_of(problem.schema_name, problem.table, problem.rule)
    of_condition = "/condition" if scope is not None and problem.line is not None else ""
    return "".join(f"/{part}" for part in place) + of_condition


def ask_for_changed_rules(checklist: Checklist, tables_before: list[Json], tables: list[Json], of: str = "") -> None:
    """A request that leaves a table's rules out may have forgotten them. `of`: the destination whose rules they are;
    empty: they are the stream's."""
    before = {(table["schema"], table["table"]): _without_scopes(table.get("rules")) for table in tables_before}
    after = {(table["schema"], table["table"]): _without_scopes(table.get("rules")) for table in tables}
    changed = [name for name, rules in after.items() if name in before and rules != before[name]]
    if changed:
        checklist.ask(
            CHANGED, "Changed row rules",
            "Other rows and changes of these tables are replicated from now on. Rows that a destination has stay, and "
            "rows that it lacks are not fetched: an update of such a row finds none.",
            "Accept this, and copy each table again to bring its rows in line. Or send the rules that the stream has.",
            [".".join(name) for name in changed],
            # These rules of theirs instead of those, and no others.
            bound_to=[json.dumps([of, before[name], after[name]], sort_keys=True) for name in changed],
        )  # fmt: skip


def _without_scopes(rules: Json | None) -> Json | None:
    """The same rules decide alike, wherever they come from."""
    if rules is None:
        return None
    return {
        member: [{name: value for name, value in rule.items() if name != "scope"} for rule in of_set]
        for member, of_set in rules.items()
    }


def _in_words(problem: RuleProblem) -> str:
    return problem_in_words(problem.model_dump(by_alias=True))


def _cure_of(code: str, scope: RuleScope | None) -> str:
    if code == ErrorCode.RULE_REFUSED and scope in (RuleScope.SCHEMA, RuleScope.GLOBAL):
        return TOO_WIDE
    return CURES.get(code, "Do what its line says.")


async def ask(context: Context, engine: EngineRow, source: Target, tables: list[Json]) -> list[EngineRuleProblem]:
    resources = context.resources
    client = client_of(engine, resources.http, resources.secrets, resources.settings.engine_timeout)
    return await client.check_rules(source.for_engine(), resources.settings.database_networks.text, tables)


@dataclass
class Unasked(Exception):
    """An engine that could not check them, by name."""

    engine: str
    failure: EngineFailure


async def ask_all(
    context: Context, engines: list[EngineRow], source: Target, tables: list[Json]
) -> list[EngineRuleProblem]:
    """The problems that the first engine finds. The others do the same with rules; it is enough that they know any."""
    problems: list[EngineRuleProblem] = []
    for number, engine in enumerate(engines):
        try:
            found = await ask(context, engine, source, tables)
        except EngineFailure as failure:
            raise Unasked(engine.name, failure) from failure
        problems = problems if number else found
    return problems


def cure_of_age(failure: EngineFailure) -> str | None:
    """None: the engine knows all that it was asked with."""
    if failure.status == httpx.codes.NOT_FOUND:
        return TOO_OLD
    if failure.code == ErrorCode.INVALID_REQUEST and "/on_error: is not a known field" in failure.message:
        return TOO_OLD_FOR_POLICIES
    return None
