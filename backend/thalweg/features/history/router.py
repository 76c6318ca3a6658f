"""Charts of the past over HTTP."""

import re
from collections.abc import AsyncGenerator
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import AwareDatetime, BeforeValidator, StringConstraints

from thalweg.features.history import events, service
from thalweg.features.history.schemas import History, HistorySamples, HistoryStatistics, StreamEvent, StreamHistory
from thalweg.kernel.context import Context, TransactionalRoute, Viewer
from thalweg.kernel.models import Id, Page
from thalweg.kernel.pagination import LIMIT_DEFAULT, Cursor, Limit

router = APIRouter(route_class=TransactionalRoute, tags=["history"])


async def _in_turn(context: Viewer) -> AsyncGenerator[Context, None]:
    """Without a connection while it waits, so that one user's charts do not keep the others from the store."""
    await context.release()
    async with context.resources.history_turns.of(context.principal.user_id):
        yield context


Reader = Annotated[Context, Depends(_in_turn, scope="function")]
RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.IGNORECASE)


def _strict(value: object) -> object:
    """Numbers and dates alone are no times: the document promises RFC 3339."""
    if value is not None and not (isinstance(value, str) and RFC3339.fullmatch(value)):
        raise ValueError("must be a time of RFC 3339 with its offset, such as 2026-11-21T14:03:00Z")
    return value


Moment = Annotated[AwareDatetime, BeforeValidator(_strict)]
Since = Annotated[Moment | None, Query(description="Start of the range. If omitted: an hour before its end.")]
Until = Annotated[Moment | None, Query(description="End of the range, exclusive. If omitted: now.")]
Statistics = Annotated[
    list[Annotated[str, StringConstraints(min_length=1, max_length=120)]] | None,
    Query(
        max_length=40,
        description="Names of statistics; `components.*.time_percent.busy` stands for one of every component, "
        "`destinations.*.latency.p99_ms` for one of every destination. The stream's rates, latency and lag when "
        "left out. At most 100 series are answered.",
    ),
]


@router.get("/history", operation_id="history_get")
async def get_history(context: Reader) -> History:
    """The span of history at each resolution, and its size."""
    return await service.get_history(context)


@router.get("/streams/{stream_id}/history", operation_id="stream_history_get")
async def get_chart(
    stream_id: Id,
    context: Reader,
    statistic: Statistics = None,
    since: Since = None,
    until: Until = None,
    points: Annotated[int, Query(ge=1, le=600, description="The maximum number of points.")] = 600,
) -> StreamHistory:
    """Statistics over a range of any length, at the resolution that fits. A statistic that a range does not have is
    null throughout."""
    return await service.get_chart(context, stream_id, statistic, since, until, points)


@router.get("/streams/{stream_id}/history/statistics", operation_id="stream_history_statistics")
async def list_statistics(stream_id: Id, context: Reader) -> HistoryStatistics:
    """Names and units of what can be charted, as of the newest sample."""
    return await service.list_statistics(context, stream_id)


@router.get("/streams/{stream_id}/history/events", operation_id="stream_history_events")
async def list_events(
    stream_id: Id,
    context: Reader,
    since: Since = None,
    until: Until = None,
    limit: Limit = LIMIT_DEFAULT,
    cursor: Cursor = None,
) -> Page[StreamEvent]:
    """Events of a range, newest first: restarts of the stream and its engines, changes, alerts. The audit log, for
    admins, also tells from where a change came, and what was before and after it."""
    return await events.list_events(context, stream_id, since, until, limit, cursor)


@router.get("/streams/{stream_id}/history/samples", operation_id="stream_history_samples")
async def list_samples(
    stream_id: Id,
    context: Reader,
    since: Since = None,
    until: Until = None,
    limit: Annotated[
        int, Query(ge=1, le=600, description="The maximum number of samples, the newest of the range.")
    ] = 600,
) -> HistorySamples:
    """Whole samples of a range, with their components."""
    return await service.list_samples(context, stream_id, since, until, limit)
