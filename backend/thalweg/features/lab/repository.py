"""The lab's rows, and the demo's databases among those that are registered."""

from dataclasses import dataclass

from sqlalchemy import Text, cast, literal, select
from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.models import DatabaseRow, DestinationRow, LabActionRow, StreamRow
from thalweg.db.streams import whole_streams
from thalweg.kernel.settings import Settings

LOAD = "load"


@dataclass(frozen=True)
class Demo:
    stream: StreamRow
    source: DatabaseRow
    destination: DatabaseRow


async def demo(session: AsyncSession, settings: Settings) -> Demo | None:
    """The oldest stream between the two databases that the settings name by address: a name may be another one's."""
    if settings.lab_source is None or settings.lab_destination is None:
        return None
    address = DatabaseRow.host + literal(":") + cast(DatabaseRow.port, Text) + literal("/") + DatabaseRow.dbname
    into = DestinationRow.database.has(address == settings.lab_destination)
    query = (
        whole_streams()
        .where(StreamRow.source.has(address == settings.lab_source), StreamRow.destinations.any(into))
        .order_by(StreamRow.created_at)
        .limit(1)
    )
    stream = (await session.scalars(query)).first()
    if stream is None:
        return None
    destination = next(
        candidate.database
        for candidate in stream.destinations
        if candidate.database.address == settings.lab_destination
    )
    return Demo(stream, stream.source, destination)


async def actions(session: AsyncSession) -> dict[str, LabActionRow]:
    rows = await session.scalars(select(LabActionRow).order_by(LabActionRow.action))
    return {row.action: row for row in rows}
