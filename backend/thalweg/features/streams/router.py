"""Streams over HTTP. Creating one (POST) and changing one (PATCH) span several features: `thalweg.workflows.router`
has these routes, `stream_creation` and `stream_change` beside it do the work."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from thalweg.db.operations import OperationAccepted
from thalweg.engine_client.client import CHANGES_MAX
from thalweg.features.streams import (
    actions,
    destination_actions,
    discarding,
    error_edits,
    error_queue,
    live,
    service,
    table_troubles,
)
from thalweg.features.streams.error_queue_schemas import (
    ChangeEdit,
    DryRun,
    Execution,
    ExecutionAccepted,
    ParkedContents,
    ParkedTransactions,
    ParkedTree,
    Reason,
)
from thalweg.features.streams.schemas import (
    Accepted,
    Overview,
    OverviewRates,
    Stream,
    StreamParameterList,
    StreamSummary,
    TableRef,
    TroubleResolution,
)
from thalweg.features.streams.table_schemas import TableCopy
from thalweg.kernel.context import Operator, TransactionalRoute, Viewer
from thalweg.kernel.etags import IfMatch
from thalweg.kernel.lifecycle import DestinationAction, StreamAction
from thalweg.kernel.models import DestinationId, Id, Page
from thalweg.kernel.pagination import LIMIT_DEFAULT, Cursor, Limit
from thalweg.live.schemas import Samples

router = APIRouter(route_class=TransactionalRoute, tags=["streams"])


@router.get("/stream-parameters", operation_id="stream_parameters_list")
async def list_parameters(context: Viewer) -> StreamParameterList:
    """The parameters of a stream: types, ranges, defaults, descriptions."""
    return service.list_parameters(context)


@router.get("/overview", operation_id="overview_get")
async def get_overview(context: Viewer) -> Overview:
    """Each stream in one line, with its health in words."""
    return await live.get_overview(context)


@router.get("/overview/rates", operation_id="overview_rates")
async def get_rates(context: Viewer) -> OverviewRates:
    """The rate of each stream over its last two minutes, for small charts."""
    return await live.get_rates(context)


@router.get("/streams", operation_id="streams_list")
async def list_streams(context: Viewer, limit: Limit = LIMIT_DEFAULT, cursor: Cursor = None) -> Page[StreamSummary]:
    return await service.list_streams(context, limit, cursor)


@router.get("/streams/{stream_id}", operation_id="streams_get")
async def get_stream(stream_id: Id, context: Viewer, response: Response) -> Stream:
    stream = await service.get_stream(context, stream_id)
    response.headers["ETag"] = stream.etag
    return stream


@router.delete("/streams/{stream_id}", status_code=202, operation_id="streams_delete")
async def delete_stream(
    stream_id: Id,
    context: Operator,
    response: Response,
    force: Annotated[
        bool,
        Query(
            description="Give up on what cannot be reached: a database, or an engine that is lost for good. When the "
            "engine has not answered for 30 s, the control plane itself removes what the stream created "
            "in both databases. The operation says what is left behind, with the SQL that removes it."
        ),
    ] = False,
) -> OperationAccepted:
    """Stop the stream and drop what it created in both databases. The destination's tables and rows stay."""
    return await actions.act(context, stream_id, StreamAction.DELETE, response, force)


@router.post("/streams/{stream_id}:start", status_code=202, operation_id="streams_start")
async def start_stream(stream_id: Id, context: Operator, response: Response) -> OperationAccepted:
    return await actions.act(context, stream_id, StreamAction.START, response)


@router.post("/streams/{stream_id}:stop", status_code=202, operation_id="streams_stop")
async def stop_stream(stream_id: Id, context: Operator, response: Response) -> OperationAccepted:
    """Drain the queue and stop. From then on, the source keeps its WAL until the stream starts again."""
    return await actions.act(context, stream_id, StreamAction.STOP, response)


@router.post("/streams/{stream_id}:retry", status_code=202, operation_id="streams_retry")
async def retry_stream(stream_id: Id, context: Operator, response: Response) -> OperationAccepted:
    """Clear the error of an aborted stream and start it again."""
    return await actions.act(context, stream_id, StreamAction.RETRY, response)


@router.get("/streams/{stream_id}/samples", operation_id="streams_samples", response_model=Samples)
async def list_samples(stream_id: Id, context: Viewer, seconds: Annotated[int, Query(ge=1, le=3600)] = 300) -> Response:
    """Live samples of the last seconds, oldest first."""
    return Response(await live.samples_document(context, stream_id, seconds), media_type="application/json")


Force = Annotated[
    bool,
    Query(
        description="Give up on a destination, or on the engine that applies there, if it cannot be reached. The "
        "operation says what is left behind, with the SQL that removes it."
    ),
]
DESTINATION = "/streams/{stream_id}/destinations/{destination_id}"


@router.delete(DESTINATION, status_code=202, operation_id="destinations_drop")
async def drop_destination(
    stream_id: Id, destination_id: DestinationId, context: Operator, response: Response, force: Force = False
) -> OperationAccepted:
    """Drop one of several destinations. Its backlog and the stream's progress there are discarded for good; its tables
    and rows stay, and the other destinations continue."""
    return await destination_actions.act(context, stream_id, destination_id, DestinationAction.DROP, response, force)


