"""States of streams, destinations, tables, copies, operations and engines, and the transitions that are allowed.

The values are those of the store, of REST and of the engine's contract. No other file spells one:
scripts/lint/states.py checks it.
"""

from enum import StrEnum
from typing import Final


class DesiredStatus(StrEnum):
    """The status that users want for a stream or a destination. Every desired document sends it to the engine."""

    ENABLED = "ENABLED"
    DISABLED = "DISABLED"
    DROPPED = "DROPPED"


class ObservedStatus(StrEnum):
    """UNKNOWN also while the engine does not answer, whatever it reported last."""

    ENABLED = "ENABLED"
    DISABLED = "DISABLED"
    ABORTED = "ABORTED"
    DROPPED = "DROPPED"
    UNKNOWN = "UNKNOWN"


class StreamPhase(StrEnum):
    """UNKNOWN also while the engine does not answer."""

    INITIALIZING = "INITIALIZING"
    INSTANTIATING = "INSTANTIATING"
    CATCHING_UP = "CATCHING UP"
    REPLICATING = "REPLICATING"
    RETRYING = "RETRYING"
    DRAINING = "DRAINING"
    DROPPING = "DROPPING"
    STOPPED = "STOPPED"
    UNKNOWN = "UNKNOWN"


REPLICATES: Final = (StreamPhase.CATCHING_UP, StreamPhase.REPLICATING)
STARTING: Final = (StreamPhase.INITIALIZING, StreamPhase.INSTANTIATING)


class ShownState(StrEnum):
    """The one word that users see for what a destination or a stream does: its status unless it is ENABLED, else its
    phase. PAUSED: a destination is switched off while its stream is not, or all of a stream's are. PARKING: it applies
    nothing, and parks every transaction that comes. STALLED: it applies nothing though changes wait for it, or nothing
    is captured because another one's backlog is full. UNKNOWN also what only a newer version knows."""

    PAUSED = "PAUSED"
    ABORTED = "ABORTED"
    DROPPED = "DROPPED"
    INITIALIZING = "INITIALIZING"
    INSTANTIATING = "INSTANTIATING"
    CATCHING_UP = "CATCHING UP"
    REPLICATING = "REPLICATING"
    RETRYING = "RETRYING"
    DRAINING = "DRAINING"
    DROPPING = "DROPPING"
    STOPPED = "STOPPED"
    PARKING = "PARKING"
    STALLED = "STALLED"
    UNKNOWN = "UNKNOWN"

    @classmethod
    def _missing_(cls, value: object) -> "ShownState":
        return cls.UNKNOWN


WORST_FIRST: Final = (ShownState.ABORTED, ShownState.PARKING, ShownState.RETRYING, ShownState.STALLED)
"""The troubles of a destination."""


class TableState(StrEnum):
    """In the order of a copy. UNKNOWN: the engine has not reported on the table, or does not answer. STOPPED: its
    changes are left out."""

    UNKNOWN = "UNKNOWN"
    WAITING = "WAITING"
    COPYING = "COPYING"
    INDEXING = "INDEXING"
    COPIED = "COPIED"
    REPLICATING = "REPLICATING"
    STOPPED = "STOPPED"


HAS_ROWS: Final = (TableState.INDEXING, TableState.COPIED, TableState.REPLICATING)


class TroubleKind(StrEnum):
    """The changes of a stream's table at the source."""

    MISSING = "MISSING"
    DROPPED = "DROPPED"
    REPLACED = "REPLACED"
    RENAMED = "RENAMED"
    UNPUBLISHED = "UNPUBLISHED"
    PARTITIONS_CHANGED = "PARTITIONS CHANGED"
    UNIDENTIFIED = "UNIDENTIFIED"


class BacklogState(StrEnum):
    IN_MEMORY = "IN MEMORY"
    ON_DISK = "ON DISK"
    FULL = "FULL"


NO_BACKLOG: Final = "NONE"
"""In the place of a BacklogState, engines report it of a destination that reads the queue directly."""


