"""The API's view of a destination's error queue."""

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from thalweg.kernel.models import Resource


class ParkedTransaction(Resource):
    id: int
    commit_lsn: str
    xid: int
    lcrs: int
    tables: list[str]
    code: str
    message: str | None = Field(description="Why it waits. It quotes values of rows: null for viewers.")
    sqlstate: str | None
    parked_at: datetime


class ExecutionState(StrEnum):
    RUNNING = "RUNNING"
    DONE = "DONE"
    FAILED = "FAILED"


class ErrorExecution(Resource):
    error_id: int | None = Field(
        description="The transaction that was to be executed, with those behind it. Null: all of the queue."
    )
    state: ExecutionState
    executed: int = Field(description="Transactions that have been applied and are out of the queue.")
    total: int = Field(description="Transactions that were to be executed when it began.")
    started_at: datetime
    finished_at: datetime | None
    message: str | None = Field(description="Why it stopped: FAILED only. Without values of rows for viewers.")


class ParkedTransactions(Resource):
    errors: list[ParkedTransaction]
    total: int = Field(description="In the whole queue.")
    roots: int = Field(description="Those of `total` that do not wait behind another one.")
    next_cursor: str | None
    execution: ErrorExecution | None = Field(description="The last one that was asked for since the engine started.")


class ExecutionAccepted(Resource):
    accepted: bool = True
    state: ExecutionState = Field(description="RUNNING: it goes on; the queue's `execution` tells how far it is.")


class ParkedValueState(StrEnum):
    ABSENT = "absent"
    NULL = "null"
    UNCHANGED = "unchanged"
    TEXT = "text"
    RAW = "raw"


class ParkedValue(Resource):
    state: ParkedValueState = Field(
        description="`absent`: the change does not tell the value, or there is no row. `null`: NULL. `unchanged`: "
        "stored outside the row and not sent, because it stayed as it was. `text`: as the destination's server writes "
        "it. `raw`: the destination could not read it as the column's type; the bytes as they came, in hex unless "
        "they are text."
    )
    text: str | None
    bytes: int = Field(description="Of the whole value; `text` holds the first 1024.")
    cut: bool


class ParkedColumn(Resource):
    name: str
    identity: bool = Field(description="The row is found at the destination by it.")
    wanted: ParkedValue = Field(description="The value after the change.")
    before: ParkedValue = Field(description="The value at the source before the change.")
    now: ParkedValue = Field(description="The value at the destination now.")
    wanted_differs: bool | None = Field(description="From `now`; null where one of them is not known.")
    before_differs: bool | None = Field(description="From `now`; null where one of them is not known.")


class ParkedOperation(StrEnum):
    INSERT = "INSERT"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    TRUNCATE = "TRUNCATE"


class ParkedChange(Resource):
    operation: ParkedOperation
    schema_name: str = Field(alias="schema")
    table: str
    columns: list[ParkedColumn] = Field(description="Of a TRUNCATE none.")
    found_by: list[str] = Field(
        description="The columns by which the destination's row was found: of the key; of an INSERT also of another "
        "unique key that a row is in the way of; all of them where the table has no key."
    )
    rows_found: int | None = Field(description="Rows at the destination that fit; null: not looked for, or `problem`.")
    problem: str | None = Field(description="Why the destination's row is not known.")


class ParkedContents(Resource):
    error: ParkedTransaction
    changes_total: int = Field(description="In the transaction; `changes` holds the first 100.")
    changes: list[ParkedChange]
