"""Reading and changing streams. Requests write what is desired; the collector makes it so."""

from thalweg.db.audit import record
from thalweg.db.models import DestinationRow, StreamRow
from thalweg.db.pages import page_by_name
from thalweg.db.streams import whole_streams
from thalweg.features.streams import repository
from thalweg.features.streams.parameters import check_parameters, check_rights, load_parameters, needs_restart
from thalweg.features.streams.presentation import stream_of, summary_of, without_details
from thalweg.features.streams.schemas import (
    Json,
    Stream,
    StreamParameter,
    StreamParameterList,
    StreamSummary,
    StreamUpdate,
)
from thalweg.kernel.clock import now
from thalweg.kernel.context import Context
from thalweg.kernel.etags import check_if_match
from thalweg.kernel.lifecycle import DesiredStatus, ObservedStatus
from thalweg.kernel.models import Page
from thalweg.kernel.principal import Role
from thalweg.kernel.problems import Problem, name_taken, not_found
from thalweg.kernel.rules import TableRules
from thalweg.kernel.transformations import new_mask_key
from thalweg.live.latest import live_of


def definitions_of(context: Context) -> dict[str, StreamParameter]:
    return load_parameters(context.resources.settings.contract_directory)


def list_parameters(context: Context) -> StreamParameterList:
    return StreamParameterList(parameters=list(definitions_of(context).values()))


def desired_facts(row: StreamRow) -> Json:
    """The facts that users can change, for the audit log."""
    return {
        "name": row.name, "source_id": row.source_id, "capture_engine_id": row.capture_engine_id,
        "capture_kind": row.capture_kind,
        "destinations": [destination_facts(destination) for destination in row.destinations],
        "rules": row.rules, "parameters": row.parameters,
        "desired_status": row.desired_status, "force": row.force,
    }  # fmt: skip


def destination_facts(destination: DestinationRow) -> Json:
    return {
        "id": destination.id, "database": destination.database.name, "database_id": destination.database_id,
        "engine_id": destination.engine_id, "parameters": destination.parameters, "row_rules": destination.row_rules,
        "desired_status": destination.desired_status, "force": destination.force,
    }  # fmt: skip


async def existing_stream(context: Context, stream_id: str, *, lock: bool = False) -> StreamRow:
    row = await repository.stream_by_id(context.session, stream_id, lock=lock)
    if row is None:
        raise not_found("stream", stream_id)
    return row


async def list_streams(context: Context, limit: int, cursor: str | None) -> Page[StreamSummary]:
    rows, following = await page_by_name(context.session, whole_streams(), StreamRow.name, StreamRow.id, limit, cursor)
    live, _ = await live_of(context, rows)
    at = now()
    return Page[StreamSummary](items=[summary_of(row, live[row.id], at) for row in rows], next_cursor=following)


async def get_stream(context: Context, stream_id: str) -> Stream:
    row = await existing_stream(context, stream_id)
    return await shown(context, row)


async def shown(context: Context, row: StreamRow) -> Stream:
    live, _ = await live_of(context, [row])
    stream = stream_of(row, live[row.id], definitions_of(context), now())
    return stream if context.principal.role.covers(Role.OPERATOR) else without_details(stream)


def existing_destination(row: StreamRow, destination_id: str) -> DestinationRow:
    destination = row.destination(destination_id)
    if destination is None:
        raise not_found("destination", destination_id)
    return destination


def being_deleted() -> Problem:
    return Problem("invalid_transition", "The stream is being deleted.", "Create a new stream.")


async def stream_to_change(context: Context, stream_id: str, if_match: str | None, *, lock: bool = False) -> StreamRow:
    """The stream, if it is as the client has read it and is not being deleted."""
    row = await existing_stream(context, stream_id, lock=lock)
    check_if_match(if_match, row.version)
    if row.desired_status == DesiredStatus.DROPPED:
        raise being_deleted()
    return row


async def destination_to_change(
    context: Context, stream_id: str, destination_id: str, if_match: str | None, *, lock: bool = False
) -> tuple[StreamRow, DestinationRow]:
    """The destination with its stream, if the stream is as the client has read it and neither is being deleted."""
    row = await existing_stream(context, stream_id, lock=lock)
    check_if_match(if_match, row.version)
    return row, present_destination(row, destination_id)


def present_destination(row: StreamRow, destination_id: str) -> DestinationRow:
    """Neither it nor its stream is being deleted."""
    destination = existing_destination(row, destination_id)
    if DesiredStatus.DROPPED in (row.desired_status, destination.desired_status):
        raise being_deleted()
    return destination


async def change_stream(
    context: Context, stream_id: str, body: StreamUpdate, if_match: str | None, tables: list[Json] | None,
    accepted: Json,
) -> StreamRow:  # fmt: skip
    """`tables` are what new rules have been resolved to, None when the rules stay; `accepted`, for the audit log, is
    what somebody wants all the same."""
    row = await stream_to_change(context, stream_id, if_match, lock=True)
    before, tables_before, key_before = desired_facts(row), row.tables, row.mask_key_sealed
    if body.name is not None and body.name != row.name:
        if await repository.name_is_taken(context.session, body.name, row.id):
            raise name_taken("stream", body.name)
        row.name = body.name
    if body.parameters:
        _set_parameters(context, row, body)
    if body.capture_kind is not None:
        row.capture_kind = body.capture_kind
    if body.rules is not None and tables is not None:
        row.rules, row.tables = body.rules.model_dump(by_alias=True), tables
        keep_mask_key(context, row, body.mask_key, body.rules)
    if desired_facts(row) != before or row.tables != tables_before or row.mask_key_sealed != key_before:
        await repository.next_revisions(context.session, row)
    row.version += 1
    row.updated_at = now()
    await context.session.flush()
    facts = {**desired_facts(row), **accepted}
    if row.mask_key_sealed != key_before:
        facts["mask_key"] = "changed"
    record(context, "streams_update", ("stream", row.id, row.name), before, facts)
    return row


def keep_mask_key(context: Context, row: StreamRow, given: str | None, rules: TableRules) -> None:
    """A key that was not given is made for the first mask that needs one, and stays. The same one again changes
    nothing, not even the form in which it is kept."""
    secrets = context.resources.secrets
    stored = None if row.mask_key_sealed is None else secrets.open(row.mask_key_sealed)
    if given is None and stored is None and any(transformation.needs_key for transformation in rules.transformations):
        given = new_mask_key()
    if given is not None and given != stored:
        row.mask_key_sealed = secrets.seal(given)


def _set_parameters(context: Context, row: StreamRow, body: StreamUpdate) -> None:
    definitions, changes = definitions_of(context), body.parameters or {}
    changed = {**row.parameters, **changes}
    check_rights(context.principal, row.parameters, changed)
    check_parameters(definitions, changes)
    if needs_restart(definitions, row.parameters, changed) and row.observed_status != ObservedStatus.DISABLED:
        row.restart_needed = True
    row.parameters = changed
