"""Writes what a table's copy has made obsolete in the error queue to the audit log, once, however the copy's operation
ended: the engine counts it at the destination, and tells of it for as long as that copy is the table's last."""

from collections import Counter
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.audit import record_as
from thalweg.db.models import AuditRow, StreamRow
from thalweg.kernel.principal import Principal, Role

ENGINE = Principal("", "engine", Role.ADMIN, "system", "")
"""The actor of an engine's own actions in the audit log."""
OF_A_COPY = ("destination_id", "schema", "table", "copied_at")


async def note_superseded(session: AsyncSession, row: StreamRow, before: dict[str, Any], after: dict[str, Any]) -> None:
    """`before` and `after` are documents of the stream's status."""
    known = _discarded(before)
    news = {copy: count for copy, count in _discarded(after).items() if known.get(copy) != count}
    if not news:
        return
    noted: Counter[tuple[Any, ...]] = Counter()
    query = select(AuditRow.after).where(AuditRow.target_id == row.id, AuditRow.action == "stream_errors_superseded")
    for entry in await session.scalars(query):
        if entry is not None:
            noted[tuple(entry[name] for name in OF_A_COPY)] += entry["transactions"]
    for copy, count in news.items():
        if count > noted[copy]:
            facts = dict(zip(OF_A_COPY, copy, strict=True))
            facts |= {"transactions": count - noted[copy], "reason": f"copied again at {facts['copied_at']}"}
            target = ("stream", row.id, row.name)
            record_as(session, ENGINE, "", None, "stream_errors_superseded", target, None, facts)


def _discarded(document: dict[str, Any]) -> dict[tuple[Any, ...], int]:
    """Transactions by the copy that has made them obsolete."""
    return {
        (destination["id"], table["schema"], table["table"], table["copied_at"]): table["errors_discarded"]
        for destination in document.get("destinations", [])
        for table in (destination.get("instantiation") or {}).get("tables", [])
        if table.get("errors_discarded")
    }
