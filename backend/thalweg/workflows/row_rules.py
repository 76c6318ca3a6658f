"""The rules of tables before they are used: an engine tries them against the source. Its findings become a check."""

import json

import httpx

from thalweg.db.models import EngineRow, StreamRow
from thalweg.engine_client.access import client_of
from thalweg.engine_client.client import EngineFailure
from thalweg.engine_client.documents import RuleFinding
from thalweg.engine_client.error_codes import ErrorCode
from thalweg.features.streams.schemas import Json
from thalweg.inspection.checks import Checklist, listed
from thalweg.inspection.schemas import Check, CheckSide
from thalweg.inspection.target import Target
from thalweg.kernel.context import Context
from thalweg.kernel.models import FieldProblem
from thalweg.kernel.row_rules import TableRowRules, finding_in_words
from thalweg.kernel.rules import TableRules

IDENTIFIER, TITLE = "row_rules", "Rules of tables"
CHANGED = "row_rules_changed"
CURES: dict[str, str] = {
    ErrorCode.RULE_REFUSED: "Correct the rule at the place that its line names.",
    ErrorCode.RULE_UNDECIDABLE: "Set the table's REPLICA IDENTITY to FULL if its line says so. Or let the rule "
    "read only key columns, or name no other operation than INSERT.",
    ErrorCode.MISSING_TABLE: "Take the table's rules away, or create the table.",
}
TOO_OLD = "This engine knows no rules: upgrade it to the version of the control plane, or leave the rules out."


async def check_row_rules(
    context: Context, engines: list[EngineRow], source: Target, tables: list[Json], rules: TableRules
) -> tuple[list[Check], list[FieldProblem]]:
    """`engines` are those of the stream, the capturing one first; `tables` are as the engines are told of them. The
    problems are those of single rules, each with its place in the list of rules."""
    checklist = Checklist(CheckSide.SOURCE)
    if not rules.row_rules:
        return [], []
    problems = await _check(context, checklist, engines, source, tables, rules)
    return checklist.checks, problems


async def _check(
    context: Context, checklist: Checklist, engines: list[EngineRow], source: Target, tables: list[Json],
    rules: TableRules,
) -> list[FieldProblem]:  # fmt: skip
    chosen = {(table["schema"], table["table"]) for table in tables}
    lost = {at: ".".join(rule.table_name) for at, rule in enumerate(rules.row_rules) if rule.table_name not in chosen}
    if lost:
        cure = "Correct the table's name, include the table, or take its rules away."
        checklist.fail(
            IDENTIFIER, TITLE,
            f"There are rules for tables that the stream does not have: {listed(list(lost.values()))}.", cure,
        )  # fmt: skip
        return [_problem(f"/{at}/table", f"The stream does not have {name}.", cure) for at, name in lost.items()]
    ruled = [table for table in tables if "rules" in table]
    findings: list[RuleFinding] = []
    for number, engine in enumerate(engines):
        try:
            found = await ask(context, engine, source, ruled)
        except EngineFailure as failure:
            checklist.fail(
                IDENTIFIER, TITLE, f"{engine.name} could not check the rules: {failure.message}",
                TOO_OLD if knows_none(failure) else failure.cure or "Check again in a moment.",
            )  # fmt: skip
            return []
        # The others read the same rules for the copy: of them it is enough that they know any.
        findings = findings if number else found
    if findings:
        codes = dict.fromkeys(finding.code for finding in findings)
        checklist.fail(
            IDENTIFIER, TITLE, f"The rules of {len({(finding.schema_name, finding.table) for finding in findings})} of "
            f"{len(ruled)} tables cannot be kept: the stream would stop.",
            " ".join(cure_of(code) for code in codes), None, [_in_words(finding) for finding in findings],
        )  # fmt: skip
    else:
        checklist.ok(IDENTIFIER, TITLE, f"{engines[0].name} can keep the rules of {len(ruled)} tables.")
    return [_problem(_place(one, rules.row_rules), _in_words(one), cure_of(one.code)) for one in findings]


def _problem(place: str, message: str, cure: str) -> FieldProblem:
    return FieldProblem(pointer=place, code=IDENTIFIER, message=message, cure=cure)


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


def ask_for_changed_rules(checklist: Checklist, of: StreamRow | None, tables: list[Json]) -> None:
    """A request that leaves a table's rules out may have forgotten them."""
    before = {(table["schema"], table["table"]): table.get("rules") for table in (of.tables if of else [])}
    after = {(table["schema"], table["table"]): table.get("rules") for table in tables}
    changed = [name for name, rules in after.items() if name in before and rules != before[name]]
    if changed:
        checklist.ask(
            CHANGED, "Changed rules of tables",
            "Other rows and changes of these tables are replicated from now on. Rows that a destination has stay, and "
            "rows that it lacks are not fetched: an update of such a row finds none.",
            "Accept this, and copy each table again to bring its rows in line. Or send the rules that the stream has.",
            [".".join(name) for name in changed],
            # These rules instead of those, and no others.
            bound_to=[json.dumps([before[name], after[name]], sort_keys=True) for name in changed],
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
