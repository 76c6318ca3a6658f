"""SQL of the collector."""

from sqlalchemy import ColumnElement, CompoundSelect, or_, select, union
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import joinedload

from thalweg.db.models import AbandonedStreamRow, EngineRow, StreamRow
from thalweg.features.streams.lifecycle import DesiredStatus


async def all_engines(session: AsyncSession) -> list[EngineRow]:
    return list(await session.scalars(select(EngineRow).order_by(EngineRow.id)))


def _runs(engine_id: str) -> ColumnElement[bool]:
    return or_(StreamRow.engine_id == engine_id, StreamRow.capture_engine_id == engine_id)


async def lock_engines(session: AsyncSession, engine_id: str) -> dict[str, EngineRow]:
    """The engine and those with which it shares streams, in the order that everybody locks them in."""
    peers: CompoundSelect[str | None] = union(
        select(StreamRow.capture_engine_id).where(StreamRow.engine_id == engine_id),
        select(StreamRow.engine_id).where(StreamRow.capture_engine_id == engine_id),
    )
    query = select(EngineRow).where(or_(EngineRow.id == engine_id, EngineRow.id.in_(peers)))
    return {row.id: row for row in await session.scalars(query.order_by(EngineRow.id).with_for_update())}


async def lock_streams(session: AsyncSession, engine_id: str) -> dict[str, StreamRow]:
    """Those that the engine runs, whole or in half."""
    query = select(StreamRow).where(_runs(engine_id)).order_by(StreamRow.id).with_for_update()
    return {row.id: row for row in await session.scalars(query)}


async def forced_deletes(session: AsyncSession, engine_id: str) -> list[StreamRow]:
    """Streams that shall be deleted whatever cannot be reached, with their databases."""
    query = (
        select(StreamRow)
        .options(
            joinedload(StreamRow.source), joinedload(StreamRow.destination), joinedload(StreamRow.engine),
            joinedload(StreamRow.capture_engine),
        )
        .where(_runs(engine_id), StreamRow.desired_status == DesiredStatus.DROPPED, StreamRow.force)
        .order_by(StreamRow.id)
    )  # fmt: skip
    return list(await session.scalars(query))


async def abandoned_streams(session: AsyncSession, engine_id: str) -> list[AbandonedStreamRow]:
    query = select(AbandonedStreamRow).where(AbandonedStreamRow.engine_id == engine_id)
    return list(await session.scalars(query.order_by(AbandonedStreamRow.id)))
