"""Rows of long work: written by the features that start it and by the collector that sees it finish."""

from enum import StrEnum

from thalweg.kernel.models import Resource


class OperationKind(StrEnum):
    STREAM_CREATE = "stream.create"
    STREAM_START = "stream.start"
    STREAM_STOP = "stream.stop"
    STREAM_RETRY = "stream.retry"
    STREAM_DELETE = "stream.delete"


class OperationState(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class ProgressUnit(StrEnum):
    ROWS = "rows"
    STEPS = "steps"


class OperationAccepted(Resource):
    """The answer to a request for long work: read the operation until it has succeeded or failed."""

    operation_id: str
    stream_id: str
    state: OperationState
