"""Backlogs of live samples, measured against what sources say of themselves."""

from datetime import datetime

from thalweg.db.models import StreamRow
from thalweg.kernel.lsn import lsn_of
from thalweg.live.backlog import Growth, measured, of_stream, standing
from thalweg.live.schemas import DestinationSample, Sample
from thalweg.live.sources import SourceReading
from thalweg.workers.sources import Seen

FORGET_EVERY = 1000


class Backlogs:
    """Owner: the collector. What engines hear of their sources' ends becomes marks of the same sources."""

    def __init__(self, seen: Seen) -> None:
        self._seen = seen
        self._growth = Growth()
        self._taken = 0

    def note_end(self, source_id: str, source_end: str, at: datetime) -> None:
        reading = self._seen.readings.get(source_id)
        if reading is not None and lsn_of(source_end):
            reading.marks.add(at, lsn_of(source_end))

    def forget_slot(self, source_id: str, name: str) -> None:
        """A stream that is gone has none any more; the next reading says so, or finds what was left behind."""
        reading = self._seen.readings.get(source_id)
        if reading is not None:
            reading.state.slots.pop(name, None)

    def measured(self, sample: Sample, row: StreamRow, at: datetime) -> Sample:
        """The sample with its backlogs as they are to be shown."""
        self._taken += 1
        if self._taken % FORGET_EVERY == 0:
            self._growth.forget_before(at)
        reading = self._seen.readings.get(row.source_id)
        destinations = [self._destination(row, one, reading, at) for one in sample.destinations]
        slot = reading.slot(row.id) if reading is not None else None
        backlog = of_stream([one.backlog for one in destinations], reading, slot)
        return sample.model_copy(update={"backlog": backlog, "destinations": destinations})

    def _destination(
        self, row: StreamRow, one: DestinationSample, reading: SourceReading | None, at: datetime
    ) -> DestinationSample:
        backlog = measured(one.backlog, reading, at)
        if backlog.bytes is None:
            backlog = standing(row, one.destination_id, reading, at)
        key = row.id, one.destination_id
        growth = self._growth.per_second(key, at, backlog.bytes) if backlog.bytes is not None else None
        update = {"growth_bytes_per_second": growth, "seconds_to_full": self._seconds_to_full(key, one, at)}
        return one.model_copy(update={"backlog": backlog.model_copy(update=update)})

    def _seconds_to_full(self, key: tuple[str, str], one: DestinationSample, at: datetime) -> float | None:
        """Until its backlog on disk has reached its limit."""
        if one.spilled is None:
            return None
        growth = self._growth.per_second((*key, "disk"), at, one.spilled.bytes)
        room = max(0, one.spilled.limit_bytes - one.spilled.bytes)
        return room / growth if growth is not None and growth > 0 else None
