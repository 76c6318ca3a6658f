"""Streams as the API shows them: what is desired, what was observed, and how it is doing."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import Field, StrictBool, model_validator
from pydantic_core import PydanticCustomError

from thalweg.engine_client.error_codes import ErrorSide
from thalweg.features.streams.capture_schemas import CAPTURE_KIND, KindChange
from thalweg.features.streams.rule_schemas import RuleCounts
from thalweg.inspection.schemas import ACCEPT, Consents, SourceTable
from thalweg.kernel.capture_kinds import CaptureKind
from thalweg.kernel.conflict_detection import ComparedTable
from thalweg.kernel.conflict_handlers import ConflictHandler
from thalweg.kernel.error_policies import ErrorPolicy
from thalweg.kernel.lifecycle import (
    DesiredStatus,
    EngineState,
    ObservedStatus,
    ShownState,
    StreamPhase,
    TableState,
    TroubleKind,
)
from thalweg.kernel.models import Body, Id, Name, Resource
from thalweg.kernel.modes import StreamMode
from thalweg.kernel.row_rules import RowRules
from thalweg.kernel.rules import TableRef as TableRef
from thalweg.kernel.rules import TableRules
from thalweg.kernel.statement_handlers import StatementHandler
from thalweg.kernel.transformations import MASK_KEY, MaskKey
from thalweg.live.schemas import Backlog, Health, Lag, LatencySample, TransactionRetry
from thalweg.live.slots import Slot

DESTINATIONS_MAX = 16
ParameterValue = (
    bool | int | str | list[ErrorPolicy] | list[ConflictHandler] | list[ComparedTable] | list[StatementHandler]
)
Parameters = Annotated[
    dict[str, bool | int | str | list[dict[str, Any]]],
    Field(
        max_length=100,
        description="By their names; error_policies is a list of ErrorPolicy, conflict_handlers one of "
        "ConflictHandler, conflict_detection one of ComparedTable, statement_handlers one of StatementHandler (only "
        "administrators may change it).",
    ),
]


class ParameterType(StrEnum):
    INTEGER = "integer"
    BOOLEAN = "boolean"
    ENUM = "enum"
    TEXT = "text"
    ERROR_POLICIES = "error_policies"
    CONFLICT_HANDLERS = "conflict_handlers"
    CONFLICT_DETECTION = "conflict_detection"
    STATEMENT_HANDLERS = "statement_handlers"


class StreamParameter(Resource):
    name: str
    component: str
    type: ParameterType
    default: ParameterValue
    minimum: int | None
    maximum: int | None = Field(description="The greatest number; the number of characters where it is a text.")
    values: list[str] | None = Field(description="The values of an enum.")
    unit: str | None
    live: bool = Field(
        description="True: takes effect in the running components. False: the engine starts them anew for it, by "
        "itself."
    )
    per_destination: bool = Field(description="False: the destinations of a stream share it.")
    description: str


class StreamParameterList(Resource):
    parameters: list[StreamParameter]


class DestinationCreate(Body):
    database_id: Id
    engine_id: Id | None = Field(
        default=None,
        description="The engine that applies, ideally near the destination. If omitted: the capturing engine.",
    )
    parameters: Parameters = Field(
        default_factory=dict,
        description="Overrides of the stream's parameters. A parameter whose `per_destination` is false can be set "
        "only for the stream.",
    )
    row_rules: RowRules = Field(
        default_factory=list,
        description="Row rules for this destination alone: of what the stream's own rules let pass, its copy "
        "and its changes.",
    )


Destinations = Annotated[list[DestinationCreate], Field(min_length=1, max_length=DESTINATIONS_MAX)]


class StreamCreate(Body):
    name: Name
    source_id: Id
    capture_engine_id: Id | None = Field(
        default=None,
        description="The engine that captures, ideally near the source. May be omitted if there is only one engine, "
        "or if the only destination names the one that does both.",
    )
    destinations: Destinations = Field(
        description="One or several. Several share one capture and one queue, and the source is decoded once for all."
    )
    rules: TableRules
    capture_kind: CaptureKind = Field(default=CaptureKind.LOGICAL, description=CAPTURE_KIND)
    parameters: Parameters = Field(default_factory=dict)
    accept: Consents = Field(default_factory=list, description=ACCEPT)
    start: StrictBool = Field(default=True, description="False: create it stopped.")
    mask_key: MaskKey | None = Field(default=None, description=MASK_KEY + "Null: a key is made where a mask needs one.")


class DestinationAdd(DestinationCreate):
    accept: Consents = Field(default_factory=list, description=ACCEPT)


class DestinationUpdate(Body):
    parameters: Parameters | None = Field(
        default=None,
        description="All overrides. Omitted parameters revert to the stream's values. Null: all stay as they are.",
    )
    row_rules: RowRules | None = Field(
        default=None,
        description="All rules of its own. They take effect at one position; rows that it has stay as they are. "
        "Null: they stay as they are.",
    )
    accept: Consents = Field(default_factory=list, description=ACCEPT)


class StreamUpdate(Body):
    name: Name | None = None
    parameters: Parameters | None = Field(
        default=None,
        description="Only the parameters to change. Null is not a value: send the default to restore it.",
    )
    rules: TableRules | None = Field(
        default=None,
        description="The tables to replicate from now on. Added tables are copied; removed tables stay as they are at "
        "the destination. Sending the same rules again adds tables that were created in the meantime.",
    )
    capture_kind: CaptureKind | None = Field(
        default=None,
        description=CAPTURE_KIND + " The stream changes it at a position, while it runs and without a new copy; until "
        "then the former kind captures, and `kind_change` tells what it waits for. Null: it stays.",
    )
    mask_key: MaskKey | None = Field(
        default=None,
        description=MASK_KEY + "Sent with the rules. Rows that a destination has stay as they are until their table "
        "is copied again. Null: it stays as it is, and is made where a mask needs one.",
    )
    accept: Consents = Field(default_factory=list, description=ACCEPT)

    @model_validator(mode="after")
    def _has_rules_beside_a_key(self) -> Self:
        if self.mask_key is not None and self.rules is None:
            raise PydanticCustomError("mask_key", "A masking key is sent together with the rules that have the masks.")
        return self


class TablePreviewRequest(Body):
    source_id: Id
    rules: TableRules


class TablePreview(Resource):
    tables: list[SourceTable]
    replicable: int
    bytes: int
    rows_estimated: int | None
    unmatched: list[str] = Field(description="Include patterns that match no table, as schema.table.")


class PreflightRequest(Body):
    source_id: Id
    capture_engine_id: Id | None = Field(default=None, description="The engine that is to capture. Null: the only one.")
    destinations: Destinations
    rules: TableRules
    capture_kind: CaptureKind = Field(default=CaptureKind.LOGICAL, description=CAPTURE_KIND)
    parameters: Parameters = Field(default_factory=dict)
    accept: Consents = Field(default_factory=list, description=ACCEPT)


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
        description="What the engine says about the row: its key, values that do not fit. Only for operators, and for "
        "a stream requested by its id; null otherwise, and if `message` says everything."
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
    sql: str | None = Field(
        description="The cure's statements, one a line, to be run at the source; other ways to the same end are in "
        "`cure` alone. Null if none cures it, and from older engines.",
        examples=['ALTER TABLE "public"."orders" REPLICA IDENTITY FULL;'],
    )
    renamed_to: RenamedTable | None = Field(description="Its name at the source now.")
    resolutions: list[TroubleResolution]


class TableProgress(Resource):
    schema_name: str = Field(alias="schema")
    table: str
    state: TableState
    rows_estimated: int | None
    rows_copied: int
    bytes_copied: int
    ranges_total: int | None
    ranges_copied: int | None
    indexes_total: int = Field(description="Keys, constraints, indexes and foreign keys that the engine makes.")
    indexes_built: int = Field(description="How many of them are finished; one that is left out with a warning counts.")
    seconds: float | None = Field(description="Spent on its rows.")
    rows_per_second: float | None = Field(description="Null until something has been copied.")
    bytes_per_second: float | None
    seconds_left: float | None = Field(description="Until its rows are copied. Null while this cannot be estimated.")


class CopyPoint(Resource):
    at: datetime
    rows_copied: int


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
    indexes_total: int = Field(description="Indexes of all tables.")
    indexes_built: int
    rows_per_second: float | None = Field(
        description="The rate of the tables that are being copied now; null when none is."
    )
    bytes_per_second: float | None
    rows_seconds_left: float | None = Field(
        description="Until all rows are copied; null while this cannot be estimated."
    )
    index_bytes_left: int | None = Field(
        description="Bytes of rows to read for the keys, constraints, indexes and foreign keys that are missing: a "
        "table's bytes once for each. Of tables whose rows are not all there it is an estimate; null without one."
    )
    index_bytes_per_second: float | None = Field(
        description="Measured in this copy while indexes were built; null before the first one is finished, and while "
        "the copy does not run."
    )
    indexes_seconds_left: float | None = Field(
        description="index_bytes_left at that rate, an estimate; null where one of both is. An index that is being "
        "built counts whole."
    )
    seconds_left: float | None = Field(description="Until the copy is finished: rows, then indexes. Null where one is.")
    curve: list[CopyPoint] = Field(
        description="Rows over time, oldest first, as far as the control plane has seen the copy; empty once it is "
        "finished."
    )
    tables: list[TableProgress]


class LastChange(Resource):
    at_source: datetime = Field(description="When it was committed there, by the source's clock.")
    at_destination: datetime = Field(description="When it was committed there, by the engine's clock.")


class DestinationTableName(Resource):
    schema_name: str = Field(alias="schema")
    table: str


class StreamTable(Resource):
    schema_name: str = Field(alias="schema")
    table: str
    destination_name: DestinationTableName = Field(
        description="Its name at the destinations; that at the source, unless the stream's rules rename it."
    )
    inserts_only: bool = Field(
        description="Its updates and deletes are not replicated, so rows differ at the destination."
    )
    filtered: bool = Field(description="Rules of the table decide which of its rows and changes are replicated.")
    state: TableState = Field(description="STOPPED: its changes are left out until it is copied again.")
    trouble: TableTrouble | None = Field(
        description="Null as long as the table at the source is still the one that was copied."
    )
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

    pid: int = Field(description="The id of its server process. 0: a prepared transaction, which has none.")
    user: str | None = Field(description="Null, like the fields that follow, if the stream's user may not see it.")
    application_name: str | None
    state: str | None = Field(description="The session's state in pg_stat_activity.")
    since: datetime | None = Field(description="When its transaction began, by its server's clock.")


class WaitSide(StrEnum):
    SOURCE = "source"
    DESTINATION = "destination"


class StreamWait(Resource):
    """A stream's start or removal that has waited at a server for several seconds."""

    side: WaitSide
    destination_id: str | None = Field(description="The destination that waits, if there are several.")
    database: str = Field(description="Its name in Thalweg.")
    statement: str = Field(description="The beginning of the statement that waits.")
    since: datetime
    blockers: list[Blocker]


