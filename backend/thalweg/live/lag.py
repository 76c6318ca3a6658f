"""The replication lag against the source's own end: it is there whether or not anything runs."""

from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from thalweg.db.models import StreamRow
from thalweg.inspection.slots import SlotState
from thalweg.kernel.lsn import lsn_of, lsn_text
from thalweg.kernel.slopes import Point
from thalweg.kernel.time_to_full import FillingLimit
from thalweg.live.schemas import Lag
from thalweg.live.sources import KEEPS_UP_BYTES, SourceReading

GROWTH_WINDOW = timedelta(seconds=60)
GROWTH_SPAN_MIN = timedelta(seconds=5)
CATCH_UP_SPAN = timedelta(seconds=5)
CATCH_UPS_MIN = 3
CATCH_UP_LEAST = 0.001
"""Seconds: what is not done takes some time."""
UNKNOWN_LAG = Lag(bytes=None, seconds=None)


@dataclass
class Growth:
    """Growth rates over GROWTH_WINDOW. Owner: the collector."""

    seen: dict[Hashable, deque[Point]] = field(default_factory=dict)

    def per_second(self, key: Hashable, at: datetime, value: float) -> float | None:
        """After taking in the value of now. None: not observed for GROWTH_SPAN_MIN."""
        points = self.seen.setdefault(key, deque())
        points.append((at, value))
        while at - points[0][0] > GROWTH_WINDOW:
            points.popleft()
        since, first = points[0]
        span = at - since
        return (value - first) / span.total_seconds() if span >= GROWTH_SPAN_MIN else None

    def forget(self, key: Hashable) -> None:
        """The values until now say nothing of the growth that follows."""
        self.seen.pop(key, None)

    def forget_before(self, at: datetime) -> None:
        self.seen = {key: points for key, points in self.seen.items() if at - points[-1][0] <= GROWTH_WINDOW}


@dataclass
class CatchUpTimes:
    """Times to catch up, from several rates: the first transaction of a session says nothing of the next ones. Owner:
    the collector."""

    seen: dict[Hashable, deque[Point]] = field(default_factory=dict)

    def seconds(self, key: Hashable, at: datetime, lag: Lag) -> float | None:
        """The shortest of the last times. None: there are fewer than CATCH_UPS_MIN, or nothing moves now."""
        if not lag.bytes:
            self.forget(key)
        if not lag.bytes or lag.seconds is None:
            return lag.seconds
        points = self.seen.setdefault(key, deque())
        points.append((at, max(lag.seconds, CATCH_UP_LEAST)))
        while len(points) > CATCH_UPS_MIN and at - points[0][0] > CATCH_UP_SPAN:
            points.popleft()
        return min(seconds for _, seconds in points) if len(points) >= CATCH_UPS_MIN else None

    def forget(self, key: Hashable) -> None:
        """A session, or its lag, is over: the next one has its own forecasts."""
        self.seen.pop(key, None)

    def forget_before(self, at: datetime) -> None:
        self.seen = {key: points for key, points in self.seen.items() if at - points[-1][0] <= GROWTH_WINDOW}


def measured(known: Lag, reading: SourceReading | None, at: datetime) -> Lag:
    """The engine's figures, corrected by the source's: the engine may not know the latest WAL, and knows no age."""
    if reading is None or known.applied is None:
        return known
    applied = lsn_of(known.applied)
    behind = max(known.bytes or 0, reading.end - applied)
    # An engine that has heard of less has no rate to tell when the rest is done.
    seconds = round(known.seconds * behind / known.bytes, 3) if known.bytes and known.seconds else None
    return known.model_copy(
        update={
            "bytes": behind, "seconds": seconds if behind else 0.0, "source_read_at": reading.read_at,
            "age_seconds": reading.marks.age_of(applied, at) if behind else 0.0,
        }
    )  # fmt: skip


def standing(row: StreamRow, destination_id: str, reading: SourceReading | None, at: datetime) -> Lag:
    """The figures of a destination for which no engine works now: it falls behind as fast as the source writes. Its
    position is the last reported one; otherwise, and where the source keeps WAL for it, the slot's."""
    if reading is None:
        return UNKNOWN_LAG
    slot = reading.slot(row.id)
    confirmed = slot.confirmed_lsn or 0 if slot is not None else 0
    reached = lsn_of((row.reached or {}).get(destination_id, ""))
    destination = row.destination(destination_id)
    applied = reached or confirmed if destination is None or destination.backlog else max(reached, confirmed)
    if not applied:
        return UNKNOWN_LAG
    known = measured(Lag(bytes=0, seconds=None, applied=lsn_text(applied)), reading, at)
    update = {"growth_bytes_per_second": reading.marks.per_second(at), "seconds": None if known.bytes else 0.0}
    return known.model_copy(update=update)


def longest(lags: Iterable[Lag]) -> Lag:
    return max(lags, key=lambda lag: -1 if lag.bytes is None else lag.bytes, default=UNKNOWN_LAG)


def first_full(lag: Lag, times: Iterable[tuple[float | None, FillingLimit]]) -> Lag:
    """The lag with the limit that is reached first."""
    known = [(seconds, limit) for seconds, limit in times if seconds is not None]
    seconds, limit = min(known, default=(None, None))
    return lag.model_copy(update={"seconds_to_full": seconds, "reached_limit": limit})


def of_stream(lags: Iterable[Lag], reading: SourceReading | None, slot: SlotState | None) -> Lag:
    """The longest of its destinations'; what fills up first is the slot, for all of them, or something of one of them.
    Where nothing waits, the slot's own time is the slot's."""
    all_lags = list(lags)
    lag = longest(all_lags)
    waits = lag.bytes is None or lag.bytes >= KEEPS_UP_BYTES
    full = reading.seconds_to_full(slot) if waits and reading is not None and slot is not None else None
    own = [(other.seconds_to_full, other.reached_limit) for other in all_lags if other.reached_limit is not None]
    return first_full(lag, [(full, FillingLimit.SLOT), *own])
