"""The destination's conflict log, as engines tell it."""

from datetime import datetime

from pydantic import Field

from thalweg.engine_client.documents import Document


class LoggedColumn(Document):
    """A value that the change does not tell is not among the fields set."""

    name: str
    is_identity: bool
    before: str | None = None
    wanted: str | None = None
    there: str | None = None


class LoggedConflict(Document):
    """`kind`: empty where the error is no conflict."""

    id: int
    commit_lsn: str
    committed_at: datetime
    xid: int
    change: int
    schema_name: str = Field(alias="schema")
    table: str
    operation: str
    kind: str
    sqlstate: str
    message: str
    action: str
    columns: list[LoggedColumn]
    has_row: bool
    logged_at: datetime


class LoggedConflicts(Document):
    conflicts: list[LoggedConflict]
    next_before: int | None


class ConflictCount(Document):
    schema_name: str = Field(alias="schema")
    table: str
    kind: str
    sqlstate: str
    action: str
    changes: int
    newest: datetime


class ConflictCounts(Document):
    counts: list[ConflictCount]
