"""Moves destinations on in their lives by what engines report, and tells the engines whose turn it is."""

from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.models import DestinationRow, EngineRow, StreamRow
from thalweg.engine_client.documents import StreamStatus
from thalweg.kernel.lifecycle import DesiredStatus, ObservedStatus, Stage, StageReport, next_stage

Engines = dict[str, EngineRow]


def _moved(row: StreamRow, destination: DestinationRow, report: StageReport, engines: Engines) -> bool:
    """Whether it is gone. An engine that receives is told when its turn has come, to begin or to end."""
    stage = next_stage(destination.stage, report, received=destination.engine_id != row.capture_engine_id)
    if stage == destination.stage:
        return False
    destination.stage = stage
    if destination.engine_id != row.capture_engine_id and stage is not Stage.GONE:
        engines[destination.engine_id].desired_revision += 1
        destination.changed_revision = engines[destination.engine_id].desired_revision
    return stage is Stage.GONE


async def capture_is_gone(session: AsyncSession, row: StreamRow, engines: Engines) -> None:
    """Called when a stream is being deleted and its capture is gone. The destinations that the capturing engine applied
    are gone with it, and so are those that no other engine has learnt of. All of the stream's engines must be
    locked."""
    gone = [
        destination
        for destination in row.destinations
        if _moved(row, destination, StageReport.CAPTURE_DROPPED_IT, engines)
    ]
    row.destinations = [destination for destination in row.destinations if destination not in gone]
    await session.flush()


def follow(row: StreamRow, status: StreamStatus, engine_id: str, engines: Engines) -> bool:
    """Moves the stream's destinations on by one engine's report. True: the capturing engine's desired state has
    changed, because destinations are gone."""
    gone = [
        destination for destination in row.destinations
        if (report := _report_on(row, destination, status, engine_id)) is not None
        and _moved(row, destination, report, engines)
    ]  # fmt: skip
    if not gone:
        return False
    forget_destinations(row, gone, engines)
    return True


def _report_on(row: StreamRow, destination: DestinationRow, status: StreamStatus, engine_id: str) -> StageReport | None:
    to_drop = destination.desired_status == DesiredStatus.DROPPED
    if engine_id == row.capture_engine_id:
        seen = next((seen for seen in status.destinations if seen.id == destination.id), None)
        if seen is None:
            return None
        if not to_drop:
            return StageReport.CAPTURE_HAS_IT
        return StageReport.CAPTURE_DROPPED_IT if seen.status == ObservedStatus.DROPPED else None
    dropped = to_drop and destination.engine_id == engine_id and status.status == ObservedStatus.DROPPED
    return StageReport.RECEIVER_DROPPED_IT if dropped else None


def forget_destinations(row: StreamRow, gone: list[DestinationRow], engines: Engines) -> None:
    row.destinations = [destination for destination in row.destinations if destination not in gone]
    elsewhere = {destination.engine_id for destination in gone} - {row.capture_engine_id}
    row.reports = {name: report for name, report in (row.reports or {}).items() if name not in elsewhere}
    for engine_id in {row.capture_engine_id, *elsewhere}:
        engines[engine_id].desired_revision += 1
    row.changed_revision = engines[row.capture_engine_id].desired_revision
