"""Writes what an engine has reported on its streams to the store, and tells what has changed as events."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from pydantic import BaseModel
from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.models import EngineRow, OperationRow, StreamRow
from thalweg.db.operations import unfinished_operations
from thalweg.db.readings import forget_slot
from thalweg.engine_client.documents import StreamStatus, observed_document
from thalweg.engine_client.identity import observe_identity
from thalweg.kernel.lifecycle import DesiredStatus, ObservedStatus
from thalweg.kernel.lsn import lsn_text
from thalweg.live.health import Facts, engine_of_concern, health_of
from thalweg.live.lag import UNKNOWN_LAG
from thalweg.live.out_of_reach import follow_failures
from thalweg.live.reports import with_bounds, with_least_latency
from thalweg.live.schemas import Sample, StreamDeletedEvent, StreamStatusEvent
from thalweg.live.shown_states import with_states
from thalweg.live.sources import slot_name
from thalweg.workers import repository
from thalweg.workers.copy_trails import follow_copies
from thalweg.workers.effects import note_effects
from thalweg.workers.lags import Lags
from thalweg.workers.last_latency import LastLatencies
from thalweg.workers.oldest_parked import OldestParked
from thalweg.workers.outages import Replicated, note_stream
from thalweg.workers.parking import Parking
from thalweg.workers.polling import Poll
from thalweg.workers.progress import advance, operation_event
from thalweg.workers.reports import (
    REWRITE_AFTER,
    LastSamples,
    Observation,
    acknowledged,
    observe,
    own_sample,
    sample_now,
)
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
    oldest_parked: OldestParked = field(default_factory=OldestParked)
    stalls: Stalls = field(default_factory=Stalls)
    replicated: Replicated = field(default_factory=Replicated)

    def forget_before(self, at: datetime) -> None:
        self.table_rates.forget_before(at)
        self.latencies.forget_before(at)
        self.parking.forget_before(at)
        self.oldest_parked.forget_before(at)
        self.stalls.forget_before(at)
        self.replicated.forget_before(at)


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


async def record_streams(
    session: AsyncSession, engine: EngineRow, engines: dict[str, EngineRow], poll: Poll, last: LastSamples,
    memories: Memories, outcome: Outcome, at: datetime,
) -> None:  # fmt: skip
    """In the caller's transaction, with the engine and those that it shares streams with locked."""
    assert poll.status is not None  # noqa: S101
    rows = await repository.lock_streams(session, engine.id)
    await note_unknown(session, engine, poll.status.streams, set(rows))
    if observe_identity(engine, poll.status.engine):
        _tell_senders(engine, engines, rows)
    operations = await unfinished_operations(session, list(rows))
    samples = {sample.stream_id: sample for sample in outcome.samples}
    recorder = _Recorder(session, engine, engines, poll.asked_at, last, memories, outcome, samples, at)
    for status in poll.status.streams:
        row = rows.get(status.id)
        if row is None or not engines.keys() >= set(row.engine_ids):
            continue  # Another engine came in since the locks: the next poll has it.
        await recorder.record(row, status, [operation for operation in operations if operation.target_id == row.id])
    outcome.samples = list(samples.values())


