"""Moves operations on by what was observed. An operation waits until the engine has its desired revision."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from thalweg.db.models import EngineRow, OperationRow, StreamRow
from thalweg.db.operations import OperationKind, OperationState, finish
from thalweg.engine_client.documents import EngineError, StreamStatus
from thalweg.kernel.clock import now
from thalweg.live.schemas import OperationEvent

REPLICATES = ("CATCHING UP", "REPLICATING")
Verdict = OperationState | None


def advance(
    operation: OperationRow, row: StreamRow, status: StreamStatus, asked_at: datetime, engine: EngineRow
) -> bool:
    """True when it changed. `asked_at` is when this observation was asked for."""
    if (engine.acknowledged_revision or 0) < operation.revision or asked_at <= operation.created_at:
        return False
    before = (operation.state, operation.done, operation.total, operation.error)
    if operation.state == OperationState.PENDING:
        operation.state, operation.started_at = OperationState.RUNNING, now()
    _count_rows(operation, status)
    verdict = VERDICTS[OperationKind(operation.kind)](row, status)
    if verdict is not None:
        finish(operation, verdict, _told(status.error))
    elif status.error is not None:
        operation.error = _told(status.error)
    else:
        operation.error = None
    return before != (operation.state, operation.done, operation.total, operation.error)


def _count_rows(operation: OperationRow, status: StreamStatus) -> None:
    if operation.kind == OperationKind.STREAM_CREATE and status.instantiation is not None:
        tables = status.instantiation.tables
        operation.done = sum(table.rows_copied for table in tables)
        # Estimates may be too low: there is never more done than in all.
        operation.total = max(operation.done, sum(max(0, table.rows_estimated) for table in tables))


def _told(error: EngineError | None) -> dict[str, Any] | None:
    if error is None:
        return None
    return {"code": error.code, "title": error.title, "message": error.message, "cure": error.cure or None}


def _created(row: StreamRow, status: StreamStatus) -> Verdict:
    if status.status == "ABORTED":
        return OperationState.FAILED
    copied = status.instantiation is None or status.instantiation.finished_at is not None
    if status.status == "ENABLED" and status.phase in REPLICATES and copied:
        return OperationState.SUCCEEDED
    stopped = row.desired_status == "DISABLED" and status.status == "DISABLED"
    return OperationState.SUCCEEDED if stopped and status.instantiation is None else None


def _started(row: StreamRow, status: StreamStatus) -> Verdict:
    if status.status == "ABORTED":
        return OperationState.FAILED
    works = status.phase in (*REPLICATES, "INSTANTIATING")
    return OperationState.SUCCEEDED if status.status == "ENABLED" and works else None


def _stopped(row: StreamRow, status: StreamStatus) -> Verdict:
    return OperationState.SUCCEEDED if status.status in ("DISABLED", "ABORTED") else None


def _deleted(row: StreamRow, status: StreamStatus) -> Verdict:
    if status.status == "DROPPED":
        return OperationState.SUCCEEDED
    return OperationState.FAILED if status.status == "ABORTED" and status.phase == "STOPPED" else None


VERDICTS: dict[OperationKind, Callable[[StreamRow, StreamStatus], Verdict]] = {
    OperationKind.STREAM_CREATE: _created,
    OperationKind.STREAM_START: _started,
    OperationKind.STREAM_RETRY: _started,
    OperationKind.STREAM_STOP: _stopped,
    OperationKind.STREAM_DELETE: _deleted,
}


def operation_event(operation: OperationRow, at: datetime) -> tuple[str, OperationEvent]:
    event = OperationEvent(
        operation_id=operation.id, kind=operation.kind, target_id=operation.target_id, state=operation.state,
        done=operation.done, total=operation.total, at=at,
    )  # fmt: skip
    return "operation", event
