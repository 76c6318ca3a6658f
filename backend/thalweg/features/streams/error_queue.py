"""The destination's error queue, read and worked through the engine."""

from thalweg.db.audit import record
from thalweg.db.models import StreamRow
from thalweg.engine_client.access import client_of, problem_of
from thalweg.engine_client.client import EngineClient, EngineFailure
from thalweg.features.streams.schemas import ParkedTransaction, ParkedTransactions
from thalweg.features.streams.service import existing_stream
from thalweg.kernel.context import Context


async def _engine_of(context: Context, stream_id: str) -> tuple[StreamRow, EngineClient]:
    row = await existing_stream(context, stream_id)
    resources = context.resources
    return row, client_of(row.engine, resources.http, resources.secrets, resources.settings.engine_timeout)


async def list_errors(context: Context, stream_id: str) -> ParkedTransactions:
    _, client = await _engine_of(context, stream_id)
    try:
        parked = await client.errors(stream_id)
    except EngineFailure as failure:
        raise problem_of(failure) from failure
    return ParkedTransactions(
        errors=[
            ParkedTransaction(**{**error.model_dump(), "sqlstate": error.sqlstate or None}) for error in parked.errors
        ]
    )


async def execute(context: Context, stream_id: str, error_id: int) -> None:
    row, client = await _engine_of(context, stream_id)
    record(context, "stream_errors_execute", ("stream", row.id, row.name), after={"error_id": error_id})
    try:
        await client.execute_error(stream_id, error_id)
    except EngineFailure as failure:
        raise problem_of(failure) from failure


async def delete(context: Context, stream_id: str, error_id: int) -> None:
    row, client = await _engine_of(context, stream_id)
    record(context, "stream_errors_delete", ("stream", row.id, row.name), before={"error_id": error_id})
    try:
        await client.delete_error(stream_id, error_id)
    except EngineFailure as failure:
        raise problem_of(failure) from failure
