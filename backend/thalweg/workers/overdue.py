"""Ends operations that nothing will move on any more: no operation stays unfinished for ever.

The request itself stays desired. An engine that comes back does it then; only nobody waits for it any longer. The copy
of a table of a stream that somebody has stopped waits for as long as that lasts, and says so.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from pydantic import BaseModel
from sqlalchemy import select

from thalweg.db.models import AdvisorCureRow, EngineRow, OperationRow, StreamRow
from thalweg.db.operations import OperationKind, finish
from thalweg.db.streams import streams_by_id
from thalweg.engine_client.error_codes import ErrorCode
from thalweg.kernel.clock import now
from thalweg.kernel.context import Resources
from thalweg.kernel.lifecycle import UNFINISHED, EngineState, OperationState
from thalweg.workers.progress import operation_event

End = tuple[OperationState, dict[str, Any] | None]
"""A final state with its error."""


@dataclass
class Untaken:
    """Since when engines that answer have taken nothing of what they are told. Owner: the collector. A destination's
    last change may be younger than the operation: how old that is does not tell for how long its engine has been
    behind."""

    seen: dict[str, tuple[int | None, datetime]] = field(default_factory=dict)
    """The revision that an engine has, and when it was first seen to have it though it is told a later one."""

    def note(self, engines: Iterable[EngineRow], at: datetime) -> None:
        behind = {
            engine.id: engine.acknowledged_revision for engine in engines
            if engine.state == EngineState.ONLINE and (engine.acknowledged_revision or 0) < engine.desired_revision
        }  # fmt: skip
        self.seen = {
            name: known if (known := self.seen.get(name)) is not None and known[0] == revision else (revision, at)
            for name, revision in behind.items()
        }

    def lasts(self, engine: EngineRow, at: datetime, patience: timedelta) -> bool:
        known = self.seen.get(engine.id)
        return known is not None and at - known[1] >= patience


async def end_overdue(resources: Resources, untaken: Untaken) -> list[tuple[str, BaseModel]]:
    """The events to tell. Rows that somebody else is at are left for the next turn."""
    patience = timedelta(seconds=resources.settings.operation_patience)
    query = select(OperationRow).where(OperationRow.state.in_(UNFINISHED)).with_for_update(skip_locked=True)
    ended = []
    async with resources.sessions() as session:
        operations = list(await session.scalars(query))
        if not operations:
            return []
        streams = await streams_by_id(session, {operation.target_id for operation in operations})
        at = now()  # one moment: what is seen first now has lasted for no time
        untaken.note((engine for stream in streams.values() for engine in _engines_of(stream)), at)
        cures = set(await session.scalars(select(AdvisorCureRow.operation_id)))
        for operation in operations:
            if operation.target_type == "stream":
                end = _of_a_stream(operation, streams.get(operation.target_id), at, patience, untaken)
            else:
                end = None if operation.id in cures else _gone("cure")
            if end is not None:
                finish(operation, *end)
                ended.append(operation)
        await session.commit()
    return [operation_event(operation, at) for operation in ended]


def _engines_of(stream: StreamRow) -> list[EngineRow]:
    return [stream.capture_engine, *(destination.engine for destination in stream.destinations)]


def _of_a_stream(
    operation: OperationRow, stream: StreamRow | None, at: datetime, patience: timedelta, untaken: Untaken
) -> End | None:
    if stream is None:
        # A repeated delete: the engine finished the first request before it took this one.
        repeats = operation.kind == OperationKind.STREAM_DELETE
        return (OperationState.SUCCEEDED, None) if repeats else _gone("stream")
    if at - operation.created_at < patience:
        return None
    for engine in _engines_of(stream):
        if engine.state != EngineState.ONLINE and (engine.last_seen_at is None or at - engine.last_seen_at >= patience):
            return _waited(engine, "did not answer", "Start it again, or check the Engines page.", patience)
    refusing = [stream.capture_engine] if _has_not_taken(stream.capture_engine, operation.revision) else []
    refusing += [
        destination.engine for destination in stream.receivers
        if operation.destination_id in (None, destination.id) and untaken.lasts(destination.engine, at, patience)
        and _has_not_taken(destination.engine, destination.changed_revision)
    ]  # fmt: skip
    for engine in refusing:
        return _waited(engine, "did not take the request", engine.message or "Look at the engine's log.", patience)
    return None


def _has_not_taken(engine: EngineRow, revision: int) -> bool:
    return engine.state == EngineState.ONLINE and (engine.acknowledged_revision or 0) < revision


def _waited(engine: EngineRow, what: str, cure: str, patience: timedelta) -> End:
    return OperationState.FAILED, {
        "code": ErrorCode.ENGINE_UNREACHABLE.value, "title": "The engine did not do it in time",
        "message": f"Engine {engine.name} {what} for {patience.total_seconds():.0f} s. The request stands: the engine "
        "carries it out when it can, but this operation no longer waits for it.",
        "cure": cure,
    }  # fmt: skip


def _gone(what: str) -> End:
    return OperationState.FAILED, {
        "code": "superseded", "title": f"The {what} is gone",
        "message": f"The {what} was deleted before this was done.", "cure": None,
    }  # fmt: skip
