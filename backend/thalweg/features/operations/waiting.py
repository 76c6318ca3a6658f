"""Describes in words what an operation waits for."""

from datetime import UTC, datetime
from typing import Any

from thalweg.db.models import OperationRow, StreamRow
from thalweg.db.operations import OperationKind
from thalweg.kernel.lifecycle import UNFINISHED, DesiredStatus, EngineState
from thalweg.live.waits import waits_in_words

WAITS = {
    OperationKind.STREAM_CREATE: "the initial copy, and the changes since",
    OperationKind.STREAM_START: "the stream to capture and apply",
    OperationKind.STREAM_STOP: "the queue to be drained",
    OperationKind.STREAM_RETRY: "the stream to capture and apply",
    OperationKind.STREAM_DELETE: "slot, publication and bookkeeping to be removed from the databases",
    OperationKind.DESTINATION_ADD: "the initial copy, and the changes since",
    OperationKind.DESTINATION_START: "the destination to be applied to",
    OperationKind.DESTINATION_STOP: "the destination's open transactions",
    OperationKind.DESTINATION_RETRY: "the destination to be applied to",
    OperationKind.DESTINATION_DROP: "the destination's bookkeeping to be removed",
    OperationKind.TABLE_COPY: "the table's rows to be copied, and the changes since",
    OperationKind.INDEX_CREATE: "the index to be built",
    OperationKind.INDEX_DROP: "the index to be dropped",
}


def waiting_for(operation: OperationRow, stream: StreamRow | None) -> str | None:
    """`stream` is the target, None where it is a database."""
    if operation.state not in UNFINISHED:
        return None
    if stream is not None:
        concerned = [
            destination for destination in stream.destinations if operation.destination_id in (None, destination.id)
        ]
        engines = [stream.capture_engine, *(destination.engine for destination in concerned)]
        silent = next((engine for engine in engines if engine.state != EngineState.ONLINE), None)
        if silent is not None:
            since = f" since {silent.last_seen_at:%Y-%m-%d %H:%M:%S} UTC" if silent.last_seen_at else ""
            return f"Engine {silent.name}, which has not answered{since}."
        asked = [(stream.capture_engine, operation.revision)]
        asked += [
            (receiver.engine, receiver.changed_revision) for receiver in stream.receivers if receiver in concerned
        ]
        for engine, revision in asked:
            if (engine.acknowledged_revision or 0) < revision:
                return f"Engine {engine.name}, which has not taken the request yet."
        if waits := waits_in_words(_waits_of(operation, stream), datetime.now(UTC)):
            return " ".join(waits)
        if operation.kind == OperationKind.TABLE_COPY and (stopped := _stopped_part(operation, stream)) is not None:
            return f"{stopped}, which is stopped. Start it: the copy follows by itself."
        if operation.error is not None:
            return _held_up(operation, operation.error)
    return f"{WAITS[OperationKind(operation.kind)].capitalize()}."


def _held_up(operation: OperationRow, error: dict[str, Any]) -> str:
    """By an error that the engine tries again after: one that it gives up on ends the operation."""
    copies_table = operation.kind == OperationKind.TABLE_COPY
    part = "stream" if copies_table or operation.destination_id is None else "destination"
    cure = f" {error['cure']}" if error["cure"] else ""
    rest = " The copy follows by itself." if copies_table else ""
    return f"The {part}, which is held up: {error['title']}. {error['message']}{cure}{rest}"


def _stopped_part(operation: OperationRow, stream: StreamRow) -> str | None:
    """The part that somebody has stopped, which copies no table until it is started."""
    if stream.desired_status == DesiredStatus.DISABLED:
        return f"The stream {stream.name}"
    destination = stream.destination(operation.destination_id or "")
    if destination is not None and destination.desired_status == DesiredStatus.DISABLED:
        return f"The destination {destination.database.name}"
    return None


def _waits_of(operation: OperationRow, stream: StreamRow) -> dict[str, Any]:
    """Those at the source, and at the destination that it is about."""
    about = operation.destination_id
    waits = (stream.observed or {}).get("waits", [])
    return {"waits": [wait for wait in waits if about is None or wait["destination"] in (None, about)]}
