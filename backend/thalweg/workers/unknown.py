"""Streams that an engine runs and the store does not know: the store came back from a backup older than they."""

from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.models import EngineRow
from thalweg.engine_client.documents import StreamStatus
from thalweg.kernel.lifecycle import ObservedStatus
from thalweg.workers import repository


async def note_unknown(session: AsyncSession, engine: EngineRow, streams: list[StreamStatus], known: set[str]) -> None:
    """They go on as they are until an admin has them dropped; the engine is told of both by name."""
    unknown = [
        {"id": stream.id, "status": stream.status, "phase": stream.phase}
        for stream in streams
        if stream.status != ObservedStatus.DROPPED and stream.id not in known
    ]
    if unknown:
        abandoned = {row.id for row in await repository.abandoned_streams(session, engine.id)}
        unknown = [stream for stream in unknown if stream["id"] not in abandoned]
    ids = [stream["id"] for stream in unknown]
    if ids != [stream["id"] for stream in engine.unknown_streams]:
        engine.desired_revision += 1
        engine.streams_to_drop = [name for name in engine.streams_to_drop if name in ids]
    if unknown != engine.unknown_streams:
        engine.unknown_streams = unknown
