"""Long work as the API shows it."""

from datetime import datetime

from pydantic import Field

from thalweg.db.operations import OperationKind, ProgressUnit
from thalweg.kernel.lifecycle import OperationState
from thalweg.kernel.models import Resource


class Progress(Resource):
    done: int
    total: int | None = Field(description="Null while it is not known.")
    unit: ProgressUnit


class OperationTarget(Resource):
    type: str
    id: str
    name: str
    destination_id: str | None = Field(description="The one of a stream's destinations. Null: the whole stream.")
    destination: str | None = Field(
        description="Its database's name at the time of the request. Null: the whole stream."
    )
    table: str | None = Field(description="The table that it concerns, such as public.orders.")


class OperationError(Resource):
    code: str
    title: str
    message: str
    cure: str | None
    detail: str | None = Field(
        default=None,
        description="The server's own message, if it may quote rows. Null for viewers, and if it cannot.",
    )


class Operation(Resource):
    id: str
    kind: OperationKind
    target: OperationTarget
    state: OperationState
    progress: Progress
    error: OperationError | None
    waiting_for: str | None = Field(
        description="The cause of its waiting, in words. Null: it does not wait, or has finished."
    )
    requested_by: str
    created_at: datetime
    started_at: datetime | None = Field(description="When the engine received the request.")
    finished_at: datetime | None = Field(
        description="When the engine was first seen to have finished it; it is polled once a second."
    )
