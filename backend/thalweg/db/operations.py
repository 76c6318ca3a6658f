"""Rows of long work: written by the features that start it and by the collector that sees it finish."""

from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.models import DestinationRow, EngineRow, OperationRow, StreamRow
from thalweg.kernel.clock import now
from thalweg.kernel.lifecycle import OPERATION_TRANSITIONS, UNFINISHED, OperationState
from thalweg.kernel.models import Resource


class OperationKind(StrEnum):
    STREAM_CREATE = "stream.create"
    STREAM_START = "stream.start"
    STREAM_STOP = "stream.stop"
    STREAM_RETRY = "stream.retry"
    STREAM_DELETE = "stream.delete"
    DESTINATION_ADD = "destination.add"
    DESTINATION_START = "destination.start"
    DESTINATION_STOP = "destination.stop"
    DESTINATION_RETRY = "destination.retry"
    DESTINATION_DROP = "destination.drop"
    TABLE_COPY = "table.copy"
    INDEX_CREATE = "index.create"
    INDEX_DROP = "index.drop"


class ProgressUnit(StrEnum):
    ROWS = "rows"
    STEPS = "steps"


class OperationAccepted(Resource):
    """The answer to a request that starts an operation: poll the operation until it has succeeded or failed."""

    operation_id: str
    stream_id: str
    state: OperationState


def start_operation(
    session: AsyncSession, kind: OperationKind, stream_id: str, stream_name: str, revision: int, requested_by: str,
    unit: ProgressUnit = ProgressUnit.STEPS, total: int | None = 1, destination: DestinationRow | None = None,
    table: dict[str, Any] | None = None,
) -> OperationRow:  # fmt: skip
    """A pending operation; the collector starts it when it tells the capture engine, and moves it on once that has
    acknowledged `revision`."""
    row = OperationRow(
        kind=kind, target_type="stream", target_id=stream_id, target_name=stream_name,
        destination_id=destination.id if destination is not None else None,
        destination_name=destination.database.name if destination is not None else None,
        table=table, state=OperationState.PENDING, done=0, total=total, unit=unit,
        revision=revision, requested_by=requested_by, created_at=now(),
    )  # fmt: skip
    session.add(row)
    return row


def start_database_work(
    session: AsyncSession, kind: OperationKind, database_id: str, database_name: str, requested_by: str, steps: int
) -> OperationRow:
    """A pending operation at a database, which no engine has a part in: the collector does it by itself."""
    row = OperationRow(
        kind=kind, target_type="database", target_id=database_id, target_name=database_name, destination_id=None,
        state=OperationState.PENDING, done=0, total=steps, unit=ProgressUnit.STEPS, revision=0,
        requested_by=requested_by, created_at=now(),
    )  # fmt: skip
    session.add(row)
    return row


def begin(row: OperationRow, at: datetime) -> None:
    """The operation was pending; its work began at `at`."""
    _enter(row, OperationState.RUNNING)
    row.started_at = at


def finish(row: OperationRow, state: OperationState, error: dict[str, Any] | None = None) -> None:
    """Progress is complete when it has succeeded; an `error` beside success says what was left behind."""
    _enter(row, state)
    row.finished_at, row.error = now(), error
    row.started_at = row.started_at or row.finished_at
    if state is OperationState.SUCCEEDED:
        row.done = row.total = max(row.done, row.total or 0, row.done if row.unit == ProgressUnit.ROWS else 1)


def _enter(row: OperationRow, state: OperationState) -> None:
    if state not in OPERATION_TRANSITIONS[row.state]:
        raise ValueError(f"operation {row.id} is {row.state}: it cannot become {state}")
    row.state = state


async def begin_sent(session: AsyncSession, engine_id: str, revision: int, at: datetime) -> list[OperationRow]:
    """The engine was told everything up to `revision` at `at`: that is when its work began. Gives those that began."""
    await session.get(EngineRow, engine_id, with_for_update=True)  # as everybody does who writes operations
    query = select(OperationRow).where(
        OperationRow.target_id.in_(select(StreamRow.id).where(StreamRow.capture_engine_id == engine_id)),
        OperationRow.state == OperationState.PENDING,
        OperationRow.revision <= revision,
    )
    begun = list(await session.scalars(query))
    for row in begun:
        begin(row, max(at, row.created_at))
    return begun


async def unfinished_operations(session: AsyncSession, stream_ids: list[str]) -> list[OperationRow]:
    query = (
        select(OperationRow)
        .where(OperationRow.target_id.in_(stream_ids), OperationRow.state.in_(UNFINISHED))
        .order_by(OperationRow.created_at, OperationRow.id)
    )
    return list(await session.scalars(query))
