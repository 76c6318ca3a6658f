"""Marks of a source's WAL end over time, which turn a position into a time. Kept with the reading of its slots."""

from bisect import bisect_right
from datetime import datetime, timedelta

from pydantic import BaseModel

RATE_WINDOW = timedelta(seconds=60)
RATE_SPAN_MIN = timedelta(seconds=5)
APART_SHARE = 0.05
"""Two marks lie further apart the older they are: by this share of their age, so that weeks need a few hundred."""
APART_MIN_SECONDS = 2.0


class Marks(BaseModel):
    """(seconds since 1970, position) pairs; both grow. Owner: the collector; elsewhere immutable."""

    points: list[tuple[float, int]] = []

    def add(self, at: datetime, end: int) -> None:
        """A position below the last one says nothing: who told it knew less of the source."""
        moment = at.timestamp()
        if self.points and (moment <= self.points[-1][0] or end < self.points[-1][1]):
            return
        # While an end stands still, only the first and the last time matter.
        if len(self.points) > 1 and self.points[-1][1] == self.points[-2][1] == end:
            self.points.pop()
        self.points.append((moment, end))

    def thin(self, at: datetime) -> None:
        now, kept = at.timestamp(), list[tuple[float, int]]()
        last = len(self.points) - 1
        for place, point in enumerate(self.points):
            apart = max(APART_MIN_SECONDS, APART_SHARE * (now - point[0]))
            if not kept or point[0] - kept[-1][0] >= apart or place >= last - 1:
                kept.append(point)
        self.points = kept

    def age_of(self, position: int, at: datetime) -> float | None:
        """Seconds since the source wrote what follows `position`. None: before the first mark."""
        if not self.points or position < self.points[0][1]:
            return None
        after = bisect_right(self.points, position, key=lambda point: point[1])
        moment, end = self.points[after - 1]
        if after < len(self.points):
            later, higher = self.points[after]
            moment += (later - moment) * (position - end) / (higher - end)
        return max(0.0, at.timestamp() - moment)

    def per_second(self, at: datetime) -> float | None:
        """Bytes of WAL that the source writes, over RATE_WINDOW. None: not observed for RATE_SPAN_MIN."""
        since = (at - RATE_WINDOW).timestamp()
        recent = [point for point in self.points if point[0] >= since]
        if not recent or recent[-1][0] - recent[0][0] < RATE_SPAN_MIN.total_seconds():
            return None
        return (recent[-1][1] - recent[0][1]) / (recent[-1][0] - recent[0][0])
