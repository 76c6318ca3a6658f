"""Discards a parked transaction; its changes go to the audit log first."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from time import monotonic
from typing import Any

from sqlalchemy import delete

from thalweg.db.models import AuditChangesRow, AuditRow
from thalweg.engine_client.client import CHANGES_MAX, EngineClient, EngineFailure
from thalweg.engine_client.error_codes import ErrorCode
from thalweg.engine_client.parked_documents import ParkedContents
from thalweg.features.streams.audited_changes import bounded, document_of
from thalweg.features.streams.error_queue import asked, engine_of
from thalweg.kernel.context import Context
from thalweg.kernel.problems import Problem

KEPT_CHANGES_MAX = 10_000
KEPT_CHARACTERS_MAX = 64 * 1024 * 1024
KEEPING_SECONDS_MAX = 50.0
"""No part is read later: a client waits for the answer."""
READ_AT_ONCE = 4


async def discard(
    context: Context, stream_id: str, destination_id: str, error_id: int, reason: str, partly: bool
) -> None:
    """Discards a transaction. The audit log keeps what can be shown of it, with the reason. Where that is not the whole
    of it, `partly` must say that a part is enough."""
    row, client = await engine_of(context, stream_id, destination_id)
    why = {"destination_id": destination_id, "error_id": error_id, "reason": reason, "finished": False}
    async with asked(context, row, "stream_errors_delete", why) as entry:
        keeping = _Keeping(context, entry)
        await keeping.keep(_pages(client, stream_id, destination_id, error_id, partly))
        if not keeping.is_whole and not partly:
            raise await keeping.refuse()
        await client.delete_error(stream_id, destination_id, error_id)
        entry.after = {**(entry.after or {}), "finished": True}
        await context.release()


async def _pages(
    client: EngineClient, stream_id: str, destination_id: str, error_id: int, partly: bool
) -> AsyncGenerator[ParkedContents]:
    """A page has changes with consecutive numbers, so that several can be read at once. Where the transaction has too
    many, and a part is not enough, the first page alone."""
    deadline = monotonic() + KEEPING_SECONDS_MAX
    first = await client.error_contents(stream_id, destination_id, error_id, 0)
    yield first
    if first.next_after is None or (first.changes_total > KEPT_CHANGES_MAX and not partly):
        return
    starts = range(first.next_after, min(first.changes_total, KEPT_CHANGES_MAX), CHANGES_MAX)
    for at in range(0, len(starts), READ_AT_ONCE):
        if monotonic() > deadline:
            return
        group = starts[at : at + READ_AT_ONCE]
        pages = [client.error_contents(stream_id, destination_id, error_id, after) for after in group]
        for page in await asyncio.gather(*pages):
            yield page


class _Keeping:
    """Owner: one request."""

    def __init__(self, context: Context, entry: AuditRow) -> None:
        self._context, self._entry = context, entry
        self._kept, self._room = 0, KEPT_CHARACTERS_MAX
        self.is_whole = False

    async def keep(self, pages: AsyncGenerator[ParkedContents]) -> None:
        """Fills the entry page by page, up to the first change for which there is no room."""
        try:
            async with aclosing(pages):
                async for page in pages:
                    if self._entry.before is None:
                        self._entry.before = bounded(page)
                    if not await self._keep_page(page):
                        break
                    self.is_whole = page.next_after is None and self._has_come_to_the_end_of(page)
        except EngineFailure as failure:
            if failure.code in (ErrorCode.UNKNOWN_ERROR_TRANSACTION, ErrorCode.ENGINE_UNREACHABLE):
                raise
            known = self._entry.before or {"id": (self._entry.after or {})["error_id"], "changes": []}
            self._entry.before = {**known, "changes_unreadable": failure.message}
        await self._context.release()

    async def refuse(self) -> Problem:
        """The entry then has the refusal, and the first changes that it shows by itself."""
        before = self._entry.before or {}
        total = before.get("changes_total")
        await self._context.session.execute(delete(AuditChangesRow).where(AuditChangesRow.audit_id == self._entry.id))
        self._entry.after = {**(self._entry.after or {}), "changes_kept": 0, "refused": "not_kept_whole"}
        await self._context.release()
        many = f"its {total:,} changes" if total is not None else "its changes"
        why = before.get("changes_unreadable")
        return Problem(
            "not_kept_whole",
            f"The audit log cannot keep all of {many}" + (f": {why}" if why else "."),
            "Execute the transaction, or discard it with `partly` (--partly) if the audit log may keep a part of it: "
            f"{KEPT_CHANGES_MAX:,} changes at most, as far as they can be read in {KEEPING_SECONDS_MAX:.0f} s.",
        )

    def _has_come_to_the_end_of(self, page: ParkedContents) -> bool:
        """Older engines number no changes, and give the first ones only."""
        last = page.changes[-1].number if page.changes else None
        return (self._kept if last is None else last) >= page.changes_total

    async def _keep_page(self, page: ParkedContents) -> bool:
        changes: list[dict[str, Any]] = []
        for change in page.changes:
            document = document_of(change)
            self._room -= len(json.dumps(document))
            if self._room < 0 or self._kept + len(changes) >= KEPT_CHANGES_MAX:
                break
            changes.append(document)
        if changes:
            self._context.session.add(AuditChangesRow(audit_id=self._entry.id, first=self._kept, changes=changes))
        self._kept += len(changes)
        self._entry.after = {**(self._entry.after or {}), "changes_kept": self._kept}
        await self._context.release()
        return len(changes) == len(page.changes)
