"""An operator's actions on tables that have changed at the source."""

from fastapi import Response

from thalweg.db.audit import record
from thalweg.db.models import StreamRow
from thalweg.db.operations import OperationAccepted, OperationKind, ProgressUnit, begin, start_operation
from thalweg.features.streams import repository
from thalweg.features.streams.error_queue import asked, engine_of
from thalweg.features.streams.parameters import with_table
from thalweg.features.streams.presentation import tables_of
from thalweg.features.streams.schemas import Json, Stream, TableRef, TableTrouble, TroubleResolution
from thalweg.features.streams.service import (
    being_deleted,
    definitions_of,
    desired_facts,
    existing_stream,
    present_destination,
    shown,
)
from thalweg.features.streams.table_schemas import TableCopy
from thalweg.inspection.matching import matches
from thalweg.kernel.clock import now
from thalweg.kernel.context import Context
from thalweg.kernel.lifecycle import DesiredStatus, OperationState
from thalweg.kernel.problems import Problem
from thalweg.kernel.renames import clashes, is_reserved, name_there
from thalweg.kernel.rules import TableRules


async def copy(
    context: Context, stream_id: str, destination_id: str, body: TableCopy, response: Response
) -> OperationAccepted:
    """The engine does it at once; the operation is there to be watched."""
    row = await resolve(context, stream_id, destination_id, body, TroubleResolution.COPY, body.reason)
    observed: Json = next(
        (
            destination
            for destination in (row.observed or {}).get("destinations", [])
            if destination["id"] == destination_id
        ),
        {},
    )
    copied_at = (observed.get("instantiation") or {}).get("finished_at")
    operation = start_operation(
        context.session, OperationKind.TABLE_COPY, row.id, row.name, row.changed_revision, context.principal.name,
        ProgressUnit.ROWS, None, destination=row.destination(destination_id),
        table={
            "schema": body.schema_name, "table": body.table, "copied_at": copied_at,
            "there": ".".join(_there(row, body)),
        },
    )  # fmt: skip
    begin(operation, operation.created_at)
    await context.session.flush()
    response.headers["Location"] = f"/api/v1/operations/{operation.id}"
    return OperationAccepted(operation_id=operation.id, stream_id=row.id, state=OperationState.RUNNING)


def _there(row: StreamRow, body: TableRef) -> tuple[str, str]:
    """The table's name at the destinations."""
    own = (body.schema_name, body.table)
    known = (table for table in row.tables if (table["schema"], table["table"]) == own)
    return next((name_there(table) for table in known), own)


async def resolve(
    context: Context, stream_id: str, destination_id: str, body: TableRef, how: TroubleResolution,
    reason: str | None = None,
) -> StreamRow:  # fmt: skip
    """Straight to the engine, which records it at the destination: an event, not a state that could be desired."""
    row, client = await engine_of(context, stream_id, destination_id)
    present_destination(row, destination_id)
    action = f"stream_tables_{how}"
    facts = {"destination_id": destination_id, "schema": body.schema_name, "table": body.table}
    if reason is not None:
        facts["reason"] = reason
    async with asked(context, row, action, facts):
        await client.resolve_table(row.id, destination_id, how, body.schema_name, body.table)
    return row


async def follow(context: Context, stream_id: str, body: TableRef) -> Stream:
    """The engine knows the table by its relation id: named anew in the stream, it is renamed at the destinations."""
    row, trouble = await _troubled(context, stream_id, body, TroubleResolution.FOLLOW)
    now_called = trouble.renamed_to.model_dump(by_alias=True) if trouble.renamed_to else None
    return await _replace(context, row, body, now_called)


async def remove(context: Context, stream_id: str, body: TableRef) -> Stream:
    row, _ = await _troubled(context, stream_id, body, TroubleResolution.REMOVE)
    return await _replace(context, row, body, None)


async def _troubled(
    context: Context, stream_id: str, body: TableRef, how: TroubleResolution
) -> tuple[StreamRow, TableTrouble]:
    row = await existing_stream(context, stream_id, lock=True)
    if row.desired_status == DesiredStatus.DROPPED:
        raise being_deleted()
    for table in tables_of(row):
        if (table.schema_name, table.table) == (body.schema_name, body.table):
            if table.trouble is not None and how in table.trouble.resolutions:
                return row, table.trouble
            break
    raise Problem(
        "conflict", f"{body.schema_name}.{body.table} is not a table of the stream that can be resolved this way.",
        "Read the stream's tables again, and choose one of the trouble's resolutions.",
    )  # fmt: skip


