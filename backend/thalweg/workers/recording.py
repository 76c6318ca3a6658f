"""Writes what was observed to the store and tells what has changed as events."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from pydantic import BaseModel
from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.models import EngineRow, StreamRow
from thalweg.db.operations import unfinished_operations
from thalweg.db.readings import forget_slot
from thalweg.db.streams import former_ids
from thalweg.engine_client.documents import StreamStatus, observed_document
from thalweg.engine_client.identity import observe_identity
from thalweg.history.starts import forget_starts, note_start
from thalweg.kernel.lifecycle import DesiredStatus, EngineState, ObservedStatus
from thalweg.kernel.lsn import lsn_text
from thalweg.live.health import Facts, engine_of_concern, health_of
from thalweg.live.lag import UNKNOWN_LAG
from thalweg.live.reports import with_bounds, with_least_latency
from thalweg.live.schemas import EngineEvent, Sample, StreamDeletedEvent, StreamStatusEvent
from thalweg.live.shown_states import with_states
from thalweg.live.sources import slot_name
from thalweg.workers import repository
from thalweg.workers.abandoning import forget_abandoned
from thalweg.workers.copy_trails import follow_copies
from thalweg.workers.former_ids import poll_of_today
from thalweg.workers.lags import Lags
from thalweg.workers.last_latency import LastLatencies
from thalweg.workers.outages import engine_trouble, note_engine, note_stream
from thalweg.workers.parking import Parking
from thalweg.workers.polling import EngineMemory, Poll
from thalweg.workers.progress import advance, operation_event
from thalweg.workers.reports import REWRITE_AFTER, LastSamples, acknowledged, observe, own_sample, sample_now
from thalweg.workers.stages import capture_is_gone, follow
from thalweg.workers.stalls import Stalls
from thalweg.workers.superseded import note_superseded
from thalweg.workers.table_rates import TableRates
from thalweg.workers.unknown import note_unknown


@dataclass
class Memories:
    """The collector's memory from poll to poll, of all engines."""

    lags: Lags
    outages_kept: timedelta
    """The time for which a past outage is remembered."""
    table_rates: TableRates = field(default_factory=TableRates)
    latencies: LastLatencies = field(default_factory=LastLatencies)
    parking: Parking = field(default_factory=Parking)
    stalls: Stalls = field(default_factory=Stalls)

    def forget_before(self, at: datetime) -> None:
        self.table_rates.forget_before(at)
        self.latencies.forget_before(at)
        self.parking.forget_before(at)
        self.stalls.forget_before(at)


@dataclass
class Outcome:
    """The result of one poll. `samples` are of whole streams, `own_samples` of what this engine runs of each.

    `engine_revision` is the revision that the engine holds, None without an answer.
    """

    samples: list[Sample] = field(default_factory=list)
    own_samples: list[Sample] = field(default_factory=list)
    events: list[tuple[str, BaseModel]] = field(default_factory=list)
    deleted_streams: list[str] = field(default_factory=list)
    desired_revision: int = 0
    engine_revision: int | None = None


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
        await _record_streams(session, engine, engines, poll, last, memories, outcome, at)
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
    engine.acknowledged_revision = outcome.engine_revision = process.desired_revision
    engine.resident_bytes = poll.stats.process.resident_bytes
    engine.cpu_percent = memory.cpu_percent(poll.stats)
    outcome.samples = memory.samples(poll.status, poll.stats, engine.id)
    if process.desired_revision > engine.desired_revision:
        # The store is older than the engine's disk (restored from a backup): go on above the engine's number.
        engine.desired_revision = process.desired_revision + 1


