"""Looking into registered databases: connection tests, tables, checks."""

from thalweg.db.audit import record
from thalweg.features.databases.schemas import DatabaseTestRequest
from thalweg.features.databases.service import existing_database
from thalweg.inspection.catalogue import read_tables
from thalweg.inspection.connection import ConnectionFailure, connected, test_connection
from thalweg.inspection.preflight import preflight_database
from thalweg.inspection.schemas import CheckSide, ConnectionTest, Preflight, SourceTable
from thalweg.inspection.target import Target, target_of
from thalweg.kernel.clock import now
from thalweg.kernel.context import Context
from thalweg.kernel.models import Page
from thalweg.kernel.pagination import decode_cursor, encode_cursor
from thalweg.kernel.problems import Problem


def problem_of(failure: ConnectionFailure) -> Problem:
    """Where the answer is about the database's content, not being able to read it is a problem."""
    return Problem(failure.code, failure.message, failure.cure, failure.sql)


async def test_unsaved(context: Context, body: DatabaseTestRequest) -> ConnectionTest:
    password = body.password
    if not password and body.database_id is not None:
        stored = target_of(await existing_database(context, body.database_id), context.resources.secrets)
        # The stored password is for the stored server: it must not be sent to another one.
        if (stored.host, stored.port, stored.user) == (body.host, body.port, body.user):
            password = stored.password
    await context.release()
    target = Target(body.host, body.port, body.dbname, body.user, password, body.sslmode, body.options)
    return await test_connection(target, context.resources.settings.database_connect_timeout)


async def test_database(context: Context, database_id: str) -> ConnectionTest:
    row = await existing_database(context, database_id)
    target = target_of(row, context.resources.secrets)
    await context.release()
    result = await test_connection(target, context.resources.settings.database_connect_timeout)
    row, tested = await existing_database(context, database_id, "update"), row.version
    if row.version == tested:  # else it was the test of other settings
        row.tested_at, row.test_code = now(), result.code
        row.server_version = result.version or row.server_version
    record(context, "databases_test", ("database", row.id, row.name), after={"code": result.code})
    return result


async def list_tables(
    context: Context, database_id: str, search: str | None, limit: int, cursor: str | None
) -> Page[SourceTable]:
    start = tuple(str(part) for part in decode_cursor(cursor, str, str)) if cursor is not None else None
    target = target_of(await existing_database(context, database_id), context.resources.secrets)
    await context.release()
    try:
        async with connected(target, context.resources.settings.database_connect_timeout) as connection:
            tables = await read_tables(connection)
    except ConnectionFailure as failure:
        raise problem_of(failure) from failure
    wanted = sorted(
        (table for table in tables if search is None or search.lower() in table.shown.lower()),
        key=lambda table: table.name,
    )
    rest = [table for table in wanted if start is None or table.name > start]
    following = encode_cursor(*rest[limit - 1].name) if len(rest) > limit else None
    return Page[SourceTable](items=[table.resource() for table in rest[:limit]], next_cursor=following)


async def preflight(context: Context, database_id: str, side: CheckSide) -> Preflight:
    target = target_of(await existing_database(context, database_id), context.resources.secrets)
    await context.release()
    return await preflight_database(target, side, context.resources.settings.database_connect_timeout)