def _is(table: Json, named: Json) -> bool:
    return (table["schema"], table["table"]) == (named["schema"], named["table"])


def _replaced(tables: list[Json], own: Json, by: Json | None) -> list[Json]:
    """With the other name, and whatever else is said of the table."""
    renamed = [{**table, **by} if by is not None and _is(table, own) else table for table in tables]
    return [table for table in renamed if not _is(table, own)]


def _hits(rule: Json, table: Json) -> bool:
    return matches(rule["schema"], table["schema"]) and matches(rule["table"], table["table"])


def _included(rules: list[Json], own: Json, by: Json | None, tables: list[Json]) -> list[Json]:
    """`tables` are the stream's from now on. No rule stays that had matched `own`, and matches none of them; nor is one
    added for what another matches."""
    replaced = _replaced(rules, own, by)
    include = [rule for place, rule in enumerate(replaced) if rule not in replaced[:place]]
    if by is not None and not any(_hits(rule, by) for rule in include):
        include.append(by)
    return [rule for rule in include if not _hits(rule, own) or any(_hits(rule, table) for table in tables)]


def _check_rules_stay(row: StreamRow, schemas: set[str]) -> None:
    """A table that moves keeps the rules that concern it; those of another schema would be unchecked."""
    rules = [
        *row.rules.get("row_rules", []),
        *(rule for destination in row.destinations for rule in destination.row_rules),
    ]
    ruled = sorted({rule["schema"] for rule in rules if rule["schema"] in schemas and rule["table"] is None})
    if ruled:
        raise Problem(
            "conflict", f"The table would come under other rules: there are rules of the schema {' and '.join(ruled)}.",
            "Give the tables of this schema rules of their own instead, follow the table, and then write the rules of "
            "the schema again.",
        )  # fmt: skip


def _named(row: StreamRow) -> list[Json]:
    """The stream's tables with their names at the destinations, which may depend on those at the source."""
    names = TableRules.model_validate(row.rules).names
    own = [(table["schema"], table["table"]) for table in row.tables]
    if found := clashes(own, names, own):
        raise Problem("conflict", " ".join(found), "Give one of them another name at the destinations first.")
    return names.with_names(row.tables)


def _replace_in_parameters(context: Context, row: StreamRow, own: Json, by: Json | None) -> None:
    """A handler, policy or comparison of a table is in force under its present name only. Engines take up what is not
    live, too: they begin anew with other tables."""
    definitions, before = definitions_of(context), (own["schema"], own["table"])
    after = None if by is None else (by["schema"], by["table"])
    row.parameters = with_table(definitions, row.parameters, before, after)
    for destination in row.destinations:
        destination.parameters = with_table(definitions, destination.parameters, before, after)


async def _replace(context: Context, row: StreamRow, body: TableRef, by: Json | None) -> Stream:
    """In the rules and parameters that name the table itself, and among the stream's tables. A pattern stays as it is,
    unless it would match none of these any more."""
    before = desired_facts(row)
    if by is not None and any(_is(table, by) for table in row.tables):
        raise Problem(
            "conflict", f"The stream has a table {by['schema']}.{by['table']} already.",
            "Resolve that table's trouble first.",
        )  # fmt: skip
    if by is not None and is_reserved(by["schema"]):
        raise Problem(
            "conflict", f"{by['schema']} is a schema of PostgreSQL or of Thalweg: nothing is replicated there.",
            "Give the table another schema at the source, and then follow it. Or take it out of the stream's rules.",
        )  # fmt: skip
    own = {"schema": body.schema_name, "table": body.table}
    if by is not None and by["schema"] != body.schema_name:
        _check_rules_stay(row, {body.schema_name, by["schema"]})
    row.tables = _replaced(row.tables, own, by)
    include = _included(row.rules["include"], own, by, row.tables)
    members = ("inserts_only", "row_rules", "transformations", "renames")
    by_name = {name: _replaced(row.rules.get(name, []), own, by) for name in members}
    row.rules = {**row.rules, "include": include, **by_name}
    for destination in row.destinations:
        destination.row_rules = _replaced(destination.row_rules, own, by)
    _replace_in_parameters(context, row, own, by)
    if not row.tables or not row.rules["include"]:
        raise Problem("conflict", "It is the stream's only table.", "Delete the stream instead.")
    row.tables = _named(row)
    await repository.next_revisions(context.session, row)
    row.version += 1
    row.updated_at = now()
    await context.session.flush()
    record(context, "streams_update", ("stream", row.id, row.name), before, desired_facts(row))
    return await shown(context, row)
