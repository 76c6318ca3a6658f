"""SQL of registered databases."""

from sqlalchemy import Select, or_, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import selectinload

from thalweg.db.models import DatabaseRow, DestinationRow, EngineRow, StreamRow


def all_databases() -> Select[DatabaseRow]:
    return select(DatabaseRow)


async def name_is_taken(session: AsyncSession, name: str, except_id: str = "") -> bool:
    query = select(DatabaseRow.id).where(DatabaseRow.name == name, DatabaseRow.id != except_id)
    return (await session.scalars(query)).first() is not None


async def streams_using(session: AsyncSession, database_ids: list[str]) -> list[StreamRow]:
    query = (
        select(StreamRow)
        .options(selectinload(StreamRow.destinations))
        .where(
            or_(
                StreamRow.source_id.in_(database_ids),
                StreamRow.destinations.any(DestinationRow.database_id.in_(database_ids)),
            )
        )
        .order_by(StreamRow.name)
    )
    return list(await session.scalars(query))


async def lock_engines(session: AsyncSession, engine_ids: set[str]) -> list[EngineRow]:
    query = select(EngineRow).where(EngineRow.id.in_(engine_ids)).order_by(EngineRow.id).with_for_update()
    return list(await session.scalars(query))
