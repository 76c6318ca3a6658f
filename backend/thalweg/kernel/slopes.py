"""The slope of what was seen over time."""

from collections.abc import Sequence
from datetime import datetime

Point = tuple[datetime, float]


def slope(points: Sequence[Point]) -> float:
    """That of the least squares' line, per second. At least two points, at different times."""
    xs = [(at - points[0][0]).total_seconds() for at, _ in points]
    mean_x, mean_y = sum(xs) / len(xs), sum(value for _, value in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x in xs)
    return sum((x - mean_x) * (value - mean_y) for x, (_, value) in zip(xs, points, strict=True)) / spread
