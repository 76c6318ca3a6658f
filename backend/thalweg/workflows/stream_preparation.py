"""Before a stream is made: which tables, and are all databases ready."""

import asyncio
from dataclasses import dataclass, field, replace

from thalweg.db.models import DatabaseRow, EngineRow, StreamRow
from thalweg.engine_client.mining_limits import WAL_ARCHIVE
from thalweg.features.streams.parameters import check_destination_parameters, check_parameters, check_rights
from thalweg.features.streams.schemas import (
    DestinationCreate,
    Json,
    Parameters,
    PreflightRequest,
    StreamParameter,
    TablePreview,
    TablePreviewRequest,
)
from thalweg.features.streams.service import definitions_of
from thalweg.inspection.carried_code import CHECK as CARRIED_CODE
from thalweg.inspection.carried_code import AskedCode
from thalweg.inspection.catalogue import Table, read_tables
from thalweg.inspection.checks import Checklist, with_consents, with_place
from thalweg.inspection.connection import connected
from thalweg.inspection.failure import ConnectionFailure
from thalweg.inspection.inserts_only import ask_for_what_was_given_up
from thalweg.inspection.matching import select_tables
from thalweg.inspection.preflight import (
    DestinationTarget,
    RuleProblems,
    StreamPreflight,
    chosen_tables,
    preflight_of,
    preflight_stream,
    stops,
)
from thalweg.inspection.schemas import Check, CheckSide, CheckStatus, Preflight
from thalweg.inspection.target import Target, target_of
from thalweg.kernel.capture_kinds import CaptureKind
from thalweg.kernel.conflict_detection import DETECTION, compared_tables
from thalweg.kernel.conflict_handlers import HANDLERS, conflict_handlers
from thalweg.kernel.context import Context
from thalweg.kernel.models import FieldProblem
from thalweg.kernel.outside import outside
from thalweg.kernel.principal import Principal, Role
from thalweg.kernel.problems import Problem
from thalweg.kernel.renames import name_there
from thalweg.kernel.row_rules import ScopedRules
from thalweg.kernel.rules import TableRules
from thalweg.kernel.statement_handlers import STATEMENTS, statement_handlers
from thalweg.kernel.sums import known_sum
from thalweg.workflows import repository
from thalweg.workflows.archive_check import check_archive
from thalweg.workflows.renames import CHANGED as CHANGED_NAMES
from thalweg.workflows.renames import CHECK as RENAMES
from thalweg.workflows.renames import ask_for_changed_names, check_renames
from thalweg.workflows.row_rules import CHANGED as CHANGED_ROW_RULES
from thalweg.workflows.row_rules import DESTINATION, STREAM, ask_for_changed_rules, check_row_rules, with_rules
from thalweg.workflows.stream_placement import place
from thalweg.workflows.stream_rehearsal import rehearse
from thalweg.workflows.transformations import CHANGED as CHANGED_TRANSFORMATIONS
from thalweg.workflows.transformations import (
    CHANGED_KEY,
    ask_for_changed_key,
    ask_for_changed_transformations,
    check_transformations,
    with_transformations,
)
from thalweg.workflows.transformations import CHECK as TRANSFORMATIONS


async def preview_tables(context: Context, body: TablePreviewRequest) -> TablePreview:
    source = await database_of(context, "/source_id", body.source_id)
    target = target_of(source, context.resources)
    await context.release()
    tables = await _read_tables(context, target)
    given_up = body.rules.given_up
    chosen = [table.resource(table.name in given_up) for table in await chosen_tables(tables, body.rules)]
    unmatched = (await select_tables(body.rules, [table.name for table in tables])).unmatched
    return TablePreview(
        tables=chosen, replicable=sum(table.replicable for table in chosen),
        bytes=sum(table.bytes for table in chosen), rows_estimated=known_sum(table.rows_estimated for table in chosen),
        unmatched=[f"{rule.schema_name}.{rule.table}" for rule in unmatched],
    )  # fmt: skip


async def tables_at(context: Context, source: Target, rules: TableRules) -> list[tuple[str, str]]:
    """The names of those that the rules choose."""
    return [table.name for table in await chosen_tables(await _read_tables(context, source), rules)]


