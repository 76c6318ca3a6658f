"""The speed of growth, and the time since something last moved. Owner: the evaluation; nothing is stored."""

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from thalweg.kernel.slopes import Point, slope

WINDOW = timedelta(minutes=30)
"""At a checkpoint_timeout of five minutes it holds several of the falls that checkpoints make."""
SPAN_MIN = timedelta(seconds=10)
POINTS_MAX = 720
STALL = 2.0
"""A rise that is so many times as high as the usual one is another rise."""


@dataclass
class Trend:
    """The last values of one quantity; a full window is thinned, so that memory stays bounded at any pace."""

    points: deque[Point] = field(default_factory=deque)

    def add(self, at: datetime, value: float) -> None:
        if self.points and at - self.points[-1][0] < WINDOW / POINTS_MAX:
            return
        self.points.append((at, value))
        while at - self.points[0][0] > WINDOW:
            self.points.popleft()

    def per_second(self) -> float | None:
        """The slope of the least squares' line since the rise began, so that neither the quiet before it nor a rise
        that is over counts. Of what rises and falls again and again, as WAL that checkpoints recycle, the slope of its
        low points, until it rises far above what is usual. 0: it does not rise. None: not seen for SPAN_MIN."""
        if not self.points or self.points[-1][0] - self.points[0][0] < SPAN_MIN:
            return None
        points = list(self.points)
        lows = _low_points(points)
        begin = min(range(len(points)), key=lambda place: (points[place][1], -place))
        if len(lows) > 1:
            usual = sorted(fall for _, fall in lows)[-2]  # one alone is the end of an earlier trouble
            teeth = [place for place, fall in lows if fall >= usual / 2]
            if points[-1][1] - points[teeth[-1]][1] <= STALL * usual:
                return max(0.0, _slope([points[place] for place in teeth])) if len(teeth) > 2 else 0.0
            begin = teeth[-1]
        return max(0.0, _slope(points[begin:]))


def _low_points(points: list[Point]) -> list[tuple[int, float]]:
    """Points before each rise, and their depth."""
    lows: list[tuple[int, float]] = []
    top = points[0][1]
    for place, ((_, before), (_, value), (_, after)) in enumerate(zip(points, points[1:], points[2:], strict=False), 1):
        top = max(top, before)
        if value <= before and value < after and value < top:
            lows.append((place, top - value))
            top = value
    return lows


def _slope(points: list[Point]) -> float:
    """Per second; 0 for less than SPAN_MIN."""
    return slope(points) if points[-1][0] - points[0][0] >= SPAN_MIN else 0.0


@dataclass(frozen=True)
class Standstill:
    """The position at a standstill, its beginning, and the source's end at that time."""

    since: datetime
    position: int
    source_end: int


@dataclass
class Memory:
    """The evaluation's memory between runs. It is lost with the collector: growth is then observed again."""

    trends: dict[Hashable, Trend] = field(default_factory=dict)
    standstills: dict[tuple[str, str], Standstill] = field(default_factory=dict)
    """By stream and part of it."""
    touched: set[Hashable] = field(default_factory=set)

    def growth(self, key: Hashable, at: datetime, value: float) -> float | None:
        """Per second, after taking in the value of now."""
        self.touched.add(key)
        trend = self.trends.setdefault(key, Trend())
        trend.add(at, value)
        return trend.per_second()

    def standstill(self, key: tuple[str, str], at: datetime, position: int, source_end: int) -> Standstill:
        """It begins when there is something to do, not when the stream became idle."""
        known = self.standstills.get(key)
        if known is None or known.position != position or position >= source_end:
            known = self.standstills[key] = Standstill(at, position, source_end)
        return known

    def sweep(self, stream_ids: set[str]) -> None:
        """Forgets what was not asked for since the last time."""
        self.trends = {key: trend for key, trend in self.trends.items() if key in self.touched}
        self.touched = set()
        self.standstills = {key: known for key, known in self.standstills.items() if key[0] in stream_ids}
