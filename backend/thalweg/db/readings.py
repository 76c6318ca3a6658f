"""SQL of what sources said of themselves."""

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.models import SourceReadingRow


async def readings_of(session: AsyncSession, database_ids: list[str]) -> list[SourceReadingRow]:
    query = select(SourceReadingRow).where(SourceReadingRow.database_id.in_(database_ids))
    return list(await session.scalars(query))
