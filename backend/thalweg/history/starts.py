"""Starts of engines: noted by the collector, shown beside charts."""

from datetime import datetime

from sqlalchemy import delete
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.models import EngineStartRow


async def note_start(session: AsyncSession, engine_id: str, started_at: datetime) -> None:
    """A start that is known already is noted once."""
    statement = insert(EngineStartRow).values(engine_id=engine_id, started_at=started_at)
    await session.execute(statement.on_conflict_do_nothing())


async def forget_starts(session: AsyncSession, before: datetime) -> None:
    await session.execute(delete(EngineStartRow).where(EngineStartRow.started_at < before))
