"""SQL of engines and enrolments."""

from sqlalchemy import or_, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import InstrumentedAttribute, selectinload

from thalweg.db.models import DestinationRow, EngineRow, EnrolmentRow, StreamRow
from thalweg.db.streams import runs_on


async def streams_of(session: AsyncSession, engine_ids: list[str]) -> dict[str, list[str]]:
    """Those that each engine runs, whole or in part."""
    query = select(StreamRow).options(selectinload(StreamRow.destinations)).where(runs_on(*engine_ids))
    found: dict[str, list[str]] = {}
    for stream in await session.scalars(query.order_by(StreamRow.id)):
        for engine_id in stream.engine_ids:
            found.setdefault(engine_id, []).append(stream.id)
    return found


async def lock_with_senders(session: AsyncSession, engine_id: str) -> dict[str, EngineRow]:
    """The engine and those that send to it, in the order that everybody locks them in."""
    received = StreamRow.destinations.any(DestinationRow.engine_id == engine_id)
    senders = select(StreamRow.capture_engine_id).where(received, StreamRow.capture_engine_id != engine_id)
    query = select(EngineRow).where(or_(EngineRow.id == engine_id, EngineRow.id.in_(senders)))
    return {row.id: row for row in await session.scalars(query.order_by(EngineRow.id).with_for_update())}


async def enrolment_by_token(session: AsyncSession, token_hash: str) -> EnrolmentRow | None:
    """Locked, so that one token enrols one engine."""
    query = select(EnrolmentRow).where(EnrolmentRow.token_hash == token_hash).with_for_update()
    return (await session.scalars(query.execution_options(populate_existing=True))).one_or_none()


async def is_taken(session: AsyncSession, column: InstrumentedAttribute[str], value: str) -> bool:
    return (await session.scalars(select(EngineRow.id).where(column == value))).first() is not None
