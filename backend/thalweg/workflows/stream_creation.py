"""Creates a stream: checked first, then written whole in one transaction, so that nothing is half created."""

from dataclasses import dataclass

from thalweg.db.audit import record
from thalweg.db.models import StreamRow
from thalweg.db.operations import OperationAccepted, OperationKind, ProgressUnit, start_operation
from thalweg.features.streams import repository as streams
from thalweg.features.streams.schemas import Json, StreamCreate
from thalweg.features.streams.service import desired_facts, keep_mask_key
from thalweg.kernel.context import Context
from thalweg.kernel.idempotency import Created
from thalweg.kernel.ids import new_id
from thalweg.kernel.lifecycle import DesiredStatus, OperationState
from thalweg.kernel.problems import name_taken
from thalweg.workflows.destination_addition import attach
from thalweg.workflows.stream_placement import place
from thalweg.workflows.stream_preparation import (
    Places,
    Planned,
    accepted_facts,
    check_still_apart,
    database_of,
    desired_tables,
    not_ready,
    planned,
    preflight,
    with_accepted_code,
    with_engines,
)


@dataclass(frozen=True)
class Checked:
    """`tables` are those that the rules choose, `accepted` what somebody wants all the same."""

    tables: list[Json]
    accepted: Json


async def check_stream(context: Context, body: StreamCreate) -> Checked:
    """Raises preflight_failed with each failed check."""
    if await streams.name_is_taken(context.session, body.name):
        raise name_taken("stream", body.name)
    source = await database_of(context, "/source_id", body.source_id)
    destinations = await planned(context, body.destinations, body.parameters)
    placement = await place(context, body.capture_engine_id, body.destinations)
    destinations = with_engines(destinations, placement.applies)
    result = await preflight(
        context, source, placement.capture, destinations, body.rules, body.parameters, body.accept,
        kind=body.capture_kind,
    )  # fmt: skip
    if not result.preflight.ready:
        raise not_ready(result.preflight, "Nothing was created.", _places(body, destinations), result.rule_problems)
    tables = with_accepted_code(desired_tables(result.tables, body.rules), result.code)
    return Checked(tables, accepted_facts(result.preflight))


def _places(body: StreamCreate, destinations: list[Planned]) -> Places:
    databases = {
        destination.database_id: f"/destinations/{at}/database_id" for at, destination in enumerate(body.destinations)
    }
    ruled = {
        destination.database_id: f"/destinations/{at}/row_rules" for at, destination in enumerate(body.destinations)
    }
    names = {destination.database.id: destination.database.name for destination in destinations}
    return Places(databases, "/source_id", "/rules/row_rules", "/rules/transformations", "/rules/renames", ruled, names)


async def create_stream(context: Context, body: StreamCreate, checked: Checked) -> Created:
    """Creates the stream. Detects changes in the store since the checks."""
    if await streams.name_is_taken(context.session, body.name):
        raise name_taken("stream", body.name)
    source = await database_of(context, "/source_id", body.source_id)
    destinations = await planned(context, body.destinations, body.parameters)
    placement = await place(context, body.capture_engine_id, body.destinations)
    await check_still_apart(context, destinations, checked.tables, _places(body, destinations))
    row = StreamRow(
        id=new_id(), name=body.name, source_id=source.id, capture_engine_id=placement.capture.id,
        capture_kind=body.capture_kind, rules=body.rules.model_dump(by_alias=True), parameters=body.parameters,
        force=False, tables=checked.tables,
        desired_status=DesiredStatus.ENABLED if body.start else DesiredStatus.DISABLED, destinations=[],
    )  # fmt: skip
    for destination, database, engine in zip(
        body.destinations, (destination.database for destination in destinations), placement.applies, strict=True
    ):
        attach(row, database, engine, destination)
    keep_mask_key(context, row, body.mask_key, body.rules)
    await streams.next_revisions(context.session, row)
    context.session.add(row)
    operation = start_operation(
        context.session, OperationKind.STREAM_CREATE, row.id, row.name, row.changed_revision,
        context.principal.name, ProgressUnit.ROWS, None,
    )  # fmt: skip
    await context.session.flush()
    facts = {**desired_facts(row), **checked.accepted}
    record(context, "streams_create", ("stream", row.id, row.name), after=facts)
    accepted = OperationAccepted(operation_id=operation.id, stream_id=row.id, state=OperationState.PENDING)
    return Created(accepted, 202, {"Location": f"/api/v1/streams/{row.id}"})