class DatabaseRef(Resource):
    id: str
    name: str
    address: str = Field(description="host:port/dbname")


class EngineRef(Resource):
    id: str
    name: str
    state: EngineState


class StreamReport(Resource):
    """One engine's report on its part of the stream."""

    destination_id: str | None = Field(description="The destination that it receives for. Null: it captures.")
    engine: EngineRef
    status: ObservedStatus
    phase: StreamPhase
    state: ShownState = Field(description="The one word for what its part does. UNKNOWN: it does not answer.")
    error: StreamError | None
    retry_at: datetime | None
    observed_at: datetime | None


class DestinationSummary(Resource):
    """One of a stream's destinations, each with a state of its own."""

    id: str = Field(description="Unique in its stream.")
    database: DatabaseRef
    engine: EngineRef = Field(description="The engine that applies.")
    mode: StreamMode = Field(description="combined or propagation.")
    desired_status: DesiredStatus
    status: ObservedStatus
    phase: StreamPhase
    state: ShownState = Field(
        description="The one word for what it does, in the console and on the command line: from its status, its phase "
        "and the two fields `parks_since` and `stalled_since`."
    )
    error: StreamError | None
    retry_at: datetime | None
    lcrs_per_second: float | None
    transactions_per_second: float | None
    latency: LatencySample
    lag: Lag
    backlog: Backlog | None = Field(
        description="Null: it has no backlog, as a stream's only destination. The source keeps WAL for it."
    )
    error_queue_transactions: int | None
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
    retrying_transactions: int = Field(default=0, description="Transactions that wait for a retry by an error policy.")
    next_retry: TransactionRetry | None = Field(default=None, description="The first of their retries.")
    rows_copied: int | None = Field(description="Rows of the initial copy. Null when there was none.")
    rows_to_copy: int | None
    actions: list[str] = Field(
        description="Actions possible now on this destination alone: start, stop, retry, drop. A stream's last "
        "destination cannot be dropped."
    )


