"""SQL of streams."""

from sqlalchemy import Select, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import joinedload

from thalweg.db.models import EngineRow, StreamRow


def all_streams() -> Select[StreamRow]:
    return select(StreamRow).options(
        joinedload(StreamRow.source), joinedload(StreamRow.destination), joinedload(StreamRow.engine)
    )


async def stream_by_id(session: AsyncSession, stream_id: str, *, lock: bool = False) -> StreamRow | None:
    """Locks the engine before the stream, as the collector does: the other order would be a deadlock."""
    query = all_streams().where(StreamRow.id == stream_id)
    if lock:
        owner = select(EngineRow).join(StreamRow, StreamRow.engine_id == EngineRow.id).where(StreamRow.id == stream_id)
        await session.execute(owner.with_for_update(of=EngineRow))
        query = query.with_for_update(of=StreamRow).execution_options(populate_existing=True)
    return (await session.scalars(query)).one_or_none()


async def name_is_taken(session: AsyncSession, name: str, except_id: str = "") -> bool:
    query = select(StreamRow.id).where(StreamRow.name == name, StreamRow.id != except_id)
    return (await session.scalars(query)).first() is not None


async def next_revision(session: AsyncSession, engine_id: str) -> int:
    """Grows the engine's desired revision by one. The row stays locked until the commit, so that revisions become
    visible in their order."""
    row = await session.get_one(EngineRow, engine_id, with_for_update=True, populate_existing=True)
    row.desired_revision += 1
    return row.desired_revision


async def engine_states(session: AsyncSession) -> list[str]:
    return list(await session.scalars(select(EngineRow.state)))
