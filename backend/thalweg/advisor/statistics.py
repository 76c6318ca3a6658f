"""Rows of COMPONENT_STAT and PATH_STAT: names and units as in Streams, and the engine's own where Streams has none."""

from datetime import datetime

from thalweg.advisor.load import Load, rate_of
from thalweg.advisor.occupancy import Occupancy
from thalweg.advisor.schemas import AdvisorComponent, ComponentStatistic, PathStatistic, Unit
from thalweg.advisor.shape import Path
from thalweg.advisor.stages import Stage
from thalweg.live.schemas import ComponentType

EVENTS_SHOWN = 3
Value = tuple[str, float | None, Unit]
SERVER, READER, COORDINATOR = "APPLY SERVER", "APPLY READER", "APPLY COORDINATOR"


def component_rows(stages: list[Stage], at: datetime) -> list[ComponentStatistic]:
    """Rows of each component: first its own, then those of its sub-components, then those of single threads."""
    rows: list[ComponentStatistic] = []
    by_component: dict[str, list[Stage]] = {}
    for stage in stages:
        by_component.setdefault(stage.component.component_id, []).append(stage)
    for of_one in by_component.values():
        component = of_one[0].component
        rows += _rows(component, None, None, at, _component_values(of_one))
        for stage in of_one:
            if stage.sub_component is not None:
                rows += _rows(component, stage.sub_component, None, at, _stage_values(stage))
        for stage in of_one:
            if len(stage.threads) > 1:
                for thread in stage.threads:
                    number = thread.load.last.server
                    rows += _rows(component, stage.sub_component, number, at, _thread_values(thread.load))
                    rows += _rows(component, stage.sub_component, number, at, _shares(thread.occupancy))
    return rows


def _rows(
    component: AdvisorComponent, sub_component: str | None, thread: int | None, at: datetime, values: list[Value]
) -> list[ComponentStatistic]:
    return [
        ComponentStatistic(
            component_id=component.component_id, component_name=component.component_name,
            component_db=component.component_db, component_type=component.component_type,
            sub_component_type=sub_component, thread=thread, statistic_time=at, statistic_name=name,
            statistic_value=None if value is None else round(value, 6), statistic_unit=unit,
        )
        for name, value, unit in values
    ]  # fmt: skip


def _component_values(stages: list[Stage]) -> list[Value]:
    kind, loads = stages[0].component.component_type, stages[0].loads
    if kind is ComponentType.APPLY:
        servers = [load for stage in stages if stage.sub_component == SERVER for load in stage.loads]
        return [
            ("MESSAGE APPLY RATE", rate_of(servers, "lcrs"), Unit.MESSAGES_PER_SECOND),
            ("TRANSACTION APPLY RATE", rate_of(servers, "transactions"), Unit.TRANSACTIONS_PER_SECOND),
            # One that applied nothing keeps the figure of its last transaction, however old.
            ("LATENCY", _latency([load for load in servers if load.rates.get("transactions")]), Unit.SECONDS),
        ]
    shares = _shares(stages[0].mean) if stages[0].sub_component is None else []
    return [*_OWN[kind](loads), *shares]


def _capture(loads: list[Load]) -> list[Value]:
    return [
        ("CAPTURE RATE", rate_of(loads, "lcrs"), Unit.MESSAGES_PER_SECOND),
        ("ENQUEUE RATE", rate_of(loads, "lcrs"), Unit.MESSAGES_PER_SECOND),
        ("TRANSACTION RATE", rate_of(loads, "transactions"), Unit.TRANSACTIONS_PER_SECOND),
        ("BANDWIDTH", rate_of(loads, "bytes"), Unit.BYTES_PER_SECOND),
        ("WAL RATE", rate_of(loads, "wal_bytes"), Unit.BYTES_PER_SECOND),
        ("LATENCY", _latency(loads), Unit.SECONDS),
    ]


