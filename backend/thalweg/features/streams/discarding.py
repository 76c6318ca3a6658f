"""Discards a parked transaction; its changes go to the audit log first."""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from time import monotonic

from thalweg.db.models import AuditChangesRow, AuditRow
from thalweg.engine_client.client import EngineClient, EngineFailure
from thalweg.engine_client.error_codes import ErrorCode
from thalweg.engine_client.parked_documents import ParkedContents
from thalweg.features.streams.audited_changes import bounded, document_of
from thalweg.features.streams.error_queue import asked, engine_of
from thalweg.kernel.context import Context

KEPT_CHANGES_MAX = 10_000
KEPT_CHARACTERS_MAX = 16 * 1024 * 1024
KEEPING_SECONDS_MAX = 30.0
"""A reading of which no part begins later: a client waits for the answer."""


async def discard(context: Context, stream_id: str, destination_id: str, error_id: int, reason: str) -> None:
    """Discards a transaction. The audit log keeps what can be shown of it, with the reason."""
    row, client = await engine_of(context, stream_id, destination_id)
    why = {"destination_id": destination_id, "error_id": error_id, "reason": reason}
    async with asked(context, row, "stream_errors_delete", why) as entry:
        await _keep(context, entry, _pages(client, stream_id, destination_id, error_id))
        await client.delete_error(stream_id, destination_id, error_id)


async def _pages(
    client: EngineClient, stream_id: str, destination_id: str, error_id: int
) -> AsyncGenerator[ParkedContents]:
    deadline = monotonic() + KEEPING_SECONDS_MAX
    after: int | None = 0
    while after is not None and monotonic() < deadline:
        page = await client.error_contents(stream_id, destination_id, error_id, after)
        yield page
        after = page.next_after


async def _keep(context: Context, entry: AuditRow, pages: AsyncGenerator[ParkedContents]) -> None:
    """Fills the entry page by page. Changes that cannot be read, or not in time, are not kept, and the entry says so:
    the transaction may be discarded all the same."""
    kept, room = 0, KEPT_CHARACTERS_MAX
    why = dict(entry.after or {})
    try:
        async with aclosing(pages):
            async for page in pages:
                if entry.before is None:
                    entry.before = bounded(page)
                changes = [document_of(change) for change in page.changes]
                room -= len(json.dumps(changes))
                if room < 0 or kept + len(changes) > KEPT_CHANGES_MAX:
                    break
                context.session.add(AuditChangesRow(audit_id=entry.id, first=kept, changes=changes))
                kept += len(changes)
                entry.after = {**why, "changes_kept": kept}
                await context.release()
    except EngineFailure as failure:
        if failure.code in (ErrorCode.UNKNOWN_ERROR_TRANSACTION, ErrorCode.ENGINE_UNREACHABLE):
            raise
        entry.before = {
            **(entry.before or {"id": why["error_id"], "changes": []}),
            "changes_unreadable": failure.message,
        }
    await context.release()
