"""Streams as the API shows them: what is desired, what was observed, and how it is doing."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field, StrictBool

from thalweg.engine_client.error_codes import ErrorSide
from thalweg.features.streams.lifecycle import DesiredStatus
from thalweg.inspection.schemas import ACCEPT, Consents, SourceTable
from thalweg.kernel.models import Body, Id, Name, Resource
from thalweg.kernel.rules import TableRef as TableRef
from thalweg.kernel.rules import TableRules
from thalweg.live.schemas import Backlog, Health, LatencySample, SpilledBacklog
from thalweg.live.slots import Slot

DESTINATIONS_MAX = 16
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
    per_destination: bool = Field(description="False: the destinations of a stream share it.")
    description: str


class StreamParameterList(Resource):
    parameters: list[StreamParameter]


class DestinationCreate(Body):
    database_id: Id
    engine_id: Id | None = Field(
        default=None,
        description="The engine that applies, best beside the destination. The capture engine when left out.",
    )
    parameters: Parameters = Field(
        default_factory=dict,
        description="Those that differ from the stream's. Its alone are the queue's size, the output plugin and "
        "heartbeats.",
    )


Destinations = Annotated[list[DestinationCreate], Field(min_length=1, max_length=DESTINATIONS_MAX)]


class StreamCreate(Body):
    name: Name
    source_id: Id
    capture_engine_id: Id | None = Field(
        default=None,
        description="The engine that captures, best beside the source. May be left out when there is just one engine, "
        "or when the only destination names the one that does both.",
    )
    destinations: Destinations = Field(
        description="One or several. Several share one capture and one queue, and the source is decoded once for all."
    )
    rules: TableRules
    parameters: Parameters = Field(default_factory=dict)
    accept: Consents = Field(default_factory=list, description=ACCEPT)
    start: StrictBool = Field(default=True, description="False: create it stopped.")


class DestinationAdd(DestinationCreate):
    accept: Consents = Field(default_factory=list, description=ACCEPT)


class DestinationUpdate(Body):
    parameters: Parameters = Field(
        description="All that shall differ from the stream's: what is left out is the stream's again."
    )


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
    accept: Consents = Field(default_factory=list, description=ACCEPT)


class TablePreviewRequest(Body):
    source_id: Id
    rules: TableRules


class TablePreview(Resource):
    tables: list[SourceTable]
    replicable: int
    bytes: int
    rows_estimated: int | None
    unmatched: list[str] = Field(description="Include rules that match no table, as schema.table.")


class PreflightRequest(Body):
    source_id: Id
    capture_engine_id: Id | None = Field(default=None, description="As for the stream that shall be made.")
    destinations: Destinations
    rules: TableRules
    parameters: Parameters = Field(default_factory=dict)
    accept: Consents = Field(default_factory=list, description=ACCEPT)


class ObservedStatus(StrEnum):
    """UNKNOWN also while the engine does not answer: then nobody knows, whatever it said last."""

    ENABLED = "ENABLED"
    DISABLED = "DISABLED"
    ABORTED = "ABORTED"
    DROPPED = "DROPPED"
    UNKNOWN = "UNKNOWN"


class StreamPhase(StrEnum):
    """UNKNOWN also while the engine does not answer."""

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
    side: ErrorSide | None = Field(
        description="Where the trouble is: at the source, at the destination, on the link between two engines, or in "
        "the engine itself. Null where the engine cannot tell."
    )
    title: str
    message: str = Field(description="Without values of rows.")
    detail: str | None = Field(
        description="The engine's words about the row: its key, values that do not fit. Only for operators, and for "
        "a stream requested by its id; null otherwise, and if `message` says it all."
    )
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
    INDEXING = "INDEXING"
    COPIED = "COPIED"
    REPLICATING = "REPLICATING"
    STOPPED = "STOPPED"


class TroubleKind(StrEnum):
    """The changes of a captured table at the source."""

    DROPPED = "DROPPED"
    REPLACED = "REPLACED"
    RENAMED = "RENAMED"
    UNPUBLISHED = "UNPUBLISHED"
    PARTITIONS_CHANGED = "PARTITIONS CHANGED"


class TroubleResolution(StrEnum):
    """`copy`: delete the destination's rows and copy the source's again. `follow`: a rename, in the rules and at the
    destination. `remove`: take the table out of the stream. `accept`: the partitions are right as they are."""

    COPY = "copy"
    FOLLOW = "follow"
    REMOVE = "remove"
    ACCEPT = "accept"


class RenamedTable(Resource):
    schema_name: str = Field(alias="schema")
    table: str


class TableTrouble(Resource):
    kind: TroubleKind
    reason: str
    cure: str
    since: datetime
    renamed_to: RenamedTable | None = Field(description="Its name at the source now.")
    resolutions: list[TroubleResolution]


class TableProgress(Resource):
    schema_name: str = Field(alias="schema")
    table: str
    state: str
    rows_estimated: int | None
    rows_copied: int
    bytes_copied: int
    ranges_total: int | None
    ranges_copied: int | None
    indexes_total: int = Field(description="Keys, constraints, indexes and foreign keys that the engine makes.")
    indexes_built: int = Field(description="Of those; one that is left out with a warning counts.")
    seconds: float | None = Field(description="Spent on its rows.")
    rows_per_second: float | None = Field(description="Null until something has been copied.")
    bytes_per_second: float | None
    seconds_left: float | None = Field(description="Of its rows. Null while it cannot be told.")


class CopyStage(StrEnum):
    ROWS = "rows"
    INDEXES = "indexes"
    FINISHED = "finished"


class Instantiation(Resource):
    started_at: datetime | None
    finished_at: datetime | None
    stage: CopyStage = Field(description="indexes: all rows are there; indexes, constraints and foreign keys follow.")
    rows_estimated: int | None
    rows_copied: int
    bytes_copied: int
    indexes_total: int = Field(description="Of all tables.")
    indexes_built: int
    rows_per_second: float | None = Field(description="Of the tables that are being copied now; null when none is.")
    bytes_per_second: float | None
    rows_seconds_left: float | None = Field(
        description="Until all rows are there; null while it cannot be told. What follows, indexes and foreign keys, "
        "has no forecast."
    )
    tables: list[TableProgress]


class LastChange(Resource):
    at_source: datetime = Field(description="When it was committed there, by the source's clock.")
    at_destination: datetime = Field(description="When it was committed there, by the engine's clock.")


class StreamTable(Resource):
    schema_name: str = Field(alias="schema")
    table: str
    inserts_only: bool = Field(
        description="Its updates and deletes are given up: they stay at the source, and rows differ at the destination."
    )
    state: str = Field(description="STOPPED: its changes are left out until it is copied again.")
    trouble: TableTrouble | None = Field(description="Null while it is at the source what it was when it was copied.")
    inserts: int | None
    updates: int | None
    deletes: int | None
    truncates: int | None
    changes_per_second: float | None = Field(
        description="Over the last half minute; null until that is known. Of several destinations: at the fastest."
    )
    last_change: LastChange | None = Field(
        description="Since its apply started; null when there was none. Of several destinations: at the slowest."
    )


class Blocker(Resource):
    """A session that holds a lock, or runs a transaction, which another one waits for."""

    pid: int = Field(description="Of its server process. 0: a prepared transaction, which has none.")
    user: str | None = Field(description="Null, as what follows, where the stream's user may not see it.")
    application_name: str | None
    state: str | None = Field(description="As pg_stat_activity shows it.")
    since: datetime | None = Field(description="When its transaction began, by its server's clock.")


class WaitSide(StrEnum):
    SOURCE = "source"
    DESTINATION = "destination"


class StreamWait(Resource):
    """A wait of a stream's start, or of its removal, at a server for longer than some seconds."""

    side: WaitSide
    destination_id: str | None = Field(description="Of several destinations the one that waits.")
    database: str = Field(description="Its name in Thalweg.")
    statement: str = Field(description="The beginning of what cannot go on.")
    since: datetime
    blockers: list[Blocker]


