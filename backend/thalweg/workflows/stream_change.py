"""Changes a stream. New table rules are resolved and checked as at its creation: refused whole, or taken whole."""

from thalweg.db.models import StreamRow
from thalweg.engine_client.documents import NOT_REPORTED
from thalweg.engine_client.mining_limits import WAL_ARCHIVE
from thalweg.features.streams import service
from thalweg.features.streams.parameters import check_parameters, check_rights
from thalweg.features.streams.schemas import Parameters, Stream, StreamUpdate
from thalweg.inspection.preflight import StreamPreflight, preflight_of
from thalweg.kernel.capture_kinds import CaptureKind
from thalweg.kernel.context import Context
from thalweg.kernel.lifecycle import DesiredStatus
from thalweg.kernel.problems import Problem
from thalweg.kernel.row_rules import ScopedRules
from thalweg.kernel.rules import TableRules
from thalweg.workflows.archive_check import check_archive
from thalweg.workflows.conflict_check import NAMES, check_conflicts
from thalweg.workflows.stream_preparation import (
    Places,
    Planned,
    accepted_facts,
    desired_tables,
    not_ready,
    preflight,
    with_accepted_code,
)


async def check_and_change(context: Context, stream_id: str, body: StreamUpdate, if_match: str | None) -> Stream:
    if body.rules is None and body.capture_kind is None:
        if body.parameters and NAMES & body.parameters.keys():
            await _check_conflicts(context, stream_id, body.parameters, if_match)
        if body.parameters and WAL_ARCHIVE in body.parameters:
            await _check_archive(context, stream_id, body.parameters, if_match)
        row = await service.change_stream(context, stream_id, body, if_match, None, {})
        return await service.shown(context, row)
    result = await _checked(context, stream_id, body, if_match)
    tables = None if body.rules is None else with_accepted_code(desired_tables(result.tables, body.rules), result.code)
    accepted = accepted_facts(result.preflight)
    return await service.shown(
        context, await service.change_stream(context, stream_id, body, if_match, tables, accepted)
    )


async def _check_conflicts(context: Context, stream_id: str, changes: Parameters, if_match: str | None) -> None:
    row = await service.stream_to_change(context, stream_id, if_match)
    parameters = {**row.parameters, **changes}
    check_rights(context.principal, row.parameters, parameters)
    check_parameters(service.definitions_of(context), changes)
    present = [destination for destination in row.destinations if destination.desired_status != DesiredStatus.DROPPED]
    await check_conflicts(
        context, row, [(destination, {**parameters, **destination.parameters}) for destination in present], changes
    )


async def _check_archive(context: Context, stream_id: str, changes: Parameters, if_match: str | None) -> None:
    """An archive that the engine does not offer would stop the stream."""
    row = await service.stream_to_change(context, stream_id, if_match)
    check_parameters(service.definitions_of(context), changes)
    if row.capture_kind == CaptureKind.WAL:
        result = preflight_of(check_archive(changes[WAL_ARCHIVE], row.capture_engine))
        if not result.ready:
            pointer = f"/parameters/{WAL_ARCHIVE}"
            raise not_ready(result, "Nothing was changed.", Places({"": pointer}, pointer))


def _check_engine(row: StreamRow, body: StreamUpdate) -> None:
    """An engine of an earlier version, which has reported the stream, would stop it for good."""
    changes = body.capture_kind not in (None, row.capture_kind)
    if changes and row.observed is not None and row.observed.get("kind_change", NOT_REPORTED) == NOT_REPORTED:
        raise Problem(
            "invalid_transition",
            f"The engine {row.capture_engine.name} is of a version that cannot change how a stream is captured.",
            "Upgrade the engine first.",
        )


async def _checked(context: Context, stream_id: str, body: StreamUpdate, if_match: str | None) -> StreamPreflight:
    """Looks into all databases, which may take seconds: nothing is locked meanwhile, the version is checked again."""
    row = await service.stream_to_change(context, stream_id, if_match)
    _check_engine(row, body)
    rules = body.rules or TableRules.model_validate(row.rules)
    parameters = {**row.parameters, **(body.parameters or {})}
    check_rights(context.principal, row.parameters, parameters)
    own = frozenset((table["schema"], table["table"]) for table in row.tables)
    destinations = [
        Planned(
            destination.database, {**parameters, **destination.parameters}, own, destination.engine,
            [ScopedRules.model_validate(rules) for rules in destination.row_rules],
        )
        for destination in row.destinations
        if destination.desired_status != DesiredStatus.DROPPED
    ]  # fmt: skip
    result = await preflight(
        context, row.source, row.capture_engine, destinations, rules, parameters, body.accept, row,
        own if body.rules is None else None, body.mask_key, body.capture_kind,
    )  # fmt: skip
    if not result.preflight.ready:
        names = {destination.database.id: destination.database.name for destination in destinations}
        places = Places(
            {"": "/rules"}, "/rules", "/rules/row_rules", "/rules/transformations", "/rules/renames", names=names
        )
        raise not_ready(result.preflight, "Nothing was changed.", places, result.rule_problems)
    return result
