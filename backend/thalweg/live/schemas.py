"""Live samples: rates between two polls of an engine. Values that are not known yet are null, never zero."""

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from thalweg.kernel.lifecycle import BacklogState, EngineState, ObservedStatus, OperationState, ShownState, StreamPhase
from thalweg.kernel.models import Resource
from thalweg.kernel.time_to_full import FillingLimit

SHOWN = "The one word for all of it, as the stream's resource has it. Null: the sample is of the past."


class TimePercent(Resource):
    """Share of the interval that a thread spent on each activity; the sum is 100."""

    busy: float
    idle: float = Field(description="Waiting for input.")
    flow_control: float = Field(description="Held back because the next component is slower.")
    network: float
    execute: float
    commit: float
    dependency: float
    commit_order: float
    lock: float
    disk: float


class ComponentType(StrEnum):
    CAPTURE = "CAPTURE"
    QUEUE = "QUEUE"
    APPLY = "APPLY"
    PROPAGATION_SENDER = "PROPAGATION SENDER"
    PROPAGATION_RECEIVER = "PROPAGATION RECEIVER"


class ComponentSample(Resource):
    id: str = Field(
        description="Stable in its stream: capture and queue, which all destinations share; after a destination's id "
        "and a colon sender, receiver, apply-queue, reader, coordinator, server-1: warehouse:reader"
    )
    destination_id: str | None = Field(
        default=None,
        description="Its destination. Null: shared by all destinations. A path has the shared ones and those of one "
        "destination.",
    )
    engine_id: str | None = Field(default=None, description="The engine that it runs in.")
    type: ComponentType
    name: str
    sub_component: str | None = Field(
        description="APPLY READER, APPLY COORDINATOR, APPLY SERVER, QUEUE SPILL, WAL SHIPMENT or LOGMINER BUILDER."
    )
    server: int | None = Field(description="Number of the applier.")
    state: str = Field(description="The momentary state, such as CAPTURING CHANGES.")
    lcrs_per_second: float | None
    transactions_per_second: float | None
    bytes_per_second: float | None
    time_percent: TimePercent | None
    counters: dict[str, int] = Field(description="Cumulative since the component started.")
    gauges: dict[str, float] = Field(description="Momentary values: depth, latency_us, ...")
    counter_rates: dict[str, float] | None = Field(description="Every counter as a rate per second.")


class LastLatency(Resource):
    p50_ms: float
    p99_ms: float
    at: datetime


class LatencySample(Resource):
    """Latency from the commit at the source to the commit at the destination, of the interval's transactions and
    heartbeats. A stream with several destinations shows that of the slowest, the one with the highest p99."""

    p50_ms: float | None
    p99_ms: float | None
    transactions: int | None
    last: LastLatency | None = Field(
        default=None,
        description="The latency of the newest interval in which any came: an idle stream has its heartbeats. Null "
        "with `at_least`.",
    )
    at_least: bool = Field(
        default=False,
        description="None came in the interval though changes wait, and p99_ms is the age of the oldest of them: the "
        "latency is at least so long. p50_ms is null.",
    )


class Lag(Resource):
    """The replication lag: WAL that the source has written and a destination has not applied, even while nothing runs.
    Of several destinations, the stream shows the largest amount."""

    bytes: int | None = Field(
        description="WAL between the source's end and what is applied; at several destinations, at the last of them."
    )
    seconds: float | None = Field(description="Time to catch up at the present rate.")
    age_seconds: float | None = Field(
        default=None, description="How long ago the source wrote the oldest of it. Null: before anybody looked."
    )
    growth_bytes_per_second: float | None = Field(
        default=None,
        description="Over the last minute, since the last stop, pause or start; negative while it shrinks. Null: not "
        "observed long enough.",
    )
    seconds_to_full: float | None = Field(
        default=None,
        description="At the present growth: until the first of its limits is reached. Of a stream: "
        "max_slot_wal_keep_size, which takes its slot, and the limits of its destinations. Of a destination: "
        "queue_spill_limit_mb of its backlog on disk and, with log mining, staging_limit_mb of the stream's staged WAL "
        "once more than half of that is used. Null: no limit, no growth that was steady over the last three minutes, "
        "less than 1 MiB waits (staged WAL apart), more than 30 days are left, or it is full.",
    )
    reached_limit: FillingLimit | None = Field(
        default=None, description="The limit that is reached then. Null where `seconds_to_full` is."
    )
    applied: str | None = Field(default=None, description="Everything that committed before it is applied.")
    source_read_at: datetime | None = Field(
        default=None, description="When the source itself last said where its WAL ends. Null: it never has."
    )


