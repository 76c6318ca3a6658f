"""The latest samples for pages that show numbers beside configuration; without Redis they go without."""

from dataclasses import dataclass
from datetime import timedelta

import structlog
from redis.exceptions import RedisError

from thalweg.db.models import StreamRow
from thalweg.inspection.slots import SlotState
from thalweg.kernel.clock import now
from thalweg.kernel.context import Context
from thalweg.live.bus import Bus
from thalweg.live.schemas import DestinationSample, Sample
from thalweg.live.sources import SourceReading, source_readings

FRESH = timedelta(seconds=10)
log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Live:
    """The present knowledge of a stream: from its engines, and from its source."""

    stream_id: str
    sample: Sample | None
    source: SourceReading | None

    @property
    def slot(self) -> SlotState | None:
        return self.source.slot(self.stream_id) if self.source is not None else None

    def of(self, destination_id: str) -> DestinationSample | None:
        samples = self.sample.destinations if self.sample is not None else []
        return next((sample for sample in samples if sample.destination_id == destination_id), None)


async def fresh_samples(context: Context, stream_ids: list[str]) -> dict[str, Sample] | None:
    """By stream id, only those not older than FRESH. None when Redis cannot be reached.
    Ends the request's transaction: ask for what the store has, or write it, before."""
    await context.release()
    if not stream_ids:
        stream_ids = ["none"]  # Still asks Redis, so that the answer says whether it lives.
    try:
        samples = await Bus(context.resources.redis).latest_samples(stream_ids)
    except (RedisError, OSError) as error:
        log.warning("redis cannot be reached", error=str(error))
        return None
    oldest = now() - FRESH
    return {stream_id: sample for stream_id, sample in samples.items() if sample.at >= oldest}


async def live_of(context: Context, rows: list[StreamRow]) -> tuple[dict[str, Live], bool]:
    """By stream id; false when Redis cannot be reached: then there are no samples. Ends the
    request's transaction, as fresh_samples does."""
    sources = await source_readings(context.session, sorted({row.source_id for row in rows}))
    samples = await fresh_samples(context, [row.id for row in rows])
    known = samples or {}
    return {row.id: Live(row.id, known.get(row.id), sources.get(row.source_id)) for row in rows}, samples is not None
