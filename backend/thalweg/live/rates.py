"""Rates from two statistics of one engine. A rate that needs a figure which the first one lacks is null."""

from collections.abc import Mapping
from datetime import datetime

from thalweg.engine_client.documents import (
    ComponentStats,
    DestinationBacklog,
    DestinationStatus,
    LatencyHistogram,
    StreamStats,
    StreamStatus,
)
from thalweg.kernel.lifecycle import NO_BACKLOG, BacklogState
from thalweg.kernel.lsn import lsn_of, lsn_text
from thalweg.kernel.sums import Sum, known_sum
from thalweg.live.joining_rules import slowest
from thalweg.live.lag import longest
from thalweg.live.schemas import (
    Backlog,
    ComponentSample,
    ComponentType,
    DestinationSample,
    Lag,
    LatencySample,
    Sample,
    TimePercent,
)

ACTIVITIES = tuple(TimePercent.model_fields)
PROPAGATION = {"PROPAGATION SENDER": "sender", "PROPAGATION RECEIVER": "receiver"}
UNKNOWN = LatencySample(p50_ms=None, p99_ms=None, transactions=None)
NAMES = {"APPLY READER": "reader", "APPLY COORDINATOR": "coordinator", "APPLY SERVER": "server",
         "WAL SHIPMENT": "shipment", "LOGMINER BUILDER": "builder"}  # fmt: skip


class Reading:
    """One stream's statistics and status at one moment of the engine's monotonic clock."""

    def __init__(self, at: datetime, monotonic_ns: int, stats: StreamStats, status: StreamStatus) -> None:
        self.at = at
        self.monotonic_ns = monotonic_ns
        self.stats = stats
        self.status = status
        self.components = {component_id(component): component for component in stats.components}
        self.destinations = {destination.id: destination for destination in stats.destinations}

    def done(self, destination: str) -> int | None:
        found = next((known for known in self.status.destinations if known.id == destination), None)
        return None if found is None else found.done


def component_id(component: ComponentStats) -> str:
    name = NAMES.get(component.sub_component or "") or PROPAGATION.get(component.type, component.name)
    name = f"{name}-{component.server}" if component.server else name
    return f"{component.destination}:{name}" if component.destination else name


def sample_of(stream_id: str, before: Reading | None, now: Reading, engine_id: str | None = None) -> Sample:
    """`before` is the reading a poll ago, None for the first or when the engine has restarted."""
    seconds = None if before is None else (now.monotonic_ns - before.monotonic_ns) / 1e9
    if before is None or seconds is None or seconds <= 0:
        before, seconds = None, None
    components = [_component(name, before, component, seconds, engine_id) for name, component in now.components.items()]
    servers = [sample for sample in components if sample.sub_component == "APPLY SERVER"]
    destinations = [_destination(destination, before, now, seconds, servers) for destination in now.status.destinations]
    # Several destinations apply the same changes: the stream's rate is the source's, not their sum.
    counted = (
        servers
        if len(now.status.destinations) < 2
        else [component for component in components if component.type == "CAPTURE" and component.sub_component is None]
    )
    last = slowest(destinations, lambda destination: destination.latency.p99_ms)
    return Sample(
        stream_id=stream_id, at=now.at, interval_seconds=seconds, status=now.status.status, phase=now.status.phase,
        lcrs_per_second=Sum.of(part.lcrs_per_second for part in counted).exact,
        transactions_per_second=Sum.of(part.transactions_per_second for part in counted).exact,
        bytes_per_second=Sum.of(part.bytes_per_second for part in counted).exact,
        latency=last.latency if last else _latency(before.stats.latency if before else None, now.stats.latency),
        lag=longest(destination.lag for destination in destinations),
        error_queue_transactions=known_sum([destination.error_queue_transactions for destination in destinations]),
        components=components, destinations=destinations,
    )  # fmt: skip


def _destination(
    status: DestinationStatus, before: Reading | None, now: Reading, seconds: float | None,
    servers: list[ComponentSample],
) -> DestinationSample:  # fmt: skip
    own = [server for server in servers if server.destination_id == status.id]
    # A destination that nothing applies to, or that another engine does, counts no error queue here.
    counts = any(component.destination == status.id and component.type == "APPLY" for component in now.stats.components)
    stats, earlier = now.destinations.get(status.id), before.destinations.get(status.id) if before else None
    return DestinationSample(
        destination_id=status.id, status=status.status, phase=status.phase,
        lcrs_per_second=Sum.of(server.lcrs_per_second for server in own).exact,
        transactions_per_second=Sum.of(server.transactions_per_second for server in own).exact,
        bytes_per_second=Sum.of(server.bytes_per_second for server in own).exact,
        latency=_latency(earlier.latency if earlier else None, stats.latency) if stats else UNKNOWN,
        lag=_lag(before, now, seconds, status.id), backlog=backlog_of(status.backlog),
        error_queue_transactions=stats.error_queue_transactions if stats and counts else None,
    )  # fmt: skip


def backlog_of(backlog: DestinationBacklog | None) -> Backlog | None:
    if backlog is None or backlog.state == NO_BACKLOG:
        return None
    return Backlog(
        state=BacklogState(backlog.state), bytes=backlog.bytes, lcrs=backlog.lcrs, frames=backlog.frames,
        age_seconds=backlog.age_us / 1e6, limit_bytes=backlog.limit_bytes,
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


def _latency(before: LatencyHistogram | None, now: LatencyHistogram) -> LatencySample:
    if before is None:
        return UNKNOWN
    earlier = dict(before.buckets)
    counts = [(upper, count - earlier.get(upper, 0)) for upper, count in sorted(now.buckets)]
    if any(count < 0 for _, count in counts):
        return UNKNOWN
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


def _lag(before: Reading | None, now: Reading, seconds: float | None, destination: str) -> Lag:
    done = now.done(destination)
    if done is None or now.status.positions is None:
        return Lag(bytes=None, seconds=None)
    applied = lsn_text(done)
    behind = max(0, lsn_of(now.status.positions.source_end) - done)
    if behind == 0:
        return Lag(bytes=0, seconds=0.0, applied=applied)
    earlier = before.done(destination) if before else None
    if earlier is None or not seconds or done <= earlier:
        return Lag(bytes=behind, seconds=None, applied=applied)
    return Lag(bytes=behind, seconds=round(behind / ((done - earlier) / seconds), 3), applied=applied)