async def _read_tables(context: Context, source: Target) -> list[Table]:
    try:
        async with connected(source, context.resources.settings.database_connect_timeout) as connection:
            return await read_tables(connection)
    except ConnectionFailure as failure:
        raise Problem(failure.code, failure.message, failure.cure, failure.sql) from failure


async def run_preflight(context: Context, body: PreflightRequest) -> Preflight:
    source = await database_of(context, "/source_id", body.source_id)
    destinations = await planned(context, body.destinations, body.parameters)
    capture: EngineRow | None = None
    applies: list[EngineRow] | Problem
    try:
        placement = await place(context, body.capture_engine_id, body.destinations)
        capture, applies = placement.capture, placement.applies
    except Problem as problem:
        applies = problem
    destinations = with_engines(destinations, applies)
    result = await preflight(
        context, source, capture, destinations, body.rules, body.parameters, body.accept, kind=body.capture_kind
    )
    return result.preflight


@dataclass(frozen=True)
class Planned:
    """A destination to check. `engine` is the one that applies, or why it is not known; `own` are the tables that the
    stream replicates there already."""

    database: DatabaseRow
    parameters: Parameters
    own: frozenset[tuple[str, str]] = frozenset()
    engine: EngineRow | Problem | None = None
    row_rules: list[ScopedRules] = field(default_factory=list)


def with_engines(destinations: list[Planned], applies: list[EngineRow] | Problem) -> list[Planned]:
    if isinstance(applies, Problem):
        return [replace(destination, engine=applies) for destination in destinations]
    return [replace(destination, engine=engine) for destination, engine in zip(destinations, applies, strict=True)]


async def planned(context: Context, destinations: list[DestinationCreate], parameters: Parameters) -> list[Planned]:
    """Raises invalid_request that names the field."""
    check_rights(context.principal, {}, parameters)
    found: list[Planned] = []
    for number, destination in enumerate(destinations):
        pointer = f"/destinations/{number}"
        database = await database_of(context, f"{pointer}/database_id", destination.database_id)
        if database.id in (other.database.id for other in found):
            raise twice(f"{pointer}/database_id", database)
        together = {**parameters, **destination.parameters}
        check_rights(context.principal, {}, together, pointer if STATEMENTS in destination.parameters else "")
        check_destination_parameters(definitions_of(context), destination.parameters, pointer)
        found.append(Planned(database, together, row_rules=destination.row_rules))
    return found


