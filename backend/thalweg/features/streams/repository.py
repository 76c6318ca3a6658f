"""SQL of streams."""

from sqlalchemy import Select, or_, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import joinedload

from thalweg.db.models import EngineRow, StreamRow


def all_streams() -> Select[StreamRow]:
    return select(StreamRow).options(
        joinedload(StreamRow.source), joinedload(StreamRow.destination), joinedload(StreamRow.engine),
        joinedload(StreamRow.capture_engine),
    )  # fmt: skip


async def stream_by_id(session: AsyncSession, stream_id: str, *, lock: bool = False) -> StreamRow | None:
    """Locks its engines before the stream, as the collector does: the other order would be a deadlock."""
    query = all_streams().where(StreamRow.id == stream_id)
    if lock:
        runs = or_(StreamRow.engine_id == EngineRow.id, StreamRow.capture_engine_id == EngineRow.id)
        owners = select(EngineRow).join(StreamRow, runs).where(StreamRow.id == stream_id).order_by(EngineRow.id)
        await session.execute(owners.with_for_update(of=EngineRow))
        query = query.with_for_update(of=StreamRow).execution_options(populate_existing=True)
    return (await session.scalars(query)).one_or_none()


async def name_is_taken(session: AsyncSession, name: str, except_id: str = "") -> bool:
    query = select(StreamRow.id).where(StreamRow.name == name, StreamRow.id != except_id)
    return (await session.scalars(query)).first() is not None


async def next_revisions(session: AsyncSession, stream: StreamRow) -> None:
    """Grows the desired revisions of the stream's engines by one, and writes them down as those of its change. The
    engines stay locked until the commit, so that revisions become visible in their order."""
    for engine_id in stream.engine_ids:
        row = await session.get_one(EngineRow, engine_id, with_for_update=True, populate_existing=True)
        row.desired_revision += 1
        if engine_id == stream.capture_engine_id:
            stream.sending_revision = row.desired_revision
        else:
            stream.changed_revision = row.desired_revision


async def engine_states(session: AsyncSession) -> list[str]:
    return list(await session.scalars(select(EngineRow.state)))