@router.post(f"{DESTINATION}:start", status_code=202, operation_id="destinations_start")
async def start_destination(
    stream_id: Id, destination_id: DestinationId, context: Operator, response: Response
) -> OperationAccepted:
    return await destination_actions.act(context, stream_id, destination_id, DestinationAction.START, response)


@router.post(f"{DESTINATION}:stop", status_code=202, operation_id="destinations_stop")
async def stop_destination(
    stream_id: Id, destination_id: DestinationId, context: Operator, response: Response
) -> OperationAccepted:
    """Pause one of several destinations. Its backlog grows on the engine's disk until it starts again."""
    return await destination_actions.act(context, stream_id, destination_id, DestinationAction.STOP, response)


@router.post(f"{DESTINATION}:retry", status_code=202, operation_id="destinations_retry")
async def retry_destination(
    stream_id: Id, destination_id: DestinationId, context: Operator, response: Response
) -> OperationAccepted:
    """Clear the error of one of several destinations and retry immediately."""
    return await destination_actions.act(context, stream_id, destination_id, DestinationAction.RETRY, response)


RootsOnly = Annotated[bool, Query(description="Leave out the transactions that wait behind another parked one.")]


OfCause = Annotated[
    str | None,
    Query(pattern=r"^[0-9a-f]{1,16}$", description="Only the transactions with this cause: one of the list's."),
]


@router.get(f"{DESTINATION}/errors", operation_id="stream_errors_list")
async def list_errors(
    stream_id: Id, destination_id: DestinationId, context: Viewer, limit: Limit = LIMIT_DEFAULT,
    cursor: Cursor = None, roots_only: RootsOnly = False, cause: OfCause = None,
) -> ParkedTransactions:  # fmt: skip
    """Transactions in the destination's error queue, in the order in which they were parked, and the whole queue by
    cause, read through the engine."""
    return await error_queue.list_errors(context, stream_id, destination_id, limit, cursor, roots_only, cause)


ErrorId = Annotated[int, Path(ge=1, le=2**62)]
DiscardReason = Annotated[
    Reason,
    Query(
        description="Why the two databases may differ from now on. The audit log keeps the reason with what was "
        "discarded.",
    ),
]


AfterChange = Annotated[int, Query(ge=0, lt=2**62, description="Show the changes with higher numbers than this.")]
ChangesLimit = Annotated[int, Query(ge=1, le=CHANGES_MAX, description="How many changes are shown.")]


@router.get(f"{DESTINATION}/errors/{{error_id}}", operation_id="stream_errors_get")
async def get_error(
    stream_id: Id, destination_id: DestinationId, error_id: ErrorId, context: Operator, after: AfterChange = 0,
    limit: ChangesLimit = CHANGES_MAX,
) -> ParkedContents:  # fmt: skip
    """The changes of a parked transaction, row by row, beside the destination's current rows. Because this shows rows
    of the tables, viewers cannot read it, and the audit log records each access."""
    return await error_queue.show(context, stream_id, destination_id, error_id, after, limit)


@router.get(f"{DESTINATION}/errors/{{error_id}}/dependants", operation_id="stream_errors_dependants")
async def list_dependants(
    stream_id: Id, destination_id: DestinationId, error_id: ErrorId, context: Viewer,
    limit: Limit = LIMIT_DEFAULT, cursor: Cursor = None,
) -> ParkedTree:  # fmt: skip
    """The transactions that wait behind a parked one, as a tree: because they touch the same rows or tables, each
    follows from the one before it. Computed from the queue as it is now."""
    return await error_queue.tree(context, stream_id, destination_id, error_id, limit, cursor)


def _role(body: Execution | None) -> str | None:
    return None if body is None else body.role


@router.post(f"{DESTINATION}/errors:execute", status_code=202, operation_id="stream_errors_execute_all")
async def execute_errors(
    stream_id: Id,
    destination_id: DestinationId,
    context: Operator,
    cause: OfCause = None,
    body: Execution | None = None,
) -> ExecutionAccepted:
    """Apply all parked transactions again, or those with one cause and those that wait behind them, in the source's
    order. One that fails stays parked, with those that wait behind it, and does not hold back others. If this takes
    longer than a few seconds, it continues after the answer, and the list of the queue shows its progress."""
    role = _role(body)
    if cause is not None:
        return await error_queue.execute_cause(context, stream_id, destination_id, cause, role)
    return await error_queue.execute_all(context, stream_id, destination_id, role)


@router.post(f"{DESTINATION}/errors/{{error_id}}/execute", status_code=202, operation_id="stream_errors_execute")
async def execute_error(
    stream_id: Id,
    destination_id: DestinationId,
    error_id: ErrorId,
    context: Operator,
    body: Execution | None = None,
) -> ExecutionAccepted:
    """Apply a parked transaction again, followed by its dependants in order. If this takes longer than a few seconds,
    it continues after the answer, and the list of the queue shows its progress."""
    return await error_queue.execute(context, stream_id, destination_id, error_id, _role(body))


