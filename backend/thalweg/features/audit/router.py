"""The audit log over HTTP."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from fastapi.responses import PlainTextResponse, StreamingResponse

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


@router.get("/audit/{entry_id}:changes", operation_id="audit_changes", response_class=PlainTextResponse, responses={
    200: {"description": "The changes.", "content": {"application/x-ndjson": {"schema": {"type": "string"}}}},
})  # fmt: skip
async def export_changes(entry_id: Annotated[str, Path(pattern=r"^[0-9]{1,18}$")], context: Admin) -> StreamingResponse:
    """The changes that the audit log keeps of a transaction which was discarded, one in each line, as the error queue
    shows them: what each wanted, the source's row before it, and the destination's row, with whole values. The entry
    tells how many were kept (`after.changes_kept`) and why no more (`after.partly_because`), how many there were
    (`before.changes_total`), of how many the destination's row was not read (`after.rows_not_read`; `problem` says
    why), and how many values are not whole (`after.values_cut`; `cut` marks each). The audit log records each export.
    """
    pieces = await service.changes_as_ndjson(context, int(entry_id))
    headers = {"Content-Disposition": f'attachment; filename="discarded-{entry_id}.ndjson"'}
    return StreamingResponse(pieces, media_type="application/x-ndjson", headers=headers)
