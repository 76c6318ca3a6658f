"""The engine's control API as types: engine/contract's example files. Unknown fields of newer engines are ignored."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from thalweg.engine_client.error_codes import SIDES, ErrorCode, ErrorSide
from thalweg.kernel.capture_kinds import CaptureKind
from thalweg.kernel.lifecycle import (
    NO_BACKLOG,
    MarkerState,
    ObservedStatus,
    StreamPhase,
    TableState,
    TransactionState,
)
from thalweg.kernel.lsn import lsn_of
from thalweg.kernel.row_values import kind_of_state, state_quotes_rows
from thalweg.kernel.statement_handlers import RowOperation

API_VERSION = 1
FORMER_ID = "default"
"""The former id: that of the only destination of a stream which an engine knows from a document without a list
(control-api.md). Former engines report that destination as the stream itself; here it gets this id."""
SHARED = ("CAPTURE", "QUEUE", "PROPAGATION RECEIVER")  # types of a stream's own components
CHANGES = ("inserts", "updates", "deletes", "truncates")  # as a destination's tables count them
ABOUT_ROWS = (ErrorCode.APPLY_CONFLICT, ErrorCode.APPLY_FAILED, ErrorCode.INITIAL_COPY_INCONSISTENT)

NO_SUCH_ROW = "the destination has no such row"
ROW_DIFFERS = "the destination's row is not as the source's was before"
UNWRITTEN = "the row is there, but was not written"
SEVERAL_ROWS = "the destination has more than one such row"
"""Objects of causes, in the engine's words (engine/contract/row-errors.json), of a row that is there and is not as it
should be."""


OF_TABLE = {
    RowOperation.INSERT: "INSERT into",
    RowOperation.UPDATE: "UPDATE of",
    RowOperation.DELETE: "DELETE from",
}
"""The beginnings of texts that go on with the table's name."""


def quotes_rows(code: str, sqlstate: str) -> bool:
    """Whether an engine's message of that kind may hold values of rows, keys among them."""
    return code in ABOUT_ROWS or (sqlstate != "" and state_quotes_rows(sqlstate))


def _else(unknown: StrEnum) -> BeforeValidator:
    """For a state that only a newer engine knows."""
    names = frozenset(state.value for state in type(unknown))
    return BeforeValidator(lambda value: unknown if isinstance(value, str) and value not in names else value)


Status = Annotated[ObservedStatus, _else(ObservedStatus.UNKNOWN)]
Phase = Annotated[StreamPhase, _else(StreamPhase.UNKNOWN)]
TableStatus = Annotated[TableState, _else(TableState.UNKNOWN)]


EARLIER_PROBLEMS = AliasChoices("problems", "findings")
"""The second name is that of earlier engines."""


class Document(BaseModel):
    model_config = ConfigDict(populate_by_name=True, extra="ignore")


class Propagation(Document):
    """The engine's identity towards other engines. `listen` is None when it accepts no propagations."""

    name: str
    listen: str | None
    fingerprint: str
    not_after: datetime


class IdentityRequest(Document):
    csr: str


class EngineProcess(Document):
    version: str
    api: int
    started_at: datetime
    hostname: str
    pid: int
    desired_revision: int
    propagation: Propagation | None = None
    wal_archives: list[str] = []

    @property
    def can_propagate(self) -> bool:
        """Engines of older versions do not tell."""
        return "propagation" in self.model_fields_set


def _known_side(side: object) -> object:
    return side if side in list(ErrorSide) else None


def _known_operation(operation: object) -> object:
    return operation if operation in list(RowOperation) else None