@dataclass(frozen=True)
class _Recorder:
    """Records one answer of an engine. `samples` are what it has measured, by stream; each is replaced by that of the
    whole stream."""

    session: AsyncSession
    engine: EngineRow
    engines: dict[str, EngineRow]
    asked_at: datetime
    last: LastSamples
    memories: Memories
    outcome: Outcome
    samples: dict[str, Sample]
    at: datetime

    async def record(self, row: StreamRow, status: StreamStatus, operations: list[OperationRow]) -> None:
        deletes = row.desired_status == DesiredStatus.DROPPED
        if deletes and self._has_dropped_the_capture(row, status):
            await capture_is_gone(self.session, row, self.engines)
        measured = self.samples.pop(row.id, None)
        seen = observe(row, self.engine.id, status, self.asked_at, self.engines, awaited=bool(operations))
        if seen is None:
            return
        sample = self._sample(row, measured, seen)
        gone = deletes and seen.status.status == ObservedStatus.DROPPED
        await self._observe(row, seen, sample, gone=gone)
        self._advance(row, seen, operations)
        if gone:
            await self._end(row)
        elif not deletes and follow(row, status, self.engine.id, self.engines):
            self._tell_status(row, sample)

    def _has_dropped_the_capture(self, row: StreamRow, status: StreamStatus) -> bool:
        """Now, for the first time."""
        captures = self.engine.id == row.capture_engine_id
        return captures and status.status == ObservedStatus.DROPPED and not row.capture_is_gone

    def _sample(self, row: StreamRow, measured: Sample | None, seen: Observation) -> Sample | None:
        """The stream's sample to show now, with what the memory knows of it. The engine's own is kept for history."""
        if measured is not None:
            self.outcome.own_samples.append(own_sample(row, self.engine.id, measured))
        sample = sample_now(row, self.engine.id, measured, seen.status, self.last, self.at)
        memories = self.memories
        if seen.status.positions is not None:
            memories.lags.note_end(row.source_id, seen.status.positions.source_end, self.asked_at)
        if sample is None:
            return None
        sample = with_least_latency(memories.latencies.with_last_latency(memories.lags.measured(sample, row, self.at)))
        self.outcome.own_samples[-1] = with_bounds(self.outcome.own_samples[-1], sample)
        retrying = {destination.id for destination in seen.status.destinations if destination.next_retry}
        sample = memories.oldest_parked.with_oldest(memories.parking.with_parking(sample))
        sample = memories.stalls.with_stalls(sample, retrying)
        sample = self.samples[row.id] = with_states(sample, row.desired_status)
        return sample

    async def _observe(self, row: StreamRow, seen: Observation, sample: Sample | None, *, gone: bool) -> None:
        before = row.observed or {}
        counted_at = seen.asked_at if row.receivers else self.at
        changed = _store(row, seen.status, self.memories.table_rates, counted_at)
        observed = row.observed or {}
        await note_superseded(self.session, row, before, observed)
        await note_effects(self.session, row, before, observed)
        memories = self.memories
        if sample is not None:
            memories.replicated.note(sample, self.at)
        if changed and not gone:
            await note_stream(
                self.session, row, before, observed, self.at, memories.outages_kept, memories.replicated
            )  # fmt: skip
            self._tell_status(row, sample)

    def _advance(self, row: StreamRow, seen: Observation, operations: list[OperationRow]) -> None:
        """Once each engine has the stream as the operations want it."""
        if not acknowledged(row, self.engines):
            return
        captures = self.engines[row.capture_engine_id]
        for operation in operations:
            if advance(operation, row, seen.status, seen.newer_than(operation.destination_id), captures):
                self.outcome.events.append(operation_event(operation, self.at))

    async def _end(self, row: StreamRow) -> None:
        """Nothing of the stream is left at any engine."""
        for owner in row.engine_ids:
            self.engines[owner].desired_revision += 1
        await self.session.delete(row)
        # The reading is older than the deletion: it would show the slot as an orphan.
        await forget_slot(self.session, row.source_id, slot_name(row.id))
        self.memories.lags.forget_slot(row.source_id, slot_name(row.id))
        self.last.forget(row.id)
        self.outcome.deleted_streams.append(row.id)
        self.outcome.events.append(("stream.deleted", StreamDeletedEvent(stream_id=row.id, at=self.at)))

    def _tell_status(self, row: StreamRow, sample: Sample | None) -> None:
        self.outcome.events.append(_status_event(engine_of_concern(row, self.engines), row, sample, self.at))


def _tell_senders(engine: EngineRow, engines: dict[str, EngineRow], rows: dict[str, StreamRow]) -> None:
    """The desired documents of engines that send to this one hold its address."""
    senders = {
        row.capture_engine_id
        for row in rows.values()
        if engine.id in (receiver.engine_id for receiver in row.receivers)
    }
    for engine_id in senders & engines.keys():
        engines[engine_id].desired_revision += 1


def _store(row: StreamRow, status: StreamStatus, rates: TableRates, at: datetime) -> bool:
    """True when something changed that people wait for: status, phase or error, also of a destination."""
    document = observed_document(status)
    rates.add_to(document, at)
    follow_copies(document, row.observed or {}, at)
    follow_failures(document, row.observed or {}, at)
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
    effect = str(document.get("in_effect"))
    return document.get("status"), document.get("phase"), known, backlog.get("state"), effect, destinations


def _status_event(
    engine: EngineRow, row: StreamRow, sample: Sample | None, at: datetime
) -> tuple[str, StreamStatusEvent]:
    facts = Facts(
        row.desired_status, row.observed_status, row.observed_phase, row.observed, row.observed_at,
        engine.name, engine.state, engine.message, sample,
        {destination.id: destination.database.name for destination in row.destinations},
        sample.lag if sample else UNKNOWN_LAG, source_name=row.source.name,
    )  # fmt: skip
    event = StreamStatusEvent(
        stream_id=row.id, status=row.observed_status, phase=row.observed_phase, health=health_of(facts, at), at=at
    )
    return "stream.status", event
