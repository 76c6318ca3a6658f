"""A finding: what slows a path, the evidence, what curing it would bring, and the exact change."""

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from thalweg.advisor.findings.codes import FindingCode
from thalweg.kernel.models import Resource


class FindingSeverity(StrEnum):
    CRITICAL = "critical"
    WARNING = "warning"
    ADVICE = "advice"
    INFORMATION = "information"


class Evidence(Resource):
    """One figure that the finding rests on."""

    statistic: str = Field(description="Its name, as in the tables, or what was read at a database.")
    subject: str = Field(description="Its subject: a thread's id in live samples, a table, a session, a setting.")
    value: str | float | None
    unit: str
    threshold: str | float | None = Field(
        description="The threshold that it is compared with. Null: it is a fact, not a figure."
    )
    since: datetime | None = Field(
        description="Since when it has been past its threshold, as far back as the samples of the run go."
    )
    series: str | None = Field(
        description="Where live samples and history have it, for its chart: `<thread>.<field>.<name>`, such as "
        "server-1.time_percent.execute, or `<field>` of the sample itself."
    )


class CureKind(StrEnum):
    """The actor that carries a cure out: the control plane, an operator at a database, or a person by other means."""

    PARAMETER = "parameter"
    SQL = "sql"
    ACTION = "action"


class ParameterChange(Resource):
    name: str
    current: bool | int | str
    proposed: bool | int | str


class NewIndex(Resource):
    """The index that an SQL cure creates, and that its undo drops."""

    schema_name: str
    table: str
    name: str


class Cure(Resource):
    kind: CureKind
    text: str = Field(description="The change, in words.")
    parameters: list[ParameterChange] = Field(description="Stream parameters. Empty but for kind `parameter`.")
    sql: str | None = Field(description="Ready to run, at `database`.")
    database: str | None = Field(description="The registered database's name.")
    database_id: str | None
    run_as: str | None = Field(default=None, description="The users who may run `sql` there, in words.")
    restart_needed: bool = Field(description="The engine starts the stream's components anew for it.")
    index: NewIndex | None = Field(
        default=None,
        description="The index that `sql` creates; the control plane can make and drop it. Null: a person runs `sql`.",
    )
    destination_id: str | None = Field(
        default=None,
        description="The destination whose own parameters change. Null: those of the stream.",
    )


class Finding(Resource):
    id: str = Field(description="Unique in its run, and the same in the next run for the same trouble.")
    rank: int = Field(description="1 is the most important of the run.")
    path_id: str
    stream_id: str
    component_id: str | None
    code: FindingCode
    severity: FindingSeverity
    is_cause: bool = Field(description="It causes the named bottleneck.")
    title: str
    explanation: str
    evidence: list[Evidence]
    expected_gain: str | None = Field(description="In words.")
    gain_percent: float | None = Field(
        description="How much faster the path may become, estimated from the share of time that the cause takes."
    )
    cures: list[Cure] = Field(description="The best one first.")


class Fact(Resource):
    """One line from a database's own catalogue."""

    database: str
    side: str
    name: str = Field(examples=["synchronous_commit", "walsender wait"])
    value: str


class FactSheet(Resource):
    """Facts read at one database for this run. A database that does not answer is a fact itself."""

    database: str
    side: str
    queried_at: datetime | None
    error: str | None
    facts: list[Fact]