@router.post(f"{DESTINATION}/errors/{{error_id}}/dry-run", operation_id="stream_errors_dry_run")
async def dry_run_error(
    stream_id: Id,
    destination_id: DestinationId,
    error_id: ErrorId,
    context: Operator,
    body: Execution | None = None,
) -> DryRun:
    """Apply a parked transaction and roll it back: whether it would succeed, or what the destination refuses. Deferred
    constraints are checked. Neither the tables nor the queue change; values drawn from sequences by triggers stay
    drawn. Refused while the queue is executed, and for a transaction that waits behind another one."""
    return await error_queue.dry_run(context, stream_id, destination_id, error_id, _role(body))


ChangeNumber = Annotated[int, Path(ge=1, lt=2**62, description="The change's number in the transaction.")]
PARKED_CHANGE = f"{DESTINATION}/errors/{{error_id}}/changes/{{number}}"


@router.put(PARKED_CHANGE, status_code=204, operation_id="stream_errors_edit")
async def edit_error(
    stream_id: Id, destination_id: DestinationId, error_id: ErrorId, number: ChangeNumber, body: ChangeEdit,
    context: Operator, if_match: IfMatch = None,
) -> None:  # fmt: skip
    """Leave one change of a parked transaction out, or give it other new values, in the place of what was decided about
    it before. Dry runs and executions apply the transaction so. The change stays recorded as it came, beside the edit.
    If-Match is the transaction's `etag`. Refused while the queue is executed."""
    await error_edits.edit(context, stream_id, destination_id, error_id, number, body, if_match)


@router.delete(PARKED_CHANGE, status_code=204, operation_id="stream_errors_restore")
async def restore_error(
    stream_id: Id, destination_id: DestinationId, error_id: ErrorId, number: ChangeNumber, context: Operator,
    if_match: IfMatch = None,
) -> None:  # fmt: skip
    """Take back what was decided about a change of a parked transaction: it is applied as it came. If-Match is the
    transaction's `etag`. Refused while the queue is executed."""
    await error_edits.restore(context, stream_id, destination_id, error_id, number, if_match)


@router.delete(f"{DESTINATION}/errors/{{error_id}}", status_code=204, operation_id="stream_errors_delete")
async def delete_error(
    stream_id: Id, destination_id: DestinationId, error_id: ErrorId, context: Operator, reason: DiscardReason,
    partly: Annotated[
        bool, Query(description="Discard it also if the audit log cannot keep all of its changes.")
    ] = False,
) -> None:  # fmt: skip
    """Discard a parked transaction: its changes are never applied. The audit log keeps them
    (`audit_changes`). If it cannot keep all of them (more than 10,000 changes or 64 MiB, more than can be read in 50 s,
    a change whose values have more than 32 MiB or whose row at the destination cannot be read, or values beyond 1 KiB
    from an engine of an earlier version), the request is refused with `not_kept_whole`, unless `partly` is set. An
    engine that is busy, or does not answer, refuses it also then (`engine_busy`, `engine_slow`): try again. Without an
    answer to the request itself, the entry of the audit log has no `refused` and `finished: false`, unless the
    transaction has gone from the queue."""
    await discarding.discard(context, stream_id, destination_id, error_id, reason, partly)


@router.post(f"{DESTINATION}/tables:copy", status_code=202, operation_id="stream_tables_copy")
async def copy_table(
    stream_id: Id, destination_id: DestinationId, body: TableCopy, context: Operator, response: Response
) -> OperationAccepted:
    """Delete a table's rows at the destination and copy the source's again; changes continue from the copy's position.
    The stream, or this one of several destinations, waits in the meantime. Transactions in the error queue that changed
    only copied tables are discarded; the audit log records how many, and the `reason`. Refused while the error queue is
    executed."""
    return await table_troubles.copy(context, stream_id, destination_id, body, response)


@router.post(f"{DESTINATION}/tables:accept", status_code=202, operation_id="stream_tables_accept")
async def accept_table(stream_id: Id, destination_id: DestinationId, body: TableRef, context: Operator) -> Accepted:
    """Accept a table's changed partitions as they are: the destination's rows have been repaired, or are correct."""
    await table_troubles.resolve(context, stream_id, destination_id, body, TroubleResolution.ACCEPT)
    return Accepted(accepted=True)


@router.post("/streams/{stream_id}/tables:follow", operation_id="stream_tables_follow")
async def follow_table(stream_id: Id, body: TableRef, context: Operator, response: Response) -> Stream:
    """Follow a table's rename at the source, in the stream's rules and in the destinations' tables."""
    stream = await table_troubles.follow(context, stream_id, body)
    response.headers["ETag"] = stream.etag
    return stream


@router.post("/streams/{stream_id}/tables:remove", operation_id="stream_tables_remove")
async def remove_table(stream_id: Id, body: TableRef, context: Operator, response: Response) -> Stream:
    """Remove from the stream a table that was dropped at the source. The destinations' tables stay."""
    stream = await table_troubles.remove(context, stream_id, body)
    response.headers["ETag"] = stream.etag
    return stream
