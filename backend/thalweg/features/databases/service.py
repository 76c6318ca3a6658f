"""Registered databases: who connects where. Passwords are sealed on the way in and never read out here."""

from typing import Literal

from thalweg.db.audit import record, snapshot
from thalweg.db.models import DatabaseRow, StreamRow
from thalweg.db.pages import page_by_name
from thalweg.features.databases import repository
from thalweg.features.databases.credentials import (
    check_password_stays,
    sealed_pem,
    stored_pem,
    with_service,
    wrong_field,
)
from thalweg.features.databases.schemas import (
    Database,
    DatabaseCreate,
    DatabaseUpdate,
    ReadFrom,
    SslMode,
    check_read_from,
)
from thalweg.inspection.target import target_of
from thalweg.kernel.clock import now
from thalweg.kernel.context import Context
from thalweg.kernel.etags import check_if_match, etag_of
from thalweg.kernel.idempotency import Created
from thalweg.kernel.models import Page
from thalweg.kernel.pem import PEM_FIELDS
from thalweg.kernel.problems import Problem, name_taken, not_found

PLACE_FIELDS = ("host", "port", "dbname", "sslmode", "options")


def _resource(row: DatabaseRow, streams: list[StreamRow]) -> Database:
    return Database(
        id=row.id, name=row.name, host=row.host, port=row.port, dbname=row.dbname, user=row.username,
        sslmode=SslMode(row.sslmode), options=row.options, read_from=ReadFrom(row.read_from),
        sslrootcert=stored_pem(row, "sslrootcert"), sslcert=stored_pem(row, "sslcert"),
        sslkey=stored_pem(row, "sslkey"), sslcrl=stored_pem(row, "sslcrl"),
        has_password=row.password_sealed is not None,
        version=row.server_version, tested_at=row.tested_at, test_code=row.test_code,
        source_of=[stream.id for stream in streams if stream.source_id == row.id],
        destination_of=[
            stream.id for stream in streams
            if row.id in (destination.database_id for destination in stream.destinations)
        ],
        created_at=row.created_at, updated_at=row.updated_at, etag=etag_of(row.version),
    )  # fmt: skip


Lock = Literal["update", "delete"]


async def existing_database(context: Context, database_id: str, lock: Lock | None = None) -> DatabaseRow:
    """An update must not hold up streams that are being created on it: they lock their engine first, it last."""
    locking = None if lock is None else {"key_share": lock == "update"}
    row = await context.session.get(
        DatabaseRow, database_id, with_for_update=locking, populate_existing=lock is not None
    )
    if row is None:
        raise not_found("database", database_id)
    return row


async def list_databases(context: Context, limit: int, cursor: str | None) -> Page[Database]:
    rows, following = await page_by_name(
        context.session, repository.all_databases(), DatabaseRow.name, DatabaseRow.id, limit, cursor
    )
    streams = await repository.streams_using(context.session, [row.id for row in rows])
    return Page[Database](items=[_resource(row, streams) for row in rows], next_cursor=following)


async def get_database(context: Context, database_id: str) -> Database:
    row = await existing_database(context, database_id)
    return _resource(row, await repository.streams_using(context.session, [row.id]))


async def create_database(context: Context, body: DatabaseCreate) -> Created:
    if await repository.name_is_taken(context.session, body.name):
        raise name_taken("database", body.name)
    body = with_service(context, body)
    row = DatabaseRow(
        name=body.name, host=body.host, port=body.port, dbname=body.dbname, username=body.user,
        password_sealed=context.resources.secrets.seal(body.password) if body.password else None,
        sslmode=body.sslmode, options=body.options, read_from=body.read_from,
        pem=sealed_pem({name: getattr(body, name) for name in PEM_FIELDS}, context.resources.secrets),
    )  # fmt: skip
    context.session.add(row)
    await context.session.flush()
    await context.session.refresh(row)
    database = _resource(row, [])
    record(context, "databases_create", ("database", row.id, row.name), after=snapshot(database))
    return Created(database, headers={"Location": f"/api/v1/databases/{row.id}", "ETag": database.etag})


async def update_database(context: Context, database_id: str, body: DatabaseUpdate, if_match: str | None) -> Database:
    row = await existing_database(context, database_id, "update")
    check_if_match(if_match, row.version)
    streams = await repository.streams_using(context.session, [row.id])
    before = snapshot(_resource(row, streams))
    if body.name is not None and body.name != row.name:
        if await repository.name_is_taken(context.session, body.name, row.id):
            raise name_taken("database", body.name)
        row.name = body.name
    if body.read_from is not None and body.read_from != row.read_from:
        _check_no_captures(row, streams)
        row.read_from = body.read_from
    _change_connection(context, row, body)
    if body.model_fields_set - {"name"}:
        # The last test was of another connection.
        row.tested_at = row.test_code = None
    row.version += 1
    row.updated_at = now()
    await _tell_engines(context, streams)
    await context.session.flush()
    database = _resource(row, streams)
    record(context, "databases_update", ("database", row.id, row.name), before, snapshot(database))
    return database


def _check_no_captures(row: DatabaseRow, streams: list[StreamRow]) -> None:
    captured = ", ".join(stream.name for stream in streams if stream.source_id == row.id)
    if captured:
        raise Problem(
            "database_in_use", f"Streams capture from {row.name}: {captured}. Their slots are at the server they read.",
            "Delete these streams first, or register the database a second time to read from the other server.",
        )  # fmt: skip


def _change_connection(context: Context, row: DatabaseRow, body: DatabaseUpdate) -> None:
    secrets = context.resources.secrets
    stored = target_of(row, context.resources)
    for field, value in body.model_dump(include=set(PLACE_FIELDS), exclude_none=True).items():
        setattr(row, field, value)
    if body.user is not None:
        row.username = body.user
    try:
        check_read_from(row.read_from, row.host, row.port, row.options)
    except ValueError as error:
        raise wrong_field("read_from", str(error)) from error
    given = body.model_dump(include=set(PEM_FIELDS), exclude_none=True)
    if given:
        row.pem = sealed_pem({**stored.pem, **given}, secrets)
        # From when they were paths: what the database has now goes before.
        row.options = {name: value for name, value in row.options.items() if name not in given}
    if body.password is not None:
        row.password_sealed = secrets.seal(body.password) if body.password else None
    else:
        check_password_stays(stored, target_of(row, context.resources))


async def _tell_engines(context: Context, streams: list[StreamRow]) -> None:
    """The desired documents hold the connection's settings: they have changed with them."""
    for engine in await repository.lock_engines(
        context.session, {name for stream in streams for name in stream.engine_ids}
    ):
        engine.desired_revision += 1


async def delete_database(context: Context, database_id: str) -> None:
    row = await existing_database(context, database_id, "delete")
    streams = await repository.streams_using(context.session, [row.id])
    if streams:
        names = ", ".join(stream.name for stream in streams)
        raise Problem("database_in_use", f"{row.name} is used by: {names}.", "Delete these streams first.")
    await context.session.delete(row)
    record(context, "databases_delete", ("database", row.id, row.name), before=snapshot(_resource(row, [])))
