"""Discards a parked transaction; its changes go to the audit log first."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from time import monotonic
from typing import Any

from sqlalchemy import delete

from thalweg.db.models import AuditChangesRow, AuditRow
from thalweg.engine_client.client import EngineClient, EngineFailure
from thalweg.engine_client.error_codes import ErrorCode
from thalweg.engine_client.parked_documents import ParkedChange, ParkedContents, ParkedValue
from thalweg.features.streams.audited_changes import bounded, cut_values, document_of
from thalweg.features.streams.error_queue import asked, engine_of
from thalweg.kernel.context import Context
from thalweg.kernel.problems import Problem
from thalweg.kernel.words import size

KEPT_CHANGES_MAX = 10_000
KEPT_BYTES_MAX = 64 * 1024 * 1024
KEEPING_SECONDS_MAX = 50.0
"""No part is read later: a client waits for the answer."""
BUSY_SECONDS = 0.3
"""Until an engine that opens others is asked again."""
PASSING = (
    ErrorCode.UNKNOWN_ERROR_TRANSACTION, ErrorCode.ENGINE_UNREACHABLE, ErrorCode.ENGINE_STOPPING,
    ErrorCode.DATABASE_BUSY, ErrorCode.DATABASE_UNREACHABLE, ErrorCode.CONNECTION_LOST,
)  # fmt: skip
"""They refuse a discard also where a part is enough: the next one may keep all."""
OF_A_PART = ("values_cut", "rows_not_read", "partly_because")
"""Facts about the changes that an entry keeps."""


async def discard(
    context: Context, stream_id: str, destination_id: str, error_id: int, reason: str, partly: bool
) -> None:
    """Discards a transaction. The audit log keeps what can be shown of it, with the reason. Where that is not the whole
    of it, `partly` must say that a part is enough."""
    row, client = await engine_of(context, stream_id, destination_id)
    why = {"destination_id": destination_id, "error_id": error_id, "reason": reason, "finished": False}
    async with asked(context, row, "stream_errors_delete", why) as entry:
        keeping = _Keeping(context, entry, partly)
        try:
            await keeping.keep(_Reader(client, stream_id, destination_id, error_id))
            if not keeping.is_whole and not partly:
                raise await keeping.refuse()
            await _delete(client, stream_id, destination_id, error_id)
        except EngineFailure as failure:
            if not failure.perhaps_done:
                await keeping.forget()
            raise
        entry.after = {**(entry.after or {}), "finished": True}
        await context.release()


async def _delete(client: EngineClient, stream_id: str, destination_id: str, error_id: int) -> None:
    """Without the engine's answer, its queue tells whether the transaction is gone. One that is still there may go
    later: the engine goes on with a request whose client has left."""
    try:
        await client.delete_error(stream_id, destination_id, error_id)
    except EngineFailure as failure:
        if not failure.perhaps_done:
            raise
        try:
            following = (await client.errors(stream_id, destination_id, error_id - 1, 1, False)).errors
        except EngineFailure:
            raise failure from None
        if any(error.id == error_id for error in following):
            raise


class _Reader:
    """Owner: one request."""

    def __init__(self, client: EngineClient, stream_id: str, destination_id: str, error_id: int) -> None:
        self._client = client
        self._which = stream_id, destination_id, error_id
        self._whole = True
        self._deadline = monotonic() + KEEPING_SECONDS_MAX

    @property
    def asks_for_whole(self) -> bool:
        """Whether the engine tells values beyond 1 KiB, too."""
        return self._whole

    async def pages(self, partly: bool) -> AsyncGenerator[ParkedContents]:
        """One at a time: an engine opens two transactions at once, and others want to look, too. Where the transaction
        has too many changes, and a part is not enough, the first page alone."""
        page = await self._page(0)
        yield page
        if page.changes_total > KEPT_CHANGES_MAX and not partly:
            return
        while page.next_after is not None and page.next_after < KEPT_CHANGES_MAX and monotonic() <= self._deadline:
            page = await self._page(page.next_after)
            yield page

    async def _page(self, after: int) -> ParkedContents:
        while True:
            whole = self._whole
            try:
                return await self._client.error_contents(*self._which, after, whole=whole)
            except EngineFailure as failure:
                if failure.code == ErrorCode.INVALID_REQUEST and whole:
                    self._whole = False
                elif failure.code == ErrorCode.DATABASE_BUSY and monotonic() <= self._deadline:
                    await asyncio.sleep(BUSY_SECONDS)
                else:
                    raise


class _Keeping:
    """Owner: one request."""

    def __init__(self, context: Context, entry: AuditRow, partly: bool) -> None:
        self._context, self._entry, self._partly = context, entry, partly
        self._kept, self._room, self._cut, self._rows_not_read = 0, KEPT_BYTES_MAX, 0, 0
        self._first_lack: str | None = None
        self._at_the_end = False

    @property
    def is_whole(self) -> bool:
        return self._at_the_end and self._lacks_nothing

    @property
    def _lacks_nothing(self) -> bool:
        """True while every change that it has kept so far is whole."""
        return not self._cut and not self._rows_not_read

    async def keep(self, reader: _Reader) -> None:
        """Fills the entry page by page, up to the first change for which there is no room. Where a part is not enough,
        up to the first page of which something is not told. Raises EngineFailure where another try may keep all."""
        because = None
        try:
            async with aclosing(reader.pages(self._partly)) as pages:
                async for page in pages:
                    if self._entry.before is None:
                        self._entry.before = bounded(page)
                    fits = await self._keep_page(page, reader)
                    because = _end_of(page, self._kept, fits)
                    if not fits or (not self._lacks_nothing and not self._partly):
                        break
                    self._at_the_end = page.next_after is None and self._has_come_to_the_end_of(page)
        except EngineFailure as failure:
            if failure.code in PASSING:
                raise
            known = self._entry.before or {"id": (self._entry.after or {})["error_id"], "changes": []}
            self._entry.before = {**known, "changes_unreadable": failure.message}
            because = failure.message
        if because is not None and not self._at_the_end:
            self._entry.after = {**(self._entry.after or {}), "partly_because": because}
        await self._context.release()

    async def forget(self) -> None:
        """The transaction stays in the queue, and so do its changes. The caller commits."""
        await self._context.session.execute(delete(AuditChangesRow).where(AuditChangesRow.audit_id == self._entry.id))
        facts = {name: fact for name, fact in (self._entry.after or {}).items() if name not in OF_A_PART}
        self._entry.after = {**facts, "changes_kept": 0}

    async def refuse(self) -> Problem:
        """The entry then has the refusal, and the first changes that it shows by itself."""
        before = self._entry.before or {}
        total = before.get("changes_total")
        await self.forget()
        self._entry.after = {**(self._entry.after or {}), "refused": "not_kept_whole"}
        await self._context.release()
        many = f"its {total:,} changes" if total is not None else "its changes"
        why = before.get("changes_unreadable") or self._first_lack
        again = "Try again if the destination was busy. " if self._rows_not_read else ""
        return Problem(
            "not_kept_whole",
            f"The audit log cannot keep all of {many}" + (f": {why}" if why else "."),
            f"{again}Execute the transaction, or discard it with `partly` (--partly) if the audit log may keep a part "
            f"of it: {KEPT_CHANGES_MAX:,} changes and {KEPT_BYTES_MAX // 2**20} MiB at most, as far as they can be "
            f"read in {KEEPING_SECONDS_MAX:.0f} s.",
        )

    def _has_come_to_the_end_of(self, page: ParkedContents) -> bool:
        """Older engines number no changes, and give the first ones only."""
        last = page.changes[-1].number if page.changes else None
        return (self._kept if last is None else last) >= page.changes_total

    async def _keep_page(self, page: ParkedContents, reader: _Reader) -> bool:
        changes: list[dict[str, Any]] = []
        for change in page.changes:
            document = document_of(change)
            self._room -= len(json.dumps(document, ensure_ascii=False).encode())
            if self._room < 0 or self._kept + len(changes) >= KEPT_CHANGES_MAX:
                break
            changes.append(document)
            self._note_lack(change, reader.asks_for_whole)
        if changes:
            self._context.session.add(AuditChangesRow(audit_id=self._entry.id, first=self._kept, changes=changes))
        self._kept += len(changes)
        lacks = {"values_cut": self._cut, "rows_not_read": self._rows_not_read}
        told = {name: number for name, number in lacks.items() if number}
        self._entry.after = {**(self._entry.after or {}), "changes_kept": self._kept, **told}
        await self._context.release()
        return len(changes) == len(page.changes)

    def _note_lack(self, change: ParkedChange, whole: bool) -> None:
        """Where the time for a change ran out, its values may be raw or cut; it has a problem then, too."""
        cut = cut_values(change)
        self._cut += len(cut)
        self._rows_not_read += change.problem is not None
        if self._first_lack is not None:
            return
        if change.problem is not None:
            self._first_lack = f"the destination's row of a change of {change.table} was not read: {change.problem}."
        elif cut:
            self._first_lack = _cut_in_words(change.table, *cut[0], whole)


def _cut_in_words(table: str, column: str, value: ParkedValue, whole: bool) -> str:
    told = size(len((value.text or "").encode()))
    bound = "It tells up to 32 MiB of a change." if whole else "This version of the engine tells 1 KiB of each value."
    return f"of a value of {column} in {table}, the engine tells {told} of {size(value.bytes)}. {bound}"


def _end_of(page: ParkedContents, kept: int, fits: bool) -> str:
    """Why nothing is kept after this page, if nothing is."""
    if kept >= KEPT_CHANGES_MAX:
        return f"no more than {KEPT_CHANGES_MAX:,}"
    if not fits:
        return f"no more than {KEPT_BYTES_MAX // 2**20} MiB"
    if page.next_after is None:
        return "the engine shows no more"
    return f"no more could be read in {KEEPING_SECONDS_MAX:.0f} s"