class ExecutionState(StrEnum):
    """The state of an execution of parked transactions."""

    RUNNING = "RUNNING"
    DONE = "DONE"
    FAILED = "FAILED"


class ExecutionOutcome(StrEnum):
    """The outcome of an execution of parked transactions, as the audit log keeps it."""

    RUNNING = "RUNNING"
    DONE = "DONE"
    FAILED = "FAILED"
    UNKNOWN = "UNKNOWN"


class SearchState(StrEnum):
    """The state of a search in a source's log."""

    DONE = "DONE"
    RUNNING = "RUNNING"
    FAILED = "FAILED"


class TransactionState(StrEnum):
    """OPEN: commit or abort has not arrived. WAIT_DEPENDENCY: another one must commit first. WAIT_RETRY: it failed and
    is retried later. READY: no applier is free, or its group still grows. EXECUTE_TRANSACTION: at the destination.
    WAIT_COMMIT: its turn has not come. UNKNOWN: only a newer engine knows it."""

    OPEN = "OPEN"
    WAIT_DEPENDENCY = "WAIT DEPENDENCY"
    WAIT_RETRY = "WAIT RETRY"
    READY = "READY"
    EXECUTE_TRANSACTION = "EXECUTE TRANSACTION"
    WAIT_COMMIT = "WAIT COMMIT"
    UNKNOWN = "UNKNOWN"


class MarkerState(StrEnum):
    """WAITING for the source. PLACED: committed there. CAPTURED: read by the capture. ARRIVED: at every destination.
    FAILED: the source could not commit it. UNKNOWN: only a newer engine knows it."""

    WAITING = "WAITING"
    PLACED = "PLACED"
    CAPTURED = "CAPTURED"
    ARRIVED = "ARRIVED"
    FAILED = "FAILED"
    UNKNOWN = "UNKNOWN"


class EngineState(StrEnum):
    """REFUSED: it answers, but rejects our token or our API version."""

    UNKNOWN = "UNKNOWN"
    ONLINE = "ONLINE"
    UNREACHABLE = "UNREACHABLE"
    REFUSED = "REFUSED"


SILENT: Final = (EngineState.UNREACHABLE, EngineState.REFUSED)


class OutageState(StrEnum):
    """RETRYING: it tried again by itself. ABORTED: stopped by an error. UNREACHABLE, REFUSED: an engine that gave the
    control plane no answer; what it runs may have gone on."""

    RETRYING = "RETRYING"
    ABORTED = "ABORTED"
    UNREACHABLE = "UNREACHABLE"
    REFUSED = "REFUSED"