class StreamSummary(Resource):
    """One line for each stream: what the overview and `thalweg status` show."""

    id: str
    name: str
    source: DatabaseRef
    capture_engine: EngineRef
    capture_kind: CaptureKind = Field(description=CAPTURE_KIND)
    destinations: Sequence[DestinationSummary]
    mode: StreamMode
    desired_status: DesiredStatus
    status: ObservedStatus
    phase: StreamPhase
    state: ShownState = Field(
        description="The one word for what it does, in the console and on the command line: its phase, or the state of "
        "a destination that is in trouble, the worst of several. PAUSED: all its destinations are."
    )
    observed_at: datetime | None
    health: Health
    error: StreamError | None
    retry_at: datetime | None
    waits: list[StreamWait] = Field(
        description="The sessions that it waits for at a server while it starts or is deleted."
    )
    lcrs_per_second: float | None = Field(
        description="LCRs applied. With several destinations: LCRs captured, counted once; each destination has its "
        "own rate."
    )
    transactions_per_second: float | None
    bytes_per_second: float | None
    latency: LatencySample
    lag: Lag
    slot: Slot | None = Field(
        description="The stream's slot, as its source reports it. Null: it does not exist, or has not been read."
    )
    sampled_at: datetime | None
    error_queue_transactions: int | None
    table_count: int
    rows_copied: int | None = Field(description="Rows of the initial copy. Null when there was none.")
    rows_to_copy: int | None
    created_at: datetime
    updated_at: datetime
    etag: str = Field(description="Send as If-Match when updating.")


