"""Idempotency keys in the store, in the transaction of the request itself.

Two requests with one key at the same time: the second waits on the first's row and then answers like it. A request
that fails rolls its row back, so that it can be repeated.
"""

from collections.abc import Awaitable, Callable
from datetime import timedelta

from fastapi.responses import Response
from sqlalchemy import delete
from sqlalchemy.dialects.postgresql import insert

from thalweg.db.models import IdempotencyRow
from thalweg.kernel.clock import now
from thalweg.kernel.context import Context
from thalweg.kernel.idempotency import Created
from thalweg.kernel.problems import Problem

KEPT = timedelta(days=1)
OF_OLDER_VERSION = ""
"""Migration 0027 took their hashes away, which had no key. Their requests must not be repeated all the same."""


class StoredAnswers:
    async def answered(self, context: Context, key: str, request_hash: str) -> Response | None:
        """Only reads: None while nobody has answered yet."""
        row = await context.session.get(IdempotencyRow, (context.principal.credential_id, key))
        return None if row is None or row.status is None else _replay(context, row, request_hash)

    async def run(
        self, context: Context, key: str, request_hash: str, work: Callable[[], Awaitable[Created]]
    ) -> Response:
        session, principal_id = context.session, context.principal.credential_id
        await session.execute(delete(IdempotencyRow).where(IdempotencyRow.created_at < now() - KEPT))
        claimed = await session.execute(
            insert(IdempotencyRow)
            .values(principal_id=principal_id, key=key, request_hash=request_hash)
            .on_conflict_do_nothing()
            .returning(IdempotencyRow.key)
        )
        row_is_new = claimed.scalar_one_or_none() is not None
        row = await session.get_one(IdempotencyRow, (principal_id, key))
        if row_is_new:
            session.info["once_only"] = True
            created = await work()
            session.info.pop("once_only")
            response = created.response()
            row.status, row.headers = created.status, created.headers
            row.body_sealed = context.resources.secrets.seal(bytes(response.body).decode())
            return response
        return _replay(context, row, request_hash)


def _replay(context: Context, row: IdempotencyRow, request_hash: str) -> Response:
    if row.request_hash == OF_OLDER_VERSION:
        raise Problem(
            "idempotency_key_reused",
            "This Idempotency-Key was sent before an upgrade, and with which request is not known any more.",
            "Look whether that request did its work. If it did not, send it again with a new key.",
        )  # fmt: skip
    if row.request_hash != request_hash:
        raise Problem(
            "idempotency_key_reused", "This Idempotency-Key was sent before with a different request.",
            "Use a new key for a new request.",
        )  # fmt: skip
    body = context.resources.secrets.open(row.body_sealed or "")
    headers = {**(row.headers or {}), "Idempotent-Replay": "true"}
    return Response(body, row.status or 200, headers, "application/json")
