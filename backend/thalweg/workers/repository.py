"""SQL of the collector."""

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import joinedload

from thalweg.db.models import AbandonedStreamRow, EngineRow, StreamRow
from thalweg.features.streams.lifecycle import DesiredStatus


async def all_engines(session: AsyncSession) -> list[EngineRow]:
    return list(await session.scalars(select(EngineRow).order_by(EngineRow.id)))


async def lock_streams(session: AsyncSession, engine_id: str) -> dict[str, StreamRow]:
    query = select(StreamRow).where(StreamRow.engine_id == engine_id).order_by(StreamRow.id).with_for_update()
    return {row.id: row for row in await session.scalars(query)}


async def forced_deletes(session: AsyncSession, engine_id: str) -> list[StreamRow]:
    """Streams that shall be deleted whatever cannot be reached, with their databases."""
    query = (
        select(StreamRow)
        .options(joinedload(StreamRow.source), joinedload(StreamRow.destination))
        .where(StreamRow.engine_id == engine_id, StreamRow.desired_status == DesiredStatus.DROPPED, StreamRow.force)
        .order_by(StreamRow.id)
    )
    return list(await session.scalars(query))


async def abandoned_streams(session: AsyncSession, engine_id: str) -> list[AbandonedStreamRow]:
    query = select(AbandonedStreamRow).where(AbandonedStreamRow.engine_id == engine_id)
    return list(await session.scalars(query.order_by(AbandonedStreamRow.id)))
