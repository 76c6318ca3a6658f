"""Long work as the API shows it."""

from datetime import datetime

from pydantic import Field

from thalweg.db.operations import OperationKind, OperationState, ProgressUnit
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
    table: str | None = Field(description="The one table that it is about, such as public.orders.")


class OperationError(Resource):
    code: str
    title: str
    message: str
    cure: str | None


class Operation(Resource):
    id: str
    kind: OperationKind
    target: OperationTarget
    state: OperationState
    progress: Progress
    error: OperationError | None
    waiting_for: str | None = Field(
        description="The thing that it waits for, in words. Null: nothing, or it has finished."
    )
    requested_by: str
    created_at: datetime
    started_at: datetime | None = Field(description="When the engine was told.")
    finished_at: datetime | None = Field(
        description="When the engine was first seen to have done it: it is asked once a second."
    )