class EngineError(Document):
    """`message` goes to everybody, by mail and webhook too; what an engine says of rows is kept apart as `detail`.
    `code` is an ErrorCode, or one of a newer engine. `side` is None where the engine does not know it; older engines
    send none, then it is what the code says. `shows_rows`: the message may quote values of rows, whatever its SQLSTATE:
    a function has raised it. `operation` is that of the change, if the error is about one row; `row_missing`: it found
    no row at the destination; `retries`: those of its transaction before this error. Older engines send none of the
    three, and viewers of their streams read "A change of" the table."""

    code: str
    class_: str = Field(alias="class")
    title: str
    message: str
    cure: str = ""
    side: Annotated[ErrorSide | None, BeforeValidator(_known_side)] = None
    sqlstate: str = ""
    table: str = ""
    lsn: str = ""
    xid: int = 0
    at: datetime | None = None
    shows_rows: bool = False
    operation: Annotated[RowOperation | None, BeforeValidator(_known_operation)] = None
    row_missing: bool = False
    retries: int = 0
    detail: str = ""

    @model_validator(mode="after")
    def _know_side(self) -> "EngineError":
        if self.side is None and self.code in SIDES:
            self.side = SIDES[ErrorCode(self.code)]
        return self

    @model_validator(mode="after")
    def _keep_rows_apart(self) -> "EngineError":
        if not self.detail and (self.shows_rows or quotes_rows(self.code, self.sqlstate)):
            self.detail, self.message = self.message, self._without_rows()
        return self

    def _without_rows(self) -> str:
        """The operation, the table and the kind of the error."""
        state = f" The server's SQLSTATE: {self.sqlstate}." if self.sqlstate else ""
        times = "once" if self.retries == 1 else f"{self.retries} times"
        retried = f"; retried {times} before" if self.retries else ""
        kind = NO_SUCH_ROW if self.row_missing else kind_of_state(self.sqlstate)
        if self.code in ABOUT_ROWS:
            change = "A change of" if self.operation is None else OF_TABLE[self.operation]
            subject = f"{change} {self.table or 'a table'}"
        elif self.table or kind:  # beside the title, which says the rest
            subject = self.table
        else:
            subject = self.title
        words = ": ".join(part for part in (subject, kind) if part)
        return f"{words[:1].upper() if not subject else words[:1]}{words[1:]}{retried}.{state}"


class EnginePositions(Document):
    captured: str
    applied: str
    confirmed: str
    source_end: str


class CopiedTable(Document):
    schema_name: str = Field(alias="schema")
    table: str
    state: TableStatus
    rows_estimated: int
    rows_copied: int
    bytes_copied: int
    ranges_total: int
    ranges_copied: int
    indexes_total: int = 0
    indexes_built: int = 0
    seconds: float
    copied_at: str | None = None
    errors_discarded: int = 0


class EngineInstantiation(Document):
    started_at: datetime | None
    finished_at: datetime | None
    tables: list[CopiedTable]


class TableName(Document):
    schema_name: str = Field(alias="schema")
    table: str


class TableTrouble(Document):
    """A change of a table at the source. `resolutions`: remove, follow, copy, accept."""

    kind: str
    reason: str
    cure: str
    cure_sql: str = ""
    """The cure's statements, to be run at the source; empty where none cures it, and from older engines."""
    since: datetime
    renamed_to: TableName | None
    resolutions: list[str]


class LastChange(Document):
    at_source: datetime
    at_destination: datetime


class StatusTable(Document):
    schema_name: str = Field(alias="schema")
    table: str
    state: TableStatus
    trouble: TableTrouble | None = None
    inserts: int
    updates: int
    deletes: int
    truncates: int
    last_change: LastChange | None = None


class DestinationPositions(Document):
    applied: str
    confirmed: str


class DestinationBacklog(Document):
    """Changes that the destination has not taken from the queue. `state` is IN MEMORY, ON DISK, FULL; or NONE: it has
    no backlog and reads the queue directly."""

    state: str
    frames: int
    lcrs: int
    bytes: int
    age_us: int
    limit_bytes: int


class RuleTable(Document):
    schema_name: str = Field(alias="schema")
    table: str
    passed: int
    dropped: int
    became_inserts: int
    became_deletes: int
    by_policy: int = 0  # earlier engines know no policies
    at_source: list[str] = []
    at_engine_because: str | None = None


class RuleCounts(Document):
    counted_since: datetime
    tables: list[RuleTable]