def _queue(loads: list[Load]) -> list[Value]:
    gauges = loads[0].last.gauges
    depth, capacity = gauges.get("depth"), gauges.get("capacity")
    used, memory = gauges.get("depth_bytes"), gauges.get("memory_bytes")
    fills = [_percent(depth, capacity), _percent(used, memory)]
    return [
        ("ENQUEUE RATE", rate_of(loads, "lcrs"), Unit.MESSAGES_PER_SECOND),
        ("CURRENT QUEUE SIZE", depth, Unit.MESSAGES),
        ("QUEUE CAPACITY", capacity, Unit.MESSAGES),
        ("QUEUE MEMORY USED", used, Unit.BYTES),
        ("QUEUE FILL", max((fill for fill in fills if fill is not None), default=None), Unit.PERCENT),
    ]


def _sender(loads: list[Load]) -> list[Value]:
    gauges = loads[0].last.gauges
    packed, plain = rate_of(loads, "packed_bytes"), rate_of(loads, "bytes")
    return [
        ("SEND RATE", rate_of(loads, "lcrs"), Unit.MESSAGES_PER_SECOND),
        ("BANDWIDTH", rate_of(loads, "bytes_sent"), Unit.BYTES_PER_SECOND),
        ("COMPRESSED TO", _percent(packed, plain), Unit.PERCENT),
        ("WINDOW FILL", _percent(gauges.get("window_used_bytes"), gauges.get("window_bytes")), Unit.PERCENT),
        ("ROUND TRIP", loads[0].gauge_seconds("round_trip_us"), Unit.SECONDS),
        ("LATENCY", _latency(loads), Unit.SECONDS),
    ]


def _receiver(loads: list[Load]) -> list[Value]:
    return [
        ("RECEIVE RATE", rate_of(loads, "lcrs"), Unit.MESSAGES_PER_SECOND),
        ("BANDWIDTH", rate_of(loads, "bytes_received"), Unit.BYTES_PER_SECOND),
        ("LATENCY", _latency(loads), Unit.SECONDS),
    ]


_OWN = {
    ComponentType.CAPTURE: _capture, ComponentType.QUEUE: _queue, ComponentType.PROPAGATION_SENDER: _sender,
    ComponentType.PROPAGATION_RECEIVER: _receiver,
}  # fmt: skip


def _stage_values(stage: Stage) -> list[Value]:
    loads, gauges = stage.loads, stage.loads[0].last.gauges
    groups, transactions = rate_of(loads, "groups"), rate_of(loads, "transactions")
    values: list[Value] = []
    if stage.sub_component == READER:
        values = [
            ("DEQUEUE RATE", rate_of(loads, "lcrs"), Unit.MESSAGES_PER_SECOND),
            ("SPILL RATE", rate_of(loads, "spilled_lcrs"), Unit.MESSAGES_PER_SECOND),
            ("SPILL BANDWIDTH", rate_of(loads, "spilled_bytes"), Unit.BYTES_PER_SECOND),
            ("SPILLED NOW", gauges.get("spill_bytes"), Unit.BYTES),
            ("SPILLED TRANSACTIONS", gauges.get("spill_transactions"), Unit.NUMBER),
            ("OPEN TRANSACTIONS", gauges.get("open_transactions"), Unit.NUMBER),
            ("MEMORY HELD", gauges.get("held_bytes"), Unit.BYTES),
        ]
    elif stage.sub_component == COORDINATOR:
        values = [
            ("TRANSACTION RATE", transactions, Unit.TRANSACTIONS_PER_SECOND),
            ("GROUP RATE", groups, Unit.PER_SECOND),
            ("TRANSACTIONS PER GROUP", _ratio(transactions, groups), Unit.NUMBER),
            ("DEPENDENT GROUPS", _percent(rate_of(loads, "dependent_groups"), groups), Unit.PERCENT),
            ("RETRIED GROUPS RATE", rate_of(loads, "retried_groups"), Unit.PER_SECOND),
            ("WAITING GROUPS", gauges.get("waiting_groups"), Unit.NUMBER),
            ("LOW WATERMARK LAG", loads[0].gauge_seconds("low_watermark_lag_us"), Unit.SECONDS),
        ]
    elif stage.sub_component == SERVER:
        values = [
            ("PARALLELISM", float(len(loads)), Unit.NUMBER),
            *_thread_values_of(loads),
            ("MESSAGES PER GROUP", _ratio(rate_of(loads, "lcrs"), groups), Unit.NUMBER),
            ("FALLBACK RATE", rate_of(loads, "fallbacks"), Unit.PER_SECOND),
            ("DEADLOCK RATE", rate_of(loads, "deadlocks"), Unit.PER_SECOND),
        ]
    return values + _shares(stage.mean)


