"""Adds a destination to a stream that exists: copied and caught up while the others go on."""

import re

from thalweg.db.audit import record
from thalweg.db.models import DatabaseRow, DestinationRow, EngineRow, StreamRow
from thalweg.db.operations import OperationAccepted, OperationKind, ProgressUnit, start_operation
from thalweg.engine_client.documents import FORMER_ID
from thalweg.features.streams import repository as streams
from thalweg.features.streams.parameters import check_destination_parameters, check_rights
from thalweg.features.streams.schemas import DESTINATIONS_MAX, DestinationAdd, DestinationCreate
from thalweg.features.streams.service import being_deleted, definitions_of, destination_facts, existing_stream
from thalweg.inspection.preflight import StreamPreflight
from thalweg.kernel.clock import now
from thalweg.kernel.context import Context
from thalweg.kernel.idempotency import Created
from thalweg.kernel.lifecycle import DesiredStatus, OperationState, Stage
from thalweg.kernel.problems import Problem
from thalweg.kernel.row_rules import stored
from thalweg.kernel.rules import TableRules
from thalweg.workflows.stream_placement import check_apart, engine_for
from thalweg.workflows.stream_preparation import (
    Places,
    Planned,
    accepted_facts,
    check_still_apart,
    database_of,
    not_ready,
    preflight,
    twice,
    with_accepted_code,
)

ID_LENGTH_MAX = 16


def attach(row: StreamRow, database: DatabaseRow, engine: EngineRow, wanted: DestinationCreate) -> DestinationRow:
    """The last of the stream's destinations."""
    destination = DestinationRow(
        id=_new_id(row, database.name), database_id=database.id, engine_id=engine.id,
        parameters=dict(wanted.parameters), row_rules=stored(wanted.row_rules),
        desired_status=DesiredStatus.ENABLED, ordinal=max((other.ordinal for other in row.destinations), default=0) + 1,
        force=False, backlog=False, stage=Stage.NEW, changed_revision=0,
    )  # fmt: skip
    destination.database, destination.engine = database, engine
    row.destinations.append(destination)
    if len(row.destinations) > 1:
        # None may hold up the others.
        for row_destination in row.destinations:
            row_destination.backlog = True
    return destination


def _new_id(row: StreamRow, name: str) -> str:
    """An id made of the database's name, as far as the contract allows, so that people recognise it in metrics;
    different from those that the engine still knows."""
    observed = (row.observed or {}).get("destinations", [])
    taken = (
        {FORMER_ID} | {destination.id for destination in row.destinations} | {reported["id"] for reported in observed}
    )
    base = re.sub(r"[^a-z0-9]", "", name.lower())[:ID_LENGTH_MAX] or "destination"
    if base not in taken:
        return base
    numbered = (f"{base[: ID_LENGTH_MAX - len(str(number))]}{number}" for number in range(2, len(taken) + 3))
    return next(candidate for candidate in numbered if candidate not in taken)


async def add_destination(context: Context, stream_id: str, body: DestinationAdd, checked: StreamPreflight) -> Created:
    """After `check_destination`, which gives `checked`."""
    database = await database_of(context, "/database_id", body.database_id)
    row = await streams.stream_by_id(context.session, stream_id, lock=True)
    if row is None or row.desired_status == DesiredStatus.DROPPED:
        raise being_deleted()
    _check_room(row, database)
    engine = await _engine_that_applies(context, row, body)
    wanted = Planned(database, {**row.parameters, **body.parameters})
    await check_still_apart(context, [wanted], row.tables, Places({database.id: "/database_id"}), row)
    row.tables = with_accepted_code(row.tables, checked.code)
    destination = attach(row, database, engine, body)
    await streams.next_revisions(context.session, row)
    row.version += 1
    row.updated_at = now()
    operation = start_operation(
        context.session, OperationKind.DESTINATION_ADD, row.id, row.name, row.changed_revision, context.principal.name,
        ProgressUnit.ROWS, None, destination=destination,
    )  # fmt: skip
    await context.session.flush()
    facts = {**destination_facts(destination), **accepted_facts(checked.preflight)}
    record(context, "destinations_add", ("stream", row.id, row.name), after=facts)
    accepted = OperationAccepted(operation_id=operation.id, stream_id=row.id, state=OperationState.PENDING)
    return Created(accepted, 202, {"Location": f"/api/v1/operations/{operation.id}"})


async def check_destination(context: Context, stream_id: str, body: DestinationAdd) -> StreamPreflight:
    """Looks into both databases, which may take seconds: nothing is locked meanwhile. Raises preflight_failed with each
    failed check when the database is not ready."""
    database = await database_of(context, "/database_id", body.database_id)
    row = await existing_stream(context, stream_id)
    if row.desired_status == DesiredStatus.DROPPED:
        raise being_deleted()
    # The stream's own SQL is new at this database, too.
    check_rights(context.principal, {}, {**row.parameters, **body.parameters})
    _check_room(row, database)
    check_destination_parameters(definitions_of(context), body.parameters, "")
    engine = await _engine_that_applies(context, row, body)
    wanted = Planned(database, {**row.parameters, **body.parameters}, engine=engine, row_rules=body.row_rules)
    chosen = frozenset((table["schema"], table["table"]) for table in row.tables)
    rules = TableRules.model_validate(row.rules)
    result = await preflight(
        context, row.source, row.capture_engine, [wanted], rules, row.parameters, body.accept, row, chosen
    )
    if not result.preflight.ready:
        places = Places({database.id: "/database_id"}, destination_rules={database.id: "/row_rules"})
        raise not_ready(result.preflight, "Nothing was changed.", places, result.rule_problems)
    return result


async def _engine_that_applies(context: Context, row: StreamRow, body: DestinationAdd) -> EngineRow:
    """Raises invalid_request when there is no such engine, or when it cannot apply what the other one captures."""
    engine = row.capture_engine if body.engine_id is None else await engine_for(context, body.engine_id)
    check_apart(row.capture_engine, engine, "/engine_id", [destination.engine for destination in row.destinations])
    return engine


def _check_room(row: StreamRow, database: DatabaseRow) -> None:
    if database.id in (destination.database_id for destination in row.destinations):
        raise twice("/database_id", database)
    if len(row.destinations) >= DESTINATIONS_MAX:
        raise Problem(
            "invalid_transition", f"A stream has {DESTINATIONS_MAX} destinations at most.", "Create another stream."
        )
