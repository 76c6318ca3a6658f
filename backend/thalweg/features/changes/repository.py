"""SQL of searches: the streams that mine a source's log, and who has begun a search."""

from datetime import timedelta

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import joinedload

from thalweg.db.models import AuditRow, StreamRow
from thalweg.kernel.capture_kinds import CaptureKind
from thalweg.kernel.clock import now

KNOWN_FOR = timedelta(days=1)
"""Longer than any engine knows a search."""


async def mining_streams(session: AsyncSession, database_id: str) -> list[StreamRow]:
    """With their capturing engines."""
    query = (
        select(StreamRow)
        .options(joinedload(StreamRow.capture_engine))
        .where(StreamRow.source_id == database_id, StreamRow.capture_kind == CaptureKind.WAL)
        .order_by(StreamRow.name)
    )
    return list(await session.scalars(query))


async def has_begun(session: AsyncSession, user_id: str, database_id: str, search_id: str) -> bool:
    """Whether the audit log has it that this user began the search."""
    query = select(AuditRow.id).where(
        AuditRow.target_id == database_id, AuditRow.action == "searches_create", AuditRow.actor_id == user_id,
        AuditRow.at > now() - KNOWN_FOR, AuditRow.after["search_id"].astext == search_id,
    )  # fmt: skip
    return (await session.scalars(query)).first() is not None
