"""SQL of engines and enrolments."""

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import InstrumentedAttribute

from thalweg.db.models import EngineRow, EnrolmentRow, StreamRow


async def streams_of(session: AsyncSession, engine_ids: list[str]) -> dict[str, list[str]]:
    query = select(StreamRow.engine_id, StreamRow.id).where(StreamRow.engine_id.in_(engine_ids)).order_by(StreamRow.id)
    found: dict[str, list[str]] = {}
    for engine_id, stream_id in await session.execute(query):
        found.setdefault(engine_id, []).append(stream_id)
    return found


async def enrolment_by_token(session: AsyncSession, token_hash: str) -> EnrolmentRow | None:
    """Locked, so that one token enrols one engine."""
    query = select(EnrolmentRow).where(EnrolmentRow.token_hash == token_hash).with_for_update()
    return (await session.scalars(query)).one_or_none()


async def is_taken(session: AsyncSession, column: InstrumentedAttribute[str], value: str) -> bool:
    return (await session.scalars(select(EngineRow.id).where(column == value))).first() is not None
