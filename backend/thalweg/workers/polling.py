"""Asks one engine for its status and statistics, and remembers what rates need."""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from thalweg.engine_client.client import EngineClient, EngineFailure
from thalweg.engine_client.documents import API_VERSION, EngineStats, EngineStatus
from thalweg.kernel.clock import now
from thalweg.live.rates import Reading, sample_of
from thalweg.live.schemas import Sample

CLOCKS_APART = timedelta(seconds=10)
"""An engine whose clock is further off gets its samples' times from this host's: history is in the order of one clock.
Rates need neither: they come from the engine's monotonic clock."""


@dataclass(frozen=True)
class Poll:
    """One answer of an engine, or why there is none. `asked_at` is before the request was sent."""

    asked_at: datetime
    status: EngineStatus | None
    stats: EngineStats | None
    failure: EngineFailure | None
    restamped: bool = False
    """The engine's clock is wrong: the statistics have this host's time."""


async def poll(client: EngineClient) -> Poll:
    asked_at = now()
    try:
        status, stats = await asyncio.gather(client.status(), client.stats())
    except EngineFailure as failure:
        return Poll(asked_at, None, None, failure)
    if status.engine.api != API_VERSION:
        message = f"It speaks control API {status.engine.api}, not {API_VERSION}."
        cure = "Run the engine and the control plane in the same version."
        return Poll(asked_at, None, None, EngineFailure("engine_protocol", message, cure, 200))
    restamped = abs(stats.sampled_at - asked_at) > CLOCKS_APART
    if restamped:
        stats = stats.model_copy(update={"sampled_at": asked_at})
    return Poll(asked_at, status, stats, None, restamped)


@dataclass
class EngineMemory:
    """The collector's memory of one engine between polls. Owner: the collector's loop."""

    readings: dict[str, Reading] = field(default_factory=dict)
    process_started_at: datetime | None = None
    cpu_ns: int | None = None
    monotonic_ns: int | None = None
    failing_since: datetime | None = None
    identity_tried_at: datetime | None = None
    offered: dict[str, datetime] = field(default_factory=dict)
    """The newest sample of each stream that was given to history."""
    missed: bool = True
    """There may be samples that history has not got: the engine is asked for them before the next one is added."""
    losses: int = 0
    """How often history has lost what it was given. A turn during which it grows gives history nothing more: a sample
    after the lost ones would hide that they are missing."""
    sampled_at: datetime | None = None
    """The time of the request for the last answer."""

    def cpu_percent(self, stats: EngineStats) -> float | None:
        """Percent of one core since the last poll. Call before `samples`."""
        if self.cpu_ns is None or self.monotonic_ns is None or stats.monotonic_ns <= self.monotonic_ns:
            return None
        return round(100 * (stats.process.cpu_ns - self.cpu_ns) / (stats.monotonic_ns - self.monotonic_ns), 2)

    def samples(self, status: EngineStatus, stats: EngineStats, engine_id: str) -> list[Sample]:
        """One for each stream that runs. A restarted engine begins anew: its counters did."""
        if self.process_started_at != status.engine.started_at:
            self.forget()
            self.process_started_at = status.engine.started_at
        statuses = {stream.id: stream for stream in status.streams}
        current = {
            stream.id: Reading(stats.sampled_at, stats.monotonic_ns, stream, statuses[stream.id])
            for stream in stats.streams
            if stream.id in statuses
        }
        samples = [sample_of(name, self.readings.get(name), reading, engine_id) for name, reading in current.items()]
        self.readings, self.cpu_ns, self.monotonic_ns = current, stats.process.cpu_ns, stats.monotonic_ns
        return samples

    def silent_seconds(self, poll: Poll) -> float:
        """For how long the engine has given no useful answer, as of this poll."""
        if poll.failure is None:
            self.failing_since = None
            return 0.0
        self.failing_since = self.failing_since or poll.asked_at
        return (poll.asked_at - self.failing_since).total_seconds()

    def note_gap(self, poll: Poll, longest: float) -> None:
        """A poll that failed, or one that came later than so many seconds after the last."""
        if poll.failure is not None:
            self.missed = True
            return
        if self.sampled_at is not None and (poll.asked_at - self.sampled_at).total_seconds() > longest:
            self.missed = True
        self.sampled_at = poll.asked_at

    def forget(self) -> None:
        """After an outage: a rate over it would be neither the one nor the other."""
        self.readings, self.cpu_ns, self.monotonic_ns = {}, None, None
