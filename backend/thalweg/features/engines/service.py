"""Engines: enrolled with a one-time token, watched by the collector."""

from datetime import timedelta

import structlog
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.audit import record, record_as, snapshot
from thalweg.db.models import EngineRow, EnrolmentRow
from thalweg.db.pages import page_by_name
from thalweg.engine_client.access import client_of
from thalweg.engine_client.address import require_private_way
from thalweg.engine_client.client import EngineFailure
from thalweg.engine_client.documents import API_VERSION
from thalweg.engine_client.identity import Authority, give_identity, observe_identity, open_authority
from thalweg.features.engines import repository
from thalweg.features.engines.schemas import (
    Engine,
    EngineEnrol,
    EngineUpdate,
    Enrolment,
    EnrolmentCreate,
    Identity,
    StreamDrop,
    UnknownStream,
)
from thalweg.history.starts import note_start
from thalweg.kernel.clock import now
from thalweg.kernel.context import Context, Resources, release
from thalweg.kernel.etags import check_if_match, etag_of
from thalweg.kernel.idempotency import Created
from thalweg.kernel.ids import new_id, new_secret, secret_hash
from thalweg.kernel.lifecycle import EngineState
from thalweg.kernel.models import FieldProblem, Page
from thalweg.kernel.principal import Principal, Role
from thalweg.kernel.problems import Problem, name_taken, not_found
from thalweg.kernel.words import counted

log = structlog.get_logger(__name__)


def _resource(row: EngineRow, streams: list[str]) -> Engine:
    return Engine(
        id=row.id, name=row.name, url=row.url, state=EngineState(row.state), message=row.message,
        version=row.version, hostname=row.hostname, pid=row.pid, started_at=row.started_at,
        last_seen_at=row.last_seen_at, resident_bytes=row.resident_bytes, cpu_percent=row.cpu_percent,
        desired_revision=row.desired_revision, acknowledged_revision=row.acknowledged_revision,
        identity=_identity(row), propagation_address=row.reached_at,
        propagation_address_set=row.propagation_address is not None, wal_archives=row.wal_archives,
        streams=streams, unknown_streams=_unknown_streams(row), created_at=row.created_at, etag=etag_of(row.edition),
    )  # fmt: skip


def _unknown_streams(row: EngineRow) -> list[UnknownStream]:
    return [
        UnknownStream(**stream, being_dropped=stream["id"] in row.streams_to_drop) for stream in row.unknown_streams
    ]


def _identity(row: EngineRow) -> Identity | None:
    if row.identity_name is None or row.identity_fingerprint is None or row.identity_not_after is None:
        return None
    return Identity(
        name=row.identity_name, fingerprint=row.identity_fingerprint, not_after=row.identity_not_after,
        listen=row.identity_listen,
    )  # fmt: skip


async def list_engines(context: Context, limit: int, cursor: str | None) -> Page[Engine]:
    rows, following = await page_by_name(
        context.session, select(EngineRow), EngineRow.name, EngineRow.id, limit, cursor
    )
    streams = await repository.streams_of(context.session, [row.id for row in rows])
    return Page[Engine](items=[_resource(row, streams.get(row.id, [])) for row in rows], next_cursor=following)


async def get_engine(context: Context, engine_id: str) -> Engine:
    row = await context.session.get(EngineRow, engine_id)
    if row is None:
        raise not_found("engine", engine_id)
    return _resource(row, (await repository.streams_of(context.session, [row.id])).get(row.id, []))


async def update_engine(context: Context, engine_id: str, body: EngineUpdate, if_match: str | None) -> Engine:
    engines = await repository.lock_with_senders(context.session, engine_id)
    row = engines.pop(engine_id, None)
    if row is None:
        raise not_found("engine", engine_id)
    check_if_match(if_match, row.edition)
    streams = (await repository.streams_of(context.session, [row.id])).get(row.id, [])
    before, reached_before = snapshot(_resource(row, streams)), row.reached_at
    row.propagation_address = body.propagation_address
    if row.reached_at is None and engines:
        raise Problem(
            "conflict", f"Other engines send to {row.name}, and they would not know where to reach it.",
            "Give an address as host:port, or start thalwegd with --propagation-listen at an address of its own.",
        )  # fmt: skip
    if row.reached_at != reached_before:
        for sender in engines.values():
            sender.desired_revision += 1
    row.edition += 1
    await context.session.flush()
    engine = _resource(row, streams)
    record(context, "engines_update", ("engine", row.id, row.name), before, snapshot(engine))
    return engine


async def drop_stream(context: Context, engine_id: str, body: StreamDrop) -> Engine:
    """Drops streams that the store does not know: the engine removes their objects at both databases and forgets
    them."""
    row = await context.session.get(EngineRow, engine_id, with_for_update=True)
    if row is None:
        raise not_found("engine", engine_id)
    if body.stream_id not in {stream["id"] for stream in row.unknown_streams}:
        raise Problem(
            "conflict", f"{row.name} runs no unknown stream {body.stream_id}.",
            "A stream that is known is deleted itself: DELETE /api/v1/streams/{id}.",
        )  # fmt: skip
    if body.stream_id not in row.streams_to_drop:
        row.streams_to_drop = [*row.streams_to_drop, body.stream_id]
        row.desired_revision += 1
        await context.session.flush()
    record(context, "engines_drop_stream", ("engine", row.id, row.name), after={"stream_id": body.stream_id})
    return _resource(row, (await repository.streams_of(context.session, [row.id])).get(row.id, []))


