"""SQL of what sources said of themselves."""

from copy import deepcopy

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.models import SourceReadingRow


async def forget_slot(session: AsyncSession, database_id: str, name: str) -> None:
    """Forgets the slot, so that it is not shown until the server is read again."""
    row = await session.get(SourceReadingRow, database_id, with_for_update=True, populate_existing=True)
    if row is not None and row.document is not None:
        document = deepcopy(row.document)
        document["state"]["slots"].pop(name, None)
        row.document = document


async def readings_of(session: AsyncSession, database_ids: list[str]) -> list[SourceReadingRow]:
    query = select(SourceReadingRow).where(SourceReadingRow.database_id.in_(database_ids))
    return list(await session.scalars(query))
