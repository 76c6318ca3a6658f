"""Reading operations."""

from sqlalchemy import select, tuple_

from thalweg.db.models import OperationRow
from thalweg.db.operations import OperationKind, ProgressUnit
from thalweg.db.streams import streams_by_id
from thalweg.features.operations.schemas import Operation, OperationError, OperationTarget, Progress
from thalweg.features.operations.waiting import waiting_for
from thalweg.kernel.context import Context
from thalweg.kernel.lifecycle import UNFINISHED, OperationState
from thalweg.kernel.models import Page
from thalweg.kernel.pagination import decode_cursor, encode_cursor
from thalweg.kernel.principal import Role
from thalweg.kernel.problems import Problem, not_found


async def _resources(context: Context, rows: list[OperationRow]) -> list[Operation]:
    waiting = {row.target_id for row in rows if row.state in UNFINISHED}
    streams = await streams_by_id(context.session, waiting) if waiting else {}
    reveals = context.principal.role.covers(Role.OPERATOR)
    return [_resource(row, waiting_for(row, streams.get(row.target_id)), reveals) for row in rows]


def _error(row: OperationRow, reveals: bool) -> OperationError | None:
    if row.error is None:
        return None
    error = OperationError.model_validate(row.error)
    return error if reveals else error.model_copy(update={"detail": None})


def _resource(row: OperationRow, waits_for: str | None, reveals: bool) -> Operation:
    return Operation(
        id=row.id, kind=OperationKind(row.kind), state=OperationState(row.state),
        target=OperationTarget(
            type=row.target_type, id=row.target_id, name=row.target_name, destination_id=row.destination_id,
            destination=row.destination_name,
            table=f"{row.table['schema']}.{row.table['table']}" if row.table else None,
        ),
        progress=Progress(done=row.done, total=row.total, unit=ProgressUnit(row.unit)),
        error=_error(row, reveals),
        waiting_for=waits_for, requested_by=row.requested_by, created_at=row.created_at, started_at=row.started_at,
        finished_at=row.finished_at,
    )  # fmt: skip


async def list_operations(
    context: Context, target_id: str | None, destination_id: str | None, state: OperationState | None, limit: int,
    cursor: str | None,
) -> Page[Operation]:  # fmt: skip
    query = select(OperationRow)
    if target_id is not None:
        query = query.where(OperationRow.target_id == target_id)
    if destination_id is not None:
        query = query.where(OperationRow.destination_id == destination_id)
    if state is not None:
        query = query.where(OperationRow.state == state)
    if cursor is not None:
        last = await context.session.get(OperationRow, str(decode_cursor(cursor, str)[0]))
        if last is None:
            raise Problem("invalid_request", "The cursor's operation is gone.", "Start again without a cursor.")
        query = query.where(tuple_(OperationRow.created_at, OperationRow.id) < tuple_(last.created_at, last.id))
    query = query.order_by(OperationRow.created_at.desc(), OperationRow.id.desc()).limit(limit + 1)
    rows = list(await context.session.scalars(query))
    following = encode_cursor(rows[limit - 1].id) if len(rows) > limit else None
    return Page[Operation](items=await _resources(context, rows[:limit]), next_cursor=following)


async def get_operation(context: Context, operation_id: str) -> Operation:
    row = await context.session.get(OperationRow, operation_id)
    if row is None:
        raise not_found("operation", operation_id)
    return (await _resources(context, [row]))[0]
