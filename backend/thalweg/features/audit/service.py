"""Reading the audit log."""

import json
from collections.abc import AsyncGenerator, Sequence
from typing import Any, cast

from sqlalchemy import select

from thalweg.db.audit import record
from thalweg.db.audit_words import sentence_of
from thalweg.db.models import AuditChangesRow, AuditRow
from thalweg.db.pages import page_newest_first
from thalweg.features.audit.schemas import AuditEntry
from thalweg.kernel.context import Context, Resources
from thalweg.kernel.models import Page
from thalweg.kernel.problems import Problem


def _resource(row: AuditRow) -> AuditEntry:
    return AuditEntry(
        id=str(row.id), at=row.at, actor_id=row.actor_id, actor_name=row.actor_name, via=cast(Any, row.via),
        action=row.action, sentence=sentence_of(row.action, row.before, row.after), target_type=row.target_type,
        target_id=row.target_id, target_name=row.target_name,
        before=row.before, after=row.after, request_id=row.request_id, address=row.address,
    )  # fmt: skip


async def list_audit(context: Context, target_id: str | None, limit: int, cursor: str | None) -> Page[AuditEntry]:
    query = select(AuditRow)
    if target_id is not None:
        query = query.where(AuditRow.target_id == target_id)
    rows, following = await page_newest_first(context.session, query, AuditRow.id, limit, cursor)
    return Page[AuditEntry](items=[_resource(row) for row in rows], next_cursor=following)


async def changes_as_ndjson(context: Context, entry_id: int) -> AsyncGenerator[str]:
    """A part at a time: with large values, all of them have tens of MiB. An entry from before changes were kept apart
    has its first ones in itself."""
    entry = await context.session.get(AuditRow, entry_id)
    if entry is None or entry.action != "stream_errors_delete":
        raise Problem(
            "not_found", "The audit log has no discarded transaction with this id.", "Take the id of an entry with one."
        )
    # Committed before the answer leaves, as looks at parked transactions are.
    facts = {"entry_id": str(entry.id), "error_id": (entry.after or {}).get("error_id", (entry.before or {}).get("id"))}
    record(context, "audit_changes", (entry.target_type, entry.target_id, entry.target_name), after=facts)
    query = select(AuditChangesRow.first).where(AuditChangesRow.audit_id == entry_id).order_by(AuditChangesRow.first)
    parts = (await context.session.scalars(query)).all()
    if not parts:
        return _one_part((entry.before or {}).get("changes", []))
    return _parts(context.resources, entry_id, parts)


async def _one_part(changes: list[dict[str, Any]]) -> AsyncGenerator[str]:
    yield _as_lines(changes)


async def _parts(resources: Resources, entry_id: int, parts: Sequence[int]) -> AsyncGenerator[str]:
    for first in parts:
        async with resources.sessions() as session:
            row = await session.get(AuditChangesRow, (entry_id, first))
        if row is not None:
            yield _as_lines(row.changes)


def _as_lines(changes: list[dict[str, Any]]) -> str:
    return "".join(f"{json.dumps(change)}\n" for change in changes)