class InEffect(Resource):
    """From where on a destination is replicated to by the stream's present rules and parameters."""

    under_way: bool = Field(
        description="The last change of the stream, or its start, is not in effect here yet. False while the stream, "
        "or the destination, is stopped or aborted: the change takes effect with the next start."
    )
    from_: str | None = Field(
        alias="from",
        description="A position: changes that commit at the source there or later are judged and applied by the "
        "present rules and parameters; parameters that are live take effect at once. Null while that is under way, and "
        "where nothing has run by them yet. A stop keeps it.",
    )
    since: datetime | None = Field(description="When that began, by the engine's clock.")


class StreamDestination(DestinationSummary):
    parameters: dict[str, ParameterValue] = Field(description="Overrides of the stream's parameters.")
    effective_parameters: dict[str, ParameterValue] = Field(
        description="All parameters, including the stream's and the defaults."
    )
    row_rules: RowRules = Field(description="Row rules for this destination alone, beside the stream's.")
    in_effect: InEffect | None = Field(
        description="What has become of the last change of its rules or parameters, or of the stream's. Null: the "
        "engine's version does not report it."
    )
    rule_counts: RuleCounts | None = Field(
        description="What these rules have decided since its changes began to be read. Null: it has none, nothing is "
        "read for it now, or the engine's version does not report it."
    )
    applied: str | None = Field(
        description="Everything that committed before this position at the source has been applied here."
    )
    confirmed: str | None = Field(
        description="The position that is durable here, or in its backlog on the engine's disk."
    )
    instantiation: Instantiation | None
    counted_since: datetime | None = Field(
        description="When the counts of its tables' changes last began at 0, as they do whenever apply starts. Null: "
        "nothing is applied now, or the engine's version does not report it."
    )
    tables: list[StreamTable]


class Stream(StreamSummary):
    destinations: Sequence[StreamDestination]
    kind_change: KindChange | None = Field(
        description="A change of `capture_kind` that is under way. Null: there is none, or the stream does not run; "
        "then it comes with the next start."
    )
    reports: list[StreamReport] = Field(
        description="One report for each engine, the capturing one first. Empty if one engine does everything."
    )
    rules: TableRules
    mask_key_set: bool = Field(description="There is a key of the masks `hash` and `digits`.")
    mask_key_version: str | None = Field(
        description="Another one after each change of that key, of which it tells nothing else. Null: there is no key."
    )
    parameters: dict[str, ParameterValue] = Field(description="The parameters that were set.")
    effective_parameters: dict[str, ParameterValue] = Field(description="All parameters, including the defaults.")
    restart_needed: bool = Field(
        description="A parameter was changed for which the engine starts the stream's components anew, and that is not "
        "done yet."
    )
    positions: Positions | None
    tables: list[StreamTable] = Field(description="Changes at all destinations, added up.")
    rule_counts: RuleCounts | None = Field(
        description="What the row rules have decided. Null: no table has rules, nothing is captured now, or the "
        "engine's version does not report it."
    )
    actions: list[str] = Field(description="Actions possible now: start, stop, retry, delete, add_destination.")


class Overview(Resource):
    streams: list[StreamSummary]
    engines_online: int | None = Field(
        description="Null: unknown, since the control plane has not asked the engines for 15 s."
    )
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
