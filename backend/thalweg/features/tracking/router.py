"""Transactions and markers on their way through a stream, over HTTP."""

from typing import Annotated

from fastapi import APIRouter, Path, Response

from thalweg.features.tracking import service
from thalweg.features.tracking.schemas import Marker, MarkerCreate, StreamMarkers, StreamTransactions
from thalweg.kernel.context import Operator, TransactionalRoute, Viewer
from thalweg.kernel.models import ID_PATTERN, Id

router = APIRouter(route_class=TransactionalRoute, tags=["tracking"])


@router.get("/streams/{stream_id}/transactions", operation_id="stream_transactions_list")
async def list_transactions(stream_id: Id, context: Viewer) -> StreamTransactions:
    """Transactions that are open, wait or execute, as of a second ago, read from the stream's engines."""
    return await service.list_transactions(context, stream_id)


@router.get("/streams/{stream_id}/markers", operation_id="stream_markers_list")
async def list_markers(stream_id: Id, context: Viewer) -> StreamMarkers:
    """Heartbeats and tracked markers with their way through the path, component by component."""
    return await service.list_markers(context, stream_id)


@router.post("/streams/{stream_id}/markers", status_code=202, operation_id="stream_markers_create")
async def create_marker(stream_id: Id, body: MarkerCreate, context: Operator, response: Response) -> Marker:
    """Have the source commit a marker as soon as possible. It follows everything that committed there before."""
    marker = await service.create_marker(context, stream_id, body)
    response.headers["Location"] = f"/api/v1/streams/{stream_id}/markers/{marker.id}"
    return marker


@router.get("/streams/{stream_id}/markers/{marker_id}", operation_id="stream_markers_get")
async def get_marker(stream_id: Id, marker_id: Annotated[str, Path(pattern=ID_PATTERN)], context: Viewer) -> Marker:
    """One tracked marker. Poll it until its state is ARRIVED."""
    return await service.get_marker(context, stream_id, marker_id)
