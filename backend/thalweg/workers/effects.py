"""Writes to the audit log from which position a change of a stream is in effect at a destination, once for each
position: a pause, or an engine's restart, begins no new one."""

from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.audit import record_as
from thalweg.db.models import AuditRow, StreamRow
from thalweg.workers.superseded import ENGINE

ACTION = "destinations_in_effect"


async def note_effects(session: AsyncSession, row: StreamRow, before: dict[str, Any], after: dict[str, Any]) -> None:
    """`before` and `after` are documents of the stream's status."""
    news = _positions(after) - _positions(before)
    if not news:
        return
    entries = select(AuditRow.after).where(AuditRow.target_id == row.id, AuditRow.action == ACTION)
    noted = {(entry["destination_id"], entry["from"]) for entry in await session.scalars(entries) if entry is not None}
    for id_, position in sorted(news - noted):
        destination = row.destination(id_)
        if destination is not None:
            facts = {"destination_id": id_, "database": destination.database.name, "from": position}
            record_as(session, ENGINE, "", None, ACTION, ("stream", row.id, row.name), None, facts)


def _positions(document: dict[str, Any]) -> set[tuple[str, str]]:
    """With the destinations' ids."""
    return {
        (destination["id"], told["from"])
        for destination in document.get("destinations", [])
        if isinstance(told := destination.get("in_effect"), dict)
    }
