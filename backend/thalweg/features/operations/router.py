"""Operations over HTTP."""

from typing import Annotated

from fastapi import APIRouter, Query

from thalweg.features.operations import service
from thalweg.features.operations.schemas import Operation
from thalweg.kernel.context import TransactionalRoute, Viewer
from thalweg.kernel.lifecycle import OperationState
from thalweg.kernel.models import DESTINATION_PATTERN, ID_PATTERN, Id, Page
from thalweg.kernel.pagination import LIMIT_DEFAULT, Cursor, Limit

router = APIRouter(route_class=TransactionalRoute, tags=["operations"])


@router.get("/operations", operation_id="operations_list")
async def list_operations(
    context: Viewer,
    target_id: Annotated[str | None, Query(pattern=ID_PATTERN)] = None,
    destination_id: Annotated[
        str | None, Query(pattern=DESTINATION_PATTERN, description="Unique within its stream: give target_id as well.")
    ] = None,
    state: OperationState | None = None,
    limit: Limit = LIMIT_DEFAULT,
    cursor: Cursor = None,
) -> Page[Operation]:
    """Operations, newest first."""
    return await service.list_operations(context, target_id, destination_id, state, limit, cursor)


@router.get("/operations/{operation_id}", operation_id="operations_get")
async def get_operation(operation_id: Id, context: Viewer) -> Operation:
    return await service.get_operation(context, operation_id)
