"""Live events over HTTP: one server-sent event stream for each browser tab."""

from typing import Annotated

from fastapi import APIRouter, Header, Request
from sse_starlette import EventSourceResponse

from thalweg.features.events import service
from thalweg.kernel.context import TransactionalRoute, Viewer

router = APIRouter(route_class=TransactionalRoute, tags=["events"])


@router.get(
    "/events",
    operation_id="events_subscribe",
    response_class=EventSourceResponse,
    responses={
        200: {
            "description": "Events `hello`, `stream.sample` (Sample), `stream.status` (StreamStatusEvent), `operation` "
            "(OperationEvent), `engine` (EngineEvent), `stream.deleted` (StreamDeletedEvent), `alert` (AlertEvent), "
            "and `reset` when events may have been missed; data is JSON.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        }
    },
)
async def subscribe(
    context: Viewer,
    request: Request,
    last_event_id: Annotated[
        str | None,
        Header(alias="Last-Event-ID", max_length=100, description="Resume after this event, as browsers do."),
    ] = None,
) -> EventSourceResponse:
    """Subscribe to events. Reconnecting with Last-Event-ID delivers the events in between, or `reset` if they are too
    many. One user may have 40 of these connections.

    The connection ends within seconds of the logout, or of the token's revocation; reconnecting is then answered with
    401.
    """
    return await service.subscribe(context, request.app.state.hub, last_event_id)
