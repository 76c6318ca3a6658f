"""Deletes streams whose engine is lost: what `force` asks for once an engine has been silent for long enough.

The control plane removes what it can reach in both databases itself. What the engine has on its disk it cannot reach:
the stream's definition stays in the engine's desired document, as DROPPED, until the engine has come back and said so.
Over two engines the sending half is given up first: it removes nothing at any database, the receiving half does.
"""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import BaseModel
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.models import AbandonedStreamRow, EngineRow, StreamRow
from thalweg.db.operations import OperationKind, OperationState, finish, unfinished_operations
from thalweg.engine_client.desired import stream_definition
from thalweg.inspection.removal import remove_stream_objects
from thalweg.inspection.target import Target, target_of
from thalweg.kernel.clock import now
from thalweg.kernel.context import Resources
from thalweg.live.schemas import StreamDeletedEvent
from thalweg.workers import repository
from thalweg.workers.pairing import sending_half_is_gone
from thalweg.workers.progress import operation_event


@dataclass(frozen=True)
class _Doomed:
    """Holds passwords: never log it."""

    stream_id: str
    sends: bool
    """The engine has the sending half only: then the receiving half does the rest."""
    engine_ids: list[str]
    definition: dict[str, Any]
    source: Target
    destination: Target


Events = list[tuple[str, BaseModel]]


async def abandon_streams(resources: Resources, engine_id: str, silent_seconds: float) -> tuple[Events, list[str]]:
    """Deletes each stream of the engine that shall go by force. Gives the events to tell and the ids that are gone."""
    async with resources.sessions() as session:
        doomed = [
            _Doomed(
                row.id, row.capture_engine_id == engine_id, row.engine_ids,
                {**stream_definition(row, resources.secrets, engine_id), "status": "DROPPED", "force": True},
                target_of(row.source, resources.secrets), target_of(row.destination, resources.secrets),
            )
            for row in await repository.forced_deletes(session, engine_id)
            if row.sending_dropped == (row.capture_engine_id not in (None, engine_id))
        ]  # fmt: skip
    events: Events = []
    gone: list[str] = []
    for stream in doomed:
        if stream.sends:
            async with resources.sessions() as session:
                await _give_up_sending(session, resources, engine_id, stream)
                await session.commit()
            continue
        left = await remove_stream_objects(
            stream.stream_id, stream.source, stream.destination, resources.settings.database_connect_timeout
        )
        async with resources.sessions() as session:
            told = await _bury(session, resources, engine_id, stream, left, silent_seconds)
            await session.commit()
        if told is not None:
            events += told
            gone.append(stream.stream_id)
    return events, gone


async def _bury(
    session: AsyncSession, resources: Resources, engine_id: str, stream: _Doomed, left: list[str], silent_seconds: float
) -> Events | None:
    """None when the stream is gone already."""
    engines, row = await _locked(session, stream)
    if row is None or engine_id not in engines:
        return None
    engine, at = engines[engine_id], now()
    for owner in engines.values():
        owner.desired_revision += 1
    _abandon(session, resources, engine, row, stream, at)
    events: Events = []
    for operation in await unfinished_operations(session, [row.id]):
        if operation.kind == OperationKind.STREAM_DELETE:
            finish(operation, OperationState.SUCCEEDED, _told(engine, left, silent_seconds))
            events.append(operation_event(operation, at))
    await session.delete(row)
    events.append(("stream.deleted", StreamDeletedEvent(stream_id=row.id, at=at)))
    return events


async def _locked(session: AsyncSession, stream: _Doomed) -> tuple[dict[str, EngineRow], StreamRow | None]:
    query = select(EngineRow).where(EngineRow.id.in_(stream.engine_ids)).order_by(EngineRow.id).with_for_update()
    engines = {row.id: row for row in await session.scalars(query)}
    return engines, await session.get(StreamRow, stream.stream_id, with_for_update=True)


def _abandon(
    session: AsyncSession, resources: Resources, engine: EngineRow, row: StreamRow, stream: _Doomed, at: datetime
) -> None:
    session.add(
        AbandonedStreamRow(
            id=row.id, engine_id=engine.id, name=row.name, revision=engine.desired_revision, abandoned_at=at,
            definition_sealed=resources.secrets.seal(json.dumps(stream.definition)),
        )
    )  # fmt: skip


async def _give_up_sending(session: AsyncSession, resources: Resources, engine_id: str, stream: _Doomed) -> None:
    engines, row = await _locked(session, stream)
    if row is None or row.sending_dropped or engines.keys() != set(stream.engine_ids):
        return
    engines[engine_id].desired_revision += 1
    _abandon(session, resources, engines[engine_id], row, stream, now())
    await sending_half_is_gone(session, row, engines[row.engine_id])


def _told(engine: EngineRow, left: list[str], silent_seconds: float) -> dict[str, Any]:
    done = (
        f"The engine {engine.name} has not answered for {round(silent_seconds)} s: the control plane removed the "
        "stream's slot and publication at the source and its progress at the destination itself."
    )
    return {
        "code": "left_behind" if left else "engine_given_up",
        "title": "Deleted without its engine" + (", and something is left behind" if left else ""),
        "message": " ".join([done if not left else done.replace("removed", "tried to remove"), *left]),
        "cure": "Run the SQL as soon as the database can be reached: a slot that is left keeps WAL." if left else None,
    }


async def lay_to_rest(session: AsyncSession, engine: EngineRow, dropped: set[str], at: datetime) -> None:
    """The engine is back and has dropped what it was given up with: it need not be told any more."""
    for row in await repository.abandoned_streams(session, engine.id):
        if row.id in dropped and (engine.acknowledged_revision or 0) >= row.revision and row.abandoned_at < at:
            await session.delete(row)
            engine.desired_revision += 1