async def delete_engine(context: Context, engine_id: str) -> None:
    row = await context.session.get(EngineRow, engine_id, with_for_update=True)
    if row is None:
        raise not_found("engine", engine_id)
    streams = (await repository.streams_of(context.session, [row.id])).get(row.id, [])
    if streams:
        raise Problem("engine_in_use", f"{row.name} runs {counted(len(streams), 'stream')}.", "Delete them first.")
    await context.session.delete(row)
    record(context, "engines_delete", ("engine", row.id, row.name), before=snapshot(_resource(row, [])))


async def create_enrolment(context: Context, body: EnrolmentCreate) -> Created:
    row, secret = new_enrolment(timedelta(minutes=body.expires_in_minutes))
    context.session.add(row)
    await context.session.flush()
    record(context, "enrolments_create", ("enrolment", row.id, ""))
    return Created(Enrolment(id=row.id, token=secret, expires_at=row.expires_at), headers={"Cache-Control": "no-store"})


def new_enrolment(lifetime: timedelta) -> tuple[EnrolmentRow, str]:
    secret = new_secret()
    return EnrolmentRow(token_hash=secret_hash(secret), expires_at=now() + lifetime), secret


async def enrol(
    session: AsyncSession, resources: Resources, body: EngineEnrol, request_id: str, address: str | None
) -> Engine:
    """The engine must answer to the control token: a wrong address is told now and not by a dead heartbeat."""
    await _usable_enrolment(session, body.token)
    row = await register(session, resources, body.name, body.url, body.control_token)
    enrolment = await _usable_enrolment(session, body.token)  # Two may have come with it at once.
    enrolment.used_at, enrolment.engine_id = now(), row.id
    actor = Principal(enrolment.id, "enrolment", Role.OPERATOR, "system", enrolment.id)
    engine = _resource(row, [])
    record_as(
        session,
        actor,
        request_id,
        address,
        "engines_enrol",
        ("engine", row.id, row.name),
        None,
        snapshot(engine),
    )
    return engine


async def _usable_enrolment(session: AsyncSession, token: str) -> EnrolmentRow:
    """Locked until the transaction ends."""
    enrolment = await repository.enrolment_by_token(session, secret_hash(token))
    if enrolment is None or enrolment.used_at is not None or enrolment.expires_at <= now():
        raise Problem(
            "enrolment_refused", "The token is unknown, used or expired.",
            "Let an admin create a new one: POST /api/v1/engines/enrolments.",
        )  # fmt: skip
    return enrolment


async def register(session: AsyncSession, resources: Resources, name: str, url: str, control_token: str) -> EngineRow:
    """Adds an engine that answers. Raises name_taken, conflict or invalid_request."""
    url = url.rstrip("/")
    require_private_way(url)
    if await repository.is_taken(session, EngineRow.name, name):
        raise name_taken("engine", name)
    if await repository.is_taken(session, EngineRow.url, url):
        raise Problem("conflict", f"The engine at {url} is enrolled already.", "Delete it first to enrol it again.")
    row = EngineRow(
        id=new_id(), name=name, url=url, control_token_sealed=resources.secrets.seal(control_token),
        state=EngineState.UNKNOWN, desired_revision=0,
    )  # fmt: skip
    authority = await open_authority(session, resources.secrets)
    await release(session)
    await _greet(resources, row)
    await _identify(resources, row, authority)
    session.add(row)
    await session.flush()
    if row.started_at is not None:
        await note_start(session, row.id, row.started_at)
    await session.refresh(row)
    return row


async def _identify(resources: Resources, row: EngineRow, authority: Authority) -> None:
    """A failure here does not refuse the engine: the collector tries again. Without an identity it cannot propagate."""
    client = client_of(row, resources.http, resources.secrets, resources.settings.engine_timeout)
    try:
        if await give_identity(client, row.id, authority):
            observe_identity(row, (await client.status()).engine)
    except EngineFailure as failure:
        log.warning("identity not given", engine=row.name, error=failure.message)


async def _greet(resources: Resources, row: EngineRow) -> None:
    client = client_of(row, resources.http, resources.secrets, resources.settings.engine_timeout)
    try:
        status = await client.status()
    except EngineFailure as failure:
        raise Problem(
            "invalid_request", f"The engine cannot be enrolled: {failure.message}", failure.cure,
            errors=[FieldProblem(pointer="/url", code=failure.code, message=failure.message, cure=failure.cure)],
        ) from failure  # fmt: skip
    if status.engine.api != API_VERSION:
        raise Problem(
            "invalid_request", f"The engine speaks control API {status.engine.api}, not {API_VERSION}.",
            "Run the engine and the control plane in the same version.",
        )  # fmt: skip
    row.version, row.hostname, row.pid = status.engine.version, status.engine.hostname, status.engine.pid
    row.started_at, row.last_seen_at, row.state = status.engine.started_at, now(), EngineState.ONLINE
    # Never fall behind what the engine has on its disk from an earlier life.
    row.desired_revision = status.engine.desired_revision
