"""Streams as the API shows them: what is desired, what was observed, and how it is doing."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from thalweg.features.streams.lifecycle import DesiredStatus
from thalweg.inspection.schemas import SourceTable
from thalweg.kernel.models import Body, Id, Name, Resource
from thalweg.kernel.rules import TableRules
from thalweg.live.schemas import Backlog, HalfRole, Health, LatencySample

ParameterValue = bool | int | str
Parameters = Annotated[dict[str, ParameterValue], Field(max_length=100)]


class ParameterType(StrEnum):
    INTEGER = "integer"
    BOOLEAN = "boolean"
    ENUM = "enum"


class StreamParameter(Resource):
    name: str
    component: str
    type: ParameterType
    default: ParameterValue
    minimum: int | None
    maximum: int | None
    values: list[str] | None = Field(description="The values of an enum.")
    unit: str | None
    live: bool = Field(description="True: takes effect while the stream runs. False: after a stop and start.")
    description: str


class StreamParameters(Resource):
    parameters: list[StreamParameter]


class StreamCreate(Body):
    name: Name
    source_id: Id
    destination_id: Id
    engine_id: Id | None = Field(
        default=None, description="Captures and applies. May be left out when there is just one engine."
    )
    capture_engine_id: Id | None = Field(
        default=None,
        description="Instead of engine_id: the engine that captures, best beside the source. The same as "
        "apply_engine_id when that is left out.",
    )
    apply_engine_id: Id | None = Field(
        default=None,
        description="Instead of engine_id: the engine that applies, best beside the destination. The same as "
        "capture_engine_id when that is left out.",
    )
    rules: TableRules
    parameters: Parameters = Field(default_factory=dict)
    start: bool = Field(default=True, description="False: create it stopped.")


class StreamUpdate(Body):
    name: Name | None = None
    parameters: Parameters | None = Field(
        default=None,
        description="Only those to change. Null is not a value: send the default to go back to it.",
    )
    rules: TableRules | None = Field(
        default=None,
        description="Which tables from now on. Tables that come in are copied, tables that go out stay as they are at "
        "the destination. The same rules again take in tables that were created since.",
    )


class TablePreviewRequest(Body):
    source_id: Id
    rules: TableRules


class TablePreview(Resource):
    tables: list[SourceTable]
    replicable: int
    bytes: int
    rows_estimated: int
    unmatched: list[str] = Field(description="Include rules that match no table, as schema.table.")


class PreflightRequest(Body):
    source_id: Id
    destination_id: Id
    rules: TableRules
    parameters: Parameters = Field(default_factory=dict)


class ObservedStatus(StrEnum):
    ENABLED = "ENABLED"
    DISABLED = "DISABLED"
    ABORTED = "ABORTED"
    DROPPED = "DROPPED"
    UNKNOWN = "UNKNOWN"


class StreamPhase(StrEnum):
    INITIALIZING = "INITIALIZING"
    INSTANTIATING = "INSTANTIATING"
    CATCHING_UP = "CATCHING UP"
    REPLICATING = "REPLICATING"
    RETRYING = "RETRYING"
    DRAINING = "DRAINING"
    DROPPING = "DROPPING"
    STOPPED = "STOPPED"
    UNKNOWN = "UNKNOWN"


class StreamError(Resource):
    code: str
    class_: str = Field(alias="class", description="transient, permanent, operator_action or corruption.")
    title: str
    message: str
    cure: str | None
    sqlstate: str | None
    table: str | None
    lsn: str | None
    xid: int | None
    at: datetime | None


class Positions(Resource):
    captured: str | None
    applied: str | None
    confirmed: str | None
    source_end: str | None


class TableState(StrEnum):
    WAITING = "WAITING"
    COPYING = "COPYING"
    COPIED = "COPIED"
    REPLICATING = "REPLICATING"


class TableProgress(Resource):
    schema_name: str = Field(alias="schema")
    table: str
    state: str
    rows_estimated: int | None
    rows_copied: int
    bytes_copied: int
    ranges_total: int | None
    ranges_copied: int | None
    seconds: float | None
    rows_per_second: float | None = Field(description="Null until something has been copied.")
    bytes_per_second: float | None
    seconds_left: float | None = Field(description="Null while it cannot be told.")


class Instantiation(Resource):
    started_at: datetime | None
    finished_at: datetime | None
    rows_estimated: int | None
    rows_copied: int
    bytes_copied: int
    rows_per_second: float | None
    bytes_per_second: float | None
    seconds_left: float | None
    tables: list[TableProgress]


class StreamTable(Resource):
    schema_name: str = Field(alias="schema")
    table: str
    state: str
    inserts: int | None
    updates: int | None
    deletes: int | None
    truncates: int | None


class DatabaseRef(Resource):
    id: str
    name: str
    address: str = Field(description="host:port/dbname")


class EngineRef(Resource):
    id: str
    name: str
    state: str


class StreamMode(StrEnum):
    """COMBINED: one engine captures and applies. PROPAGATION: one captures and sends, another receives and applies."""

    COMBINED = "combined"
    PROPAGATION = "propagation"


class StreamHalf(Resource):
    """One engine's part of a stream over two, as it reports itself."""

    role: HalfRole
    engine: EngineRef
    status: ObservedStatus
    phase: StreamPhase
    error: StreamError | None
    retry_at: datetime | None
    observed_at: datetime | None


class StreamSummary(Resource):
    """One line for each stream: what the overview and `thalweg status` show."""

    id: str
    name: str
    source: DatabaseRef
    destination: DatabaseRef
    engine: EngineRef = Field(description="The engine that applies; also captures when the mode is combined.")
    capture_engine: EngineRef
    apply_engine: EngineRef
    mode: StreamMode
    desired_status: DesiredStatus
    status: ObservedStatus
    phase: StreamPhase
    observed_at: datetime | None
    health: Health
    error: StreamError | None
    retry_at: datetime | None
    lcrs_per_second: float | None
    transactions_per_second: float | None
    bytes_per_second: float | None
    latency: LatencySample
    backlog: Backlog
    sampled_at: datetime | None
    error_queue_transactions: int | None
    table_count: int
    rows_copied: int | None = Field(description="Of the initial copy. Null when there was none.")
    rows_to_copy: int | None
    created_at: datetime
    updated_at: datetime
    etag: str = Field(description="Send as If-Match when updating.")


class Stream(StreamSummary):
    halves: list[StreamHalf] = Field(description="Empty when one engine does it all.")
    rules: TableRules
    parameters: dict[str, ParameterValue] = Field(description="Those that were set.")
    effective_parameters: dict[str, ParameterValue] = Field(description="All, with defaults.")
    restart_needed: bool = Field(description="A parameter was changed that takes effect after a stop and start.")
    positions: Positions | None
    instantiation: Instantiation | None
    tables: list[StreamTable]
    actions: list[str] = Field(description="What may be done now: start, stop, retry, delete.")


class Overview(Resource):
    streams: list[StreamSummary]
    engines_online: int
    engines_total: int
    live: bool = Field(description="False: Redis cannot be reached, rates and latencies are missing.")


class ParkedTransaction(Resource):
    id: int
    commit_lsn: str
    xid: int
    lcrs: int
    tables: list[str]
    code: str
    message: str
    sqlstate: str | None
    parked_at: datetime


class ParkedTransactions(Resource):
    errors: list[ParkedTransaction]


class Accepted(Resource):
    accepted: bool = True


Json = dict[str, Any]
