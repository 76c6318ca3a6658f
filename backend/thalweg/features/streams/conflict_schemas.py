"""The API's view of a destination's conflict log."""

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from thalweg.features.streams.error_queue_schemas import ParkedColumn, ParkedOperation
from thalweg.kernel.conflict_handlers import LoggedKind
from thalweg.kernel.models import Resource


class LoggedAction(StrEnum):
    DISCARD = "discard"
    OVERWRITE = "overwrite"
    SKIP = "skip"
    PARK = "park"
    MAXIMUM = "maximum"
    MINIMUM = "minimum"
    LATEST = "latest"
    PRIORITY = "priority"
    DELTA = "delta"
    APPEND = "append"
    MERGE = "merge"
    EXPRESSION = "expression"
    COMBINED = "combined"
    STATEMENT = "statement"


class LoggedChange(Resource):
    id: int
    logged_at: datetime
    commit_lsn: str
    committed_at: datetime = Field(description="When the source committed the transaction.")
    xid: int
    change: int = Field(description="In the transaction, from 1.")
    schema_name: str = Field(alias="schema")
    table: str
    operation: ParkedOperation
    kind: LoggedKind = Field(description="`error`: the destination refused the change, but it is no conflict.")
    sqlstate: str | None
    action: LoggedAction = Field(
        description="`skip`: error_policies had the change left out. `park`: its transaction was parked. `combined`: "
        "several handlers decided, each about a group of columns. `statement`: "
        "statements of statement_handlers were executed in its place."
    )
    message: str | None = Field(description="Why it failed. Null for viewers, because it quotes values of rows.")


class LoggedChanges(Resource):
    conflicts: list[LoggedChange]
    next_cursor: str | None


class OpenedConflict(LoggedChange):
    columns: list[ParkedColumn] = Field(
        description="`now` is the destination's row as it was before the decision: of an insert_exists or "
        "update_exists the row that collides, else the one that the change was to change."
    )
    rows_found: int = Field(description="1, or 0 if the destination had no such row.")


class ConflictCount(Resource):
    schema_name: str = Field(alias="schema")
    table: str
    kind: LoggedKind
    sqlstate: str | None = Field(description="The SQLSTATE of the kind `error`. Null for the others.")
    action: LoggedAction
    changes: int
    newest: datetime


class ConflictCounts(Resource):
    counts: list[ConflictCount] = Field(description="The largest first, 1000 at most.")
