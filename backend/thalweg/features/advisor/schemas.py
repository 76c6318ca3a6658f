"""The advisor as the API shows it: runs, schedules, cures, the policy."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import (
    AwareDatetime,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StringConstraints,
    computed_field,
    model_validator,
)

from thalweg.advisor.finding import FactSheet, Finding, FindingSeverity
from thalweg.advisor.findings.codes import FindingCode
from thalweg.advisor.schemas import Analysis, Thresholds, Verdict
from thalweg.kernel.models import NO_CONTROL_CHARACTERS, Body, Id, Name, Resource
from thalweg.live.schemas import ComponentType

WINDOW_DEFAULT = 30
WINDOW_MAX = 3600
INTERVAL_SUGGESTED = 300
ComponentId = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]{8,32}:[a-z0-9:.-]{1,60}$")]
WindowSeconds = Annotated[StrictInt, Field(ge=2, le=WINDOW_MAX)]
Note = Annotated[str, StringConstraints(max_length=4000, pattern=r"^[^\x00-\x08\x0b-\x1f\x7f]*$")]


class RunReason(StrEnum):
    ON_DEMAND = "on_demand"
    SCHEDULE = "schedule"
    ALERT = "alert"
    BEFORE_CURE = "before_cure"
    AFTER_CURE = "after_cure"


class RunScope(Resource):
    """The scope: all paths, those of a stream, or those through one component."""

    stream_id: str | None
    component_id: str | None
    window_seconds: int | None = Field(description="Null where begin and end were given.")


class RunCreate(Body):
    stream_id: Id | None = Field(default=None, description="Only this stream's paths.")
    component_id: ComponentId | None = Field(
        default=None, description="Only paths through this component, as the tables and the topology name it."
    )
    window_seconds: WindowSeconds = Field(
        default=WINDOW_DEFAULT,
        description="Analyse this many seconds of live samples, up to now; the answer is immediate.",
    )
    begin_at: AwareDatetime | None = Field(
        default=None, description="Instead of window_seconds, together with end_at: analyse what was recorded then."
    )
    end_at: AwareDatetime | None = None
    facts: StrictBool = Field(default=True, description="Read the databases' catalogues for causes and cures.")
    name: Name | None = None
    note: Note | None = None

    @model_validator(mode="after")
    def _range(self) -> "RunCreate":
        if (self.begin_at is None) != (self.end_at is None):
            raise ValueError("begin_at and end_at go together")
        if self.begin_at is not None and self.end_at is not None and self.begin_at >= self.end_at:
            raise ValueError("begin_at must be before end_at")
        return self


class RunUpdate(Body):
    name: Name | None = Field(default=None, description="Omitted: it is unchanged.")
    note: Note | None = None
    kept: StrictBool | None = Field(default=None, description="True: the retention does not remove it.")


class RunPath(Resource):
    """A path of a run in one line."""

    path_id: str
    stream_id: str
    stream_name: str
    source_db: str
    destination_db: str
    verdict: Verdict
    bottleneck_identified: bool
    component_id: str | None
    component_type: ComponentType | None
    sub_component_type: str | None
    top_event: str | None
    explanation: str
    messages_per_second: float | None
    transactions_per_second: float | None
    latency_p50_seconds: float | None
    latency_p99_seconds: float | None = Field(description="The latency of transactions that have arrived.")
    latency_at_least_seconds: float | None = Field(
        default=None,
        description="The age of the oldest change that waited while nothing arrived: the latency is at least so long. "
        "Null: something always arrived, or the run is of an earlier version, which counts it in latency_p99_seconds.",
    )
    lag_bytes: float | None
    top_finding: str | None = Field(description="Title of the highest ranked finding that is a cause; null: none is.")
    top_finding_code: FindingCode | None

    @computed_field(description="“stream → destination”: how it is called everywhere.")  # type: ignore[prop-decorator]
    @property
    def path_name(self) -> str:
        return f"{self.stream_name} → {self.destination_db}"


class RunSummary(Resource):
    id: int
    at: datetime
    reason: RunReason
    detail: str | None = Field(description="The schedule's name, the alert's, or the cure's.")
    requested_by: str
    name: str | None
    note: str | None
    kept: bool
    etag: str
    scope: RunScope
    begin_at: datetime | None
    end_at: datetime | None
    samples: int
    paths: list[RunPath]
    findings: int
    worst: FindingSeverity | None = Field(description="The worst severity of its findings. Null: it has none.")


class PathSeries(Resource):
    """The series of the run's charts. The lists have one entry for each sample."""

    path_id: str
    at: list[datetime]
    messages_per_second: list[float | None]
    latency_p99_ms: list[float | None] = Field(description="The latency of transactions that have arrived.")
    latency_at_least_ms: list[float | None] = Field(
        default_factory=list,
        description="Lower bounds, while nothing arrived though changes waited. Empty in runs of an earlier version.",
    )
    lag_bytes: list[int | None]


