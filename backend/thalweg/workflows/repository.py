"""SQL that spans features."""

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.models import EngineRow, StreamRow


async def streams_into(session: AsyncSession, destination_id: str) -> list[StreamRow]:
    query = select(StreamRow).where(StreamRow.destination_id == destination_id).order_by(StreamRow.name)
    return list(await session.scalars(query))


async def all_engines(session: AsyncSession) -> list[EngineRow]:
    return list(await session.scalars(select(EngineRow).order_by(EngineRow.name)))
