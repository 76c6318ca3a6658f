"""Checks new values of the parameter conflict_detection of a stream that is there, as its creation checks them."""

from thalweg.db.models import DestinationRow, StreamRow
from thalweg.features.streams.schemas import Parameters
from thalweg.inspection.checks import with_place
from thalweg.inspection.compared_columns import inspect_compared
from thalweg.inspection.preflight import preflight_of
from thalweg.inspection.schemas import CheckSide
from thalweg.inspection.target import target_of
from thalweg.kernel.conflict_detection import DETECTION, compared_tables
from thalweg.kernel.context import Context
from thalweg.kernel.rules import TableRules
from thalweg.workflows.stream_preparation import Places, not_ready


async def check_detection(context: Context, row: StreamRow, wanted: list[tuple[DestinationRow, Parameters]]) -> None:
    """`wanted`: destinations with all of their parameters, checked. Raises preflight_failed with each failed check.
    Looks into the databases, which may take seconds: nothing is locked meanwhile."""
    plans = [
        (destination.database, compared)
        for destination, parameters in wanted
        if (compared := compared_tables(parameters.get(DETECTION, [])))
    ]
    if not plans:
        return
    source, resources = row.source, context.resources
    names = {(table["schema"], table["table"]) for table in row.tables}
    rules = TableRules.model_validate(row.rules)
    timeout = resources.settings.database_connect_timeout
    targets = [(database, target_of(database, resources), compared) for database, compared in plans]
    at_source = target_of(source, resources)
    await context.release()
    checks = []
    for database, target, compared in targets:
        found = await inspect_compared(at_source, target, compared, names, rules, timeout)
        for check in found:
            placed = with_place(check, source if check.side is CheckSide.SOURCE else database)
            checks.append(placed.model_copy(update={"database_id": database.id if len(targets) > 1 else None}))
    preflight = preflight_of(checks)
    if not preflight.ready:
        names_of = {database.id: database.name for database, _, _ in targets}
        pointer = f"/parameters/{DETECTION}"
        places = Places({"": pointer, **dict.fromkeys(names_of, pointer)}, pointer, names=names_of)
        raise not_ready(preflight, "Nothing was changed.", places)