class TransactionRetry(Document):
    """A policy for its error has a transaction wait."""

    number: int
    times: int
    at: datetime
    error: EngineError


class EngineEffect(Document):
    """A position at which a definition of the stream came into effect at a destination."""

    from_: str = Field(alias="from")
    since: datetime


class EngineInEffect(Document):
    """The stream's definition, as the engine's desired document of that revision has it, in effect at a destination:
    on changes that commit at `from_` or later."""

    revision: int
    from_: str = Field(alias="from")
    since: datetime


NotReported = Literal["not told"]
NOT_REPORTED: NotReported = "not told"
"""In the place of what older engines do not report. Stored reports have the word."""


class DestinationStatus(Document):
    id: str
    status: Status
    phase: Phase
    error: EngineError | None
    retry_at: datetime | None
    positions: DestinationPositions | None
    backlog: DestinationBacklog | None
    instantiation: EngineInstantiation | None
    counted_since: datetime | None = None
    """The time when its tables' counts began at 0; None while nothing is applied, and for older engines."""
    tables: list[StatusTable]
    rule_counts: RuleCounts | None = None
    """Counts of its own rules. None if it has none, and while nothing is read for it."""
    retrying_transactions: int = 0
    next_retry: TransactionRetry | None = None
    """The first of these retries. None if no transaction waits for one, and from older engines."""
    in_effect: EngineInEffect | NotReported | None = NOT_REPORTED
    """None while the present definition is not."""
    effects: list[EngineEffect] = []
    """The last ones, in their order; the effect of the earlier ones is over. Empty from older engines."""

    @property
    def has_backlog(self) -> bool:
        return self.backlog is not None and self.backlog.state != NO_BACKLOG

    @property
    def done(self) -> int | None:
        """The LSN below which it needs no more work: what is applied. Where it has no backlog in which something could
        lie, also what is confirmed because nothing of interest came after. None: not known."""
        if self.positions is None:
            return None
        applied, confirmed = lsn_of(self.positions.applied), lsn_of(self.positions.confirmed)
        return (applied if self.has_backlog else max(applied, confirmed)) or None


class EngineBlocker(Document):
    """A session that holds a lock, or runs a transaction, which another one waits for."""

    pid: int
    """0: a prepared transaction."""
    user: str
    """Empty, as what follows, where the stream's user may not see it."""
    application_name: str
    state: str
    since: datetime | None


class EngineWait(Document):
    """A wait of a stream's start, or of its removal, at a server."""

    side: Literal["source", "destination"]
    destination: str | None
    database: str
    statement: str
    since: datetime
    blockers: list[EngineBlocker]


class EngineKindChange(Document):
    """A change of the capture_kind of a stream that runs."""

    to: CaptureKind
    position: str | None
    """Changes that commit there or later are captured by that kind. None: it is being prepared."""
    waits_for: list[str]
    """The ids of destinations that lack something from before the position."""


class StreamStatus(Document):
    id: str
    status: Status
    phase: Phase
    error: EngineError | None
    retry_at: datetime | None
    positions: EnginePositions | None
    destinations: list[DestinationStatus] = []
    waits: list[EngineWait] = []
    rule_counts: RuleCounts | None = None
    """None where no table has rules, while nothing is captured, and for older engines."""
    kind_change: EngineKindChange | NotReported | None = NOT_REPORTED
    """Older engines change no kind."""

    @model_validator(mode="before")
    @classmethod
    def _list_only_destination(cls, document: Any) -> Any:
        if not isinstance(document, dict) or "instantiation" not in document or document.get("destinations"):
            return document
        return {**document, "destinations": [{**document, "id": FORMER_ID, "backlog": None}]}


class EngineStatus(Document):
    engine: EngineProcess
    streams: list[StreamStatus]


class ComponentStats(Document):
    type: str
    name: str
    sub_component: str | None = None
    server: int | None = None
    destination: str | None = None
    """The destination that it belongs to; None if all destinations share it."""
    state: str
    time_ns: dict[str, int] | None
    counters: dict[str, int]
    gauges: dict[str, float]


