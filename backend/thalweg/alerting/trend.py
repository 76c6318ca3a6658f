"""How fast something grows, and since when something has not moved. Owner: the evaluation; nothing is stored."""

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise

WINDOW = timedelta(minutes=10)
SPAN_MIN = timedelta(seconds=10)
POINTS_MAX = 240


@dataclass
class Trend:
    """The last values of one quantity; a full window is thinned, so that memory stays bounded at any pace."""

    points: deque[tuple[datetime, float]] = field(default_factory=deque)

    def add(self, at: datetime, value: float) -> None:
        if self.points and at - self.points[-1][0] < WINDOW / POINTS_MAX:
            return
        self.points.append((at, value))
        while at - self.points[0][0] > WINDOW:
            self.points.popleft()

    def per_second(self) -> float | None:
        """The slope of the least squares' line since the rise began, so that neither the quiet before it nor a rise
        that is over counts. 0: it does not rise, or no further than it usually does before it falls. None: not seen
        for SPAN_MIN."""
        if not self.points or self.points[-1][0] - self.points[0][0] < SPAN_MIN:
            return None
        begin = min(range(len(self.points)), key=lambda place: (self.points[place][1], -place))
        rise = list(self.points)[begin:]
        lasted, risen = rise[-1][0] - rise[0][0], rise[-1][1] - rise[0][1]
        if lasted < SPAN_MIN or risen <= _usual_fall([value for _, value in self.points]):
            return 0.0
        start = rise[0][0]
        xs = [(at - start).total_seconds() for at, _ in rise]
        ys = [value for _, value in rise]
        mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
        spread = sum((x - mean_x) ** 2 for x in xs)
        return sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / spread


def _usual_fall(values: list[float]) -> float:
    """How far it falls again and again: the second largest fall. One alone is the end of an earlier trouble."""
    falls, top = [0.0, 0.0], values[0]
    for before, value in pairwise(values):
        if value > before:
            falls.append(0.0)
            top = value
        else:
            falls[-1] = top - value
    return sorted(falls)[-2]


@dataclass(frozen=True)
class Standstill:
    """Where a position has stood since when, and where the source's end was then."""

    since: datetime
    position: int
    source_end: int


@dataclass
class Memory:
    """What the evaluation remembers from one time to the next. Lost with the collector: growth is observed anew."""

    trends: dict[Hashable, Trend] = field(default_factory=dict)
    standstills: dict[str, Standstill] = field(default_factory=dict)
    touched: set[Hashable] = field(default_factory=set)

    def growth(self, key: Hashable, at: datetime, value: float) -> float | None:
        """Per second, after taking in the value of now."""
        self.touched.add(key)
        trend = self.trends.setdefault(key, Trend())
        trend.add(at, value)
        return trend.per_second()

    def standstill(self, stream_id: str, at: datetime, position: int, source_end: int) -> Standstill:
        """It begins when there is something to do, not when the stream became idle."""
        known = self.standstills.get(stream_id)
        if known is None or known.position != position or position >= source_end:
            known = self.standstills[stream_id] = Standstill(at, position, source_end)
        return known

    def sweep(self, stream_ids: set[str]) -> None:
        """Forgets what was not asked for since the last time."""
        self.trends = {key: trend for key, trend in self.trends.items() if key in self.touched}
        self.touched = set()
        self.standstills = {name: known for name, known in self.standstills.items() if name in stream_ids}


def seconds_to(room: float, growth: float | None) -> float | None:
    """Until `room` is used up at this growth; None when it does not grow, or is not known yet."""
    return None if growth is None or growth <= 0 else max(0.0, room) / growth
