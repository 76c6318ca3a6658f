"""Searches in the log of a stream that mines, as engines tell them."""

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from thalweg.engine_client.documents import Document
from thalweg.kernel.lifecycle import SearchState


class ChangeOperation(StrEnum):
    INSERT = "INSERT"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    TRUNCATE = "TRUNCATE"


class BeforeIs(StrEnum):
    """Where a change's old row comes from."""

    WHOLE = "whole"
    IDENTITY = "identity"
    FOLLOWED = "followed"
    UNKNOWN = "unknown"


class SearchFailure(Document):
    code: str
    message: str
    cure: str = ""


class FoundValue(Document):
    """`text` is None for SQL's NULL, and of a masked column."""

    text: str | None
    cut: bool
    masked: bool


class FoundColumn(Document):
    """`before` and `after` are None where they are not known or not there."""

    name: str
    type: str
    key: bool
    before: FoundValue | None
    after: FoundValue | None


class FoundChange(Document):
    number: int
    xid: int
    commit_lsn: str
    commit_time: datetime
    lsn: str
    origin: str | None
    schema_name: str = Field(alias="schema")
    table: str
    operation: ChangeOperation
    before_is: BeforeIs
    columns: list[FoundColumn]


class EngineSearch(Document):
    id: str
    state: SearchState
    truncated: bool
    begun_at: datetime
    ended_at: datetime | None
    mined_bytes: int
    total_bytes: int
    from_lsn: str = Field(alias="from")
    to_lsn: str = Field(alias="to")
    found: int
    error: SearchFailure | None


class FoundChanges(EngineSearch):
    changes: list[FoundChange]
    next_after: int | None


class KeptLog(Document):
    """The WAL that is kept of a stream's source, and the searches in it."""

    kept_from: str
    kept_from_time: datetime | None
    kept_until: str
    kept_bytes: int
    searches: list[EngineSearch]