class LatencyHistogram(Document):
    """`buckets` are (largest value, count) pairs; counts are cumulative over time, not over buckets."""

    unit: Literal["us"]
    buckets: list[tuple[int, int]]


class TableStats(Document):
    schema_name: str = Field(alias="schema")
    table: str
    inserts: int
    updates: int
    deletes: int
    truncates: int


class DestinationStats(Document):
    id: str
    latency: LatencyHistogram
    error_queue_transactions: int


class StreamStats(Document):
    id: str
    components: list[ComponentStats]
    latency: LatencyHistogram
    tables: list[TableStats]
    error_queue_transactions: int
    destinations: list[DestinationStats] = []

    @model_validator(mode="after")
    def _list_only_destination(self) -> Self:
        own = [part for part in self.components if part.type not in SHARED and part.destination is None]
        if own and not self.destinations:
            for part in own:
                part.destination = FORMER_ID
            parked = self.error_queue_transactions
            only = DestinationStats(id=FORMER_ID, latency=self.latency, error_queue_transactions=parked)
            self.destinations = [only]
        return self


class ProcessStats(Document):
    """The disk is the one that holds the engine's spills; 0: it cannot be asked, or the engine's version does not."""

    resident_bytes: int
    cpu_ns: int
    disk_total_bytes: int = 0
    disk_free_bytes: int = 0


class EngineStats(Document):
    sampled_at: datetime
    monotonic_ns: int
    process: ProcessStats
    streams: list[StreamStats]


class HistoryStream(StreamStats):
    """The stream's status in brief; all null when the stream had come or gone in between."""

    status: Status | None
    phase: Phase | None
    positions: EnginePositions | None


class HistorySample(EngineStats):
    streams: list[HistoryStream]  # type: ignore[assignment]


class HistoryEngine(Document):
    started_at: datetime


class StatsHistory(Document):
    """The engine's own samples, oldest first. `more`: ask again with the last one's time."""

    engine: HistoryEngine
    interval_ms: int
    samples: list[HistorySample]
    more: bool


class Transaction(Document):
    xid: int
    state: Annotated[TransactionState, _else(TransactionState.UNKNOWN)]
    first_lsn: str | None
    commit_lsn: str | None
    age_us: int
    lcrs: int
    bytes: int
    spilled_bytes: int
    streamed: bool
    tables: list[str]
    applier: int | None
    waits_for_xid: int | None
    destination: str | None
    retry: TransactionRetry | None = None


class Transactions(Document):
    transactions: list[Transaction]
    open: int
    waiting: int
    executing: int
    queued_lcrs: int


class RehearsalProblem(Document):
    """`outcome`: refused, the stream would not start; left_out, the destination would lack the part; not_tried, it
    calls code that somebody has to accept first."""

    outcome: Literal["refused", "left_out", "not_tried"]
    part: str
    table: str
    name: str
    message: str
    sqlstate: str
    statement: str
    cure: str
    cure_sql: str


class Rehearsal(Document):
    problems: list[RehearsalProblem] = Field(validation_alias=EARLIER_PROBLEMS)


class PlacedMarker(Document):
    """`id` is None for a heartbeat."""

    id: str | None
    label: str
    state: Annotated[MarkerState, _else(MarkerState.UNKNOWN)]
    placed_at: datetime
    commit_lsn: str | None
    xid: int | None
    commit_time: datetime | None
    failure: str | None


class MarkerPassage(Document):
    commit_lsn: str
    commit_time: datetime
    at: datetime


class MarkerStage(Document):
    component: str
    stage: str
    destination: str | None
    passages: list[MarkerPassage]


class Markers(Document):
    placed: list[PlacedMarker]
    stages: list[MarkerStage]


def observed_document(status: StreamStatus) -> dict[str, Any]:
    """The part of a stream's status that the store keeps, in the contract's own shape."""
    return status.model_dump(mode="json", by_alias=True)
