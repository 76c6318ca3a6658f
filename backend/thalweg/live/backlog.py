"""The backlog against the source's own end: it is there whether or not anything runs."""

from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from thalweg.db.models import StreamRow
from thalweg.inspection.slots import SlotState
from thalweg.kernel.lsn import lsn_of, lsn_text
from thalweg.live.schemas import Backlog
from thalweg.live.sources import SourceReading

GROWTH_WINDOW = timedelta(seconds=60)
GROWTH_SPAN_MIN = timedelta(seconds=5)
UNKNOWN_BACKLOG = Backlog(bytes=None, seconds=None)


@dataclass
class Growth:
    """Growth rates over GROWTH_WINDOW. Owner: the collector."""

    seen: dict[Hashable, deque[tuple[datetime, float]]] = field(default_factory=dict)

    def per_second(self, key: Hashable, at: datetime, value: float) -> float | None:
        """After taking in the value of now. None: not observed for GROWTH_SPAN_MIN."""
        points = self.seen.setdefault(key, deque())
        points.append((at, value))
        while at - points[0][0] > GROWTH_WINDOW:
            points.popleft()
        since, first = points[0]
        span = at - since
        return (value - first) / span.total_seconds() if span >= GROWTH_SPAN_MIN else None

    def forget_before(self, at: datetime) -> None:
        self.seen = {key: points for key, points in self.seen.items() if at - points[-1][0] <= GROWTH_WINDOW}


def measured(known: Backlog, reading: SourceReading | None, at: datetime) -> Backlog:
    """The engine's figures, corrected by the source's: the engine may not know the latest WAL, and knows no age."""
    if reading is None or known.applied is None:
        return known
    applied = lsn_of(known.applied)
    behind = max(known.bytes or 0, reading.end - applied)
    seconds = known.seconds
    if known.bytes and seconds:
        seconds = round(seconds * behind / known.bytes, 3)
    return known.model_copy(
        update={
            "bytes": behind, "seconds": seconds if behind else 0.0, "source_read_at": reading.read_at,
            "age_seconds": reading.marks.age_of(applied, at) if behind else 0.0,
        }
    )  # fmt: skip


def standing(row: StreamRow, destination_id: str, reading: SourceReading | None, at: datetime) -> Backlog:
    """The figures of a destination for which no engine works now: it falls behind as fast as the source writes. Its
    position is the last reported one; otherwise, and where the source keeps WAL for it, the slot's."""
    if reading is None:
        return UNKNOWN_BACKLOG
    slot = reading.slot(row.id)
    confirmed = slot.confirmed_lsn or 0 if slot is not None else 0
    reached = lsn_of((row.reached or {}).get(destination_id, ""))
    one = row.destination(destination_id)
    applied = reached or confirmed if one is None or one.backlog else max(reached, confirmed)
    if not applied:
        return UNKNOWN_BACKLOG
    known = measured(Backlog(bytes=0, seconds=None, applied=lsn_text(applied)), reading, at)
    update = {"growth_bytes_per_second": reading.marks.per_second(at), "seconds": None if known.bytes else 0.0}
    return known.model_copy(update=update)


def longest(backlogs: Iterable[Backlog]) -> Backlog:
    return max(backlogs, key=lambda one: -1 if one.bytes is None else one.bytes, default=UNKNOWN_BACKLOG)


def of_stream(backlogs: Iterable[Backlog], reading: SourceReading | None, slot: SlotState | None) -> Backlog:
    """The longest of its destinations'; what fills up for all of them is the slot."""
    full = reading.seconds_to_full(slot) if reading is not None and slot is not None else None
    return longest(backlogs).model_copy(update={"seconds_to_full": full})
