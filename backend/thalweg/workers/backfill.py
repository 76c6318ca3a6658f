"""Fetches samples that the collector has missed from the engine, which keeps the statistics of its last minutes.

The collector asks after every gap: a start, an outage of the engine, of the network, or of the store. Each sample is
stored once and in its order: those between the last stored one and the first live one.
"""

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.models import StreamRow
from thalweg.db.streams import former_ids
from thalweg.engine_client.client import EngineClient, EngineFailure
from thalweg.engine_client.documents import EngineStats, HistorySample, HistoryStream, StreamStatus
from thalweg.history import repository as history
from thalweg.kernel.context import release
from thalweg.kernel.outside import outside
from thalweg.kernel.settings import Settings
from thalweg.live.rates import Reading, sample_of
from thalweg.live.schemas import Sample
from thalweg.workers import repository
from thalweg.workers.former_ids import stats_of_today
from thalweg.workers.polling import EngineMemory, Poll
from thalweg.workers.reports import own_sample

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BEFORE = timedelta(seconds=3)
"""A rate needs a sample before: so much earlier than what is missing."""


async def backfill(
    session: AsyncSession, settings: Settings, client: EngineClient, engine_id: str, memory: EngineMemory, poll: Poll
) -> list[Sample]:
    """Parts to store before those of `poll`, in their order. Afterwards `memory` has what rates of `poll` need.

    Fails as the client does; an engine of an older version has none."""
    assert poll.status is not None and poll.stats is not None  # noqa: S101
    kept = timedelta(seconds=settings.history_second_kept)
    known = await history.newest(session, engine_id, poll.asked_at - kept)
    known |= {stream_id: at for stream_id, at in memory.offered.items() if at > known.get(stream_id, EPOCH)}
    ids = await former_ids(session, StreamRow.capture_engine_id == engine_id)
    await release(session)
    streams = [stream.id for stream in poll.stats.streams]
    since = min((known.get(stream_id, EPOCH) for stream_id in streams), default=EPOCH)
    readings: dict[str, Reading] = {}
    samples: list[Sample] = []
    last: EngineStats | None = None
    more, asked = bool(streams), max(EPOCH, since - BEFORE)
    while more:
        try:
            page = await client.stats_history((asked - EPOCH) // timedelta(microseconds=1))
        except EngineFailure as failure:
            if failure.status == 404:
                return []
            raise
        if page.engine.started_at != poll.status.engine.started_at:
            return []  # It restarts: the next poll sees another process.
        taken = [
            sample.model_copy(update={"streams": stats_of_today(sample.streams, ids)})
            for sample in page.samples
            if sample.sampled_at < poll.stats.sampled_at
        ]
        outside("a thread")
        samples += await asyncio.to_thread(samples_of, taken, engine_id, readings, known)
        more = page.more and len(taken) == len(page.samples)
        if taken:
            asked, last = page.samples[-1].sampled_at, taken[-1]
    if last is not None:
        memory.process_started_at = poll.status.engine.started_at
        memory.readings, memory.cpu_ns, memory.monotonic_ns = readings, last.process.cpu_ns, last.monotonic_ns
    rows = await repository.streams_of(session, engine_id)
    return [own_sample(rows[sample.stream_id], engine_id, sample) for sample in samples if sample.stream_id in rows]


def samples_of(
    taken: Iterable[HistorySample], engine_id: str, readings: dict[str, Reading], known: dict[str, datetime]
) -> list[Sample]:
    """`readings` go on from page to page: the last one of each stream."""
    samples = []
    for moment in taken:
        current = {}
        for stream in moment.streams:
            if stream.status is None or stream.phase is None:
                continue
            reading = current[stream.id] = Reading(moment.sampled_at, moment.monotonic_ns, stream, _status(stream))
            if moment.sampled_at > known.get(stream.id, EPOCH):
                samples.append(sample_of(stream.id, readings.get(stream.id), reading, engine_id))
        readings.clear()
        readings.update(current)
    return samples


def _status(stream: HistoryStream) -> StreamStatus:
    """The status as far as it was kept: the positions of several destinations are not known any more."""
    positions = stream.positions if len(stream.destinations) == 1 else None
    has_backlog = any(part.type == "QUEUE" and part.destination is not None for part in stream.components)
    if positions is not None and has_backlog:
        # Confirmed changes may lie in the destination's backlog, not applied yet.
        positions = positions.model_copy(update={"confirmed": positions.applied})
    common = {"status": stream.status, "phase": stream.phase, "error": None, "retry_at": None}
    destinations: list[dict[str, Any]] = [
        {**common, "id": destination.id, "positions": positions and positions.model_dump(), "backlog": None,
         "instantiation": None, "tables": []}
        for destination in stream.destinations
    ]  # fmt: skip
    return StreamStatus.model_validate(
        {**common, "id": stream.id, "positions": stream.positions, "destinations": destinations}
    )
