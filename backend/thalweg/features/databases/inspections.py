"""Looking into registered databases: connection tests, tables, checks."""

from dataclasses import replace

from thalweg.db.audit import record
from thalweg.features.databases.credentials import check_password_stays, with_service
from thalweg.features.databases.schemas import DatabaseTestRequest, ReadFrom
from thalweg.features.databases.service import existing_database
from thalweg.inspection.catalogue import read_columns_of, read_tables
from thalweg.inspection.checks import with_place
from thalweg.inspection.connection import connected
from thalweg.inspection.failure import ConnectionFailure
from thalweg.inspection.preflight import preflight_database
from thalweg.inspection.schemas import CheckSide, ConnectionTest, Preflight, SourceColumn, SourceColumns, SourceTable
from thalweg.inspection.standby import test_connection
from thalweg.inspection.target import Target, target_of
from thalweg.kernel.clock import now
from thalweg.kernel.context import Context
from thalweg.kernel.models import Page
from thalweg.kernel.pagination import decode_cursor, encode_cursor
from thalweg.kernel.pem import PEM_FIELDS
from thalweg.kernel.problems import Problem


def problem_of(failure: ConnectionFailure) -> Problem:
    """The problem of an answer about the database's content, when the database cannot be read."""
    return Problem(failure.code, failure.message, failure.cure, failure.sql)


async def test_unsaved(context: Context, body: DatabaseTestRequest) -> ConnectionTest:
    target = await _target_of_test(context, body)
    await context.release()
    result = await test_connection(target, context.resources.settings.database_connect_timeout)
    record(
        context, "databases_test_unsaved", ("database", body.database_id or "", target.host),
        after={
            "host": target.host, "port": target.port, "dbname": target.dbname, "user": target.user, "code": result.code
        },
    )  # fmt: skip
    return result


async def _target_of_test(context: Context, body: DatabaseTestRequest) -> Target:
    """Fills empty fields with the stored settings; the password only for the place that it was given for."""
    body = with_service(context, body)
    pem = {name: getattr(body, name) for name in PEM_FIELDS if getattr(body, name)}
    stored = None
    if body.database_id is not None:
        stored = target_of(await existing_database(context, body.database_id), context.resources)
        pem = {**stored.pem, **pem}
    target = Target(
        body.host, body.port, body.dbname, body.user, body.password, body.sslmode, body.options, pem,
        context.resources.settings.database_networks, reads_standby=body.read_from == ReadFrom.STANDBY,
    )  # fmt: skip
    if stored is not None and not body.password:
        check_password_stays(stored, target)
        target = replace(target, password=stored.password)
    return target


async def test_database(context: Context, database_id: str) -> ConnectionTest:
    row = await existing_database(context, database_id)
    target = target_of(row, context.resources)
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
    target = target_of(await existing_database(context, database_id), context.resources)
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


async def list_columns(context: Context, database_id: str, schema: str, table: str) -> SourceColumns:
    target = target_of(await existing_database(context, database_id), context.resources)
    await context.release()
    try:
        async with connected(target, context.resources.settings.database_connect_timeout) as connection:
            columns = await read_columns_of(connection, schema, table)
    except ConnectionFailure as failure:
        raise problem_of(failure) from failure
    if columns is None:
        raise Problem(
            "not_found", f"The database has no table {schema}.{table}.", "Read its tables for the names that exist."
        )
    shown = [SourceColumn(name=column.name, type=column.type) for column in columns if not column.generated]
    return SourceColumns(columns=shown)


async def preflight(context: Context, database_id: str, side: CheckSide) -> Preflight:
    row = await existing_database(context, database_id)
    target = target_of(row, context.resources)
    await context.release()
    result = await preflight_database(target, side, context.resources.settings.database_connect_timeout)
    return result.model_copy(update={"checks": [with_place(check, row) for check in result.checks]})
