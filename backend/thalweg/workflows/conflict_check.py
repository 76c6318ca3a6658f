"""Checks new values of conflict_detection, conflict_handlers and statement_handlers of a stream that is there, as its
creation does."""

from thalweg.db.models import DestinationRow, StreamRow
from thalweg.features.streams.schemas import Parameters
from thalweg.inspection.checks import with_place
from thalweg.inspection.compared_columns import inspect_conflicts
from thalweg.inspection.preflight import preflight_of
from thalweg.inspection.schemas import CheckSide
from thalweg.inspection.target import target_of
from thalweg.kernel.conflict_detection import DETECTION, compared_tables
from thalweg.kernel.conflict_handlers import HANDLERS, conflict_handlers, looks_at_columns
from thalweg.kernel.context import Context
from thalweg.kernel.rules import TableRules
from thalweg.kernel.statement_handlers import STATEMENTS, statement_handlers
from thalweg.workflows.stream_preparation import Places, not_ready

NAMES = frozenset({DETECTION, HANDLERS, STATEMENTS})


async def check_conflicts(
    context: Context, row: StreamRow, wanted: list[tuple[DestinationRow, Parameters]], changed: Parameters
) -> None:
    """`wanted`: destinations with all of their parameters, checked; `changed`: those of the request. Raises
    preflight_failed with each failed check. Looks into the databases, which may take seconds: nothing is locked
    meanwhile."""
    plans = [
        (destination.database, target_of(destination.database, context.resources), compared, handlers, statements)
        for destination, parameters in wanted
        for compared in [compared_tables(parameters.get(DETECTION, [])) if DETECTION in changed else []]
        for handlers in [conflict_handlers(parameters.get(HANDLERS, [])) if HANDLERS in changed else []]
        for statements in [statement_handlers(parameters.get(STATEMENTS, [])) if STATEMENTS in changed else []]
        if compared or statements or any(looks_at_columns(handler) for handler in handlers)
    ]
    if not plans:
        return
    source, resources = row.source, context.resources
    names = {(table["schema"], table["table"]) for table in row.tables}
    rules = TableRules.model_validate(row.rules)
    timeout = resources.settings.database_connect_timeout
    at_source = target_of(source, resources)
    await context.release()
    checks = []
    for database, target, compared, handlers, statements in plans:
        found = await inspect_conflicts(at_source, target, compared, handlers, statements, names, rules, timeout)
        for check in found:
            placed = with_place(check, source if check.side is CheckSide.SOURCE else database)
            checks.append(placed.model_copy(update={"database_id": database.id if len(plans) > 1 else None}))
    preflight = preflight_of(checks)
    if not preflight.ready:
        names_of = {database.id: database.name for database, *_ in plans}
        pointer = f"/parameters/{next(name for name in (DETECTION, HANDLERS, STATEMENTS) if name in changed)}"
        places = Places({"": pointer, **dict.fromkeys(names_of, pointer)}, pointer, names=names_of)
        raise not_ready(preflight, "Nothing was changed.", places)
