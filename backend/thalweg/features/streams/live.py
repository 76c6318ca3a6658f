"""Streams with their live numbers."""

from datetime import datetime

from redis.exceptions import RedisError

from thalweg.db.models import StreamRow
from thalweg.db.streams import whole_streams
from thalweg.features.streams import repository
from thalweg.features.streams.presentation import summary_of
from thalweg.features.streams.schemas import Overview, OverviewRates, StreamRates
from thalweg.features.streams.service import existing_stream
from thalweg.kernel.clock import now
from thalweg.kernel.context import Context
from thalweg.kernel.lifecycle import EngineState
from thalweg.live.bus import Bus
from thalweg.live.health import is_fresh
from thalweg.live.latest import live_of

_SAMPLES = b'{"stream_id":"%s","samples":[%s],"live":%s}'


async def get_overview(context: Context) -> Overview:
    rows = list(await context.session.scalars(whole_streams().order_by(StreamRow.name)))
    engines = await repository.engines_heard(context.session)
    known, live = await live_of(context, rows)
    at = now()
    return Overview(
        streams=[summary_of(row, known[row.id], at) for row in rows],
        engines_online=_online(engines, at), engines_total=len(engines), live=live,
    )  # fmt: skip


def _online(engines: list[tuple[str, datetime | None]], at: datetime) -> int | None:
    """None when one counts as online of which nobody has heard lately: then nobody asks the engines."""
    heard = [heard_at for state, heard_at in engines if state == EngineState.ONLINE]
    return len(heard) if all(is_fresh(heard_at, at) for heard_at in heard) else None


async def get_rates(context: Context) -> OverviewRates:
    stream_ids = await repository.stream_ids(context.session)
    await context.release()
    try:
        rates = await Bus(context.resources.redis).recent_rates(stream_ids)
    except (RedisError, OSError):
        return OverviewRates(streams=[], live=False)
    return OverviewRates(
        streams=[
            StreamRates(
                stream_id=stream_id, times=[at for at, _ in points], lcrs_per_second=[rate for _, rate in points]
            )
            for stream_id, points in rates.items()
        ],
        live=True,
    )  # fmt: skip


async def samples_document(context: Context, stream_id: str, seconds: int) -> bytes:
    """The document of Samples. They are in Redis as they are answered: reading and writing an hour of them anew would
    hold up every tab of the worker for seconds."""
    row = await existing_stream(context, stream_id)
    await context.release()
    try:
        documents = await Bus(context.resources.redis).recent_documents(row.id, seconds)
    except (RedisError, OSError):
        return _SAMPLES % (row.id.encode(), b"", b"false")
    return _SAMPLES % (row.id.encode(), b",".join(documents), b"true")