class OperationState(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


UNFINISHED: Final = (OperationState.PENDING, OperationState.RUNNING)
OPERATION_TRANSITIONS: Final = {
    OperationState.PENDING: (OperationState.RUNNING, OperationState.SUCCEEDED, OperationState.FAILED),
    OperationState.RUNNING: (OperationState.SUCCEEDED, OperationState.FAILED),
    OperationState.SUCCEEDED: (),
    OperationState.FAILED: (),
}
"""An operation that asks for nothing new, or that another one supersedes, ends without having run."""


class StreamAction(StrEnum):
    START = "start"
    STOP = "stop"
    RETRY = "retry"
    DELETE = "delete"


class DestinationAction(StrEnum):
    START = "start"
    STOP = "stop"
    RETRY = "retry"
    DROP = "drop"


class Refused(Exception):
    """The desired status does not allow the action: the reason, and the cure."""

    def __init__(self, reason: str, cure: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.cure = cure


TRANSITIONS: Final = {
    (DesiredStatus.DISABLED, StreamAction.START): DesiredStatus.ENABLED,
    (DesiredStatus.ENABLED, StreamAction.START): DesiredStatus.ENABLED,
    (DesiredStatus.ENABLED, StreamAction.STOP): DesiredStatus.DISABLED,
    (DesiredStatus.DISABLED, StreamAction.STOP): DesiredStatus.DISABLED,
    (DesiredStatus.ENABLED, StreamAction.RETRY): DesiredStatus.ENABLED,
    (DesiredStatus.ENABLED, StreamAction.DELETE): DesiredStatus.DROPPED,
    (DesiredStatus.DISABLED, StreamAction.DELETE): DesiredStatus.DROPPED,
    # Deleting again is allowed: it is how `force` is added when a database turns out to be gone.
    (DesiredStatus.DROPPED, StreamAction.DELETE): DesiredStatus.DROPPED,
}
"""A stream's transitions. A destination has the same; STREAM_ACTIONS translates its actions."""
STREAM_ACTIONS: Final = {
    DestinationAction.START: StreamAction.START,
    DestinationAction.STOP: StreamAction.STOP,
    DestinationAction.RETRY: StreamAction.RETRY,
    DestinationAction.DROP: StreamAction.DELETE,
}


def next_stream_status(current: DesiredStatus, action: StreamAction) -> DesiredStatus:
    """The desired status after the action. Raises Refused."""
    if target := TRANSITIONS.get((current, action)):
        return target
    if current == DesiredStatus.DROPPED:
        message = f"The stream is being deleted: it cannot {action} any more."
    else:
        message = "The stream is stopped: start it instead."
    raise Refused(message, "Read the stream's actions.")


def next_destination_status(current: DesiredStatus, action: DestinationAction) -> DesiredStatus:
    """The desired status after the action. Raises Refused."""
    if target := TRANSITIONS.get((current, STREAM_ACTIONS[action])):
        return target
    if current == DesiredStatus.DROPPED:
        raise Refused("The destination is being dropped.", "Add the database again once it is gone.")
    raise Refused("The destination is paused.", "Resume it instead.")


def offered_stream_actions(current: DesiredStatus, observed: ObservedStatus) -> list[StreamAction]:
    """The actions to offer: transitions that would change something."""
    pointless = {
        StreamAction.START: current == DesiredStatus.ENABLED,
        StreamAction.STOP: current == DesiredStatus.DISABLED,
        StreamAction.RETRY: observed != ObservedStatus.ABORTED,
    }
    return [action for action in StreamAction if (current, action) in TRANSITIONS and not pointless.get(action, False)]


class Stage(StrEnum):
    """The stage of a destination's life, between the engine that captures for it and the one that applies there.

    A destination is added at the capturing engine first: if another engine copied it before, nobody would capture the
    changes since that copy. It is also removed at the capturing engine first: until that engine has released the
    destination, the receiving engine only drains.

    CAPTURED: the capturing engine has it among the stream's destinations, so another engine may receive for it.
    RELEASED: the capturing engine has let go of it; the engine that receives removes what is at the database. GONE:
    nothing of it is left anywhere, and its row goes.
    """

    NEW = "NEW"
    CAPTURED = "CAPTURED"
    RELEASED = "RELEASED"
    GONE = "GONE"


class StageReport(StrEnum):
    """Reports of engines that move a destination to its next stage."""

    CAPTURE_HAS_IT = "capture has it"
    CAPTURE_DROPPED_IT = "capture dropped it"
    RECEIVER_DROPPED_IT = "receiver dropped it"


STAGE_TRANSITIONS: Final = {
    (Stage.NEW, StageReport.CAPTURE_HAS_IT): Stage.CAPTURED,
    # No other engine has heard of it.
    (Stage.NEW, StageReport.CAPTURE_DROPPED_IT): Stage.GONE,
    (Stage.CAPTURED, StageReport.CAPTURE_DROPPED_IT): Stage.RELEASED,
    (Stage.RELEASED, StageReport.RECEIVER_DROPPED_IT): Stage.GONE,
}


def next_stage(stage: Stage, report: StageReport, *, received: bool) -> Stage:
    """The stage after the report. Engines repeat their reports: one that is not in the table changes nothing.
    `received`: another engine applies there. If the capturing engine applies the destination, it is gone once that
    engine has dropped it."""
    following = STAGE_TRANSITIONS.get((stage, report), stage)
    return Stage.GONE if following == Stage.RELEASED and not received else following