async def _record_streams(
    session: AsyncSession, engine: EngineRow, engines: dict[str, EngineRow], poll: Poll, last: LastSamples,
    memories: Memories, outcome: Outcome, at: datetime,
) -> None:  # fmt: skip
    assert poll.status is not None  # noqa: S101
    rows = await repository.lock_streams(session, engine.id)
    await note_unknown(session, engine, poll.status.streams, set(rows))
    if observe_identity(engine, poll.status.engine):
        _tell_senders(engine, engines, rows)
    operations = await unfinished_operations(session, list(rows))
    samples = {sample.stream_id: sample for sample in outcome.samples}
    for status in poll.status.streams:
        row = rows.get(status.id)
        if row is None or not engines.keys() >= set(row.engine_ids):
            continue  # Another engine came in since the locks: the next poll has it.
        own = [operation for operation in operations if operation.target_id == row.id]
        deletes = row.desired_status == DesiredStatus.DROPPED
        capturing = engine.id == row.capture_engine_id
        if deletes and capturing and status.status == ObservedStatus.DROPPED and not row.capture_is_gone:
            await capture_is_gone(session, row, engines)
        seen = observe(row, engine.id, status, poll.asked_at, engines, awaited=bool(own))
        if seen is None:
            samples.pop(row.id, None)
            continue
        reported = samples.get(row.id)
        if reported is not None:
            outcome.own_samples.append(own_sample(row, engine.id, reported))
        sample = sample_now(row, engine.id, samples.pop(row.id, None), seen.status, last, at)
        if seen.status.positions is not None:
            memories.lags.note_end(row.source_id, seen.status.positions.source_end, poll.asked_at)
        if sample is not None:
            sample = memories.latencies.with_last_latency(memories.lags.measured(sample, row, at))
            sample = with_least_latency(sample)
            outcome.own_samples[-1] = with_bounds(outcome.own_samples[-1], sample)
            retrying = {destination.id for destination in seen.status.destinations if destination.next_retry}
            sample = memories.stalls.with_stalls(memories.parking.with_parking(sample), retrying)
            sample = samples[row.id] = with_states(sample, row.desired_status)
        before = row.observed or {}
        changed = _observe(row, seen.status, memories.table_rates, seen.asked_at if row.receivers else at)
        gone = deletes and seen.status.status == ObservedStatus.DROPPED
        await note_superseded(session, row, before, row.observed or {})
        if changed and not gone:
            await note_stream(session, row, before, row.observed or {}, at, memories.outages_kept)
        if changed and not gone:
            outcome.events.append(_status_event(engine_of_concern(row, engines), row, sample, at))
        for operation in own if acknowledged(row, engines) else []:
            asked_at = seen.newer_than(operation.destination_id)
            if advance(operation, row, seen.status, asked_at, engines[row.capture_engine_id]):
                outcome.events.append(operation_event(operation, at))
        if gone:
            for owner in row.engine_ids:
                engines[owner].desired_revision += 1
            await session.delete(row)
            # The reading is older than the deletion: it would show the slot as an orphan.
            await forget_slot(session, row.source_id, slot_name(row.id))
            memories.lags.forget_slot(row.source_id, slot_name(row.id))
            last.forget(row.id)
            outcome.deleted_streams.append(row.id)
            outcome.events.append(("stream.deleted", StreamDeletedEvent(stream_id=row.id, at=at)))
        elif not deletes and follow(row, status, engine.id, engines):
            outcome.events.append(_status_event(engine_of_concern(row, engines), row, sample, at))
    outcome.samples = list(samples.values())


def _tell_senders(engine: EngineRow, engines: dict[str, EngineRow], rows: dict[str, StreamRow]) -> None:
    """The desired documents of engines that send to this one hold its address."""
    senders = {
        row.capture_engine_id
        for row in rows.values()
        if engine.id in (receiver.engine_id for receiver in row.receivers)
    }
    for engine_id in senders & engines.keys():
        engines[engine_id].desired_revision += 1


def _observe(row: StreamRow, status: StreamStatus, rates: TableRates, at: datetime) -> bool:
    """True when something changed that people wait for: status, phase or error, also of a destination."""
    document = observed_document(status)
    rates.add_to(document, at)
    follow_copies(document, row.observed or {}, at)
    changed = _state_key(row.observed or {}) != _state_key(document)
    if row.observed != document or row.observed_at is None or at - row.observed_at >= REWRITE_AFTER:
        row.observed, row.observed_at = document, at
    row.observed_status, row.observed_phase = status.status, status.phase
    row.reached = _reached(row, status)
    if status.status == ObservedStatus.DISABLED:
        row.restart_needed = False
    return changed


def _reached(row: StreamRow, status: StreamStatus) -> dict[str, Any]:
    """An engine that does not run the stream knows no positions: what was known before stays."""
    reached = {
        destination.id: known
        for destination in row.destinations
        if (known := (row.reached or {}).get(destination.id)) is not None
    }
    for destination in status.destinations:
        if destination.done is not None and row.destination(destination.id) is not None:
            reached[destination.id] = lsn_text(destination.done)
    return reached


def _state_key(document: dict[str, Any]) -> tuple[object, ...]:
    """An error that comes again at another time is not news."""
    error, backlog = document.get("error") or {}, document.get("backlog") or {}
    # The message of a full backlog contains its size, which changes all the time; the samples have it.
    known = error.get("code"), None if backlog else error.get("message")
    destinations = tuple(
        (destination["id"], *_state_key(destination)) for destination in document.get("destinations", [])
    )
    return document.get("status"), document.get("phase"), known, backlog.get("state"), destinations


def _status_event(
    engine: EngineRow, row: StreamRow, sample: Sample | None, at: datetime
) -> tuple[str, StreamStatusEvent]:
    facts = Facts(
        row.desired_status, row.observed_status, row.observed_phase, row.observed, row.observed_at,
        engine.name, engine.state, engine.message, sample,
        {destination.id: destination.database.name for destination in row.destinations},
        sample.lag if sample else UNKNOWN_LAG,
    )  # fmt: skip
    event = StreamStatusEvent(
        stream_id=row.id, status=row.observed_status, phase=row.observed_phase, health=health_of(facts, at), at=at
    )
    return "stream.status", event
