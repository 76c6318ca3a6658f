"""Before a stream is made: which tables, and are both databases ready."""

from thalweg.db.models import DatabaseRow, StreamRow
from thalweg.features.streams.parameters import check_parameters
from thalweg.features.streams.schemas import (
    Parameters,
    PreflightRequest,
    StreamParameter,
    TablePreview,
    TablePreviewRequest,
)
from thalweg.features.streams.service import definitions_of
from thalweg.inspection.catalogue import read_tables
from thalweg.inspection.connection import ConnectionFailure, connected
from thalweg.inspection.matching import select_tables
from thalweg.inspection.preflight import StreamPreflight, chosen_tables, preflight_of, preflight_stream
from thalweg.inspection.schemas import Check, CheckSide, CheckStatus, Preflight
from thalweg.inspection.target import target_of
from thalweg.kernel.context import Context
from thalweg.kernel.models import FieldProblem
from thalweg.kernel.problems import Problem
from thalweg.kernel.rules import TableRules
from thalweg.workflows import repository


async def preview_tables(context: Context, body: TablePreviewRequest) -> TablePreview:
    source = await database_of(context, "/source_id", body.source_id)
    target = target_of(source, context.resources.secrets)
    try:
        async with connected(target, context.resources.settings.database_connect_timeout) as connection:
            tables = await read_tables(connection)
    except ConnectionFailure as failure:
        raise Problem(failure.code, failure.message, failure.cure, failure.sql) from failure
    chosen = [table.resource() for table in chosen_tables(tables, body.rules)]
    unmatched = select_tables(body.rules, (table.name for table in tables)).unmatched
    return TablePreview(
        tables=chosen, replicable=sum(table.replicable for table in chosen),
        bytes=sum(table.bytes for table in chosen), rows_estimated=sum(table.rows_estimated or 0 for table in chosen),
        unmatched=[f"{rule.schema_name}.{rule.table}" for rule in unmatched],
    )  # fmt: skip


async def run_preflight(context: Context, body: PreflightRequest) -> Preflight:
    source = await database_of(context, "/source_id", body.source_id)
    destination = await database_of(context, "/destination_id", body.destination_id)
    return (await preflight(context, source, destination, body.rules, body.parameters)).preflight


async def database_of(context: Context, pointer: str, database_id: str) -> DatabaseRow:
    row = await context.session.get(DatabaseRow, database_id)
    if row is None:
        message = f"There is no database with the id {database_id}."
        raise Problem(
            "invalid_request", message, "Read the list of databases for the ids that exist.",
            errors=[FieldProblem(pointer=pointer, code="unknown_id", message=message)],
        )  # fmt: skip
    return row


async def preflight(
    context: Context,
    source: DatabaseRow,
    destination: DatabaseRow,
    rules: TableRules,
    parameters: Parameters,
    of: StreamRow | None = None,
) -> StreamPreflight:
    """What the databases say, and what other streams write to the destination's tables. `of` is the stream whose rules
    shall change, None for one that shall be made."""
    definitions = definitions_of(context)
    check_parameters(definitions, parameters)
    secrets = context.resources.secrets
    result = await preflight_stream(
        target_of(source, secrets), target_of(destination, secrets), rules, _copies(definitions, parameters),
        context.resources.settings.database_connect_timeout,
        frozenset() if of is None else frozenset((table["schema"], table["table"]) for table in of.tables),
    )  # fmt: skip
    check = await _check_other_streams(context, destination, result.tables, of)
    return StreamPreflight(preflight_of([*result.preflight.checks, check]), result.tables)


def _copies(definitions: dict[str, StreamParameter], parameters: Parameters) -> bool:
    return bool(parameters.get("initial_copy", definitions["initial_copy"].default))


def not_ready(result: Preflight, consequence: str) -> Problem:
    """The problem that names each failed check; `consequence` says what was not done."""
    failed = [check for check in result.checks if check.status is CheckStatus.FAILED]
    told = "; ".join(f"{check.title} of the {check.side}" for check in failed)
    return Problem(
        "preflight_failed", f"{len(failed)} of {len(result.checks)} checks failed: {told}.",
        f"Do what each failed check says, then try again. {consequence}",
        sql="\n".join(check.sql for check in failed if check.sql) or None,
        errors=[
            FieldProblem(
                pointer=f"/{check.side}_id", code=check.id, message=f"{check.title}: {check.detail}",
                cure=check.cure, sql=check.sql,
            )
            for check in failed
        ],
    )  # fmt: skip


async def _check_other_streams(
    context: Context, destination: DatabaseRow, tables: list[tuple[str, str]], of: StreamRow | None
) -> Check:
    wanted = set(tables)
    clashes: list[str] = []
    for stream in await repository.streams_into(context.session, destination.id):
        if of is not None and stream.id == of.id:
            continue
        shared = sorted({(table["schema"], table["table"]) for table in stream.tables} & wanted)
        if shared:
            clashes.append(f"{stream.name} writes {', '.join('.'.join(name) for name in shared[:10])}")
    if not clashes:
        return Check(
            id="other_streams", side=CheckSide.DESTINATION, title="Other streams", status=CheckStatus.OK,
            detail="No other stream writes these tables.", cure=None, sql=None,
        )  # fmt: skip
    return Check(
        id="other_streams", side=CheckSide.DESTINATION, title="Other streams", status=CheckStatus.FAILED,
        detail="; ".join(clashes) + ".", cure="Exclude these tables, or delete the other stream.", sql=None,
    )  # fmt: skip
