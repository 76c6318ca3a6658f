"""SQL that spans features."""

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.models import DestinationRow, EngineRow, StreamRow


async def streams_into(session: AsyncSession, database_id: str) -> list[StreamRow]:
    writes = StreamRow.destinations.any(DestinationRow.database_id == database_id)
    query = select(StreamRow).where(writes).order_by(StreamRow.name)
    return list(await session.scalars(query))


async def all_engines(session: AsyncSession) -> list[EngineRow]:
    return list(await session.scalars(select(EngineRow).order_by(EngineRow.name)))
