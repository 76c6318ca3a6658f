"""Tells history which of a stream's parts do not work, from one look at them to the next."""

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.models import EngineRow, StreamRow
from thalweg.history.outages import Subject, Trouble, note
from thalweg.kernel.lifecycle import SILENT, ObservedStatus, OutageState


async def note_stream(
    session: AsyncSession, row: StreamRow, before: dict[str, Any], after: dict[str, Any], at: datetime, kept: timedelta
) -> None:
    """`before` and `after` are documents of its status; of several destinations each has its own outages."""
    was, now = _troubles(row, before), _troubles(row, after)
    names = {destination.id: destination.database.name for destination in row.destinations}
    for key in was.keys() | now.keys():
        subject = Subject(row.name, row.id) if key is None else Subject(names.get(key, key), row.id, key)
        await note(session, subject, was.get(key), now.get(key), at, kept)


def _troubles(row: StreamRow, document: dict[str, Any]) -> dict[str | None, Trouble]:
    """By destination; None is the stream itself. An only destination's trouble is the stream's."""
    parts: list[tuple[str | None, dict[str, Any]]] = [(None, document)]
    if len(row.destinations) > 1:
        parts += [(destination["id"], destination) for destination in document.get("destinations", [])]
    return {key: trouble for key, part in parts if (trouble := _trouble(part)) is not None}


def _trouble(part: dict[str, Any]) -> Trouble | None:
    if part.get("status") == ObservedStatus.DROPPED:
        return None  # Its error is about what was left behind: nothing runs any more.
    error, aborted = part.get("error"), part.get("status") == ObservedStatus.ABORTED
    state = OutageState.ABORTED if aborted else OutageState.RETRYING
    if error is not None:
        return Trouble(state, error["code"], f"{error['title']}: {error['message']}")
    return Trouble(state, "", "It has stopped with an error.") if aborted else None


def engine_trouble(engine: EngineRow) -> Trouble | None:
    """The engine's trouble at the last poll."""
    if engine.state not in SILENT:
        return None
    return Trouble(OutageState(engine.state), "", engine.message or "It does not answer.")


async def note_engine(
    session: AsyncSession, engine: EngineRow, before: Trouble | None, at: datetime, kept: timedelta
) -> None:
    await note(session, Subject(engine.name, engine_id=engine.id), before, engine_trouble(engine), at, kept)