def _thread_values(load: Load) -> list[Value]:
    return _thread_values_of([load])


def _thread_values_of(loads: list[Load]) -> list[Value]:
    return [
        ("MESSAGE APPLY RATE", rate_of(loads, "lcrs"), Unit.MESSAGES_PER_SECOND),
        ("TRANSACTION APPLY RATE", rate_of(loads, "transactions"), Unit.TRANSACTIONS_PER_SECOND),
    ]


def _shares(occupancy: Occupancy | None) -> list[Value]:
    """IDLE, FLOW CONTROL and the biggest events; null where they are not known."""
    if occupancy is None:
        return [("IDLE", None, Unit.PERCENT), ("FLOW CONTROL", None, Unit.PERCENT)]
    biggest = sorted(occupancy.events.items(), key=lambda item: -item[1])[:EVENTS_SHOWN]
    return [
        ("IDLE", occupancy.idle, Unit.PERCENT),
        ("FLOW CONTROL", occupancy.flow_control, Unit.PERCENT),
        *((f"EVENT: {name}", share, Unit.PERCENT) for name, share in biggest if share > 0),
    ]


def _latency(loads: list[Load]) -> float | None:
    return max((value for load in loads if (value := load.gauge_seconds("latency_us")) is not None), default=None)


def _ratio(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else part / whole


def _percent(part: float | None, whole: float | None) -> float | None:
    ratio = _ratio(part, whole)
    return None if ratio is None else 100 * ratio


def path_rows(path: Path, at: datetime) -> list[PathStatistic]:
    samples = [own for sample in path.samples if sample.interval_seconds is not None and (own := path.own(sample))]
    servers = [load for part in path.parts for load in part.loads if load.last.sub_component == SERVER]
    last = path.own_samples[-1] if path.own_samples else None
    p50 = [sample.latency.p50_ms for sample in samples if sample.latency.p50_ms is not None]
    known = [(sample.latency.p99_ms, sample.latency.at_least) for sample in samples]
    p99 = [value for value, at_least in known if value is not None and not at_least]
    bounds = [value for value, at_least in known if value is not None and at_least]
    values: list[Value] = [
        ("OPTIMIZATION_MODE", 1.0 if path.path.combined else 0.0, Unit.NUMBER),
        ("MESSAGE RATE", rate_of(servers, "lcrs"), Unit.MESSAGES_PER_SECOND),
        ("TRANSACTION RATE", rate_of(servers, "transactions"), Unit.TRANSACTIONS_PER_SECOND),
        ("BANDWIDTH", rate_of(servers, "bytes"), Unit.BYTES_PER_SECOND),
        ("LATENCY P50", sorted(p50)[len(p50) // 2] / 1000 if p50 else None, Unit.SECONDS),
        ("LATENCY P99", max(p99) / 1000 if p99 else None, Unit.SECONDS),
        # While nothing came though changes waited: no figure of what has arrived.
        ("LATENCY AT LEAST", max(bounds) / 1000 if bounds else None, Unit.SECONDS),
        ("REPLICATION LAG", last.lag.bytes if last else None, Unit.BYTES),
        ("TIME TO CATCH UP", last.lag.seconds if last else None, Unit.SECONDS),
    ]
    return [
        PathStatistic(
            path_id=path.path.path_id, statistic_time=at, statistic_name=name,
            statistic_value=None if value is None else round(value, 6), statistic_unit=unit,
        )
        for name, value, unit in values
    ]  # fmt: skip
