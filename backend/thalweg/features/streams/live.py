"""Streams with their live numbers."""

from redis.exceptions import RedisError

from thalweg.db.models import StreamRow
from thalweg.db.streams import whole_streams
from thalweg.features.streams import repository
from thalweg.features.streams.presentation import summary_of
from thalweg.features.streams.schemas import Overview
from thalweg.features.streams.service import existing_stream
from thalweg.kernel.clock import now
from thalweg.kernel.context import Context
from thalweg.live.bus import Bus
from thalweg.live.latest import fresh_samples
from thalweg.live.schemas import Samples


async def get_overview(context: Context) -> Overview:
    rows = list(await context.session.scalars(whole_streams().order_by(StreamRow.name)))
    samples = await fresh_samples(context, [row.id for row in rows])
    states = await repository.engine_states(context.session)
    at = now()
    return Overview(
        streams=[summary_of(row, (samples or {}).get(row.id), at) for row in rows],
        engines_online=states.count("ONLINE"), engines_total=len(states), live=samples is not None,
    )  # fmt: skip


async def list_samples(context: Context, stream_id: str, seconds: int) -> Samples:
    row = await existing_stream(context, stream_id)
    try:
        samples = await Bus(context.resources.redis).recent_samples(row.id, seconds)
    except (RedisError, OSError):
        return Samples(stream_id=row.id, samples=[], live=False)
    return Samples(stream_id=row.id, samples=samples, live=True)
