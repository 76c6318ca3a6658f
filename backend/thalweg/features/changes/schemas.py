"""Changes in the log of a source, and searches that find them."""

from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, Field, StringConstraints

from thalweg.engine_client.search_documents import BeforeIs, ChangeOperation
from thalweg.kernel.lifecycle import SearchState
from thalweg.kernel.log_positions import LSN_PATTERN
from thalweg.kernel.models import Body, Id, Resource, TableIdentifier

XID_MAX = 2**32 - 1
FOUND_MAX = 10_000
FOUND_DEFAULT = 1000
KEY_COLUMNS_MAX = 32
YEARS = (2000, 9998)
"""In every time zone."""
Lsn = Annotated[str, StringConstraints(pattern=LSN_PATTERN)]
KeyValue = Annotated[str, StringConstraints(max_length=10_000, pattern=r"^[^\x00]*$")]


def _in_range(moment: datetime) -> datetime:
    if not YEARS[0] <= moment.year <= YEARS[1]:
        raise ValueError(f"Times lie between the years {YEARS[0]} and {YEARS[1]}.")
    return moment


Moment = Annotated[AwareDatetime, AfterValidator(_in_range)]


class SearchedTable(Body):
    schema_name: TableIdentifier = Field(alias="schema", examples=["public"])
    table: TableIdentifier = Field(examples=["orders"])


class SearchCreate(Body):
    """A search asks for all that is kept, where nothing is given. All that is given holds at once."""

    stream_id: Id | None = Field(
        default=None,
        description="The stream whose engine searches. Null: of those that have the table, the one that keeps WAL from "
        "furthest back.",
    )
    from_: Lsn | None = Field(
        default=None, alias="from", description="LSN: transactions that committed there or later.",
        examples=["0/1A2B3C4D"],
    )  # fmt: skip
    to: Lsn | None = Field(default=None, description="LSN: transactions that committed before it.")
    from_time: Moment | None = Field(default=None, description="Transactions that committed then or later.")
    to_time: Moment | None = Field(default=None, description="Transactions that committed before it.")
    table: SearchedTable | None = Field(default=None, description="Only this table's, by the name it had then.")
    key: Annotated[dict[TableIdentifier, KeyValue | None], Field(max_length=KEY_COLUMNS_MAX)] | None = Field(
        default=None,
        description="Columns of the table with their values as text, null for NULL. A change is found that has them "
        "before or after it. With `table`.",
        examples=[{"id": "5"}],
    )
    xid: Annotated[int, Field(strict=True, ge=1, le=XID_MAX)] | None = Field(
        default=None, description="Only this transaction of the source."
    )
    limit: Annotated[int, Field(strict=True, ge=1, le=FOUND_MAX)] = Field(
        default=FOUND_DEFAULT, description="The number of changes at which it ends."
    )


class SearchError(Resource):
    code: str
    message: str
    cure: str | None


class Search(Resource):
    """A search in a source's log. The engine forgets it ten minutes after its end."""

    id: str
    stream_id: str
    state: SearchState
    truncated: bool = Field(
        description="The limit, or the size of a result, is reached, and more may follow: search again from the last "
        "change's commit_lsn."
    )
    begun_at: datetime
    ended_at: datetime | None
    mined_bytes: int = Field(description="WAL that it has read.")
    total_bytes: int = Field(description="WAL that it reads.")
    from_lsn: str = Field(alias="from", description="LSN where it begins to read.")
    to_lsn: str = Field(alias="to", description="LSN where it ends.")
    found: int = Field(description="Changes so far.")
    error: SearchError | None = Field(description="Why it has FAILED.")


class ChangedValue(Resource):
    text: str | None = Field(description="The server's text form. It is null where the value is NULL or masked.")
    cut: bool = Field(description="The value is longer than what is shown.")
    masked: bool = Field(description="The stream masks or drops the column: its values stay at the engine.")


class ChangedColumn(Resource):
    name: str
    type: str
    key: bool = Field(description="A column of the table's replica identity.")
    before: ChangedValue | None = Field(description="Null: not known, or there was none.")
    after: ChangedValue | None = Field(description="Null: not known, or there is none.")


class Change(Resource):
    number: int = Field(description="In the search, from 1, in the order of commits.")
    xid: int
    commit_lsn: str
    commit_time: datetime
    lsn: str
    origin: str | None = Field(description="The replication origin, if the transaction came to the source by one.")
    schema_name: str = Field(alias="schema")
    table: str
    operation: ChangeOperation
    before_is: BeforeIs = Field(
        description="Where `before` comes from. `whole`: the WAL has the whole old row. `identity`: only its columns "
        "of the replica identity. `followed`: from the change of the same row that the search found before it."
    )
    columns: list[ChangedColumn]
    undo: str | None = Field(description="SQL that undoes the change. Null: `undo_note` says why there is none.")
    undo_note: str | None


class SearchResult(Search):
    changes: list[Change]
    next_after: int | None = Field(
        description="Send it as `after` for the next page. Null: no more now; while the search is RUNNING, ask again "
        "with the last change's number."
    )


class KeptStream(Resource):
    """The WAL of the source that is kept for a stream."""

    stream_id: str
    stream_name: str
    kept_from: str = Field(description="The LSN from which can be searched.")
    kept_from_time: datetime | None = Field(
        description="The time of a commit there or earlier. It is null where it is not known."
    )
    kept_until: str
    kept_bytes: int


class UnsearchableStream(Resource):
    stream_id: str
    stream_name: str
    code: str
    message: str
    cure: str | None


class Searches(Resource):
    streams: list[KeptStream]
    unavailable: list[UnsearchableStream] = Field(
        description="Streams with log mining whose log cannot be searched now, with the reason."
    )
    reason: str | None = Field(description="Why no stream can be searched; null if one can.")
    searches: list[Search] = Field(description="Those that run and the last that ended, of all these streams.")
