"""A destination's error queue, read and worked through the engine that applies there."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from thalweg.db.audit import record
from thalweg.db.models import DestinationRow, StreamRow
from thalweg.engine_client.access import client_of, problem_of
from thalweg.engine_client.client import EngineClient, EngineFailure
from thalweg.features.streams.schemas import ParkedTransaction, ParkedTransactions
from thalweg.features.streams.service import existing_destination, existing_stream
from thalweg.kernel.context import Context


async def engine_of(
    context: Context, stream_id: str, destination_id: str
) -> tuple[StreamRow, EngineClient, str | None]:
    """Also the destination's id as that engine knows it: None where it has the stream's only one."""
    row = await existing_stream(context, stream_id)
    one = existing_destination(row, destination_id)
    resources = context.resources
    client = client_of(one.engine, resources.http, resources.secrets, resources.settings.engine_timeout)
    await context.release()
    return row, client, name_at_engine(row, one)


def name_at_engine(row: StreamRow, one: DestinationRow) -> str | None:
    return one.id if row.fans_out and one.engine_id == row.capture_engine_id else None


async def list_errors(context: Context, stream_id: str, destination_id: str) -> ParkedTransactions:
    _, client, name = await engine_of(context, stream_id, destination_id)
    try:
        parked = await client.errors(stream_id, name)
    except EngineFailure as failure:
        raise problem_of(failure) from failure
    return ParkedTransactions(
        errors=[
            ParkedTransaction(**{**error.model_dump(), "sqlstate": error.sqlstate or None}) for error in parked.errors
        ]
    )


async def execute(context: Context, stream_id: str, destination_id: str, error_id: int) -> None:
    row, client, name = await engine_of(context, stream_id, destination_id)
    facts = {"destination_id": destination_id, "error_id": error_id}
    record(context, "stream_errors_execute", ("stream", row.id, row.name), after=facts)
    async with asked(context, row, "stream_errors_execute", facts):
        await client.execute_error(stream_id, name, error_id)


async def discard(context: Context, stream_id: str, destination_id: str, error_id: int, reason: str) -> None:
    """What is discarded stays in the audit log, with the reason."""
    row, client, name = await engine_of(context, stream_id, destination_id)
    why = {"destination_id": destination_id, "reason": reason}
    async with asked(context, row, "stream_errors_delete", why):
        parked = (await client.errors(stream_id, name)).errors
    kept = next((one.model_dump(mode="json") for one in parked if one.id == error_id), {"id": error_id})
    record(context, "stream_errors_delete", ("stream", row.id, row.name), before=kept, after=why)
    async with asked(context, row, "stream_errors_delete", why):
        await client.delete_error(stream_id, name, error_id)


@asynccontextmanager
async def asked(context: Context, row: StreamRow, action: str, facts: dict[str, Any]) -> AsyncGenerator[None, None]:
    """What is asked of the engine is in the audit log before; where the engine refuses, that is written, too."""
    await context.release()
    try:
        yield
    except EngineFailure as failure:
        record(context, action, ("stream", row.id, row.name), after={**facts, "refused": failure.code})
        await context.release()
        raise problem_of(failure) from failure
