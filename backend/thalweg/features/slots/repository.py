"""SQL of servers' slots."""

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.models import DatabaseRow, EngineRow, StreamRow


async def databases(session: AsyncSession) -> list[DatabaseRow]:
    return list(await session.scalars(select(DatabaseRow).order_by(DatabaseRow.name)))


async def streams(session: AsyncSession) -> list[StreamRow]:
    return list(await session.scalars(select(StreamRow).order_by(StreamRow.id)))


async def engines(session: AsyncSession) -> list[EngineRow]:
    return list(await session.scalars(select(EngineRow).order_by(EngineRow.id)))
