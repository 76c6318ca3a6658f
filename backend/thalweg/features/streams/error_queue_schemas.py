"""The API's view of a destination's error queue."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from thalweg.features.streams.error_causes import CauseKind
from thalweg.kernel.lifecycle import ExecutionState
from thalweg.kernel.models import NO_CONTROL_CHARACTERS, Body, Resource

Reason = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=3, max_length=1000, pattern=NO_CONTROL_CHARACTERS)
]
"""A reason that an operator gives; the audit log keeps it."""
VALUES_CHARACTERS_MAX = 100_000
COLUMNS_MAX = 1600
"""The columns that a table can have in PostgreSQL."""


class ParkedTransaction(Resource):
    id: int
    commit_lsn: str
    xid: int
    lcrs: int
    tables: list[str]
    code: str
    message: str | None = Field(description="Why it waits. Null for viewers, because it quotes values of rows.")
    sqlstate: str | None
    constraint: str | None = Field(
        description="The constraint that it violated when it failed last. Null: none, for viewers, or the engine that "
        "noted the error does not tell."
    )
    parked_at: datetime
    edited: int = Field(description="Changes of it that are applied with other values.")
    left_out: int = Field(description="Changes of it that are not applied.")
    failed_change: int | None = Field(
        description="The number of the change at which it failed last. Null: it waits, or failed at its commit, or the "
        "engine that noted the error does not tell."
    )
    etag: str | None = Field(
        description="The version of what is decided about its changes. Send it as If-Match to decide about another. "
        "Null: the engine's version does not tell, and the last decision counts."
    )


class ParkedDependant(ParkedTransaction):
    parent: int = Field(description="The first transaction of the tree with which it shares a row or a table.")
    behind: list[int] = Field(
        description="The transactions of the whole queue that it waits behind: of each row and table, the first that "
        "touches it. 10 at most."
    )
    behind_total: int = Field(description="How many these are, also beyond 10.")


class ParkedTree(Resource):
    dependants: list[ParkedDependant] = Field(
        description="All that wait behind the transaction, in the source's commit order: a parent comes before its "
        "children, also from one page to the next."
    )
    total: int = Field(description="On all pages.")
    behind: list[int] = Field(description="What the transaction itself waits behind, as `behind` of a dependant.")
    behind_total: int
    next_cursor: str | None


class ErrorCause(Resource):
    cause: str = Field(description="Names it in requests.")
    kind: CauseKind
    title: str
    cure: str = Field(description="What most likely helps.")
    code: str
    sqlstate: str | None
    table: str | None = Field(description="Null if the message names none.")
    object: str | None = Field(
        description="The constraint, column or type that the message names, if it names one. Null for viewers."
    )
    transactions: int
    oldest: datetime = Field(description="When the first of them was parked.")


class ExecutionFailure(Resource):
    error_id: int
    code: str
    sqlstate: str | None
    message: str | None = Field(description="Without values of rows for viewers.")


class ErrorExecution(Resource):
    error_id: int | None = Field(description="The transaction to execute, with those behind it. Null: several.")
    cause: str | None = Field(
        description="The cause whose transactions are executed, with those behind them. Null: "
        "one transaction, or the whole queue."
    )
    role: str | None = Field(description="The destination's role as which it applies. Null: the engine's own.")
    state: ExecutionState
    executed: int = Field(description="Transactions that were applied and have left the queue.")
    total: int = Field(description="Transactions to execute when it began.")
    failed_again: int | None = Field(
        description="Transactions that failed again and have not left the queue since. The rest of `total` has left "
        "it, waits behind these, or has not been tried yet. Null: the engine's version does not tell."
    )
    failures: list[ExecutionFailure] = Field(
        description="Failures of the first 20 that failed again, as far as they are in the queue."
    )
    left_out: int = Field(
        description="Transactions of `executed` of which nothing was applied, because all their changes are left out."
    )
    left_out_ids: list[int] = Field(description="The first 20 of them.")
    started_at: datetime
    finished_at: datetime | None
    message: str | None = Field(description="Why it stopped: FAILED only. Without values of rows for viewers.")


class ParkedTransactions(Resource):
    errors: list[ParkedTransaction]
    total: int = Field(description="In the whole queue.")
    roots: int = Field(description="Those of `total` that do not wait behind another one.")
    causes: list[ErrorCause] | None = Field(
        description="The whole queue by cause, the largest groups first, 100 at most. Null: the engine's version does "
        "not tell."
    )
    next_cursor: str | None
    execution: ErrorExecution | None = Field(description="The last execution that began since the engine started.")


class Execution(Body):
    """How parked transactions are executed or tried."""

    role: Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=NO_CONTROL_CHARACTERS)] | None = Field(
        default=None,
        description="A role of the destination, exactly as PostgreSQL has it: the changes are applied with its "
        "privileges and policies (`SET LOCAL ROLE`), as are the triggers that they fire. The engine's user has to be "
        "a member of it. Null: as the engine's user.",
        examples=["clerk"],
    )


class DryRun(Resource):
    succeeds: bool = Field(description="Whether the transaction would be applied, were it executed now.")
    code: str | None = Field(description="Null if it succeeds, like all that follow.")
    sqlstate: str | None
    table: str | None
    message: str | None = Field(description="Why the destination refuses it, with the row's key.")
    title: str | None
    cure: str | None = Field(description="What most likely helps.")
    changes: int | None = Field(description="How many it has. Null: the engine's version does not tell.")
    edited: int = Field(description="How many changes were tried with other values.")
    left_out: int = Field(description="How many changes were not tried.")
    settled: int = Field(
        description="How many changes the destination refuses, and statement handlers of `error` settle in their "
        "places. 0, too, where the engine's version does not tell."
    )
    failed_change: int | None = Field(
        description="The number of the change that the destination refuses. Null: it succeeds, or fails at the commit, "
        "or the engine's version does not tell."
    )


class ExecutionAccepted(Resource):
    accepted: bool = True
    state: ExecutionState = Field(
        description="RUNNING: it continues; the queue's `execution` shows its progress. FAILED: some were applied, "
        "then one failed again. An execution of which nothing was applied is refused instead."
    )
    executed: int | None = Field(description="Transactions that were applied and have left the queue: FAILED only.")
    failed_again: int | None = Field(
        description="Transactions that failed again: FAILED only. Null, too, where the engine's version does not tell."
    )
    message: str | None = Field(description="Why the first of them failed: FAILED only.")


class ParkedValueState(StrEnum):
    ABSENT = "absent"
    NULL = "null"
    UNCHANGED = "unchanged"
    TEXT = "text"
    RAW = "raw"


class ParkedValue(Resource):
    state: ParkedValueState = Field(
        description="`absent`: the change does not contain the value, or there is no row. `null`: NULL. `unchanged`: "
        "stored outside the row and not sent, because it stayed as it was. `text`: as the destination's "
        "server writes it. `raw`: the destination could not read it as the column's type; the bytes as "
        "they came, in hex unless they are text."
    )
    text: str | None
    bytes: int = Field(description="The size of the whole value; `text` holds the first 1024 bytes.")
    cut: bool


class ParkedColumn(Resource):
    name: str
    identity: bool = Field(description="The destination's row is found by this column.")
    wanted: ParkedValue = Field(description="The value after the change.")
    before: ParkedValue = Field(description="The value at the source before the change.")
    now: ParkedValue = Field(description="The value at the destination now.")
    wanted_differs: bool | None = Field(
        description="Whether `wanted` differs from `now`; null if one of them is unknown."
    )
    before_differs: bool | None = Field(
        description="Whether `before` differs from `now`; null if one of them is unknown."
    )


class ParkedOperation(StrEnum):
    INSERT = "INSERT"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    TRUNCATE = "TRUNCATE"


class ParkedEdit(Resource):
    left_out: bool = Field(description="The change is not applied.")
    values: dict[str, str | None] = Field(
        description="By column, what is applied in the place of `wanted`: in text form, null is NULL."
    )
    reason: str


class ParkedChange(Resource):
    number: int | None = Field(
        description="In the transaction, from 1; the tables of one TRUNCATE share it. Null: the engine's version "
        "cannot edit changes."
    )
    operation: ParkedOperation
    schema_name: str = Field(alias="schema")
    table: str
    columns: list[ParkedColumn] = Field(description="Empty for a TRUNCATE.")
    found_by: list[str] = Field(
        description="The columns by which the destination's row was found: those of the key; for an INSERT also those "
        "of another unique key that an existing row already uses; all columns if the table has no key."
    )
    rows_found: int | None = Field(
        description="Matching rows at the destination; null: not searched for, or see `problem`."
    )
    problem: str | None = Field(description="Why the destination's row is not known.")
    edit: ParkedEdit | None = Field(description="What an operator has decided about it. Null: nothing.")


class ParkedContents(Resource):
    error: ParkedTransaction
    changes_total: int = Field(description="In the transaction; those of one TRUNCATE are one.")
    changes: list[ParkedChange] = Field(description="Those with a higher number than `after`, the lowest first.")
    next_after: int | None = Field(description="The `after` of the next page. Null: there is none.")


NewValue = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$")]


class ChangeEdit(Body):
    left_out: bool = Field(default=False, description="The change is not applied; the transaction's others are.")
    values: dict[str, NewValue | None] = Field(
        default={},
        max_length=COLUMNS_MAX,
        description="Other new values of an INSERT or UPDATE, by column: in PostgreSQL's text form, null is NULL. The "
        "destination's types check them when the transaction is tried or executed.",
    )
    reason: Reason = Field(
        description="Why the two databases may differ from now on. The queue shows it, and the audit log keeps it with "
        "the change.",
    )

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if self.left_out == bool(self.values):
            raise PydanticCustomError("one_of", "Either leave the change out, or give it other values.")
        if sum(len(column) + len(value or "") for column, value in self.values.items()) > VALUES_CHARACTERS_MAX:
            raise PydanticCustomError(
                "too_long", f"The values have more than {VALUES_CHARACTERS_MAX:,} characters together."
            )
        return self
