"""Writes to the audit log from which position a change of a stream is in effect at a destination, once for each
position: a pause, or an engine's restart, begins no new one."""

from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.audit import record_as
from thalweg.db.models import AuditRow, StreamRow
from thalweg.kernel.lsn import lsn_of
from thalweg.workers.superseded import ENGINE

ACTION = "destinations_in_effect"


async def note_effects(session: AsyncSession, row: StreamRow, before: dict[str, Any], after: dict[str, Any]) -> None:
    """`before` and `after` are documents of the stream's status."""
    known, reported = _positions(before), _positions(after)
    news = reported.keys() - known.keys()
    if not news:
        return
    entries = select(AuditRow.after).where(AuditRow.target_id == row.id, AuditRow.action == ACTION)
    noted = {(entry["destination_id"], entry["from"]) for entry in await session.scalars(entries) if entry is not None}
    for id_, position in sorted(news - noted, key=lambda found: (found[0], lsn_of(found[1]))):
        destination = row.destination(id_)
        if destination is not None:
            # A change that came after it began may have been written before it.
            since = reported[id_, position]
            facts = {"destination_id": id_, "database": destination.database.name, "from": position, "since": since}
            record_as(session, ENGINE, "", None, ACTION, ("stream", row.id, row.name), None, facts)


def _positions(document: dict[str, Any]) -> dict[tuple[str, str], str]:
    """When each began, by destination and position. The effect of all but the last may be over."""
    positions: dict[tuple[str, str], str] = {}
    for destination in document.get("destinations", []):
        last = destination.get("in_effect")
        effects = [*destination.get("effects", []), *([last] if isinstance(last, dict) else [])]
        positions |= {(destination["id"], effect["from"]): effect["since"] for effect in effects}
    return positions
