"""The latest samples for pages that show numbers beside configuration; without Redis they go without."""

from datetime import timedelta

import structlog
from redis.exceptions import RedisError

from thalweg.kernel.clock import now
from thalweg.kernel.context import Context
from thalweg.live.bus import Bus
from thalweg.live.schemas import Sample

FRESH = timedelta(seconds=10)
log = structlog.get_logger(__name__)


async def fresh_samples(context: Context, stream_ids: list[str]) -> dict[str, Sample] | None:
    """By stream id, only those not older than FRESH. None when Redis cannot be reached."""
    if not stream_ids:
        stream_ids = ["none"]  # Still asks Redis, so that the answer says whether it lives.
    try:
        samples = await Bus(context.resources.redis).latest_samples(stream_ids)
    except (RedisError, OSError) as error:
        log.warning("redis cannot be reached", error=str(error))
        return None
    oldest = now() - FRESH
    return {stream_id: sample for stream_id, sample in samples.items() if sample.at >= oldest}
