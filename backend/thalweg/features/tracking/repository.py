"""SQL of tracking."""

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.models import EngineRow, StreamRow
from thalweg.db.streams import whole_streams


async def stream_by_id(session: AsyncSession, stream_id: str) -> StreamRow | None:
    """With its destinations."""
    return (await session.scalars(whole_streams().where(StreamRow.id == stream_id))).one_or_none()


async def engines_of(session: AsyncSession, row: StreamRow) -> list[EngineRow]:
    """Those that run the stream or a part of it, the one that captures first."""
    engines = list(await session.scalars(select(EngineRow).where(EngineRow.id.in_(row.engine_ids))))
    return sorted(engines, key=lambda engine: engine.id != row.capture_engine_id)