def twice(pointer: str, database: DatabaseRow) -> Problem:
    message, cure = f"{database.name} is a destination of this stream already.", "Name each database once."
    error = FieldProblem(pointer=pointer, code="duplicate", message=message, cure=cure)
    return Problem("invalid_request", message, cure, errors=[error])


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
    capture: EngineRow | None,
    destinations: list[Planned],
    rules: TableRules,
    parameters: Parameters,
    accept: list[str],
    of: StreamRow | None = None,
    chosen: frozenset[tuple[str, str]] | None = None,
    mask_key: str | None = None,
    kind: CaptureKind | None = None,
) -> StreamPreflight:
    """Reads the databases, and what other streams write to the destinations' tables. `capture` is None where the
    engines are not known; `of` is the stream to change, None for a new one; `chosen` are its tables when the rules do
    not change; `mask_key` is its new one, None where it stays; `kind` is its kind of capture, None where a stream
    that there is keeps its own."""
    definitions = definitions_of(context)
    check_parameters(definitions, parameters)
    plugin = str(parameters.get("source_plugin", definitions["source_plugin"].default))
    former = None if of is None else CaptureKind(of.capture_kind)
    kind = kind or former or CaptureKind.LOGICAL
    decodes_anew = kind is CaptureKind.LOGICAL and kind is not former
    await context.release()
    result = await preflight_stream(
        target_of(source, context.resources),
        [
            DestinationTarget(
                destination.database.id,
                target_of(destination.database, context.resources),
                _copies(definitions, destination.parameters),
                destination.own,
                _accepted_code(of),
                compared_tables(destination.parameters.get(DETECTION, [])),
                conflict_handlers(destination.parameters.get(HANDLERS, [])),
                statement_handlers(destination.parameters.get(STATEMENTS, [])),
                _names_before(of),
            )
            for destination in destinations
        ],
        rules, plugin if decodes_anew else "",
        context.resources.settings.database_connect_timeout, chosen,
        of.id if of is not None else "", kind,
    )  # fmt: skip
    checks = [*result.preflight.checks, *_changed(context, of, result.tables, rules, mask_key)]
    if kind is CaptureKind.WAL and capture is not None:
        checks += check_archive(parameters.get(WAL_ARCHIVE, ""), capture)
    # Thousands of tables take a while: meanwhile the API answers others.
    outside("a thread")
    named, problems = await asyncio.to_thread(check_renames, result.tables, rules.renames)
    checks += named
    rule_problems: RuleProblems = {(RENAMES, None): problems}
    if capture is not None and _may_ask_source(checks):
        asked = target_of(source, context.resources)
        found, of_rules = await _check_rules(context, capture, asked, destinations, result.tables, rules)
        checks += found
        rule_problems |= of_rules
    for destination in destinations:
        database_id = destination.database.id if len(destinations) > 1 else None
        if not problems and _may_rehearse(checks, database_id):
            tables = [name for name in result.tables if name in result.replicable - destination.own]
            rehearsed = await _rehearse(
                context, destination, source, rules.names.with_names(_copied_tables(tables, rules))
            )
            checks += [check.model_copy(update={"database_id": database_id}) for check in rehearsed]
    for destination in destinations:
        database_id = destination.database.id if len(destinations) > 1 else None
        there = [rules.names.of(name) for name in result.tables]
        check = await _check_other_streams(context, destination.database, there, of)
        checks.append(check.model_copy(update={"database_id": database_id}))
    checks = [_placed(check, source, destinations) for check in with_consents(checks, accept)]
    _check_right_to_accept(context.principal, checks)
    return replace(result, preflight=preflight_of(checks), rule_problems=rule_problems)


def _check_right_to_accept(principal: Principal, checks: list[Check]) -> None:
    """Code of the source runs with the rights of a powerful user at the destination, as statement_handlers do."""
    accepts = any(check.id == CARRIED_CODE and check.accepted for check in checks)
    if accepts and not principal.role.covers(Role.ADMIN):
        message = (
            "Only administrators may accept carried_code: the destination would execute code of the source's "
            f"definitions with all rights of the stream's user there. You are {principal.role}."
        )
        cure = "Ask an admin to do this, or use an API token that has that role. Or follow the check's cure."
        error = FieldProblem(pointer="/accept", code="permission_denied", message=message, cure=cure)
        raise Problem("permission_denied", message, cure, errors=[error])


def _placed(check: Check, source: DatabaseRow, destinations: list[Planned]) -> Check:
    """With the database in which its SQL is to be run."""
    if check.side is CheckSide.SOURCE:
        return with_place(check, source)
    databases = [
        destination.database for destination in destinations if check.database_id in (None, destination.database.id)
    ]
    return with_place(check, databases[0])


async def _check_rules(
    context: Context, capture: EngineRow, source: Target, destinations: list[Planned],
    names: list[tuple[str, str]], rules: TableRules,
) -> tuple[list[Check], RuleProblems]:  # fmt: skip
    """The rules of the stream, which all its engines need, and those of each destination."""
    tables = _copied_tables(names, rules)
    applying = [candidate.engine for candidate in destinations if isinstance(candidate.engine, EngineRow)]
    engines = [capture, *(engine for engine in applying if engine.id != capture.id)]
    checks, problems = await check_row_rules(context, engines, source, tables, rules.row_rules, STREAM)
    by_check: RuleProblems = {(STREAM.check, None): problems}
    found, problems = await check_transformations(context, engines, source, tables, rules.transformations)
    checks += found
    by_check[TRANSFORMATIONS, None] = problems
    for destination in destinations:
        database_id = destination.database.id if len(destinations) > 1 else None
        applies = destination.engine
        engines = [capture, *([applies] if isinstance(applies, EngineRow) and applies.id != capture.id else [])]
        found, problems = await check_row_rules(context, engines, source, tables, destination.row_rules, DESTINATION)
        checks += [check.model_copy(update={"database_id": database_id}) for check in found]
        by_check[DESTINATION.check, database_id] = problems
    return checks, by_check


