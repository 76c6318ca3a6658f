"""Answers of the engine about a destination's error queue."""

from datetime import datetime

from pydantic import Field

from thalweg.engine_client.documents import Document, EngineError
from thalweg.kernel.lifecycle import ExecutionState


class ParkedError(Document):
    """`failed_change`: the number of the change at which it failed. `edits_version`: another one after every decision
    about its changes. Older engines tell neither."""

    id: int
    commit_lsn: str
    xid: int
    lcrs: int
    tables: list[str]
    code: str
    message: str
    sqlstate: str = ""
    constraint: str = ""
    parked_at: datetime
    edited: int = 0
    left_out: int = 0
    settled: int = 0
    failed_change: int | None = None
    edits_version: str | None = None


class ParkedCause(Document):
    """Empty strings: the messages name none."""

    id: str
    code: str
    sqlstate: str
    table: str
    object: str
    transactions: int
    oldest: datetime


class ExecutionFailure(Document):
    error_id: int
    error: EngineError


class ErrorExecution(Document):
    """`failures`: the first of those that `failed_again` counts. `left_out`: of `executed`, those all of whose changes
    were left out; `left_out_ids` are the first of them. Older engines tell none of it."""

    error_id: int | None
    cause: str | None = None
    role: str | None = None
    state: ExecutionState
    executed: int
    total: int
    failed_again: int | None = None
    failures: list[ExecutionFailure] = Field(default=[])
    left_out: int = 0
    left_out_ids: list[int] = Field(default=[])
    started_at: datetime
    finished_at: datetime | None
    error: EngineError | None


class ParkedErrors(Document):
    """A part of the queue; `next_after` is None at its end. `causes`: groups of the whole queue, None where an older
    engine knows none. `execution`: the last one that began."""

    errors: list[ParkedError]
    total: int
    roots: int
    causes: list[ParkedCause] | None = None
    next_after: int | None
    execution: ErrorExecution | None


class DryRun(Document):
    """Older engines tell neither `changes` nor `failed_change`."""

    succeeds: bool
    error: EngineError | None
    changes: int | None = None
    edited: int = 0
    left_out: int = 0
    settled: int = 0
    failed_change: int | None = None


class ExecutionReport(Document):
    state: ExecutionState


class ParkedValue(Document):
    state: str
    text: str | None
    bytes: int
    cut: bool


class ParkedColumn(Document):
    name: str
    identity: bool
    wanted: ParkedValue
    before: ParkedValue
    now: ParkedValue
    wanted_differs: bool | None
    before_differs: bool | None


class ParkedEdit(Document):
    left_out: bool
    values: dict[str, str | None]
    reason: str


class ParkedChange(Document):
    """`number`: in the transaction. Older engines tell none, and know no edits."""

    number: int | None = None
    operation: str
    schema_name: str = Field(alias="schema")
    table: str
    columns: list[ParkedColumn]
    found_by: list[str]
    rows_found: int | None
    problem: str | None
    edit: ParkedEdit | None = None


class ParkedContents(Document):
    """A part of its changes; `next_after` is None at its end. Older engines tell the first ones only."""

    error: ParkedError
    changes_total: int
    changes: list[ParkedChange]
    next_after: int | None = None


class ParkedDependant(ParkedError):
    """`parent`: the first of the tree with which it shares a row. `behind`: all that it waits behind, or the first."""

    parent: int
    behind: list[int]
    behind_total: int


class ParkedTree(Document):
    """A part of those that wait behind one of the queue, in commit order; `behind` is that one's own."""

    dependants: list[ParkedDependant]
    total: int
    behind: list[int]
    behind_total: int
    next_after: int | None
