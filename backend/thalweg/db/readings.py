"""SQL of what sources said of themselves."""

from copy import deepcopy

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.models import SourceReadingRow


async def forget_slot(session: AsyncSession, database_id: str, name: str) -> None:
    """Forgets the slot of the database's server, so that it is not shown until the server is read again: also where
    other databases have read that server, by whatever address."""
    own = await session.get(SourceReadingRow, database_id)
    if own is None:
        return
    rows = await session.scalars(
        select(SourceReadingRow)
        .where(SourceReadingRow.document["state"]["slots"].has_key(name))
        .order_by(SourceReadingRow.database_id)
        .with_for_update()
        .execution_options(populate_existing=True)
    )
    for row in rows:
        if row.document is not None and may_be_one(_system_of(row), _system_of(own)):
            document = deepcopy(row.document)
            document["state"]["slots"].pop(name)
            row.document = document


def may_be_one(system: str | None, other: str | None) -> bool:
    """Compares system identifiers. None is that of a reading whose user may not ask: then a slot of the same name is
    taken for the same slot, because a stream's id is in it."""
    return system is None or other is None or system == other


def _system_of(row: SourceReadingRow) -> str | None:
    return None if row.document is None else row.document["state"].get("system_identifier")


async def readings_of(session: AsyncSession, database_ids: list[str]) -> list[SourceReadingRow]:
    query = select(SourceReadingRow).where(SourceReadingRow.database_id.in_(database_ids))
    return list(await session.scalars(query))