def desired_tables(tables: list[tuple[str, str]], rules: TableRules) -> list[Json]:
    """The tables in the form that engines get, with the given-up changes and with their rules."""
    return rules.names.with_names(with_rules(_copied_tables(tables, rules), rules.row_rules))


def _copied_tables(tables: list[tuple[str, str]], rules: TableRules) -> list[Json]:
    """The tables as a rehearsal needs them: it asks for columns, not for rows."""
    given_up = rules.given_up
    copied: list[Json] = [
        {"schema": schema, "table": table, **({"inserts_only": True} if (schema, table) in given_up else {})}
        for schema, table in tables
    ]
    return with_transformations(copied, rules.transformations)


def with_accepted_code(tables: list[Json], code: AskedCode) -> list[Json]:
    """With what may run at the destinations, beside what the tables have of it: `code` of a preflight that is ready."""
    tables_with_code: list[Json] = []
    for table in tables:
        accepted = code.get((table["schema"], table["table"]), frozenset()).union(table.get("accepted_code", ()))
        tables_with_code.append({**table, "accepted_code": sorted(accepted)} if accepted else table)
    return tables_with_code


def _accepted_code(of: StreamRow | None) -> AskedCode:
    tables = of.tables if of is not None else []
    return {(table["schema"], table["table"]): frozenset(table.get("accepted_code", ())) for table in tables}


def _names_before(of: StreamRow | None) -> dict[tuple[str, str], tuple[str, str]]:
    tables = of.tables if of is not None else []
    return {(table["schema"], table["table"]): name_there(table) for table in tables}


def _changed(
    context: Context, of: StreamRow | None, tables: list[tuple[str, str]], rules: TableRules, mask_key: str | None
) -> list[Check]:
    """Questions about tables that the stream has already."""
    checklist = Checklist(CheckSide.SOURCE)
    before = {(table["schema"], table["table"]) for table in (of.tables if of else []) if table.get("inserts_only")}
    back = [name for name in tables if name in before - rules.given_up]
    ask_for_what_was_given_up(checklist, [".".join(name) for name in back])
    ask_for_changed_rules(checklist, of.tables if of else [], desired_tables(tables, rules))
    ask_for_changed_transformations(checklist, of.tables if of else [], desired_tables(tables, rules))
    ask_for_changed_names(checklist, of.tables if of else [], desired_tables(tables, rules))
    if of is not None and mask_key is not None:
        ask_for_changed_key(checklist, of, context.resources.secrets, mask_key)
    return checklist.checks


def _may_ask_source(checks: list[Check]) -> bool:
    return not any(
        check.status is CheckStatus.FAILED and check.side is CheckSide.SOURCE and check.id == "connection"
        for check in checks
    )


def _may_rehearse(checks: list[Check], database_id: str | None) -> bool:
    """Without connections or rights every statement would fail, and say nothing new."""
    return _may_ask_source(checks) and not any(
        check.status is CheckStatus.FAILED and check.side is CheckSide.DESTINATION and check.database_id == database_id
        for check in checks
    )


async def _rehearse(context: Context, candidate: Planned, source: DatabaseRow, tables: list[Json]) -> list[Check]:
    if not tables or candidate.engine is None:
        return []
    resources = context.resources
    return await rehearse(
        context, candidate.engine, target_of(source, resources), target_of(candidate.database, resources), tables
    )


def _copies(definitions: dict[str, StreamParameter], parameters: Parameters) -> bool:
    return bool(parameters.get("initial_copy", definitions["initial_copy"].default))


ITEMS_SHOWN = 20


@dataclass(frozen=True)
class Places:
    """JSON pointers into a request: to each destination's database, by its id, to its source, to its row rules,
    its transformations and renames, and to the rules of each destination, by the database's id. Empty: the request does
    not have it. `names`: the databases' names, by their ids."""

    databases: dict[str, str]
    source: str = ""
    row_rules: str = ""
    transformations: str = ""
    renames: str = ""
    destination_rules: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)


