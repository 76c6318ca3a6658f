"""Row rules as the API checks and tries them, and what they have decided."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Self

from pydantic import (
    AllowInfNan,
    AwareDatetime,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StringConstraints,
    model_validator,
)
from pydantic_core import PydanticCustomError

from thalweg.kernel.models import NO_CONTROL_CHARACTERS, Body, Id, Resource
from thalweg.kernel.row_rules import RowRules, RuledOperation, RuleScope
from thalweg.kernel.rules import RULES_MAX, TablePattern, TableRef


class RulesCheckRequest(Body):
    source_id: Id
    capture_engine_id: Id | None = Field(
        default=None, description="The engine that captures the stream. Null: the only one."
    )
    row_rules: Annotated[RowRules, Field(min_length=1)]
    include: Annotated[list[TablePattern], Field(max_length=RULES_MAX)] = Field(
        default_factory=list,
        description="Patterns of tables, as in the stream's rules. Rules of a schema and global ones are checked "
        "against these tables, beside those that `row_rules` name.",
    )
    exclude: Annotated[list[TablePattern], Field(max_length=RULES_MAX)] = Field(
        default_factory=list, description="Patterns of tables, as in the stream's rules."
    )
    inserts_only: Annotated[list[TableRef], Field(max_length=RULES_MAX)] = Field(
        default_factory=list, description="Tables, as in the stream's rules, of which no rule sees updates and deletes."
    )


class RuleProblem(Resource):
    """Something that would stop a stream with these rules."""

    schema_name: str | None = Field(alias="schema", description="Null: it is about a global rule.")
    table: str | None = Field(
        description="Null: it is about the rule, which fits none of the tables that it concerns for this one reason."
    )
    rule: str | None = Field(description="Its name. Null: it is about the table.")
    scope: RuleScope | None = Field(description="Where the rule comes from. Null: it is about the table.")
    code: str = Field(description="rule_refused, rule_undecidable or missing_table.")
    message: str
    cure: str
    line: int | None = Field(description="In the rule's condition, from 1. Null: it is about the whole rule.")
    column: int | None = Field(description="In characters, from 1; null like the line.")
    offset: int | None = Field(description="In bytes of UTF-8, from 0; null like the line.")
    certain: bool = Field(description="False: only an update that leaves a long value as it was would stop the stream.")


class RulesCheck(Resource):
    problems: list[RuleProblem] = Field(description="None of them certain: the rules can be kept.")


Value = Annotated[str, StringConstraints(max_length=100_000, pattern=r"^[^\x00]*$")]
Finite = Annotated[StrictFloat, AllowInfNan(False)]
Whole = Annotated[StrictInt, Field(ge=-(2**63), lt=2**63)]
TriedRow = Annotated[dict[str, Value | StrictBool | Whole | Finite | None], Field(max_length=1600)]
CHANGES_MAX = 100
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
POSTGRES_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
"""The time that stands in the WAL for none."""
TIMES_END = datetime(9000, 1, 1, tzinfo=UTC)


class TriedChange(Body):
    """Values are as PostgreSQL writes them, numbers, booleans or null; columns that are left out are NULL. A whole
    number of more than 64 bits is written as text."""

    operation: RuledOperation
    old: TriedRow | None = Field(default=None, description="The row before an UPDATE or DELETE.")
    new: TriedRow | None = Field(default=None, description="The row after an INSERT or UPDATE.")
    tag: Annotated[str, StringConstraints(max_length=512, pattern=NO_CONTROL_CHARACTERS)] | None = Field(
        default=None, description="The replication origin of its transaction. Null: none."
    )
    commit_time: AwareDatetime | None = Field(
        default=None,
        description="When its transaction committed. Null: it has no commit time, as a copied row.",
    )

    @model_validator(mode="after")
    def _has_its_rows(self) -> Self:
        needed = {"old": self.operation in ("UPDATE", "DELETE"), "new": self.operation in ("INSERT", "UPDATE")}
        for name, is_needed in needed.items():
            if (getattr(self, name) is not None) != is_needed:
                needs = "needs" if is_needed else "has no"
                raise PydanticCustomError("row_mismatch", f"{self.operation.value} {needs} `{name}`.")
        if self.commit_time is not None and not POSTGRES_EPOCH < self.commit_time < TIMES_END:
            raise PydanticCustomError("no_commit_time", "A transaction's time lies between the years 2000 and 9000.")
        return self

    def for_engine(self) -> dict[str, Any]:
        rows = {"old": self.old, "new": self.new}
        commit_micros = None if self.commit_time is None else (self.commit_time - EPOCH) // timedelta(microseconds=1)
        facts = {"tag": self.tag, "commit_micros": commit_micros}
        known = {name: value for name, value in (rows | facts).items() if value is not None}
        return {"operation": self.operation.value, **known}


class RecentChanges(Body):
    """The next changes of the table that a running stream captures, as the source sends them: before the stream's own
    rules and transformations."""

    stream_id: Id = Field(description="A stream from the same source, which has the table.")
    limit: Annotated[int, Field(strict=True, ge=1, le=CHANGES_MAX)] = Field(
        default=20, description="So many changes at most. TRUNCATEs are none of them."
    )
    wait_ms: Annotated[int, Field(strict=True, ge=0, le=5000)] = Field(
        default=5000, description="How long to wait for them, in milliseconds. Changes that are not committed by then "
        "are left out."
    )  # fmt: skip


class RulesTestRequest(Body):
    source_id: Id
    capture_engine_id: Id | None = Field(
        default=None, description="The engine that captures the stream. Null: the only one."
    )
    table: TableRef
    row_rules: Annotated[RowRules, Field(min_length=1)] = Field(
        description="Row rules, as a stream or a destination has them: those that concern the table are tried."
    )
    sample: Annotated[int, Field(strict=True, ge=0, le=CHANGES_MAX)] = Field(
        default=20, description="So many rows of the table are judged as INSERTs; 0: none."
    )
    changes: Annotated[list[TriedChange], Field(max_length=CHANGES_MAX)] = Field(
        default_factory=list, description="Changes to judge, before the rows of the table."
    )
    recent: RecentChanges | None = Field(default=None, description="Changes of a stream to judge; null: none.")


class RuleOutcome(Resource):
    set: str = Field(description="positive or negative.")
    rule: str = Field(description="Its name.")
    scope: RuleScope = Field(description="Where it comes from.")
    outcome: str = Field(
        description="TRUE, FALSE, NULL, UNDECIDABLE (a value did not come), FAILED, or OTHER OPERATION: the rule is "
        "for others."
    )
    before: str | None = Field(
        description="The same for the row before an UPDATE, where the rules make a subset; null otherwise."
    )
    counts_as: str | None = Field(
        description="TRUE or FALSE: what the rule counts as where `outcome` or `before` is UNDECIDABLE or FAILED, by "
        "its `on_error`. Null: neither is, or the rule has no policy but to stop."
    )


class RuleStop(Resource):
    code: str = Field(description="rule_undecidable or rule_failed.")
    message: str
    sqlstate: str | None


class JudgedChange(Resource):
    operation: str
    old: dict[str, str | None] | None = Field(
        description="The row before, in the table's order of columns; values longer than 200 bytes are cut. Of a "
        "stream's change, the columns that came; null: none did."
    )
    new: dict[str, str | None] | None = Field(description="The row after, likewise.")
    rules: list[RuleOutcome]
    verdict: str = Field(description="PASSED, DROPPED, BECOMES INSERT, BECOMES DELETE, or STOPS THE STREAM.")
    error: RuleStop | None = Field(description="What stops the stream.")
    origin: str = Field(description="REQUEST, STREAM (`recent`) or TABLE (`sample`).")
    old_not_sent: list[str] = Field(
        description="Columns of the row before whose values the source did not send, where it is a stream's change. "
        "What it sends depends on the table's replica identity."
    )
    new_not_sent: list[str] = Field(
        description="The same for the row after: long values that an UPDATE left as they were (TOAST)."
    )
    tag: str | None = Field(description="The replication origin of the change's transaction. Null: none, or unknown.")
    commit_time: datetime | None = Field(
        description="When its transaction committed. Null: it has no commit time, or it has not ended yet."
    )
    hidden: list[str] = Field(
        description="Columns that the stream masks or drops, where it is a stream's change. Rules judge their values, "
        "and nobody is shown them."
    )


class RulesTest(Resource):
    problems: list[RuleProblem] = Field(
        description="The problems that streams:check-rules would find. If a rule is refused, nothing is judged."
    )
    changes: list[JudgedChange] = Field(
        description="Those of the request, then the stream's, then the table's rows as INSERTs."
    )
    recent_end: str | None = Field(
        description="Why there are no more changes of the stream: LIMIT, TIME (no more came), or SIZE (the next one "
        "would have exceeded 8 MiB in all). Null: none were asked for, or a rule is refused."
    )


class RuleCountsOfTable(Resource):
    schema_name: str = Field(alias="schema")
    table: str
    scopes: list[RuleScope] = Field(description="Where its rules come from.")
    passed: int = Field(description="Changes that passed as they were.")
    dropped: int = Field(description="Without what the source has not sent.")
    became_inserts: int = Field(description="Updates that brought a row into the subset, and are an INSERT there.")
    became_deletes: int = Field(description="Updates that took a row out of the subset, and are a DELETE there.")
    by_policy: int = Field(
        description="Changes among all these that `on_error` of a rule has decided, because its condition could not be "
        "evaluated."
    )
    at_source: list[str] = Field(
        default=[],
        description="Operations (INSERT, UPDATE) for which the source evaluates the rules: what they drop is not sent, "
        "and no count contains it.",
    )
    at_engine_because: str | None = Field(
        default=None,
        description="Why the engine alone evaluates the rules for inserts or updates. Null: it does not, or has not "
        "told; a destination's own rules are always the engine's.",
    )


class RuleCounts(Resource):
    counted_since: datetime = Field(
        description="When the counts last began at 0, as they do whenever the capture starts; of a destination's "
        "rules, whenever its changes begin to be read. What is then read again counts again."
    )
    tables: list[RuleCountsOfTable] = Field(description="Every table with rules. What is rolled back counts, too.")
