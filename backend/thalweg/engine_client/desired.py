"""Builds an engine's desired document from the store, at one consistent moment."""

import json
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import joinedload

from thalweg.db.models import AbandonedStreamRow, EngineRow, StreamRow
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
        .options(joinedload(StreamRow.source), joinedload(StreamRow.destination))
        .where(StreamRow.engine_id == engine_id)
        .order_by(StreamRow.id)
    )
    streams = [stream_definition(row, secrets) for row in await session.scalars(query)]
    # An engine that was given up and came back has them on its disk still: only DROPPED makes it forget them.
    abandoned = select(AbandonedStreamRow).where(AbandonedStreamRow.engine_id == engine_id)
    for row in await session.scalars(abandoned.order_by(AbandonedStreamRow.id)):
        streams.append(json.loads(secrets.open(row.definition_sealed)))
    return {"format": FORMAT, "revision": engine.desired_revision, "streams": streams}


def stream_definition(row: StreamRow, secrets: SecretBox) -> dict[str, Any]:
    """Needs the stream's source and destination loaded. Holds passwords."""
    return {
        "id": row.id,
        "name": row.name,
        "status": row.desired_status,
        "force": row.force,
        "source": {"name": row.source.name, "conninfo": target_of(row.source, secrets).conninfo()},
        "destination": {"name": row.destination.name, "conninfo": target_of(row.destination, secrets).conninfo()},
        "tables": row.tables,
        "parameters": row.parameters,
    }