def not_ready(
    result: Preflight, consequence: str, places: Places, rule_problems: RuleProblems | None = None
) -> Problem:
    """The problem that names each failed check; `consequence` says what was not done."""
    failed = [check for check in result.checks if stops(check)]
    stand = "stands" if len(failed) == 1 else "stand"
    titles = "; ".join(f"{check.title} of the {check.side}{_named(check, places, ' ')}" for check in failed)
    asked = ", ".join(dict.fromkeys(check.consent for check in failed if check.consent))
    consent = f"Or accept what needs consent, by accept in a request or --accept of a command: {asked}. "
    return Problem(
        "preflight_failed", f"{len(failed)} of {len(result.checks)} checks {stand} in the way: {titles}.",
        f"Do what each of these checks says, then try again. {consent if asked else ''}{consequence}",
        sql="\n".join(_sql_and_place(check) for check in failed if check.sql) or None,
        errors=[error for check in failed for error in _errors(check, places, rule_problems or {})],
        checks=failed,
    )  # fmt: skip


def _sql_and_place(check: Check) -> str:
    """The SQL of one of several checks, which may be for several databases."""
    return f"-- At the {check.side} {check.sql_at}:\n{check.sql}"


def _errors(check: Check, places: Places, rule_problems: RuleProblems) -> list[FieldProblem]:
    place, problems = _pointer(check, places), rule_problems.get((check.id, check.database_id))
    members = {
        DESTINATION.check: places.destination_rules, TRANSFORMATIONS: places.transformations, RENAMES: places.renames,
    }  # fmt: skip
    if problems and members.get(check.id, places.row_rules):
        return [problem.model_copy(update={"pointer": f"{place}{problem.pointer}"}) for problem in problems]
    return [
        FieldProblem(
            pointer=place, code=check.id, message=f"{check.title}{_named(check, places, ' at ')}: {_detail(check)}",
            cure=check.cure, sql=check.sql,
        )
    ]  # fmt: skip


def _detail(check: Check) -> str:
    """With the first of its items, as many as one reads."""
    more = len(check.items) - ITEMS_SHOWN
    return " ".join([check.detail, *check.items[:ITEMS_SHOWN], *([f"And {more} more."] if more > 0 else [])])


def _named(check: Check, places: Places, before: str) -> str:
    """The destination, if it is one of several."""
    return f"{before}{places.names[check.database_id]}" if check.database_id in places.names else ""


def accepted_facts(result: Preflight) -> dict[str, list[str]]:
    """For the audit log: what somebody knew, and wanted all the same."""
    accepted = [" ".join([check.detail, *check.items]) for check in result.checks if check.accepted]
    return {"accepted": accepted} if accepted else {}


def _pointer(check: Check, places: Places) -> str:
    if check.id in (STREAM.check, CHANGED_ROW_RULES):
        return places.row_rules
    if check.id == CHANGED_KEY:
        return "/mask_key"
    if check.id in (TRANSFORMATIONS, CHANGED_TRANSFORMATIONS):
        return places.transformations
    if check.id in (RENAMES, CHANGED_NAMES):
        return places.renames
    if check.id == DESTINATION.check and places.destination_rules:
        return places.destination_rules.get(check.database_id or "", next(iter(places.destination_rules.values())))
    if check.side is CheckSide.SOURCE:
        return places.source
    return places.databases.get(check.database_id or "", next(iter(places.databases.values()), ""))


async def check_still_apart(
    context: Context, destinations: list[Planned], tables: list[Json], places: Places,
    of: StreamRow | None = None,
) -> None:  # fmt: skip
    """Again, in the transaction that writes: another stream may have been made since the databases were looked into."""
    names = [name_there(table) for table in tables]
    for destination in destinations:
        check = await _check_other_streams(context, destination.database, names, of)
        if check.status is CheckStatus.FAILED:
            named = check.model_copy(update={"database_id": destination.database.id})
            raise not_ready(preflight_of([named]), "Nothing was changed.", places)


async def _check_other_streams(
    context: Context, destination: DatabaseRow, tables: list[tuple[str, str]], of: StreamRow | None
) -> Check:
    """`tables`: by their names there."""
    wanted = set(tables)
    clashes: list[str] = []
    for stream in await repository.streams_into(context.session, destination.id):
        if of is not None and stream.id == of.id:
            continue
        shared = sorted({name_there(table) for table in stream.tables} & wanted)
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
