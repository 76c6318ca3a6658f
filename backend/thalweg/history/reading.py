"""Reads the past of one stream: as a chart's points, or as whole samples for an analysis."""

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.models import StreamRow
from thalweg.db.streams import former_ids
from thalweg.history.document import Json, Stored
from thalweg.history.repository import read_joined
from thalweg.history.series import Series, resample, spans_of
from thalweg.history.tiers import Tier, choose_step, choose_tier, floor
from thalweg.kernel.context import release
from thalweg.kernel.outside import outside
from thalweg.kernel.settings import Settings
from thalweg.live.schemas import Sample

SAMPLES_MAX = 4000
"""Whole samples that one question gets."""
COUNTED = frozenset({"bytes", "lcrs", "frames", "limit_bytes"})
"""Whole numbers of a lag and of a backlog in a live sample; in a roll-up they are means."""


@dataclass(frozen=True)
class Chart:
    """Points at `since`, `since` + `step` seconds, ...: what each of the series was on average until the next one."""

    tier: Tier
    since: datetime
    until: datetime
    step: int
    points: int
    series: list[Series]


async def chart(
    session: AsyncSession, settings: Settings, stream_id: str, statistics: list[str], since: datetime, until: datetime,
    now: datetime, points_max: int,
) -> Chart:  # fmt: skip
    """`since` and `until` become multiples of the step, so that a chart that is drawn again has the same points."""
    # One point may be lost to either end.
    step = choose_step(until - since, max(1, points_max - 1))
    tier = choose_tier(since, until, step, now, settings)
    step = max(step, tier.seconds)
    since = floor(since, timedelta(seconds=step))
    points = max(1, -int((since - until) // timedelta(seconds=step)))
    until = since + timedelta(seconds=step * points)
    rows = await read_joined(session, tier, stream_id, since, until)
    ids = await _former_ids(session, stream_id)
    await release(session)
    outside("a thread")
    series = await asyncio.to_thread(_resampled, rows, ids, statistics, since, step, points)
    return Chart(tier, since, until, step, points, series)


def _resampled(
    rows: list[Stored], ids: dict[str, str], statistics: list[str], since: datetime, step: int, points: int
) -> list[Series]:
    return resample(spans_of(rows, ids), statistics, since, step, points)


async def _former_ids(session: AsyncSession, stream_id: str) -> dict[str, str]:
    return (await former_ids(session, StreamRow.id == stream_id)).get(stream_id, {})


async def samples_between(
    session: AsyncSession, settings: Settings, stream_id: str, since: datetime, until: datetime, now: datetime,
    samples_max: int = SAMPLES_MAX,
) -> list[Sample]:  # fmt: skip
    """Whole samples as they were live, oldest first, at the finest resolution that still is kept and has no more than
    so many. A roll-up's sample holds the mean of its minute or hour; `interval_seconds` tells of how long."""
    step = choose_step(until - since, samples_max)
    rows = await read_joined(session, choose_tier(since, until, step, now, settings), stream_id, since, until)
    ids = await _former_ids(session, stream_id)
    await release(session)
    outside("a thread")
    return await asyncio.to_thread(_samples, stream_id, rows, ids, samples_max)


def _samples(stream_id: str, rows: list[Stored], ids: dict[str, str], samples_max: int) -> list[Sample]:
    spans = spans_of(rows, ids)[-samples_max:]
    return [sample_from(span.document, stream_id) for span in spans]


def sample_from(document: Json, stream_id: str) -> Sample:
    destinations = [_in_whole_numbers(destination) for destination in document.get("destinations", [])]
    return Sample.model_validate({**_in_whole_numbers(document), "destinations": destinations, "stream_id": stream_id})


def _in_whole_numbers(owner: Json) -> Json:
    """A stream's document, or a destination's: a mean of bytes or LCRs is rounded, as a live sample has them."""
    counts = {
        member: {
            name: round(value) if name in COUNTED and value is not None else value for name, value in known.items()
        }
        for member in ("lag", "backlog")
        if (known := owner.get(member))
    }
    return {**owner, **counts}