class Backlog(Resource):
    """Changes that wait for a destination on the capturing engine's disk: once those that it has not taken fill half of
    the queue, they go there."""

    state: BacklogState = Field(description="FULL: the limit is reached, and the destination holds the source back.")
    bytes: int = Field(description="On disk, compressed.")
    lcrs: int = Field(description="On disk.")
    frames: int = Field(description="LCRs and marks of transactions, in memory and on disk.")
    age_seconds: float = Field(description="How long the oldest of them have been on disk. 0: none is.")
    limit_bytes: int = Field(description="The parameter queue_spill_limit_mb.")


class TransactionRetry(Resource):
    """A policy for its error has a transaction wait."""

    number: int = Field(description="The number of the retry, from 1.")
    times: int = Field(description="The retries that there are at most.")
    at: datetime
    code: str = Field(description="The code of the error.")
    sqlstate: str | None
    table: str | None = Field(description="Quoted, with its schema.")
    message: str = Field(description="Without values of rows.")
    detail: str | None = Field(
        description="What the engine says about the row. Only for operators; null otherwise, and if `message` says "
        "everything."
    )


class DestinationSample(Resource):
    """One destination in a sample."""

    destination_id: str
    status: ObservedStatus
    phase: StreamPhase
    state: ShownState | None = Field(default=None, description=SHOWN)
    lcrs_per_second: float | None = Field(
        description="LCRs that its appliers apply. Null: the rate of one of them is unknown, as in its first second."
    )
    transactions_per_second: float | None
    bytes_per_second: float | None
    latency: LatencySample
    lag: Lag
    backlog: Backlog | None = Field(
        description="Null: it has no backlog, as a stream's only destination. The source keeps WAL for it."
    )
    error_queue_transactions: int | None = Field(description="Null: unknown, as where nothing applies now.")
    error_queue_oldest_at: datetime | None = Field(
        default=None, description="When the oldest of them was parked. Null: there is none, or it is not known yet."
    )
    parks_since: datetime | None = Field(
        default=None,
        description="Since when it has applied nothing and parked every transaction that came. Null: it does not.",
    )
    stalled_since: datetime | None = Field(
        default=None,
        description="Since when it has applied nothing though changes wait for it. Null: for less than 15 s, or not "
        "at all.",
    )


class Sample(Resource):
    stream_id: str
    at: datetime
    interval_seconds: float | None = Field(description="Null in the first sample: there is no rate yet.")
    status: ObservedStatus
    phase: StreamPhase
    state: ShownState | None = Field(default=None, description=SHOWN)
    lcrs_per_second: float | None = Field(
        description="LCRs applied. With several destinations: LCRs captured, counted once; each destination has its "
        "own rate. Null: the rate of a component is unknown, as in its first second."
    )
    transactions_per_second: float | None
    bytes_per_second: float | None
    latency: LatencySample
    lag: Lag
    error_queue_transactions: int | None = Field(
        description="The total of the destinations for which it is known: a lower bound while one is unknown. Null: "
        "none is known."
    )
    components: list[ComponentSample]
    destinations: list[DestinationSample] = Field(default_factory=list)


class Samples(Resource):
    stream_id: str
    samples: list[Sample]
    live: bool = Field(description="False: Redis cannot be reached, samples are missing.")


class HealthLevel(StrEnum):
    """Only OK is healthy. STOPPED is intentional, but changes do not arrive."""

    OK = "ok"
    STOPPED = "stopped"
    WARNING = "warning"
    ERROR = "error"
    UNKNOWN = "unknown"


class Health(Resource):
    level: HealthLevel
    reason: str = Field(description="In words.")


class StreamStatusEvent(Resource):
    """SSE event `stream.status`: what the collector observed has changed."""

    stream_id: str
    status: ObservedStatus
    phase: StreamPhase
    health: Health
    at: datetime


class StreamDeletedEvent(Resource):
    """SSE event `stream.deleted`: the stream is gone."""

    stream_id: str
    at: datetime


class OperationEvent(Resource):
    """SSE event `operation`: read the operation for details."""

    operation_id: str
    kind: str
    target_id: str
    state: OperationState
    done: int
    total: int | None
    at: datetime


class EngineEvent(Resource):
    """SSE event `engine`: its state changed."""

    engine_id: str
    state: EngineState
    at: datetime


class AlertEvent(Resource):
    """SSE event `alert`: one has begun to fire, was resolved, or was acknowledged; read the alerts for details."""

    alert_id: str
    rule: str
    stream_id: str | None
    severity: str
    state: str
    at: datetime