class DatabaseRef(Resource):
    id: str
    name: str
    address: str = Field(description="host:port/dbname")


class EngineRef(Resource):
    id: str
    name: str
    state: str


class StreamMode(StrEnum):
    """COMBINED: one engine captures and applies. PROPAGATION: one captures and sends, another receives and applies.
    FAN_OUT: one capture and one queue for several destinations, each with a backlog of its own."""

    COMBINED = "combined"
    PROPAGATION = "propagation"
    FAN_OUT = "fan-out"


class StreamReport(Resource):
    """The report of one of a stream's engines on its share."""

    destination_id: str | None = Field(description="The one that it receives for. Null: it captures.")
    engine: EngineRef
    status: ObservedStatus
    phase: StreamPhase
    error: StreamError | None
    retry_at: datetime | None
    observed_at: datetime | None


class DestinationSummary(Resource):
    """One of a stream's destinations: each has a life of its own."""

    id: str = Field(description="Unique in its stream.")
    database: DatabaseRef
    engine: EngineRef = Field(description="The engine that applies.")
    mode: StreamMode = Field(description="combined or propagation.")
    desired_status: DesiredStatus
    status: ObservedStatus
    phase: StreamPhase
    error: StreamError | None
    retry_at: datetime | None
    lcrs_per_second: float | None
    transactions_per_second: float | None
    latency: LatencySample
    backlog: Backlog
    spilled: SpilledBacklog | None = Field(
        description="Null: it has no backlog, as a stream's only destination. The source keeps WAL for it."
    )
    error_queue_transactions: int | None
    parks_since: datetime | None = Field(
        default=None,
        description="Since when it has applied nothing and parked every transaction that came. Null: it does not.",
    )
    rows_copied: int | None = Field(description="Of the initial copy. Null when there was none.")
    rows_to_copy: int | None
    actions: list[str] = Field(
        description="Actions possible now on it alone: start, stop, retry, drop. A stream's last one stays."
    )


