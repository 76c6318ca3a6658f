"""Changes one destination. New rules of its tables are checked at the source first, as those of a stream are."""

from thalweg.db.models import DestinationRow, StreamRow
from thalweg.features.streams import destination_actions, service
from thalweg.features.streams.parameters import check_destination_parameters, check_rights
from thalweg.features.streams.schemas import DestinationUpdate, Json, Parameters, Stream
from thalweg.inspection.checks import Checklist, with_consents
from thalweg.inspection.preflight import preflight_of
from thalweg.inspection.schemas import CheckSide
from thalweg.inspection.target import target_of
from thalweg.kernel.context import Context
from thalweg.kernel.row_rules import ScopedRules
from thalweg.workflows.conflict_check import NAMES, check_conflicts
from thalweg.workflows.row_rules import DESTINATION, ask_for_changed_rules, check_row_rules, with_rules
from thalweg.workflows.stream_preparation import Places, accepted_facts, not_ready


async def update_destination(
    context: Context, stream_id: str, destination_id: str, body: DestinationUpdate, if_match: str | None
) -> Stream:
    accepted: Json = {}
    if body.parameters and NAMES & body.parameters.keys():
        await _check_conflicts(context, stream_id, destination_id, body.parameters, if_match)
    if body.row_rules is not None:
        row, destination = await service.destination_to_change(context, stream_id, destination_id, if_match)
        accepted = await _checked(context, row, destination, body.row_rules, body.accept)
    return await destination_actions.update(context, stream_id, destination_id, body, if_match, accepted)


async def _check_conflicts(
    context: Context, stream_id: str, destination_id: str, parameters: Parameters, if_match: str | None
) -> None:
    row, destination = await service.destination_to_change(context, stream_id, destination_id, if_match)
    check_rights(context.principal, {**row.parameters, **destination.parameters}, {**row.parameters, **parameters})
    check_destination_parameters(service.definitions_of(context), parameters, "")
    await check_conflicts(context, row, [(destination, {**row.parameters, **parameters})], parameters)


async def _checked(
    context: Context, row: StreamRow, destination: DestinationRow, row_rules: list[ScopedRules], accept: list[str]
) -> Json:
    """Facts for the audit log: what was accepted. The engines are asked, which may take seconds: nothing is locked
    meanwhile, the version is checked again."""
    tables: list[Json] = [
        {name: value for name, value in table.items() if name in ("schema", "table", "inserts_only", "transformations")}
        for table in row.tables
    ]
    before = [ScopedRules.model_validate(rules) for rules in destination.row_rules]
    engines = {engine.id: engine for engine in (row.capture_engine, destination.engine)}
    source = target_of(row.source, context.resources)
    checklist = Checklist(CheckSide.SOURCE)
    ask_for_changed_rules(checklist, with_rules(tables, before), with_rules(tables, row_rules), destination.id)
    await context.release()
    found, problems = await check_row_rules(context, list(engines.values()), source, tables, row_rules, DESTINATION)
    preflight = preflight_of(with_consents([*checklist.checks, *found], accept))
    if not preflight.ready:
        places = Places({}, row_rules="/row_rules", destination_rules={"": "/row_rules"})
        raise not_ready(preflight, "Nothing was changed.", places, {(DESTINATION.check, None): problems})
    return accepted_facts(preflight)
