"""Registered databases over HTTP."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from thalweg.features.databases import inspections, service
from thalweg.features.databases.schemas import (
    Database,
    DatabaseCreate,
    DatabaseTestRequest,
    DatabaseUpdate,
)
from thalweg.inspection.schemas import CheckSide, ConnectionTest, Preflight, SourceColumns, SourceTable
from thalweg.kernel.context import Operator, TransactionalRoute, Viewer
from thalweg.kernel.etags import IfMatch
from thalweg.kernel.idempotency import OnceOnly
from thalweg.kernel.models import NO_CONTROL_CHARACTERS, Id, Page, TableIdentifier
from thalweg.kernel.pagination import LIMIT_DEFAULT, Cursor, Limit

router = APIRouter(route_class=TransactionalRoute, tags=["databases"])

Search = Annotated[
    str | None, Query(max_length=128, pattern=NO_CONTROL_CHARACTERS, description="Part of schema.table.")
]


@router.get("/databases", operation_id="databases_list")
async def list_databases(context: Viewer, limit: Limit = LIMIT_DEFAULT, cursor: Cursor = None) -> Page[Database]:
    return await service.list_databases(context, limit, cursor)


@router.post("/databases", status_code=201, operation_id="databases_create", response_model=Database)
async def create_database(body: DatabaseCreate, context: Operator, once: OnceOnly) -> Response:
    """Register a database. No connection is made: test it first with databases_test_unsaved."""
    return await once.run(context, lambda: service.create_database(context, body))


@router.post("/databases:test", operation_id="databases_test_unsaved")
async def test_unsaved(body: DatabaseTestRequest, context: Operator) -> ConnectionTest:
    """Test a connection without saving its settings. A failure is also answered with 200; `code` and `cure` say why."""
    return await inspections.test_unsaved(context, body)


@router.get("/databases/{database_id}", operation_id="databases_get")
async def get_database(database_id: Id, context: Viewer, response: Response) -> Database:
    database = await service.get_database(context, database_id)
    response.headers["ETag"] = database.etag
    return database


@router.patch("/databases/{database_id}", operation_id="databases_update")
async def update_database(
    database_id: Id, body: DatabaseUpdate, context: Operator, response: Response, if_match: IfMatch = None
) -> Database:
    """Change a database. Streams that use it reconnect with the new settings."""
    database = await service.update_database(context, database_id, body, if_match)
    response.headers["ETag"] = database.etag
    return database


@router.delete("/databases/{database_id}", status_code=204, operation_id="databases_delete")
async def delete_database(database_id: Id, context: Operator) -> None:
    """Remove a database that no stream uses. The database itself does not change."""
    await service.delete_database(context, database_id)


@router.post("/databases/{database_id}/test", operation_id="databases_test")
async def test_database(database_id: Id, context: Operator) -> ConnectionTest:
    """Test the connection to a registered database. A failure is also answered with 200; `code` and `cure` say why."""
    return await inspections.test_database(context, database_id)


@router.get("/databases/{database_id}/tables", operation_id="databases_tables")
async def list_tables(
    database_id: Id,
    context: Viewer,
    search: Search = None,
    limit: Limit = LIMIT_DEFAULT,
    cursor: Cursor = None,
) -> Page[SourceTable]:
    """The database's tables, read from its catalogue now."""
    return await inspections.list_tables(context, database_id, search, limit, cursor)


@router.get("/databases/{database_id}/columns", operation_id="databases_columns")
async def list_columns(
    database_id: Id,
    context: Viewer,
    schema: Annotated[TableIdentifier, Query(description="The table's schema, exactly.")],
    table: Annotated[TableIdentifier, Query(description="Its exact name.")],
) -> SourceColumns:
    """The columns of a table that rules can read, from the database's catalogue now."""
    return await inspections.list_columns(context, database_id, schema, table)


@router.get("/databases/{database_id}/preflight", operation_id="databases_preflight")
async def preflight(database_id: Id, context: Viewer, role: CheckSide) -> Preflight:
    """Check whether the database is ready to be a source or a destination, with a cure for each failed check."""
    return await inspections.preflight(context, database_id, role)
