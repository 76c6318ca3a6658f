"""Start, stop, retry, drop and change one destination: others go on meanwhile."""

from contextlib import suppress

from fastapi import Response

from thalweg.db.audit import record
from thalweg.db.models import DestinationRow, StreamRow
from thalweg.db.operations import (
    OperationAccepted,
    OperationKind,
    begin,
    finish,
    start_operation,
    unfinished_operations,
)
from thalweg.engine_client.access import client_of, problem_of
from thalweg.engine_client.client import EngineFailure
from thalweg.features.streams import repository
from thalweg.features.streams.actions import SUPERSEDED, failed_parts
from thalweg.features.streams.destination_lifecycle import refusal
from thalweg.features.streams.parameters import check_destination_parameters, check_rights, needs_restart
from thalweg.features.streams.schemas import DestinationUpdate, Json, Parameters, Stream
from thalweg.features.streams.service import (
    definitions_of,
    destination_facts,
    destination_to_change,
    existing_destination,
    existing_stream,
    shown,
)
from thalweg.kernel.clock import now
from thalweg.kernel.context import Context
from thalweg.kernel.lifecycle import (
    DesiredStatus,
    DestinationAction,
    ObservedStatus,
    OperationState,
    next_destination_status,
)
from thalweg.kernel.problems import Problem
from thalweg.kernel.row_rules import stored

KINDS = {action: OperationKind(f"destination.{action}") for action in DestinationAction}


async def act(
    context: Context, stream_id: str, destination_id: str, action: DestinationAction, response: Response,
    force: bool = False,
) -> OperationAccepted:  # fmt: skip
    retried_at = None
    if action is DestinationAction.RETRY:
        retried_at = now()
        await _retry(context, *await _permitted(context, stream_id, destination_id, action))
    elif action is DestinationAction.DROP:
        await _repeat_failed_removal(context, *await _permitted(context, stream_id, destination_id, action))
    row, destination = await _permitted(context, stream_id, destination_id, action, lock=True)
    before = destination_facts(destination)
    if retried_at is None:
        await _desire(context, row, destination, action, force)
    operation = start_operation(
        context.session, KINDS[action], row.id, row.name, row.changed_revision, context.principal.name,
        destination=destination,
    )  # fmt: skip
    if retried_at is not None:
        begin(operation, retried_at)
    await context.session.flush()
    record(context, f"destinations_{action}", ("stream", row.id, row.name), before, destination_facts(destination))
    response.headers["Location"] = f"/api/v1/operations/{operation.id}"
    return OperationAccepted(operation_id=operation.id, stream_id=row.id, state=OperationState(operation.state))


async def _permitted(
    context: Context, stream_id: str, destination_id: str, action: DestinationAction, *, lock: bool = False
) -> tuple[StreamRow, DestinationRow]:
    row = await existing_stream(context, stream_id, lock=lock)
    destination = existing_destination(row, destination_id)
    refused = refusal(row, destination, action)
    if refused is not None:
        raise Problem("invalid_transition", *refused)
    return row, destination


async def _desire(
    context: Context, row: StreamRow, destination: DestinationRow, action: DestinationAction, force: bool
) -> None:
    for operation in await unfinished_operations(context.session, [row.id]):
        copies = operation.kind == OperationKind.TABLE_COPY and action is not DestinationAction.DROP
        if operation.destination_id == destination.id and not copies:
            finish(operation, OperationState.FAILED, SUPERSEDED)
    destination.desired_status = next_destination_status(destination.desired_status, action)
    destination.force = destination.force or force
    await _changed(context, row)


async def _changed(context: Context, row: StreamRow) -> None:
    await repository.next_revisions(context.session, row)
    row.version += 1
    row.updated_at = now()


async def _retry(context: Context, row: StreamRow, destination: DestinationRow) -> None:
    """Straight to the engines: it is an event and not a state that could be desired. Nothing is locked meanwhile."""
    resources = context.resources
    await context.release()
    engines = [row.capture_engine, *([destination.engine] if destination in row.receivers else [])]
    for engine in engines:
        client = client_of(engine, resources.http, resources.secrets, resources.settings.engine_timeout)
        try:
            await client.retry(row.id, destination.id)
        except EngineFailure as failure:
            raise problem_of(failure) from failure


async def _repeat_failed_removal(context: Context, row: StreamRow, destination: DestinationRow) -> None:
    """An engine that has given up a removal tries again, as for a stream. An engine that is away gets the desired state
    later."""
    failed = [engine for engine, part in failed_parts(row) if part == destination.id]
    if destination.desired_status != DesiredStatus.DROPPED or not failed:
        return
    resources = context.resources
    await context.release()
    for engine in failed:
        with suppress(EngineFailure):
            client = client_of(engine, resources.http, resources.secrets, resources.settings.engine_timeout)
            await client.retry(row.id, destination.id)


async def update(
    context: Context, stream_id: str, destination_id: str, body: DestinationUpdate, if_match: str | None,
    accepted: Json,
) -> Stream:  # fmt: skip
    return await shown(context, await change(context, stream_id, destination_id, body, if_match, accepted))


async def change(
    context: Context, stream_id: str, destination_id: str, body: DestinationUpdate, if_match: str | None,
    accepted: Json,
) -> StreamRow:  # fmt: skip
    """`accepted`, for the audit log, is what somebody wants all the same."""
    row, destination = await destination_to_change(context, stream_id, destination_id, if_match, lock=True)
    before = destination_facts(destination)
    if body.parameters is not None:
        _set_parameters(context, row, destination, body.parameters)
    if body.row_rules is not None:
        destination.row_rules = stored(body.row_rules)
    await _changed(context, row)
    await context.session.flush()
    after = {**destination_facts(destination), **accepted}
    record(context, "destinations_update", ("stream", row.id, row.name), before, after)
    return row


def _set_parameters(context: Context, row: StreamRow, destination: DestinationRow, parameters: Parameters) -> None:
    definitions = definitions_of(context)
    own, theirs = {**row.parameters, **destination.parameters}, {**row.parameters, **parameters}
    check_rights(context.principal, own, theirs)
    check_destination_parameters(definitions, parameters, "")
    if needs_restart(definitions, own, theirs) and row.observed_status != ObservedStatus.DISABLED:
        row.restart_needed = True
    destination.parameters = dict(parameters)
