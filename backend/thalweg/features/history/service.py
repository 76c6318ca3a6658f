"""Answers for charts: which range, at which resolution, of which statistics."""

import re
from datetime import UTC, datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import selectinload

from thalweg.db.models import OutageRow, StreamRow
from thalweg.db.streams import former_ids
from thalweg.features.history.schemas import (
    History,
    HistorySamples,
    HistorySeries,
    HistoryStatistics,
    HistoryTier,
    Outage,
    OutageOf,
    StatisticName,
    StreamHistory,
)
from thalweg.history import partitions
from thalweg.history.document import decode
from thalweg.history.outages import outages_between
from thalweg.history.reading import chart, samples_between
from thalweg.history.repository import newest_rows
from thalweg.history.statistics import flat, unit_of
from thalweg.history.tiers import TIERS, choose_step, choose_tier, kept
from thalweg.kernel.clock import now
from thalweg.kernel.context import Context
from thalweg.kernel.models import FieldProblem
from thalweg.kernel.problems import Problem, not_found

DEFAULT_STATISTICS = (
    "lcrs_per_second", "transactions_per_second", "bytes_per_second", "latency.p50_ms", "latency.p99_ms",
    "lag.bytes", "lag.seconds",
)  # fmt: skip
DEFAULT_SPAN = timedelta(hours=1)
SPAN_MIN, SPAN_MAX = timedelta(seconds=1), timedelta(days=3700)
STATISTIC = re.compile(
    r"(components\.[a-z0-9@:_-]+\.|components\.\*\.|destinations\.(\*|[a-z0-9]+)\.)?[a-z0-9_]+(\.[a-z0-9_]+){0,2}"
)


async def _existing(session: AsyncSession, stream_id: str) -> None:
    if await session.get(StreamRow, stream_id) is None:
        raise not_found("stream", stream_id)


def _invalid(pointer: str, message: str, cure: str) -> Problem:
    return Problem(
        "invalid_request", message, cure,
        errors=[FieldProblem(pointer=pointer, code="invalid_value", message=message, cure=cure)],
    )  # fmt: skip


def range_of(since: datetime | None, until: datetime | None, at: datetime) -> tuple[datetime, datetime]:
    """Raises invalid_request. The future has no history: it ends now at the latest."""
    if until is not None and until.year < 2000:
        raise _invalid("/until", "until lies before all history.", "Send a time of the last days.")
    end = at if until is None else min(until.astimezone(UTC), at)
    begin = end - DEFAULT_SPAN if since is None else since
    if begin.year < 2000 or end - begin > SPAN_MAX:
        raise _invalid("/since", "The range is longer than any history.", "Send a later `since`.")
    if end - begin < SPAN_MIN:
        raise _invalid("/since", "The range is empty: since must be a second before until, and in the past.",
                       "Send an earlier `since`.")  # fmt: skip
    return begin.astimezone(UTC), end


async def get_chart(
    context: Context, stream_id: str, statistics: list[str] | None, since: datetime | None, until: datetime | None,
    points: int,
) -> StreamHistory:  # fmt: skip
    stream = await context.session.get(StreamRow, stream_id, options=[selectinload(StreamRow.destinations)])
    if stream is None:
        raise not_found("stream", stream_id)
    engine_ids = stream.engine_ids
    at = now()
    begin, end = range_of(since, until, at)
    names = list(dict.fromkeys(statistics or DEFAULT_STATISTICS))
    for name in names:
        if not STATISTIC.fullmatch(name):
            raise _invalid("/statistic", f"{name[:100]} is not the name of a statistic.",
                           f"GET /api/v1/streams/{stream_id}/history/statistics lists them.")  # fmt: skip
    made = await chart(context.session, context.resources.settings, stream_id, names, begin, end, at, points)
    outages = await outages_between(context.session, stream_id, engine_ids, made.since, made.until)
    first = int(made.since.timestamp())
    return StreamHistory(
        stream_id=stream_id, since=made.since, until=made.until, resolution=made.tier.resolution,
        step_seconds=made.step, times=[first + made.step * point for point in range(made.points)],
        series=[
            HistorySeries(
                statistic=series.name, unit=unit_of(series.name), values=_shown(series.values),
                highs=_shown(series.highs),
            )
            for series in made.series
        ],
        outages=[_outage(row) for row in outages],
    )  # fmt: skip


def _outage(row: OutageRow) -> Outage:
    of: OutageOf = "stream"
    if row.engine_id is not None:
        of = "engine"
    elif row.destination_id is not None:
        of = "destination"
    return Outage(
        of=of, id=row.engine_id or row.destination_id or row.stream_id or "", name=row.name, state=row.state,
        reason=row.reason, became=row.became, became_at=row.became_at, since=row.began_at, until=row.ended_at,
    )  # fmt: skip


def _shown(values: list[float | None]) -> list[float | None]:
    return [None if value is None else float(f"{value:.6g}") for value in values]


async def list_samples(
    context: Context, stream_id: str, since: datetime | None, until: datetime | None, limit: int
) -> HistorySamples:
    await _existing(context.session, stream_id)
    at, settings = now(), context.resources.settings
    begin, end = range_of(since, until, at)
    tier = choose_tier(begin, end, choose_step(end - begin, limit), at, settings)
    samples = await samples_between(context.session, settings, stream_id, begin, end, at, limit)
    return HistorySamples(stream_id=stream_id, resolution=tier.resolution, samples=samples)


async def list_statistics(context: Context, stream_id: str) -> HistoryStatistics:
    await _existing(context.session, stream_id)
    rows = await newest_rows(context.session, stream_id)
    if not rows:
        return HistoryStatistics(stream_id=stream_id, sampled_at=None, statistics=[])
    ids = (await former_ids(context.session, StreamRow.id == stream_id)).get(stream_id, {})
    names = {name for row in rows for name, _ in flat(decode(row.document, ids))} - {"interval_seconds"}
    statistics = []
    for name in sorted(names):
        parts = name.split(".")
        component = parts[1] if parts[0] == "components" else None
        statistics.append(StatisticName(name=name, component=component, unit=unit_of(name)))
    return HistoryStatistics(stream_id=stream_id, sampled_at=rows[-1].at, statistics=statistics)


async def get_history(context: Context) -> History:
    tiers = []
    for tier in TIERS:
        there = await partitions.present(context.session, tier)
        tiers.append(
            HistoryTier(
                resolution=tier.resolution, kept_seconds=int(kept(tier, context.resources.settings).total_seconds()),
                partition_seconds=int(tier.partition.total_seconds()),
                oldest=partitions.begin_of(tier, there[0]) if there else None,
                bytes=await partitions.size_bytes(context.session, tier),
            )
        )  # fmt: skip
    return History(tiers=tiers)
