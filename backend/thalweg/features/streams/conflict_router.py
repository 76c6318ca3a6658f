"""Conflict logs over HTTP."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query
from fastapi.responses import StreamingResponse

from thalweg.features.streams import conflicts
from thalweg.features.streams.conflict_schemas import (
    ConflictCounts,
    LoggedChanges,
    OpenedConflict,
)
from thalweg.kernel.conflict_handlers import ExportFormat, LoggedKind
from thalweg.kernel.context import Operator, TransactionalRoute, Viewer
from thalweg.kernel.models import DestinationId, Id, TableIdentifier
from thalweg.kernel.pagination import LIMIT_DEFAULT, Cursor, Limit

router = APIRouter(route_class=TransactionalRoute, tags=["streams"])
ALL = "/streams/{stream_id}/destinations/{destination_id}/conflicts"
ConflictId = Annotated[int, Path(ge=1, le=2**62)]


def _filter(
    kind: Annotated[LoggedKind | None, Query(description="Only entries of this kind.")] = None,
    schema: Annotated[TableIdentifier | None, Query(description="With `table`.")] = None,
    table: Annotated[TableIdentifier | None, Query(description="Only this table's, by its exact name.")] = None,
) -> conflicts.Filter:
    return conflicts.Filter(kind, schema, table)


Which = Annotated[conflicts.Filter, Depends(_filter)]


@router.get(ALL, operation_id="stream_conflicts_list")
async def list_conflicts(
    stream_id: Id, destination_id: DestinationId, context: Viewer, which: Which, limit: Limit = LIMIT_DEFAULT,
    cursor: Cursor = None,
) -> LoggedChanges:  # fmt: skip
    """Single changes that conflict_handlers or error_policies have settled at the destination, while the rest of their
    transactions was applied: the newest first, read through the engine."""
    return await conflicts.list_conflicts(context, stream_id, destination_id, limit, cursor, which)


@router.get(f"{ALL}:count", operation_id="stream_conflicts_count")
async def count_conflicts(stream_id: Id, destination_id: DestinationId, context: Viewer) -> ConflictCounts:
    """The whole conflict log by table, kind and action."""
    return await conflicts.count(context, stream_id, destination_id)


@router.get(
    f"{ALL}:export",
    operation_id="stream_conflicts_export",
    response_class=StreamingResponse,
    responses={200: {"description": "The log.", "content": {
        "application/x-ndjson": {"schema": {"type": "string"}}, "text/csv": {"schema": {"type": "string"}},
    }}},
)  # fmt: skip
async def export_conflicts(
    stream_id: Id, destination_id: DestinationId, context: Operator, which: Which,
    format_: Annotated[ExportFormat, Query(alias="format")] = ExportFormat.NDJSON,
) -> StreamingResponse:  # fmt: skip
    """The conflict log with its rows as a file. Because it contains rows of the tables, viewers cannot read it, and the
    audit log records each export."""
    pieces = await conflicts.export(context, stream_id, destination_id, which, format_)
    media_type = "text/csv" if format_ is ExportFormat.CSV else "application/x-ndjson"
    name = f"conflicts-{stream_id}-{destination_id}.{format_}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(pieces, media_type=media_type, headers=headers)


@router.get(f"{ALL}/{{conflict_id}}", operation_id="stream_conflicts_get")
async def get_conflict(
    stream_id: Id, destination_id: DestinationId, conflict_id: ConflictId, context: Operator
) -> OpenedConflict:
    """One entry of the conflict log with the change's rows beside the destination's. Because this shows rows of the
    tables, viewers cannot read it, and the audit log records each access."""
    return await conflicts.show(context, stream_id, destination_id, conflict_id)
