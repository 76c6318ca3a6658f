"""Moves operations on by what was observed. An operation waits until the capture engine has its revision."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from thalweg.db.models import EngineRow, OperationRow, StreamRow
from thalweg.db.operations import OperationKind, ProgressUnit, begin, finish
from thalweg.engine_client.documents import CopiedTable, DestinationStatus, EngineError, StreamStatus
from thalweg.kernel.clock import now
from thalweg.kernel.lifecycle import REPLICATES, DesiredStatus, ObservedStatus, OperationState, StreamPhase
from thalweg.kernel.sums import Sum
from thalweg.live.schemas import OperationEvent

STOPPED = (ObservedStatus.DISABLED, ObservedStatus.ABORTED)
RESTARTS_WITHIN = timedelta(seconds=10)
Verdict = OperationState | None
Destinations = list[DestinationStatus]
"""Those that an operation is about."""


def advance(
    operation: OperationRow, row: StreamRow, status: StreamStatus, asked_at: datetime, engine: EngineRow
) -> bool:
    """True when it changed. `asked_at` is when this observation was asked for, `engine` the one that captures."""
    if (engine.acknowledged_revision or 0) < operation.revision or asked_at <= operation.created_at:
        return False
    before = (operation.state, operation.done, operation.total, operation.error)
    if operation.state == OperationState.PENDING:
        begin(operation, now())
    concerned = [
        destination for destination in status.destinations if operation.destination_id in (None, destination.id)
    ]
    _count_rows(operation, concerned)
    copies_table = operation.kind == OperationKind.TABLE_COPY
    found = _error_of(status, concerned, whole=copies_table or operation.destination_id is None)
    error = _error_document(found)
    verdict: Verdict
    if copies_table and not _has_table(row, operation):
        verdict, error = OperationState.FAILED, _taken_out(operation)
    elif copies_table:
        verdict = _table_copied(operation, concerned, asked_at, found)
    else:
        verdict = VERDICTS[OperationKind(operation.kind)](row, status, concerned)
    if verdict is not None:
        finish(operation, verdict, error)
    else:
        operation.error = error
    return before != (operation.state, operation.done, operation.total, operation.error)


def _error_of(status: StreamStatus, concerned: Destinations, *, whole: bool) -> EngineError | None:
    of_stream = [status.error] if whole else []
    return next(
        (error for error in [*of_stream, *(destination.error for destination in concerned)] if error is not None), None
    )


def _count_rows(operation: OperationRow, concerned: Destinations) -> None:
    if operation.unit == ProgressUnit.ROWS:
        tables = [
            table
            for destination in concerned
            if destination.instantiation is not None
            for table in destination.instantiation.tables
        ]
        if operation.table is not None:
            begun = any(_copies_anew(operation, destination) for destination in concerned)
            tables = [table for table in tables if begun and _is_about(operation, table)]
        operation.done = sum(table.rows_copied for table in tables)
        # A share of what nobody has counted is not known either.
        estimated = Sum.of(table.rows_estimated if table.rows_estimated >= 0 else None for table in tables).exact
        # Estimates may be too low: there is never more done than in all.
        operation.total = None if estimated is None else max(operation.done, estimated)


def _table_of(operation: OperationRow) -> str:
    about = operation.table or {}
    return f"{about.get('schema')}.{about.get('table')}"


def _has_table(row: StreamRow, operation: OperationRow) -> bool:
    about = operation.table or {}
    return any((table["schema"], table["table"]) == (about.get("schema"), about.get("table")) for table in row.tables)


def _taken_out(operation: OperationRow) -> dict[str, Any]:
    """Nobody copies it any more."""
    message = f"The stream does not have {_table_of(operation)} any longer."
    return {"code": "superseded", "title": "The table was taken out", "message": message, "cure": None}


def _is_about(operation: OperationRow, table: CopiedTable) -> bool:
    about = operation.table or {}
    return (table.schema_name, table.table) == (about.get("schema"), about.get("table"))


def _copies_anew(operation: OperationRow, destination: DestinationStatus) -> bool:
    """True once the engine reports a copy newer than the request; until it begins, it reports the one before."""
    if destination.instantiation is None:
        return False
    finished, before = destination.instantiation.finished_at, (operation.table or {}).get("copied_at")
    return finished is None or before is None or finished != datetime.fromisoformat(before)


def _table_copied(
    operation: OperationRow, concerned: Destinations, asked_at: datetime, error: EngineError | None
) -> Verdict:
    """A stream that had stopped for the table's sake may be seen so for a moment after the request. One that stops for
    another reason has the request still: the table is copied once it runs again."""
    if not concerned:
        return None
    if concerned[0].status == ObservedStatus.ABORTED:
        there = (operation.table or {}).get("there")
        its_own = error is not None and error.table.replace('"', "") in (_table_of(operation), there)
        over = its_own and asked_at - operation.created_at > RESTARTS_WITHIN
        return OperationState.FAILED if over else None
    done = _copies_anew(operation, concerned[0]) and _copied(concerned[0]) and concerned[0].phase in REPLICATES
    return OperationState.SUCCEEDED if done else None


def _error_document(error: EngineError | None) -> dict[str, Any] | None:
    if error is None:
        return None
    document = {"code": error.code, "title": error.title, "message": error.message, "cure": error.cure or None}
    return document | ({"detail": error.detail} if error.detail else {})


def _copied(destination: DestinationStatus) -> bool:
    return destination.instantiation is None or destination.instantiation.finished_at is not None


def _added(row: StreamRow, status: StreamStatus, concerned: Destinations) -> Verdict:
    """The progress of adding a destination, or a stream with all its first destinations."""
    if ObservedStatus.ABORTED in (status.status, *(destination.status for destination in concerned)):
        return OperationState.FAILED
    if concerned and all(
        destination.status == ObservedStatus.ENABLED and destination.phase in REPLICATES and _copied(destination)
        for destination in concerned
    ):
        return OperationState.SUCCEEDED
    stopped = row.desired_status == DesiredStatus.DISABLED and status.status == ObservedStatus.DISABLED
    return (
        OperationState.SUCCEEDED
        if stopped and all(destination.instantiation is None for destination in concerned)
        else None
    )


def _started(row: StreamRow, status: StreamStatus, concerned: Destinations) -> Verdict:
    # With its only destination stopped a stream rests.
    if status.status == ObservedStatus.DISABLED and all(
        destination.desired_status == DesiredStatus.DISABLED for destination in row.destinations
    ):
        return OperationState.SUCCEEDED
    return _works(status.status, status.phase)


def _works(status: ObservedStatus, phase: StreamPhase) -> Verdict:
    if status == ObservedStatus.ABORTED:
        return OperationState.FAILED
    works = status == ObservedStatus.ENABLED and phase in (*REPLICATES, StreamPhase.INSTANTIATING)
    return OperationState.SUCCEEDED if works else None


def _stopped(row: StreamRow, status: StreamStatus, concerned: Destinations) -> Verdict:
    return OperationState.SUCCEEDED if status.status in STOPPED else None


def _deleted(row: StreamRow, status: StreamStatus, concerned: Destinations) -> Verdict:
    if status.status == ObservedStatus.DROPPED:
        return OperationState.SUCCEEDED
    failed = status.status == ObservedStatus.ABORTED and status.phase == StreamPhase.STOPPED
    return OperationState.FAILED if failed else None


def _destination_started(row: StreamRow, status: StreamStatus, concerned: Destinations) -> Verdict:
    return _works(concerned[0].status, concerned[0].phase) if concerned else None


def _destination_stopped(row: StreamRow, status: StreamStatus, concerned: Destinations) -> Verdict:
    return OperationState.SUCCEEDED if concerned and concerned[0].status in STOPPED else None


def _destination_dropped(row: StreamRow, status: StreamStatus, concerned: Destinations) -> Verdict:
    gone = not concerned or concerned[0].status == ObservedStatus.DROPPED
    return OperationState.SUCCEEDED if gone else None


VERDICTS: dict[OperationKind, Callable[[StreamRow, StreamStatus, Destinations], Verdict]] = {
    OperationKind.STREAM_CREATE: _added,
    OperationKind.STREAM_START: _started,
    OperationKind.STREAM_RETRY: _started,
    OperationKind.STREAM_STOP: _stopped,
    OperationKind.STREAM_DELETE: _deleted,
    OperationKind.DESTINATION_ADD: _added,
    OperationKind.DESTINATION_START: _destination_started,
    OperationKind.DESTINATION_RETRY: _destination_started,
    OperationKind.DESTINATION_STOP: _destination_stopped,
    OperationKind.DESTINATION_DROP: _destination_dropped,
}


def operation_event(operation: OperationRow, at: datetime) -> tuple[str, OperationEvent]:
    event = OperationEvent(
        operation_id=operation.id, kind=operation.kind, target_id=operation.target_id, state=operation.state,
        done=operation.done, total=operation.total, at=at,
    )  # fmt: skip
    return "operation", event
