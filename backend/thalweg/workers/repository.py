"""SQL of the collector."""

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.models import EngineRow, StreamRow


async def all_engines(session: AsyncSession) -> list[EngineRow]:
    return list(await session.scalars(select(EngineRow).order_by(EngineRow.id)))


async def lock_streams(session: AsyncSession, engine_id: str) -> dict[str, StreamRow]:
    query = select(StreamRow).where(StreamRow.engine_id == engine_id).order_by(StreamRow.id).with_for_update()
    return {row.id: row for row in await session.scalars(query)}
