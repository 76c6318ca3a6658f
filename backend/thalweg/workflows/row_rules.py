"""The rules of tables before they are used: an engine tries them against the source. Its findings become a check."""

import json
from dataclasses import dataclass

import httpx

from thalweg.db.models import EngineRow
from thalweg.engine_client.access import client_of
from thalweg.engine_client.client import EngineFailure
from thalweg.engine_client.error_codes import ErrorCode
from thalweg.engine_client.rule_documents import RuleFinding
from thalweg.features.streams.schemas import Json
from thalweg.inspection.checks import Checklist, listed
from thalweg.inspection.schemas import Check, CheckSide
from thalweg.inspection.target import Target
from thalweg.kernel.context import Context
from thalweg.kernel.models import FieldProblem
from thalweg.kernel.row_rules import TableRowRules, finding_in_words


@dataclass(frozen=True)
class Owner:
    """The stream or a destination, as the one that has rules. `check` is the id of the check on them."""

    check: str
    title: str
    name: str


STREAM = Owner("row_rules", "Rules of tables", "the stream")
DESTINATION = Owner("destination_row_rules", "Rules of the destination", "the destination")
CHANGED = "row_rules_changed"
CURES: dict[str, str] = {
    ErrorCode.RULE_REFUSED: "Correct the rule at the place that its line names.",
    ErrorCode.RULE_UNDECIDABLE: "Set the table's REPLICA IDENTITY to FULL if its line says so. Or let the rule "
    "read only key columns, or name no other operation than INSERT.",
    ErrorCode.MISSING_TABLE: "Take the table's rules away, or create the table.",
}
TOO_OLD = "This engine knows no rules: upgrade it to the version of the control plane, or leave the rules out."


def with_rules(tables: list[Json], row_rules: list[TableRowRules]) -> list[Json]:
    """The tables with those rules that are theirs, as an engine is told of them."""
    of_rows = {rule.table_name: rule.for_engine() for rule in row_rules}
    return [
        {**table, **({"rules": of_rows[name]} if (name := (table["schema"], table["table"])) in of_rows else {})}
        for table in tables
    ]


async def check_row_rules(
    context: Context, engines: list[EngineRow], source: Target, tables: list[Json], row_rules: list[TableRowRules],
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
    row_rules: list[TableRowRules], owner: Owner,
) -> list[FieldProblem]:  # fmt: skip
    chosen = {(table["schema"], table["table"]) for table in tables}
    lost = {at: ".".join(rule.table_name) for at, rule in enumerate(row_rules) if rule.table_name not in chosen}
    if lost:
        cure = "Correct the table's name, include the table, or take its rules away."
        checklist.fail(
            owner.check, owner.title,
            f"There are rules for tables that the stream does not have: {listed(list(lost.values()))}.", cure,
        )  # fmt: skip
        missing = {f"/{at}/table": f"The stream does not have {name}." for at, name in lost.items()}
        return [_problem(owner, place, message, cure) for place, message in missing.items()]
    ruled = [table for table in with_rules(tables, row_rules) if "rules" in table]
    findings: list[RuleFinding] = []
    for number, engine in enumerate(engines):
        try:
            found = await ask(context, engine, source, ruled)
        except EngineFailure as failure:
            checklist.fail(
                owner.check, owner.title, f"{engine.name} could not check the rules: {failure.message}",
                TOO_OLD if knows_none(failure) else failure.cure or "Check again in a moment.",
            )  # fmt: skip
            return []
        # The others read the same rules for the copy: of them it is enough that they know any.
        findings = findings if number else found
    certain = [finding for finding in findings if finding.certain]
    if certain:
        codes = dict.fromkeys(finding.code for finding in certain)
        checklist.fail(
            owner.check, owner.title,
            f"The rules of {len(_tables_of(certain))} of {len(ruled)} tables cannot be kept: {owner.name} would stop.",
            " ".join(cure_of(code) for code in codes), None, [_in_words(finding) for finding in certain],
        )  # fmt: skip
    elif findings:
        checklist.warn(
            owner.check, owner.title,
            f"The rules of {len(_tables_of(findings))} of {len(ruled)} tables read values that an update may not "
            f"bring: {owner.name} would stop in front of it.",
            cure_of(ErrorCode.RULE_UNDECIDABLE), None, [_in_words(finding) for finding in findings],
        )  # fmt: skip
    else:
        checklist.ok(owner.check, owner.title, f"{engines[0].name} can keep the rules of {len(ruled)} tables.")
    return [_problem(owner, _place(one, row_rules), _in_words(one), cure_of(one.code)) for one in certain]


def _tables_of(findings: list[RuleFinding]) -> set[tuple[str, str]]:
    return {(finding.schema_name, finding.table) for finding in findings}


def _problem(owner: Owner, place: str, message: str, cure: str) -> FieldProblem:
    return FieldProblem(pointer=place, code=owner.check, message=message, cure=cure)


def _place(finding: RuleFinding, tables: list[TableRowRules]) -> str:
    """Of the rule in the list of tables' rules, or of its condition; else of the table."""
    for number, table in enumerate(tables):
        if table.table_name != (finding.schema_name, finding.table):
            continue
        for member, rules in (("positive", table.positive), ("negative", table.negative)):
            for at, rule in enumerate(rules or []):
                if rule.name == finding.rule:
                    return f"/{number}/{member}/{at}" + ("/condition" if finding.line is not None else "")
        return f"/{number}"
    return ""


def ask_for_changed_rules(checklist: Checklist, tables_before: list[Json], tables: list[Json], of: str = "") -> None:
    """A request that leaves a table's rules out may have forgotten them. `of`: the destination whose rules they are;
    empty: they are the stream's."""
    before = {(table["schema"], table["table"]): table.get("rules") for table in tables_before}
    after = {(table["schema"], table["table"]): table.get("rules") for table in tables}
    changed = [name for name, rules in after.items() if name in before and rules != before[name]]
    if changed:
        checklist.ask(
            CHANGED, "Changed rules of tables",
            "Other rows and changes of these tables are replicated from now on. Rows that a destination has stay, and "
            "rows that it lacks are not fetched: an update of such a row finds none.",
            "Accept this, and copy each table again to bring its rows in line. Or send the rules that the stream has.",
            [".".join(name) for name in changed],
            # These rules of theirs instead of those, and no others.
            bound_to=[json.dumps([of, before[name], after[name]], sort_keys=True) for name in changed],
        )  # fmt: skip


def _in_words(finding: RuleFinding) -> str:
    return finding_in_words(finding.model_dump(by_alias=True))


def cure_of(code: str) -> str:
    return CURES.get(code, "Do what its line says.")


async def ask(context: Context, engine: EngineRow, source: Target, tables: list[Json]) -> list[RuleFinding]:
    resources = context.resources
    client = client_of(engine, resources.http, resources.secrets, resources.settings.engine_timeout)
    return await client.check_rules(source.for_engine(), resources.settings.database_networks.text, tables)


def knows_none(failure: EngineFailure) -> bool:
    return failure.status == httpx.codes.NOT_FOUND
