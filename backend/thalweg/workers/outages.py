"""Tells history which of a stream's parts do not work, from one look at them to the next."""

from collections import deque
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.models import EngineRow, StreamRow
from thalweg.history.outages import Subject, Trouble, note
from thalweg.kernel.lifecycle import SILENT, ObservedStatus, OutageState, StreamPhase
from thalweg.live.schemas import DestinationSample, Sample

REPLICATED_MIN = 3
"""How many samples show that it worked: a try that fails again may look well in one."""
FORGET_AFTER = timedelta(minutes=10)


class Replicated:
    """When streams and their destinations were last seen to replicate. Owner: the collector."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str | None], deque[datetime]] = {}

    def note(self, sample: Sample, at: datetime) -> None:
        parts: list[tuple[str | None, Sample | DestinationSample]] = [(None, sample)]
        parts += [(part.destination_id, part) for part in sample.destinations]
        for key, part in parts:
            if _replicates(part):
                self._seen.setdefault((sample.stream_id, key), deque(maxlen=REPLICATED_MIN)).append(at)

    def worked_at(self, stream_id: str, destination_id: str | None) -> datetime | None:
        """The first of the last samples that show it; None: they are too few."""
        seen = self._seen.get((stream_id, destination_id), deque())
        return seen[0] if len(seen) == REPLICATED_MIN else None

    def forget_before(self, at: datetime) -> None:
        self._seen = {key: seen for key, seen in self._seen.items() if at - seen[-1] <= FORGET_AFTER}


def _replicates(part: Sample | DestinationSample) -> bool:
    """A stream or a destination that only catches up must apply something, too."""
    if part.status != ObservedStatus.ENABLED:
        return False
    return part.phase == StreamPhase.REPLICATING or (
        part.phase == StreamPhase.CATCHING_UP and bool(part.lcrs_per_second)
    )


async def note_stream(
    session: AsyncSession, row: StreamRow, before: dict[str, Any], after: dict[str, Any], at: datetime,
    kept: timedelta, replicated: Replicated,
) -> None:  # fmt: skip
    """`before` and `after` are documents of its status; of several destinations each has its own outages."""
    was, now = _troubles(row, before), _troubles(row, after)
    names = {destination.id: destination.database.name for destination in row.destinations}
    for key in was.keys() | now.keys():
        subject = Subject(row.name, row.id) if key is None else Subject(names.get(key, key), row.id, key)
        await note(session, subject, was.get(key), now.get(key), at, kept, replicated.worked_at(row.id, key))


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
