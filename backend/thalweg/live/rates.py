"""Rates from two statistics of one engine. What the first one cannot tell is null, never zero."""

from collections.abc import Mapping
from datetime import datetime

from thalweg.engine_client.documents import ComponentStats, LatencyHistogram, StreamStats, StreamStatus
from thalweg.live.positions import lsn_of
from thalweg.live.schemas import (
    Backlog,
    ComponentSample,
    ComponentType,
    LatencySample,
    Sample,
    TimePercent,
)

ACTIVITIES = tuple(TimePercent.model_fields)
PROPAGATION = {"PROPAGATION SENDER": "sender", "PROPAGATION RECEIVER": "receiver"}
NAMES = {"APPLY READER": "reader", "APPLY COORDINATOR": "coordinator", "APPLY SERVER": "server"}


class Reading:
    """One stream's statistics and status at one moment of the engine's monotonic clock."""

    def __init__(self, at: datetime, monotonic_ns: int, stats: StreamStats, status: StreamStatus) -> None:
        self.at = at
        self.monotonic_ns = monotonic_ns
        self.stats = stats
        self.status = status
        self.components = {component_id(component): component for component in stats.components}

    def done_lsn(self) -> int | None:
        """What needs no more work: applied, or confirmed where nothing of interest came after."""
        positions = self.status.positions
        return None if positions is None else max(lsn_of(positions.applied), lsn_of(positions.confirmed))


def component_id(component: ComponentStats) -> str:
    name = NAMES.get(component.sub_component or "") or PROPAGATION.get(component.type, component.name)
    name = f"{name}-{component.server}" if component.server else name
    return f"{component.destination}.{name}" if component.destination else name


def sample_of(stream_id: str, before: Reading | None, now: Reading, engine_id: str | None = None) -> Sample:
    """`before` is the reading a poll ago, None for the first or when the engine has restarted."""
    seconds = None if before is None else (now.monotonic_ns - before.monotonic_ns) / 1e9
    if before is None or seconds is None or seconds <= 0:
        before, seconds = None, None
    components = [_component(name, before, component, seconds, engine_id) for name, component in now.components.items()]
    servers = [sample for sample in components if sample.sub_component == "APPLY SERVER"]
    return Sample(
        stream_id=stream_id, at=now.at, interval_seconds=seconds, status=now.status.status, phase=now.status.phase,
        lcrs_per_second=_sum([server.lcrs_per_second for server in servers]),
        transactions_per_second=_sum([server.transactions_per_second for server in servers]),
        bytes_per_second=_sum([server.bytes_per_second for server in servers]),
        latency=_latency(before.stats.latency if before else None, now.stats.latency),
        backlog=_backlog(before, now, seconds),
        error_queue_transactions=now.stats.error_queue_transactions, components=components,
    )  # fmt: skip


def _component(
    name: str, before: Reading | None, now: ComponentStats, seconds: float | None, engine_id: str | None
) -> ComponentSample:
    earlier = before.components.get(name) if before else None
    rates = _counter_rates(earlier.counters, now.counters, seconds) if earlier and seconds else None
    rate = rates or {}
    return ComponentSample(
        id=name, engine_id=engine_id, destination_id=now.destination, type=ComponentType(now.type), name=now.name,
        sub_component=now.sub_component, server=now.server, state=now.state,
        lcrs_per_second=rate.get("lcrs"), transactions_per_second=rate.get("transactions"),
        bytes_per_second=rate.get("bytes"),
        time_percent=_time_percent(earlier.time_ns if earlier else None, now.time_ns) if rates is not None else None,
        counters=now.counters, gauges=now.gauges, counter_rates=rates,
    )  # fmt: skip


def _counter_rates(before: Mapping[str, int], now: Mapping[str, int], seconds: float) -> dict[str, float] | None:
    """None when any counter went back: the component was made anew in between."""
    if any(now.get(name, 0) < value for name, value in before.items()):
        return None
    return {name: (value - before[name]) / seconds for name, value in now.items() if name in before}


def _time_percent(before: Mapping[str, int] | None, now: Mapping[str, int] | None) -> TimePercent | None:
    if before is None or now is None:
        return None
    spent = {name: now.get(name, 0) - before.get(name, 0) for name in ACTIVITIES}
    total = sum(spent.values())
    if total <= 0 or min(spent.values()) < 0:
        return None
    return TimePercent(**{name: round(100 * value / total, 3) for name, value in spent.items()})


def _sum(rates: list[float | None]) -> float | None:
    known = [rate for rate in rates if rate is not None]
    return sum(known) if known else None


def _latency(before: LatencyHistogram | None, now: LatencyHistogram) -> LatencySample:
    unknown = LatencySample(p50_ms=None, p99_ms=None, transactions=None)
    if before is None:
        return unknown
    earlier = dict(before.buckets)
    counts = [(upper, count - earlier.get(upper, 0)) for upper, count in sorted(now.buckets)]
    if any(count < 0 for _, count in counts):
        return unknown
    total = sum(count for _, count in counts)
    if total == 0:
        return LatencySample(p50_ms=None, p99_ms=None, transactions=0)
    return LatencySample(
        p50_ms=_quantile(counts, total, 0.50), p99_ms=_quantile(counts, total, 0.99), transactions=total
    )


def _quantile(counts: list[tuple[int, int]], total: int, share: float) -> float:
    """The upper bound of the bucket it falls in, in milliseconds: never better than it was."""
    seen = 0
    for upper, count in counts:
        seen += count
        if seen >= share * total:
            return upper / 1000
    return counts[-1][0] / 1000


def _backlog(before: Reading | None, now: Reading, seconds: float | None) -> Backlog:
    done = now.done_lsn()
    if done is None or now.status.positions is None or done == 0:
        return Backlog(bytes=None, seconds=None)
    behind = max(0, lsn_of(now.status.positions.source_end) - done)
    if behind == 0:
        return Backlog(bytes=0, seconds=0.0)
    earlier = before.done_lsn() if before else None
    if earlier is None or not seconds or done <= earlier:
        return Backlog(bytes=behind, seconds=None)
    return Backlog(bytes=behind, seconds=round(behind / ((done - earlier) / seconds), 3))
