"""For whoever writes rules of tables: whether they fit the source, and the places in the conditions that do not."""

from thalweg.engine_client.access import problem_of
from thalweg.engine_client.client import EngineFailure
from thalweg.features.streams.schemas import Json, RuleProblem, RulesCheck, RulesCheckRequest
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
        if knows_none(failure):
            raise Problem("engine_refused", f"{engine.name} could not check the rules.", TOO_OLD) from failure
        raise problem_of(failure) from failure
    return RulesCheck(
        findings=[RuleProblem(**finding.model_dump(by_alias=True), cure=cure_of(finding.code)) for finding in findings]
    )
