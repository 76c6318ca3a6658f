"""The audit log over HTTP."""

from typing import Annotated

from fastapi import APIRouter, Query

from thalweg.features.audit import service
from thalweg.features.audit.schemas import AuditEntry
from thalweg.kernel.context import Admin, TransactionalRoute
from thalweg.kernel.models import ID_PATTERN, Page
from thalweg.kernel.pagination import LIMIT_DEFAULT, Cursor, Limit

router = APIRouter(route_class=TransactionalRoute, tags=["audit"])


@router.get("/audit", operation_id="audit_list")
async def list_audit(
    context: Admin,
    target_id: Annotated[str | None, Query(pattern=ID_PATTERN)] = None,
    limit: Limit = LIMIT_DEFAULT,
    cursor: Cursor = None,
) -> Page[AuditEntry]:
    """Every change, newest first: who, what, before and after."""
    return await service.list_audit(context, target_id, limit, cursor)
