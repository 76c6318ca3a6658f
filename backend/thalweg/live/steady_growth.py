"""Growth on which a forecast can rest: that of minutes, and only while it is steady.

The growth from one poll to the next jumps: a backlog is written in batches, WAL comes in bursts. A time until something
is full that jumps with it helps nobody."""

from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from thalweg.kernel.slopes import Point, slope

WINDOW = timedelta(minutes=3)
SPAN_MIN = timedelta(seconds=20)
POINTS_MIN = 5
APART_MIN = timedelta(seconds=1)
"""Points that come faster are left out: memory stays bounded at any pace."""
RATIO_MAX = 2.0
"""The growth of one half of the window may be so many times that of the other."""


@dataclass
class SteadyGrowth:
    """Owner: the collector."""

    seen: dict[Hashable, deque[Point]] = field(default_factory=dict)

    def per_second(self, key: Hashable, at: datetime, value: float) -> float | None:
        """After taking in the value of now: the slope of the least squares' line over WINDOW. None: it is not steady,
        does not grow, or was not seen for SPAN_MIN."""
        points = self.seen.setdefault(key, deque())
        if not points or at - points[-1][0] >= APART_MIN:
            points.append((at, value))
        while at - points[0][0] > WINDOW:
            points.popleft()
        return steady_slope(list(points))

    def forget(self, key: Hashable) -> None:
        """The values until now say nothing of the growth that follows."""
        self.seen.pop(key, None)

    def forget_before(self, at: datetime) -> None:
        self.seen = {key: points for key, points in self.seen.items() if at - points[-1][0] <= WINDOW}


def steady_slope(points: Sequence[Point]) -> float | None:
    """Per second, oldest point first; None unless both halves grow alike."""
    if len(points) < POINTS_MIN or points[-1][0] - points[0][0] < SPAN_MIN:
        return None
    middle = points[0][0] + (points[-1][0] - points[0][0]) / 2
    halves = [point for point in points if point[0] <= middle], [point for point in points if point[0] >= middle]
    if min(map(len, halves)) < 2:
        return None
    least, most = sorted(map(slope, halves))
    return slope(points) if 0 < most <= RATIO_MAX * least else None
