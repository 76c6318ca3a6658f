"""For whoever writes rules of tables: whether they fit the source, the places in the conditions that do not, and what
they make of rows."""

from thalweg.db.models import EngineRow
from thalweg.engine_client import rule_documents
from thalweg.engine_client.access import client_of, problem_of
from thalweg.engine_client.client import EngineFailure
from thalweg.engine_client.rule_documents import RuleFinding
from thalweg.features.streams.rule_schemas import (
    JudgedChange,
    RuleProblem,
    RulesCheck,
    RulesCheckRequest,
    RulesTest,
    RulesTestRequest,
)
from thalweg.features.streams.schemas import Json
from thalweg.inspection.target import target_of
from thalweg.kernel.context import Context
from thalweg.kernel.problems import Problem
from thalweg.workflows.row_rules import TOO_OLD, ask, cure_of, knows_none
from thalweg.workflows.stream_placement import capturing_engine
from thalweg.workflows.stream_preparation import database_of


async def check_rules(context: Context, body: RulesCheckRequest) -> RulesCheck:
    source = target_of(await database_of(context, "/source_id", body.source_id), context.resources)
    engine = await capturing_engine(context, body.capture_engine_id)
    given_up = {(table.schema_name, table.table) for table in body.inserts_only}
    tables: list[Json] = [
        {
            "schema": rule.schema_name, "table": rule.table, "rules": rule.for_engine(),
            **({"inserts_only": True} if rule.table_name in given_up else {}),
        }
        for rule in body.row_rules
    ]  # fmt: skip
    await context.release()
    try:
        findings = await ask(context, engine, source, tables)
    except EngineFailure as failure:
        raise _problem(engine, failure) from failure
    return RulesCheck(findings=_with_cures(findings))


async def test_rules(context: Context, body: RulesTestRequest) -> RulesTest:
    row = await database_of(context, "/source_id", body.source_id)
    source, name = target_of(row, context.resources), row.name
    engine = await capturing_engine(context, body.capture_engine_id)
    rules, resources = body.rules, context.resources
    table: Json = {"schema": rules.schema_name, "table": rules.table, "rules": rules.for_engine()}
    client = client_of(engine, resources.http, resources.secrets, resources.settings.engine_timeout)
    await context.release()
    try:
        tried = await client.test_rules(
            source.for_engine(), name, resources.settings.database_networks.text, table, body.sample,
            [change.for_engine() for change in body.changes],
        )  # fmt: skip
    except EngineFailure as failure:
        raise _problem(engine, failure) from failure
    return RulesTest(
        findings=_with_cures(tried.findings),
        changes=[_judged(change) for change in tried.changes],
    )


def _judged(change: rule_documents.JudgedChange) -> JudgedChange:
    document = change.model_dump()
    if change.error is not None:
        document["error"]["sqlstate"] = change.error.sqlstate or None
    return JudgedChange.model_validate(document)


def _with_cures(findings: list[RuleFinding]) -> list[RuleProblem]:
    return [RuleProblem(**finding.model_dump(by_alias=True), cure=cure_of(finding.code)) for finding in findings]


def _problem(engine: EngineRow, failure: EngineFailure) -> Problem:
    if knows_none(failure):
        return Problem("engine_refused", f"{engine.name} could not check the rules.", TOO_OLD)
    return problem_of(failure)
