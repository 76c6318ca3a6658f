"""Start, stop, retry and delete: each checks the lifecycle, writes what is desired and starts an operation."""

from datetime import datetime

from fastapi import Response

from thalweg.db.audit import record
from thalweg.db.models import EngineRow, OperationRow, StreamRow
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
from thalweg.features.streams.service import desired_facts, existing_stream
from thalweg.kernel.clock import now
from thalweg.kernel.context import Context
from thalweg.kernel.lifecycle import (
    DesiredStatus,
    ObservedStatus,
    OperationState,
    Refused,
    StreamAction,
    next_stream_status,
)
from thalweg.kernel.problems import Problem

KINDS = {
    StreamAction.START: OperationKind.STREAM_START,
    StreamAction.STOP: OperationKind.STREAM_STOP,
    StreamAction.RETRY: OperationKind.STREAM_RETRY,
    StreamAction.DELETE: OperationKind.STREAM_DELETE,
}
OUTLAST_STOPS = (OperationKind.STREAM_CREATE, OperationKind.TABLE_COPY)
"""The destination keeps the request of a table's copy: a stream that is started again carries it out."""
SUPERSEDED = {
    "code": "superseded", "title": "A later request replaced it",
    "message": "A later request for the same stream took its place.", "cure": None,
}  # fmt: skip


async def act(
    context: Context, stream_id: str, action: StreamAction, response: Response, force: bool = False
) -> OperationAccepted:
    retried_at = await _tell_engines(context, stream_id, action)
    row = await existing_stream(context, stream_id, lock=True)
    target = _target(row, action)
    before = desired_facts(row)
    running = await _same_at_work(context, row, action, target, force)
    if running is not None and retried_at is None:
        return _accepted(running, row, response)
    if retried_at is not None and action is not StreamAction.DELETE:
        operation = _retried(context, row, retried_at)
    else:
        operation = await _desire(context, row, action, target, force)
    await context.session.flush()
    record(context, f"streams_{action}", ("stream", row.id, row.name), before, desired_facts(row))
    return _accepted(operation, row, response)


def _accepted(operation: OperationRow, row: StreamRow, response: Response) -> OperationAccepted:
    response.headers["Location"] = f"/api/v1/operations/{operation.id}"
    return OperationAccepted(operation_id=operation.id, stream_id=row.id, state=OperationState(operation.state))


async def _same_at_work(
    context: Context, row: StreamRow, action: StreamAction, target: DesiredStatus, force: bool
) -> OperationRow | None:
    """A repeated request returns the running work instead of new work that would supersede it."""
    if row.desired_status != target or (force and not row.force) or action is StreamAction.RETRY:
        return None
    unfinished = await unfinished_operations(context.session, [row.id])
    return next((operation for operation in unfinished if operation.kind == KINDS[action]), None)


def _target(row: StreamRow, action: StreamAction) -> DesiredStatus:
    try:
        return next_stream_status(row.desired_status, action)
    except Refused as refused:
        raise Problem("invalid_transition", refused.reason, refused.cure) from refused


async def _desire(
    context: Context, row: StreamRow, action: StreamAction, target: DesiredStatus, force: bool
) -> OperationRow:
    unchanged = row.desired_status == target and (row.force or not force)
    if unchanged and action is not StreamAction.DELETE:
        operation = start_operation(
            context.session, KINDS[action], row.id, row.name, row.changed_revision, context.principal.name
        )
        finish(operation, OperationState.SUCCEEDED)
        return operation
    await _supersede(context, row, action)
    if action is StreamAction.START:
        row.restart_needed = False
    row.desired_status = target
    row.force = row.force or force
    await repository.next_revisions(context.session, row)
    row.version += 1
    row.updated_at = now()
    return start_operation(
        context.session, KINDS[action], row.id, row.name, row.changed_revision, context.principal.name
    )


async def _supersede(context: Context, row: StreamRow, action: StreamAction) -> None:
    """An unfinished start is pointless after a stop, and everything is after a delete. Copies go on."""
    for operation in await unfinished_operations(context.session, [row.id]):
        if action is StreamAction.DELETE or operation.kind not in OUTLAST_STOPS:
            finish(operation, OperationState.FAILED, SUPERSEDED)


async def _tell_engines(context: Context, stream_id: str, action: StreamAction) -> datetime | None:
    """The time of the retry request; None if there is nothing to retry: a start, or a removal, that has failed. The
    request goes straight to the engine, because it is an event and not a state that could be desired, and before
    anything is locked."""
    row = await existing_stream(context, stream_id)
    repeats = row.observed_status == ObservedStatus.ABORTED and (action, row.desired_status) in (
        (StreamAction.START, DesiredStatus.ENABLED),
        (StreamAction.DELETE, DesiredStatus.DROPPED),
    )
    if action is not StreamAction.RETRY and not repeats:
        return None
    if await _same_at_work(context, row, action, _target(row, action), force=False) is not None:
        return None
    resources = context.resources
    await context.release()
    retried_at = now()
    for engine, destination_id in failed_parts(row):
        client = client_of(engine, resources.http, resources.secrets, resources.settings.engine_timeout)
        try:
            await client.retry(row.id, destination_id)
        except EngineFailure as failure:
            if action is not StreamAction.DELETE:  # What is desired reaches an engine that is away later.
                raise problem_of(failure) from failure
    return retried_at


def _retried(context: Context, row: StreamRow, retried_at: datetime) -> OperationRow:
    operation = start_operation(
        context.session, OperationKind.STREAM_RETRY, row.id, row.name, row.changed_revision, context.principal.name
    )
    begin(operation, retried_at)
    return operation


def failed_parts(row: StreamRow) -> list[tuple[EngineRow, str | None]]:
    """The failed parts of a stream, by engine; only those can be retried. None: the capture, or a receiver."""
    reports = row.reports or {row.capture_engine_id: {"observed": row.observed or {}}}
    engines = [row.capture_engine, *(receiver.engine for receiver in row.receivers)]
    found: list[tuple[EngineRow, str | None]] = []
    for engine in engines:
        observed = reports.get(engine.id, {}).get("observed", {})
        failed = [
            destination["id"]
            for destination in observed.get("destinations", [])
            if destination["status"] == ObservedStatus.ABORTED
        ]
        found += [(engine, name) for name in failed]
        # Destinations with a backlog say the status of a capture that has failed, too; without one both are one thing.
        if observed.get("status") == ObservedStatus.ABORTED and (
            not failed or any(destination.backlog for destination in row.destinations)
        ):
            found.append((engine, None))
    return found or [(row.capture_engine, None)]
