"""Lags of live samples, measured against what sources say of themselves."""

from datetime import datetime

from thalweg.db.models import StreamRow
from thalweg.db.readings import may_be_one
from thalweg.kernel.lifecycle import REPLICATES, BacklogState, DesiredStatus, ObservedStatus
from thalweg.kernel.lsn import lsn_of
from thalweg.kernel.time_to_full import FillingLimit, seconds_to_full
from thalweg.live.lag import CatchUpTimes, Growth, first_full, measured, of_stream, standing
from thalweg.live.schemas import DestinationSample, Lag, Sample
from thalweg.live.sources import KEEPS_UP_BYTES, SourceReading
from thalweg.live.staging import staged_wal_of
from thalweg.live.steady_growth import SteadyGrowth
from thalweg.workers.sources import Seen

FORGET_EVERY = 1000
Run = tuple[DesiredStatus, DesiredStatus | None, ObservedStatus]
"""The desired states of a stream and of its destination, and the destination's own."""


class Lags:
    """Owner: the collector. The ends of sources that engines report become marks of the same sources."""

    def __init__(self, seen: Seen) -> None:
        self._seen = seen
        self._growth = Growth()
        self._on_disk = SteadyGrowth()
        self._catch_up_times = CatchUpTimes()
        self._taken = 0
        self._runs: dict[tuple[str, str], Run] = {}

    def note_end(self, source_id: str, source_end: str, at: datetime) -> None:
        reading = self._seen.readings.get(source_id)
        if reading is not None and lsn_of(source_end):
            reading.marks.add(at, lsn_of(source_end))

    def forget_slot(self, source_id: str, name: str) -> None:
        """A stream that is gone has none any more; the next reading says so, or finds what was left behind."""
        own = self._seen.readings.get(source_id)
        for reading in self._seen.readings.values():
            if own is not None and may_be_one(reading.state.system_identifier, own.state.system_identifier):
                reading.state.slots.pop(name, None)

    def measured(self, sample: Sample, row: StreamRow, at: datetime) -> Sample:
        """The sample with its lags as they are to be shown."""
        self._taken += 1
        if self._taken % FORGET_EVERY == 0:
            self._growth.forget_before(at)
            self._on_disk.forget_before(at)
            self._catch_up_times.forget_before(at)
            self._runs = {key: run for key, run in self._runs.items() if key in self._growth.seen}
        reading = self._seen.readings.get(row.source_id)
        for destination in sample.destinations:
            self._begin_anew_after_a_change((row.id, destination.destination_id), row, destination)
        staging = self._staging_full(row, sample, at)
        destinations = [
            self._destination(row, destination, reading, staging, at) for destination in sample.destinations
        ]
        slot = reading.slot(row.id) if reading is not None else None
        lag = of_stream([destination.lag for destination in destinations], reading, slot)
        return sample.model_copy(update={"lag": lag, "destinations": destinations})

    def _destination(
        self,
        row: StreamRow,
        destination: DestinationSample,
        reading: SourceReading | None,
        staging: float | None,
        at: datetime,
    ) -> DestinationSample:
        lag = measured(destination.lag, reading, at)
        if lag.bytes is None:
            lag = standing(row, destination.destination_id, reading, at)
        key = row.id, destination.destination_id
        if destination.phase not in REPLICATES:
            self._catch_up_times.forget(key)
        if lag.bytes == 0:  # it shrinks no more
            self._growth.forget(key)
        growth = self._growth.per_second(key, at, lag.bytes) if lag.bytes is not None else None
        if lag.bytes == 0:
            growth = 0.0
        update = {"growth_bytes_per_second": growth, "seconds": self._catch_up_times.seconds(key, at, lag)}
        backlog = self._backlog_full(key, destination, lag, at)
        times = (backlog, FillingLimit.BACKLOG), (staging, FillingLimit.STAGING)
        return destination.model_copy(update={"lag": first_full(lag.model_copy(update=update), times)})

    def _begin_anew_after_a_change(self, key: tuple[str, str], row: StreamRow, destination: DestinationSample) -> None:
        """A stop, a pause or a start: what came before is not the present growth."""
        own = row.destination(destination.destination_id)
        run = row.desired_status, own.desired_status if own is not None else None, destination.status
        if self._runs.get(key) != run:
            self._growth.forget(key)
            self._on_disk.forget(key)
            self._on_disk.forget((row.id, FillingLimit.STAGING))
        self._runs[key] = run

    def _staging_full(self, row: StreamRow, sample: Sample, at: datetime) -> float | None:
        """Until the WAL that is staged for mining reaches its limit: nothing more is received then, for no destination.
        An open transaction keeps it as well, while no change waits. None as for a backlog."""
        staged = staged_wal_of(sample.components)
        if staged is None:
            return None
        growth = self._on_disk.per_second((row.id, FillingLimit.STAGING), at, staged.used_bytes)
        return seconds_to_full(staged.limit_bytes - staged.used_bytes, growth) if staged.tells else None

    def _backlog_full(
        self, key: tuple[str, str], destination: DestinationSample, lag: Lag, at: datetime
    ) -> float | None:
        """Until its backlog on disk reaches its limit. None for one that is empty or full, where nothing waits, or
        where it does not grow steadily."""
        if destination.backlog is None:
            return None
        growth = self._on_disk.per_second(key, at, destination.backlog.bytes)
        if (
            destination.backlog.state == BacklogState.FULL
            or destination.backlog.bytes == 0
            or (lag.bytes or 0) < KEEPS_UP_BYTES
        ):
            return None
        return seconds_to_full(destination.backlog.limit_bytes - destination.backlog.bytes, growth)
