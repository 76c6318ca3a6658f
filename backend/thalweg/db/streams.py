"""Whole streams: with their databases, engines and destinations."""

from collections.abc import Collection

from sqlalchemy import ColumnElement, Select, or_, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import joinedload, selectinload

from thalweg.db.models import DestinationRow, StreamRow


def whole_streams() -> Select[StreamRow]:
    to_destinations = selectinload(StreamRow.destinations)
    return select(StreamRow).options(
        joinedload(StreamRow.source), joinedload(StreamRow.capture_engine),
        to_destinations.joinedload(DestinationRow.database), to_destinations.joinedload(DestinationRow.engine),
    )  # fmt: skip


def runs_on(*engine_ids: str) -> ColumnElement[bool]:
    """The streams that one of these engines runs, whole or in part."""
    return or_(
        StreamRow.capture_engine_id.in_(engine_ids),
        StreamRow.destinations.any(DestinationRow.engine_id.in_(engine_ids)),
    )


async def former_ids(session: AsyncSession, *conditions: ColumnElement[bool]) -> dict[str, dict[str, str]]:
    """By stream: the ids of its destinations by those that they had before. `conditions` are on streams."""
    found: dict[str, dict[str, str]] = {}
    query = select(DestinationRow.stream_id, DestinationRow.former_id, DestinationRow.id).join(
        StreamRow, StreamRow.id == DestinationRow.stream_id
    )
    for stream_id, former, today in await session.execute(
        query.where(DestinationRow.former_id.is_not(None), *conditions)
    ):
        found.setdefault(stream_id, {})[str(former)] = today
    return found


async def streams_by_id(session: AsyncSession, ids: Collection[str]) -> dict[str, StreamRow]:
    """Those that there are."""
    return {row.id: row for row in await session.scalars(whole_streams().where(StreamRow.id.in_(ids)))}
