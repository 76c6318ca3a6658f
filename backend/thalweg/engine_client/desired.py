"""Builds an engine's desired document from the store, at one consistent moment."""

import json
from typing import Any

from sqlalchemy import or_, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import joinedload

from thalweg.db.models import AbandonedStreamRow, EngineRow, StreamRow
from thalweg.engine_client.identity import identity_name
from thalweg.inspection.target import target_of
from thalweg.kernel.secret_box import SecretBox

FORMAT = 1


async def desired_document(session: AsyncSession, engine_id: str, secrets: SecretBox) -> dict[str, Any] | None:
    """None when the engine is gone. Holds passwords: never log it. The session must be fresh."""
    await session.connection(execution_options={"isolation_level": "REPEATABLE READ"})
    engine = await session.get(EngineRow, engine_id)
    if engine is None:
        return None
    query = (
        select(StreamRow)
        .options(
            joinedload(StreamRow.source), joinedload(StreamRow.destination), joinedload(StreamRow.engine),
            joinedload(StreamRow.capture_engine),
        )
        .where(or_(StreamRow.engine_id == engine_id, StreamRow.capture_engine_id == engine_id))
        .order_by(StreamRow.id)
    )  # fmt: skip
    streams = {row.id: stream_definition(row, secrets, engine_id) for row in await session.scalars(query)}
    # An engine that was given up and came back has them on its disk still: only DROPPED makes it forget them.
    abandoned = select(AbandonedStreamRow).where(AbandonedStreamRow.engine_id == engine_id)
    for row in await session.scalars(abandoned.order_by(AbandonedStreamRow.id)):
        streams[row.id] = json.loads(secrets.open(row.definition_sealed))
    return {"format": FORMAT, "revision": engine.desired_revision, "streams": list(streams.values())}


def stream_definition(row: StreamRow, secrets: SecretBox, engine_id: str) -> dict[str, Any]:
    """What this engine does of the stream: all, or its half of a path over two engines. Needs the stream's databases
    and engines loaded. Holds passwords."""
    sends = engine_id == row.capture_engine_id
    definition = {
        "id": row.id,
        "name": row.name,
        "status": row.desired_status if sends else _applying_status(row),
        "force": row.force,
        "source": {"name": row.source.name, "conninfo": target_of(row.source, secrets).conninfo()},
        "tables": row.tables,
        "parameters": row.parameters,
    }
    if sends:
        return {**definition, "send_to": _peer(row.engine)}
    target = target_of(row.destination, secrets)
    definition["destination"] = {"name": row.destination.name, "conninfo": target.conninfo()}
    if row.capture_engine is not None:
        definition["receive_from"] = {"engine": identity_name(row.capture_engine.id)}
    return definition


def _applying_status(row: StreamRow) -> str:
    """The sending half holds the slot: while it is being dropped, the receiving half only drains."""
    waits = row.capture_engine_id is not None and not row.sending_dropped
    return "DISABLED" if waits and row.desired_status == "DROPPED" else row.desired_status


def _peer(engine: EngineRow) -> dict[str, Any]:
    """An engine that lost its address keeps its streams: they say that nobody answers there, with port 1."""
    host, _, port = (engine.reached_at or "unknown.invalid:1").rpartition(":")
    return {"engine": identity_name(engine.id), "host": host.strip("[]"), "port": int(port)}
