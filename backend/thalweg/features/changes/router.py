"""Searches in the log of a source over HTTP. All of them show rows of tables: viewers cannot use them."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from fastapi.responses import PlainTextResponse, StreamingResponse

from thalweg.db.models import DatabaseRow
from thalweg.features.changes import files, service
from thalweg.features.changes.asked import search_of
from thalweg.features.changes.schemas import (
    FOUND_DEFAULT,
    FOUND_MAX,
    KEY_COLUMNS_MAX,
    XID_MAX,
    Search,
    SearchCreate,
    Searches,
    SearchResult,
)
from thalweg.kernel.conflict_handlers import ExportFormat
from thalweg.kernel.context import Operator, TransactionalRoute
from thalweg.kernel.idempotency import Created, OnceOnly
from thalweg.kernel.models import ID_PATTERN, Id
from thalweg.kernel.pagination import LIMIT_DEFAULT, LIMIT_MAX

router = APIRouter(route_class=TransactionalRoute, tags=["changes"])
ALL = "/sources/{database_id}/searches"
ONE = f"{ALL}/{{search_id}}"
SearchId = Annotated[str, Path(pattern=ID_PATTERN)]
Moment = Annotated[str | None, Query(max_length=64, description="A time in ISO 8601 (UTC unless it says), or an LSN.")]


@router.get(ALL, operation_id="searches_list")
async def list_searches(database_id: Id, context: Operator) -> Searches:
    """The WAL of the source that engines keep, and the searches in it."""
    return await service.list_searches(context, database_id)


@router.post(ALL, status_code=202, operation_id="searches_create", response_model=Search)
async def create_search(database_id: Id, body: SearchCreate, context: Operator, once: OnceOnly) -> Response:
    """Begin a search: who changed a row, when, from what to what, in which transaction. The audit log records it, but
    no values. Poll searches_get until its state is DONE or FAILED."""

    async def keep(begun: tuple[DatabaseRow, Search]) -> Created:
        database, search = begun
        service.record_begun(context, database, search, body)
        location = f"/api/v1/sources/{database_id}/searches/{search.id}"
        return Created(search, 202, {"Location": location})

    return await once.run_prepared(context, lambda: service.begin(context, database_id, body), keep)


@router.get(f"{ONE}:export", operation_id="searches_export", response_class=StreamingResponse, responses={
    200: {"description": "The changes.", "content": {
        "application/x-ndjson": {"schema": {"type": "string"}}, "text/csv": {"schema": {"type": "string"}},
    }},
})  # fmt: skip
async def export_search(
    database_id: Id, search_id: SearchId, context: Operator,
    format_: Annotated[ExportFormat, Query(alias="format")] = ExportFormat.NDJSON,
) -> StreamingResponse:  # fmt: skip
    """All changes that a search has found, once it has ended, as a file."""
    pieces = await files.export(context, database_id, search_id, format_)
    media_type = "text/csv" if format_ is ExportFormat.CSV else "application/x-ndjson"
    headers = {"Content-Disposition": f'attachment; filename="changes-{search_id}.{format_}"'}
    return StreamingResponse(pieces, media_type=media_type, headers=headers)


@router.get(f"{ONE}:undo", operation_id="searches_undo", response_class=PlainTextResponse, responses={
    200: {"description": "SQL.", "content": {"application/sql": {"schema": {"type": "string"}}}},
})  # fmt: skip
async def undo_search(
    database_id: Id, search_id: SearchId, context: Operator,
    change: Annotated[
        list[int] | None, Query(max_length=LIMIT_MAX, description="Numbers of changes. None: all of them.")
    ] = None,
) -> Response:  # fmt: skip
    """SQL that undoes changes which a search has found, once it has ended: one transaction, the newest change first. It
    is not executed. Comments name the changes that cannot be undone, with the reason."""
    script = await files.undo(context, database_id, search_id, change or [])
    headers = {"Content-Disposition": f'attachment; filename="undo-{search_id}.sql"'}
    return Response(script, media_type="application/sql", headers=headers)


@router.get(ONE, operation_id="searches_get")
async def get_search(
    database_id: Id, search_id: SearchId, context: Operator,
    after: Annotated[int, Query(ge=0, le=FOUND_MAX, description="Changes with a higher number.")] = 0,
    limit: Annotated[int, Query(ge=1, le=LIMIT_MAX, description="Changes in one answer.")] = LIMIT_DEFAULT,
    whole: Annotated[
        bool, Query(description="Values up to 64 KiB. Else they are cut at 1 KiB, and `undo` lacks what is cut.")
    ] = False,
) -> SearchResult:  # fmt: skip
    """One search: how far it is, and the changes that it has found. The audit log records it where another user has
    begun the search."""
    return await service.get(context, database_id, search_id, after, limit, whole=whole)


@router.delete(ONE, status_code=204, operation_id="searches_delete")
async def delete_search(database_id: Id, search_id: SearchId, context: Operator) -> None:
    """End a search. Its changes are forgotten."""
    await service.end(context, database_id, search_id)


@router.get("/sources/{database_id}/changes", operation_id="changes_find")
async def find_changes(
    database_id: Id, context: Operator,
    from_: Annotated[Moment, Query(alias="from")] = None,
    to: Moment = None,
    table: Annotated[str | None, Query(max_length=300, description="schema.table, quoted as in SQL if odd.")] = None,
    key: Annotated[
        list[str] | None,
        Query(max_length=KEY_COLUMNS_MAX, description="COLUMN=VALUE, once for each column. With `table`."),
    ] = None,
    xid: Annotated[int | None, Query(ge=1, le=XID_MAX, description="Only this transaction.")] = None,
    limit: Annotated[int, Query(ge=1, le=FOUND_MAX, description="Changes at which it ends.")] = FOUND_DEFAULT,
    wait: Annotated[float, Query(ge=0, le=30, description="Seconds to wait for its end.")] = 20,
) -> SearchResult:  # fmt: skip
    """Begin a search and wait for it: its first changes, 1000 at most. After the state RUNNING, or a `next_after`, go
    on with searches_get."""
    wanted = search_of(from_, to, table, key or [], xid, limit)
    return await service.find(context, database_id, wanted, wait)
