"""Asks the engines of a stream what is on its way."""

import asyncio

from thalweg.db.audit import record
from thalweg.db.models import EngineRow, StreamRow
from thalweg.engine_client.access import client_of, problem_for, problem_of
from thalweg.engine_client.client import EngineClient, EngineFailure
from thalweg.engine_client.documents import Transactions
from thalweg.features.tracking import repository
from thalweg.features.tracking.schemas import (
    Marker,
    MarkerCreate,
    MarkerKind,
    StreamMarkers,
    StreamTransactions,
    Transaction,
)
from thalweg.features.tracking.way import markers_of
from thalweg.kernel.clock import now
from thalweg.kernel.context import Context
from thalweg.kernel.ids import new_id
from thalweg.kernel.lifecycle import MarkerState
from thalweg.kernel.principal import Role
from thalweg.kernel.problems import not_found
from thalweg.live.retries import shown_retry

REFUSED = "The source refused it; operators are shown why."


async def _stream(context: Context, stream_id: str) -> StreamRow:
    row = await repository.stream_by_id(context.session, stream_id)
    if row is None:
        raise not_found("stream", stream_id)
    return row


async def _clients(context: Context, row: StreamRow) -> list[tuple[EngineRow, EngineClient]]:
    """All that is asked of the store: its transaction ends with it."""
    resources = context.resources
    engines = await repository.engines_of(context.session, row)
    await context.release()
    return [
        (engine, client_of(engine, resources.http, resources.secrets, resources.settings.engine_timeout))
        for engine in engines
    ]


def _received_for(row: StreamRow, engine_id: str) -> str | None:
    """Everything that a receiving engine passes on belongs to one destination, including its receiver and its queue."""
    if engine_id == row.capture_engine_id:
        return None
    return next((destination.id for destination in row.destinations if destination.engine_id == engine_id), None)


async def list_transactions(context: Context, stream_id: str) -> StreamTransactions:
    async def ask(engine: EngineRow, client: EngineClient) -> tuple[EngineRow, Transactions]:
        return engine, await client.transactions(stream_id)

    row = await _stream(context, stream_id)
    clients = await _clients(context, row)
    try:
        answers = await asyncio.gather(*(ask(*pair) for pair in clients))
    except EngineFailure as failure:
        raise problem_for(context.principal, failure) from failure
    reveals = context.principal.role.covers(Role.OPERATOR)
    shown = [
        Transaction(
            **transaction.model_dump(exclude={"age_us", "destination", "retry"}), age_seconds=transaction.age_us / 1e6,
            retry=shown_retry(transaction.retry.model_dump() if transaction.retry else None, reveals=reveals),
            destination_id=transaction.destination or _received_for(row, engine.id), engine_id=engine.id,
        )
        for engine, answer in answers
        for transaction in answer.transactions
    ]  # fmt: skip
    return StreamTransactions(
        stream_id=stream_id, at=now(), transactions=sorted(shown, key=lambda transaction: -transaction.age_seconds),
        open=sum(answer.open for _, answer in answers), waiting=sum(answer.waiting for _, answer in answers),
        executing=sum(answer.executing for _, answer in answers),
        queued_lcrs=sum(answer.queued_lcrs for _, answer in answers),
    )  # fmt: skip


async def list_markers(context: Context, stream_id: str) -> StreamMarkers:
    row = await _stream(context, stream_id)
    clients = await _clients(context, row)
    try:
        answers = await asyncio.gather(*(client.markers(stream_id) for _, client in clients))
    except EngineFailure as failure:
        raise problem_for(context.principal, failure) from failure
    trails = [(engine.id, answer) for (engine, _), answer in zip(clients, answers, strict=True)]
    for engine_id, answer in trails:
        for stage in answer.stages:
            stage.destination = stage.destination or _received_for(row, engine_id)
    markers = markers_of(trails)
    if not context.principal.role.covers(Role.OPERATOR):
        for marker in markers:
            marker.failure = marker.failure and REFUSED
    return StreamMarkers(stream_id=stream_id, markers=markers)


async def get_marker(context: Context, stream_id: str, marker_id: str) -> Marker:
    markers = (await list_markers(context, stream_id)).markers
    found = next((marker for marker in markers if marker.id == marker_id), None)
    if found is None:
        raise not_found("marker", marker_id)
    return found


async def create_marker(context: Context, stream_id: str, body: MarkerCreate) -> Marker:
    row = await _stream(context, stream_id)
    clients = await _clients(context, row)
    marker_id = new_id()
    try:
        await clients[0][1].place_marker(stream_id, marker_id, body.label)
    except EngineFailure as failure:
        raise problem_of(failure) from failure
    record(context, "stream_markers_create", ("stream", row.id, row.name), after={"id": marker_id, "label": body.label})
    return Marker(
        id=marker_id, kind=MarkerKind.TRACKED, label=body.label, state=MarkerState.WAITING, placed_at=now(),
        commit_lsn=None, xid=None, committed_at=None, failure=None, latency_ms=None, hops=[],
    )  # fmt: skip
