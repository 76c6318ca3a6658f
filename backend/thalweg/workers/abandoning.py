"""Deletes streams, and drops destinations, whose engine is lost: what `force` asks for once that has been silent.

The control plane removes what it can reach in the databases itself. It cannot reach the engine's disk: the stream's
definition stays in the engine's desired document, as DROPPED, until the engine has come back and said so. Over several
engines the capture engine is given up first, as it would be asked first.
"""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import BaseModel
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.models import AbandonedStreamRow, EngineRow, StreamRow
from thalweg.db.operations import OperationKind, finish, unfinished_operations
from thalweg.engine_client.desired import capturing_definition, receiving_definition
from thalweg.inspection.removal import remove_stream_objects
from thalweg.inspection.target import Target, target_of
from thalweg.kernel.clock import now
from thalweg.kernel.context import Resources
from thalweg.kernel.lifecycle import DesiredStatus, OperationState, Stage
from thalweg.live.schemas import StreamDeletedEvent
from thalweg.workers import repository
from thalweg.workers.progress import operation_event
from thalweg.workers.stages import capture_is_gone, forget_destinations

DELETED = (OperationKind.STREAM_DELETE, OperationKind.DESTINATION_DROP)


@dataclass(frozen=True)
class _AbandonedPart:
    """One stream's part on a lost engine. Holds passwords: never log it."""

    stream_id: str
    destination_id: str | None
    """The destination that the engine received for; None: it captured."""
    engine_ids: list[str]
    definition: dict[str, Any]
    source: Target | None
    """The database with slot and publication, which go with the capture."""
    destinations: list[Target]


Events = list[tuple[str, BaseModel]]


async def abandon_streams(resources: Resources, engine_id: str, silent_seconds: float) -> tuple[Events, list[str]]:
    """Gives up the engine's part in what shall go by force. Gives the events to tell and the streams that are gone."""
    async with resources.sessions() as session:
        rows = await repository.forced_drops(session, engine_id)
        parts = [part for row in rows for part in _parts(row, engine_id, resources)]
    events: Events = []
    gone: list[str] = []
    for part in parts:
        left = await remove_stream_objects(
            part.stream_id, part.source, part.destinations, resources.settings.database_connect_timeout
        )
        async with resources.sessions() as session:
            new_events, is_gone = await _abandon_part(session, resources, engine_id, part, left, silent_seconds)
            await session.commit()
        events += new_events
        gone += [part.stream_id] if is_gone else []
    return events, gone


def _parts(row: StreamRow, engine_id: str, resources: Resources) -> list[_AbandonedPart]:
    """Parts that may be removed now: first the capturing engine's, then those of receiving engines."""
    deletes = row.desired_status == DesiredStatus.DROPPED and row.force
    secrets = resources.secrets
    parts = []
    if engine_id == row.capture_engine_id:
        if deletes and not row.capture_is_gone:
            own = [destination for destination in row.destinations if destination.engine_id == engine_id]
            parts.append(
                _abandoned_part(
                    row, None, capturing_definition(row, secrets), target_of(row.source, resources),
                    [target_of(destination.database, resources) for destination in own],
                )
            )  # fmt: skip
        return parts
    for receiver in row.receivers:
        forced = (
            receiver.desired_status == DesiredStatus.DROPPED and receiver.force and receiver.stage == Stage.RELEASED
        )
        if receiver.engine_id == engine_id and ((deletes and row.capture_is_gone) or forced):
            definition = receiving_definition(row, receiver, secrets)
            parts.append(_abandoned_part(row, receiver.id, definition, None, [target_of(receiver.database, resources)]))
    return parts


def _abandoned_part(
    row: StreamRow, destination_id: str | None, definition: dict[str, Any], source: Target | None,
    destinations: list[Target],
) -> _AbandonedPart:  # fmt: skip
    dropped = {**definition, "status": DesiredStatus.DROPPED, "force": True}
    return _AbandonedPart(row.id, destination_id, row.engine_ids, dropped, source, destinations)


async def _abandon_part(
    session: AsyncSession,
    resources: Resources,
    engine_id: str,
    part: _AbandonedPart,
    left: list[str],
    silent_seconds: float,
) -> tuple[Events, bool]:
    """True: the whole stream is gone with it."""
    engines, row = await _locked(session, part)
    if row is None or not engines.keys() >= set(row.engine_ids):
        return [], False
    at = now()
    gone = [destination for destination in row.destinations if destination.id == part.destination_id]
    if row.capture_is_gone if part.destination_id is None else not gone:
        return [], False  # Done meanwhile.
    engines[engine_id].desired_revision += 1
    session.add(
        AbandonedStreamRow(
            id=row.id, engine_id=engine_id, name=row.name, revision=engines[engine_id].desired_revision,
            abandoned_at=at, definition_sealed=resources.secrets.seal(json.dumps(part.definition)),
        )
    )  # fmt: skip
    if part.destination_id is None:
        await capture_is_gone(session, row, engines)
    else:
        forget_destinations(row, gone, engines)
    whole = row.desired_status == DesiredStatus.DROPPED and not row.destinations
    events: Events = []
    for operation in await unfinished_operations(session, [row.id]):
        if operation.kind not in DELETED:
            continue
        if whole or (gone and operation.destination_id == part.destination_id):
            finish(operation, OperationState.SUCCEEDED, _outcome(engines[engine_id], part, left, silent_seconds))
            events.append(operation_event(operation, at))
        elif operation.kind == OperationKind.STREAM_DELETE:
            operation.revision = 0  # The lost engine acknowledges nothing.
    if whole:
        for owner in engines.values():
            owner.desired_revision += 1
        await session.delete(row)
        events.append(("stream.deleted", StreamDeletedEvent(stream_id=row.id, at=at)))
    return events, whole


async def _locked(session: AsyncSession, part: _AbandonedPart) -> tuple[dict[str, EngineRow], StreamRow | None]:
    query = select(EngineRow).where(EngineRow.id.in_(part.engine_ids)).order_by(EngineRow.id).with_for_update()
    engines = {row.id: row for row in await session.scalars(query)}
    return engines, await repository.lock_stream(session, part.stream_id)


def _outcome(engine: EngineRow, part: _AbandonedPart, left: list[str], silent_seconds: float) -> dict[str, Any]:
    what = ["slot and publication at the source"] if part.source else []
    what += ["progress at the destination" if len(part.destinations) == 1 else "progress at its destinations"]
    tried = "tried to remove" if left else "removed"
    done = (
        f"The engine {engine.name} has not answered for {round(silent_seconds)} s: the control plane {tried} the "
        f"stream's {' and its '.join(what)} itself."
    )
    return {
        "code": "left_behind" if left else "engine_given_up",
        "title": "Deleted without its engine" + (", and something was left behind" if left else ""),
        "message": " ".join([done, *left]),
        "cure": "Run the SQL as soon as the database can be reached: a slot that is left keeps WAL." if left else None,
    }


async def forget_abandoned(session: AsyncSession, engine: EngineRow, dropped: set[str], at: datetime) -> None:
    """The engine is back and has dropped what it was given up with: it need not be told any more."""
    for row in await repository.abandoned_streams(session, engine.id):
        if row.id in dropped and (engine.acknowledged_revision or 0) >= row.revision and row.abandoned_at < at:
            await session.delete(row)
            engine.desired_revision += 1
