"""From documents to a chart's points. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import MappingProxyType

from thalweg.history.document import Json, Stored, decode
from thalweg.history.joining import join, leads
from thalweg.history.statistics import pick
from thalweg.live.joining_rules import is_fresh

SERIES_MAX = 100


@dataclass(frozen=True)
class Span:
    """A whole document, and the time from which to which it holds: half open."""

    begin: datetime
    end: datetime
    document: Json


@dataclass
class Series:
    """`values` and `highs` have one entry for each point; None where nothing is known."""

    name: str
    values: list[float | None]
    highs: list[float | None]
    _weights: list[float] = field(default_factory=list)

    @staticmethod
    def empty(name: str, points: int) -> "Series":
        return Series(name, [None] * points, [None] * points, [0.0] * points)

    def add(self, point: int, seconds: float, value: float, high: float) -> None:
        before, weight = self.values[point], self._weights[point]
        self.values[point] = value if before is None else (before * weight + value * seconds) / (weight + seconds)
        self._weights[point] = weight + seconds
        highest = self.highs[point]
        self.highs[point] = high if highest is None else max(highest, high)


def spans_of(rows: list[Stored], ids: Mapping[str, str] = MappingProxyType({})) -> list[Span]:
    """Rows of one stream in the order of time, of any tiers: parts of several engines are joined. `ids` as for
    `decode`."""
    engines = {row.engine_id for row in rows}
    if len(engines) < 2:
        return [_span(row, join([decode(row.document, ids)])) for row in rows]
    parts = [(row, decode(row.document, ids)) for row in rows]
    leaders = {row.engine_id for row, part in parts if leads(part)} or engines
    leader = min(leaders)
    last: dict[str, tuple[Stored, Json]] = {}
    spans = []
    for row, part in parts:
        if row.engine_id != leader:
            last[row.engine_id] = (row, part)
            continue
        fresh = [other for seen, other in last.values() if is_fresh(seen.at, row.at, row.width)]
        spans.append(_span(row, join([part, *fresh])))
    if not spans:
        spans = [_span(row, join([part])) for row, part in parts]
    return spans


def _span(row: Stored, document: Json) -> Span:
    """A sample tells of the time before it, a roll-up of the time after its row's."""
    if row.width > timedelta(seconds=1):
        return Span(row.at, row.at + row.width, document)
    return Span(row.at - timedelta(seconds=document["interval_seconds"] or 1.0), row.at, document)


def resample(spans: list[Span], statistics: list[str], since: datetime, step: int, points: int) -> list[Series]:
    """Means over time of each step; what a span holds counts for every step that it overlaps. At most SERIES_MAX."""
    wanted = [tuple(name.split(".")) for name in statistics]
    found: dict[str, Series] = {name: Series.empty(name, points) for name in statistics if "*" not in name}
    for span in spans:
        begin = (span.begin - since).total_seconds() / step
        end = (span.end - since).total_seconds() / step
        first, last = max(0, int(begin)), min(points - 1, int(end) if end > int(end) else int(end) - 1)
        for picked in pick(span.document, wanted):
            series = found.get(picked.name)
            if series is None:
                if len(found) >= SERIES_MAX:
                    continue
                series = found[picked.name] = Series.empty(picked.name, points)
            if picked.value is None:
                continue
            high = picked.value if picked.high is None else picked.high
            for point in range(first, last + 1):
                overlap = min(end, point + 1) - max(begin, point)
                if overlap > 0:
                    series.add(point, overlap * step, picked.value, high)
    return list(found.values())