class Run(RunSummary):
    """A run with its six tables and its findings."""

    analysis: Analysis
    findings_ranked: list[Finding]
    fact_sheets: list[FactSheet]
    series: list[PathSeries]


class LiveAnalysis(Resource):
    """An analysis that is not kept."""

    at: datetime
    live: bool = Field(description="False: Redis cannot be reached, there are no samples.")
    analysis: Analysis
    paths: list[RunPath]
    findings_ranked: list[Finding]


class ComparedStatistic(Resource):
    path_id: str | None = Field(description="Null for a statistic of a component.")
    path_name: str = Field(description="“stream → destination”, or the stream where a component is of several paths.")
    component_id: str | None
    component_name: str | None
    component_type: ComponentType | None
    sub_component_type: str | None
    thread: int | None
    statistic_name: str
    statistic_unit: str
    before: float | None
    after: float | None
    change: float | None = Field(description="after - before")
    change_percent: float | None = Field(
        description="`change` in percent of `before`. Null when that is zero or unknown."
    )


class ComparedBottleneck(Resource):
    path_id: str
    path_name: str
    before: str | None = Field(description="Null: the path is not in that run.")
    after: str | None
    changed: bool


class Comparison(Resource):
    before: RunSummary
    after: RunSummary
    statistics: list[ComparedStatistic]
    bottlenecks: list[ComparedBottleneck]


class ScheduleCreate(Body):
    name: Name
    stream_id: Id | None = Field(default=None, description="Null: all paths.")
    interval_seconds: StrictInt = Field(default=INTERVAL_SUGGESTED, ge=10, le=86400)
    window_seconds: WindowSeconds = 60
    enabled: StrictBool = True


class ScheduleUpdate(Body):
    name: Name | None = None
    interval_seconds: StrictInt | None = Field(default=None, ge=10, le=86400)
    window_seconds: WindowSeconds | None = None
    enabled: StrictBool | None = None


class Schedule(Resource):
    id: str
    etag: str
    name: str
    stream_id: str | None
    interval_seconds: int
    window_seconds: int
    enabled: bool
    next_at: datetime | None = Field(description="Null while it is not enabled.")
    last_at: datetime | None
    last_run_id: int | None
    last_error: str | None


class Policy(Resource):
    etag: str
    retention_days: int
    runs_max: int
    thresholds: Thresholds
    interval_seconds_suggested: int


class PolicyUpdate(Body):
    retention_days: StrictInt | None = Field(default=None, ge=1, le=3650)
    runs_max: StrictInt | None = Field(default=None, ge=10, le=1_000_000)
    idle_threshold: StrictFloat | None = Field(default=None, ge=0, le=100, description="Percent.")
    flow_control_threshold: StrictFloat | None = Field(default=None, ge=0, le=100, description="Percent.")
    event_threshold: StrictFloat | None = Field(default=None, ge=0, le=100, description="Percent.")


class CureState(StrEnum):
    """MEASURING: applied, the second snapshot is due at `measure_at`. APPLYING and UNDOING: its operation runs."""

    APPLYING = "applying"
    FAILED = "failed"
    UNDOING = "undoing"
    MEASURING = "measuring"
    HELPED = "helped"
    NO_DIFFERENCE = "no_difference"
    WORSE = "worse"
    NOT_MEASURED = "not_measured"
    UNDONE = "undone"


class CureApply(Body):
    run_id: StrictInt = Field(ge=1, le=2**62)
    finding_id: str = Field(min_length=1, max_length=300, pattern=NO_CONTROL_CHARACTERS)
    cure_index: StrictInt = Field(default=0, ge=0, le=20, description="Index of the cure in the finding's `cures`.")
    measure_after_seconds: StrictInt = Field(
        default=30, ge=2, le=3600, description="How long the path runs with the change before it is judged."
    )
    by_hand: StrictBool = Field(
        default=False,
        description="A person has carried the cure out: nothing is changed, only judged, beside the finding's run.",
    )


class AppliedCure(Resource):
    id: int
    created_at: datetime
    applied_by: str
    run_id: int | None
    finding: Finding
    stream_id: str
    path_id: str
    parameters_before: dict[str, bool | int | str]
    parameters_after: dict[str, bool | int | str]
    destination_id: str | None = Field(
        description="The destination whose own parameters these are. Null: the stream's."
    )
    by_hand: bool = Field(description="A person carried it out, and undoes it if necessary.")
    sql: str | None = Field(description="The SQL to run at the destination's database. Null: parameters are changed.")
    undo_sql: str | None
    operation_id: str | None = Field(description="The last operation for it. Null: there is none.")
    state: CureState
    before_run_id: int | None
    after_run_id: int | None
    measure_at: datetime | None
    outcome: str | None = Field(description="In words: what was compared and what came of it.")
    undone_at: datetime | None