class StreamSummary(Resource):
    """One line for each stream: what the overview and `thalweg status` show."""

    id: str
    name: str
    source: DatabaseRef
    capture_engine: EngineRef
    destinations: Sequence[DestinationSummary]
    mode: StreamMode
    desired_status: DesiredStatus
    status: ObservedStatus
    phase: StreamPhase
    observed_at: datetime | None
    health: Health
    error: StreamError | None
    retry_at: datetime | None
    waits: list[StreamWait] = Field(description="While it starts, or is deleted: behind whom it waits at a server.")
    lcrs_per_second: float | None = Field(
        description="LCRs applied; of several destinations those that the source gave, once: each destination has its "
        "own rate."
    )
    transactions_per_second: float | None
    bytes_per_second: float | None
    latency: LatencySample
    backlog: Backlog
    slot: Slot | None = Field(description="The stream's slot, by its source's own word. Null: not there, or not read.")
    sampled_at: datetime | None
    error_queue_transactions: int | None
    table_count: int
    rows_copied: int | None = Field(description="Of the initial copy. Null when there was none.")
    rows_to_copy: int | None
    created_at: datetime
    updated_at: datetime
    etag: str = Field(description="Send as If-Match when updating.")


class StreamDestination(DestinationSummary):
    parameters: dict[str, ParameterValue] = Field(description="Those that differ from the stream's.")
    effective_parameters: dict[str, ParameterValue] = Field(description="All, with the stream's and defaults.")
    applied: str | None = Field(description="Everything that committed before it at the source is here.")
    confirmed: str | None = Field(
        description="The position that is durable here, or in its backlog on the engine's disk."
    )
    instantiation: Instantiation | None
    counted_since: datetime | None = Field(
        description="When its tables' inserts to truncates began at 0: with every start of apply. Null: nothing is "
        "applied now, or the engine's version does not tell."
    )
    tables: list[StreamTable]


class Stream(StreamSummary):
    destinations: Sequence[StreamDestination]
    reports: list[StreamReport] = Field(
        description="Of each engine, the one that captures first. Empty where one does it all."
    )
    rules: TableRules
    parameters: dict[str, ParameterValue] = Field(description="Those that were set.")
    effective_parameters: dict[str, ParameterValue] = Field(description="All, with defaults.")
    restart_needed: bool = Field(description="A parameter was changed that takes effect after a stop and start.")
    positions: Positions | None
    tables: list[StreamTable] = Field(description="Changes at all destinations, added up.")
    actions: list[str] = Field(description="Actions possible now: start, stop, retry, delete, add_destination.")


class Overview(Resource):
    streams: list[StreamSummary]
    engines_online: int
    engines_total: int
    live: bool = Field(description="False: Redis cannot be reached, rates and latencies are missing.")


class StreamRates(Resource):
    """Both lists have one entry for each of the last samples, oldest first."""

    stream_id: str
    times: list[int] = Field(description="Milliseconds since 1970 UTC.")
    lcrs_per_second: list[float | None]


class OverviewRates(Resource):
    streams: list[StreamRates]
    live: bool = Field(description="False: Redis cannot be reached, rates are missing.")


class Accepted(Resource):
    accepted: bool = True


Json = dict[str, Any]
