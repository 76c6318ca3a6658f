"""Writes one poll of an engine to the store: its process, then its streams (stream_recording.py)."""

from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.models import EngineRow, StreamRow
from thalweg.db.streams import former_ids
from thalweg.history.starts import forget_starts, note_start
from thalweg.kernel.lifecycle import EngineState, ObservedStatus
from thalweg.live.schemas import EngineEvent
from thalweg.workers import repository
from thalweg.workers.abandoning import forget_abandoned
from thalweg.workers.former_ids import poll_of_today
from thalweg.workers.outages import engine_trouble, note_engine
from thalweg.workers.polling import EngineMemory, Poll
from thalweg.workers.reports import LastSamples
from thalweg.workers.stream_recording import Memories, Outcome, record_streams


async def record_poll(
    session: AsyncSession,
    engine_id: str,
    poll: Poll,
    memory: EngineMemory,
    last: LastSamples,
    memories: Memories,
    at: datetime,
) -> Outcome | None:
    """In the caller's transaction. None when the engine was deleted meanwhile."""
    engines = await repository.lock_engines(session, engine_id)
    engine = engines.get(engine_id)
    if engine is None:
        return None
    poll = poll_of_today(poll, await former_ids(session, StreamRow.capture_engine_id == engine_id))
    outcome = Outcome()
    before, trouble, started_at = engine.state, engine_trouble(engine), engine.started_at
    if poll.status is None or poll.stats is None:
        _record_failure(engine, poll, memory)
    else:
        _record_answer(engine, poll, memory, outcome, at)
        if engine.started_at is not None and engine.started_at != started_at:
            await note_start(session, engine.id, engine.started_at)
            await forget_starts(session, at - memories.outages_kept)
        await record_streams(session, engine, engines, poll, last, memories, outcome, at)
        dropped = {stream.id for stream in poll.status.streams if stream.status == ObservedStatus.DROPPED}
        await forget_abandoned(session, engine, dropped, poll.asked_at)
    if engine.state != before:
        await note_engine(session, engine, trouble, at, memories.outages_kept)
        outcome.events.append(("engine", EngineEvent(engine_id=engine.id, state=engine.state, at=at)))
    outcome.desired_revision = engine.desired_revision
    return outcome


def _record_failure(engine: EngineRow, poll: Poll, memory: EngineMemory) -> None:
    memory.forget()
    if poll.failure is not None:
        engine.state = EngineState.REFUSED if poll.failure.reached else EngineState.UNREACHABLE
        engine.message = f"{poll.failure.message} {poll.failure.cure}".strip()
    engine.cpu_percent = engine.resident_bytes = None


def _record_answer(engine: EngineRow, poll: Poll, memory: EngineMemory, outcome: Outcome, at: datetime) -> None:
    assert poll.status is not None and poll.stats is not None  # noqa: S101
    process = poll.status.engine
    engine.state, engine.last_seen_at = EngineState.ONLINE, at
    if process.desired_revision == engine.desired_revision:
        engine.message = None
    engine.version, engine.hostname, engine.pid = process.version, process.hostname, process.pid
    engine.started_at = process.started_at
    if engine.wal_archives != process.wal_archives:
        engine.wal_archives = process.wal_archives
    engine.acknowledged_revision = outcome.engine_revision = process.desired_revision
    engine.resident_bytes = poll.stats.process.resident_bytes
    engine.cpu_percent = memory.cpu_percent(poll.stats)
    outcome.samples = memory.samples(poll.status, poll.stats, engine.id)
    if process.desired_revision > engine.desired_revision:
        # The store is older than the engine's disk (restored from a backup): go on above the engine's number.
        engine.desired_revision = process.desired_revision + 1
