"""SQL of streams."""

from datetime import datetime

from sqlalchemy import or_, select
from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.models import AuditRow, DestinationRow, EngineRow, StreamRow
from thalweg.db.streams import whole_streams


async def stream_by_id(session: AsyncSession, stream_id: str, *, lock: bool = False) -> StreamRow | None:
    """Locks its engines before the stream, as the collector does: the other order would be a deadlock."""
    query = whole_streams().where(StreamRow.id == stream_id)
    if lock:
        captures = select(StreamRow.capture_engine_id).where(StreamRow.id == stream_id)
        applies = select(DestinationRow.engine_id).where(DestinationRow.stream_id == stream_id)
        owners = select(EngineRow).where(or_(EngineRow.id.in_(captures), EngineRow.id.in_(applies)))
        await session.execute(owners.order_by(EngineRow.id).with_for_update())
        query = query.with_for_update(of=StreamRow).execution_options(populate_existing=True)
    return (await session.scalars(query)).one_or_none()


async def name_is_taken(session: AsyncSession, name: str, except_id: str = "") -> bool:
    query = select(StreamRow.id).where(StreamRow.name == name, StreamRow.id != except_id)
    return (await session.scalars(query)).first() is not None


async def last_decision(
    session: AsyncSession, place: tuple[str, str, int], actions: tuple[str, ...]
) -> AuditRow | None:
    """The last entry about a parked transaction of (stream, destination, transaction) whose request was not refused."""
    stream_id, destination_id, error_id = place
    query = select(AuditRow).where(
        AuditRow.target_id == stream_id,
        AuditRow.action.in_(actions),
        AuditRow.after["destination_id"].as_string() == destination_id,
        AuditRow.after["error_id"].as_integer() == error_id,
        AuditRow.after["refused"].as_string().is_(None),
    )
    return (await session.scalars(query.order_by(AuditRow.id.desc()).limit(1))).one_or_none()


async def next_revisions(session: AsyncSession, stream: StreamRow) -> None:
    """Grows the desired revisions of the stream's engines by one, and writes them down as those of its change. The
    engines stay locked until the commit, so that revisions become visible in their order."""
    for engine_id in stream.engine_ids:
        row = await session.get_one(EngineRow, engine_id, with_for_update=True, populate_existing=True)
        row.desired_revision += 1
        if engine_id == stream.capture_engine_id:
            stream.changed_revision = row.desired_revision
        for receiver in stream.receivers:
            if receiver.engine_id == engine_id:
                receiver.changed_revision = row.desired_revision


async def stream_ids(session: AsyncSession) -> list[str]:
    return list(await session.scalars(select(StreamRow.id).order_by(StreamRow.name)))


async def engines_heard(session: AsyncSession) -> list[tuple[str, datetime | None]]:
    """The state of each engine, and when it last answered."""
    rows = await session.execute(select(EngineRow.state, EngineRow.last_seen_at))
    return [(state, heard_at) for state, heard_at in rows]
