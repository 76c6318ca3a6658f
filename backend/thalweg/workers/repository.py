"""SQL of the collector."""

from typing import Any

from sqlalchemy import CompoundSelect, and_, exists, or_, select, union
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.models import (
    AbandonedStreamRow,
    DatabaseRow,
    DestinationRow,
    EngineRow,
    SourceReadingRow,
    StreamRow,
)
from thalweg.db.streams import runs_on, whole_streams
from thalweg.kernel.lifecycle import DesiredStatus


async def all_engines(session: AsyncSession) -> list[EngineRow]:
    return list(await session.scalars(select(EngineRow).order_by(EngineRow.id)))


async def lock_engines(session: AsyncSession, engine_id: str) -> dict[str, EngineRow]:
    """The engine and those with which it shares streams, in the order that everybody locks them in."""
    shared = select(StreamRow.id).where(runs_on(engine_id))
    peers: CompoundSelect[str] = union(
        select(StreamRow.capture_engine_id).where(StreamRow.id.in_(shared)),
        select(DestinationRow.engine_id).where(DestinationRow.stream_id.in_(shared)),
    )
    query = select(EngineRow).where(or_(EngineRow.id == engine_id, EngineRow.id.in_(peers)))
    return {row.id: row for row in await session.scalars(query.order_by(EngineRow.id).with_for_update())}


async def lock_streams(session: AsyncSession, engine_id: str) -> dict[str, StreamRow]:
    """Those that the engine runs, whole or in part."""
    query = whole_streams().where(runs_on(engine_id)).order_by(StreamRow.id).with_for_update(of=StreamRow)
    return {row.id: row for row in await session.scalars(query.execution_options(populate_existing=True))}


async def streams_of(session: AsyncSession, engine_id: str) -> dict[str, StreamRow]:
    """The same, without locks."""
    return {row.id: row for row in await session.scalars(whole_streams().where(runs_on(engine_id)))}


async def lock_stream(session: AsyncSession, stream_id: str) -> StreamRow | None:
    """Its engines must be locked before."""
    query = whole_streams().where(StreamRow.id == stream_id).with_for_update(of=StreamRow)
    return (await session.scalars(query.execution_options(populate_existing=True))).one_or_none()


async def forced_drops(session: AsyncSession, engine_id: str) -> list[StreamRow]:
    """Streams that shall be deleted, or one of whose destinations shall be dropped, whatever cannot be reached."""
    forced = DestinationRow.desired_status == DesiredStatus.DROPPED, DestinationRow.force
    query = (
        whole_streams()
        .where(
            runs_on(engine_id),
            or_(
                and_(StreamRow.desired_status == DesiredStatus.DROPPED, StreamRow.force),
                StreamRow.destinations.any(and_(*forced)),
            ),
        )
        .order_by(StreamRow.id)
    )
    return list(await session.scalars(query))


async def abandoned_streams(session: AsyncSession, engine_id: str) -> list[AbandonedStreamRow]:
    query = select(AbandonedStreamRow).where(AbandonedStreamRow.engine_id == engine_id)
    return list(await session.scalars(query.order_by(AbandonedStreamRow.id)))


async def databases(session: AsyncSession) -> list[DatabaseRow]:
    return list(await session.scalars(select(DatabaseRow).order_by(DatabaseRow.id)))


async def streams_of_sources(session: AsyncSession) -> dict[str, list[str]]:
    """Stream ids by source; those that are to stay: what is being dropped loses its slot on purpose."""
    query = select(StreamRow.source_id, StreamRow.id).where(StreamRow.desired_status != DesiredStatus.DROPPED)
    found: dict[str, list[str]] = {}
    for source_id, stream_id in await session.execute(query.order_by(StreamRow.id)):
        found.setdefault(source_id, []).append(stream_id)
    return found


async def tls_engines(session: AsyncSession) -> list[tuple[str, str]]:
    """(id, address) of engines whose control API has a certificate."""
    query = select(EngineRow.id, EngineRow.url).where(EngineRow.url.startswith("https://")).order_by(EngineRow.id)
    return [(row.id, row.url) for row in await session.execute(query)]


async def source_readings(session: AsyncSession) -> list[SourceReadingRow]:
    return list(await session.scalars(select(SourceReadingRow)))


async def keep_reading(session: AsyncSession, row: SourceReadingRow) -> None:
    """Keeps a reading, unless its database was deleted meanwhile. A failure leaves the document as it is: slots that
    were dropped since do not come back with it."""
    values: dict[str, Any] = {"asked_at": row.asked_at, "failure": row.failure}
    if row.failure is None:
        values["document"] = row.document
    there = exists(select(DatabaseRow.id).where(DatabaseRow.id == row.database_id))
    if await session.scalar(select(there)):
        statement = insert(SourceReadingRow).values(database_id=row.database_id, **values)
        await session.execute(statement.on_conflict_do_update(index_elements=["database_id"], set_=values))
