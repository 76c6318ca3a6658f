"""Answers of the engine about rules before they are used: those that cannot be kept, and how changes are judged."""

from datetime import datetime

from pydantic import Field

from thalweg.engine_client.documents import EARLIER_PROBLEMS, Document


class EngineRuleProblem(Document):
    """`rule` and `step` are None where it is about the table; `line`, `column` and `offset` are None where it is about
    the whole rule. `code` is that of the error which would stop the stream, or missing_table. `certain` is False where
    only an update would that leaves a long value as it was."""

    schema_name: str = Field(alias="schema")
    table: str
    rule: str | None
    step: int | None = None  # of the transformations; earlier engines know none
    code: str
    message: str
    line: int | None
    column: int | None
    offset: int | None
    certain: bool = True  # earlier engines foresee nothing else


class RulesCheck(Document):
    problems: list[EngineRuleProblem] = Field(validation_alias=EARLIER_PROBLEMS)


class RuleOutcome(Document):
    set: str
    rule: str
    outcome: str
    before: str | None


class RuleStop(Document):
    code: str
    message: str
    sqlstate: str


class JudgedChange(Document):
    """`old` and `new` are rows as PostgreSQL writes values; long ones are cut. Earlier engines judge no changes of
    streams, and say nothing of a change's origin, tag and commit time."""

    operation: str
    old: dict[str, str | None] | None
    new: dict[str, str | None] | None
    rules: list[RuleOutcome]
    verdict: str
    error: RuleStop | None
    origin: str | None = None
    old_not_sent: list[str] = Field(default_factory=list)
    new_not_sent: list[str] = Field(default_factory=list)
    hidden: list[str] = Field(default_factory=list)
    tag: str | None = None
    commit_time: datetime | None = None


class RulesTrial(Document):
    problems: list[EngineRuleProblem] = Field(validation_alias=EARLIER_PROBLEMS)
    changes: list[JudgedChange]
    recent_end: str | None = None
