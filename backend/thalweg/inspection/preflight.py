"""Preflight: one database by itself, or all those of a stream that is about to be made."""

import asyncio
from dataclasses import dataclass, field

from thalweg.inspection.carried_code import AskedCode, Call, check_amount, check_carried_code, code_of, read_calls
from thalweg.inspection.catalogue import Table, read_columns, read_tables
from thalweg.inspection.checks import Checklist, failed_connection
from thalweg.inspection.compared_columns import check_compared
from thalweg.inspection.connection import connected, read_system_identifier
from thalweg.inspection.failure import ConnectionFailure
from thalweg.inspection.handler_columns import check_handlers
from thalweg.inspection.inheritance import check_inheritance
from thalweg.inspection.inserts_only import check_publication
from thalweg.inspection.intervals import check_intervals, read_infinite_intervals
from thalweg.inspection.left_out import LeftOut, check_left_out, read_left_out
from thalweg.inspection.left_out_types import LeftOutOfMade, read_left_out_of_made, those_to_be_made
from thalweg.inspection.matching import select_tables
from thalweg.inspection.mining import check_mining
from thalweg.inspection.output_plugin import check_output_plugin
from thalweg.inspection.preflight_destination import Columns, check_destination, check_moved
from thalweg.inspection.preflight_source import check_source
from thalweg.inspection.schemas import Check, CheckSide, CheckStatus, Preflight
from thalweg.inspection.sent_columns import check_targets, sent_columns
from thalweg.inspection.standby import check_standby
from thalweg.inspection.statements import check_statements
from thalweg.inspection.target import Target
from thalweg.inspection.text_encoding import TextSettings, check_text, read_text_settings
from thalweg.kernel.capture_kinds import CaptureKind
from thalweg.kernel.conflict_detection import ComparedTable
from thalweg.kernel.conflict_handlers import ConflictHandler
from thalweg.kernel.models import FieldProblem
from thalweg.kernel.rules import TableRules
from thalweg.kernel.statement_handlers import StatementHandler

TableNames = frozenset[tuple[str, str]]
RuleProblems = dict[tuple[str, str | None], list[FieldProblem]]
"""Problems of row rules, by the id and the database of their check, each with its place in the list of rules."""


@dataclass(frozen=True)
class StreamPreflight:
    preflight: Preflight
    replicable: frozenset[tuple[str, str]]
    """Those of the tables that no check of the source refuses by name."""
    tables: list[tuple[str, str]]
    """The tables that the rules choose; partitions are included with their partitioned tables."""
    code: AskedCode = field(default_factory=dict)
    """The definitions, as they are now, that may call something at the destinations once users have accepted the
    checks' questions, including those that were accepted before."""
    rule_problems: RuleProblems = field(default_factory=dict)


@dataclass(frozen=True)
class _Source:
    checks: list[Check]
    tables: list[Table]
    columns: Columns
    system_identifier: str | None
    text: TextSettings | None = None
    intervals: list[str] = field(default_factory=list)
    """Tables whose intervals may be infinite."""
    left_out: list[LeftOut] = field(default_factory=list)
    left_out_of_made: list[LeftOutOfMade] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)


def stops(check: Check) -> bool:
    return check.status is CheckStatus.FAILED or (check.status is CheckStatus.CONSENT and not check.accepted)


def preflight_of(checks: list[Check]) -> Preflight:
    return Preflight(ready=not any(stops(check) for check in checks), checks=checks)


async def chosen_tables(tables: list[Table], rules: TableRules) -> list[Table]:
    """The tables that the rules choose, without partitions of partitioned tables."""
    by_name = {table.name: table for table in tables if not table.is_partition}
    return [by_name[name] for name in (await select_tables(rules, list(by_name))).chosen]


async def preflight_database(target: Target, side: CheckSide, timeout: int) -> Preflight:
    try:
        async with connected(target if side is CheckSide.SOURCE else target.for_writing, timeout) as connection:
            if side is CheckSide.SOURCE:
                tables = await read_tables(connection)
                checklist = await check_source(connection, tables, tentative=True, reads_standby=target.reads_standby)
                if target.reads_standby:
                    await check_standby(checklist, connection, target, timeout)
                return preflight_of(checklist.checks)
            checklist = await check_destination(connection, None, [], {}, initial_copy=True)
            return preflight_of(checklist.checks)
    except ConnectionFailure as failure:
        return preflight_of(failed_connection(side, failure))


@dataclass(frozen=True)
class DestinationTarget:
    """One destination to check. `own` are the tables that the stream replicates there already."""

    database_id: str
    target: Target
    initial_copy: bool
    own: TableNames = frozenset()
    accepted: AskedCode = field(default_factory=dict)
    """Definitions of the stream's tables that somebody has accepted already."""
    compared: list[ComparedTable] = field(default_factory=list)
    """The parameter conflict_detection."""
    handlers: list[ConflictHandler] = field(default_factory=list)
    """The parameter conflict_handlers."""
    statements: list[StatementHandler] = field(default_factory=list)
    """The parameter statement_handlers."""
    named: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    """The names under which it has the stream's tables already."""


async def preflight_stream(
    source: Target, destinations: list[DestinationTarget], rules: TableRules, plugin: str, timeout: int,
    tables: TableNames | None = None, stream_id: str = "", kind: CaptureKind = CaptureKind.LOGICAL,
) -> StreamPreflight:  # fmt: skip
    """Never raises for what is wrong with a database: a check says it. `plugin` is the parameter source_plugin, empty
    where the stream's capture runs already or needs none; `tables` are those of a stream that has chosen them;
    `stream_id` is the stream that there is already, with a slot."""
    try:
        seen = await _inspect_source(source, rules, tables, plugin, timeout, stream_id, kind)
    except ConnectionFailure as failure:
        seen = _Source(failed_connection(CheckSide.SOURCE, failure), [], {}, None)
    inspected = await asyncio.gather(
        *(_look_at(destination, source, seen, rules, timeout) for destination in destinations)
    )
    checks = list(seen.checks)
    places: dict[tuple[str, str], str] = {}
    for destination, found in zip(destinations, inspected, strict=True):
        if places.setdefault(found.place, destination.database_id) != destination.database_id:
            twice = Checklist(CheckSide.DESTINATION)
            twice.fail(
                "different_destinations", "Different destinations", "Another destination is the same database.",
                "Leave one of them out.",
            )  # fmt: skip
            found.checks.extend(twice.checks)
        several = len(destinations) > 1
        checks += [check.model_copy(update={"database_id": destination.database_id if several else None})
                   for check in found.checks]  # fmt: skip
    replicable = frozenset(table.name for table in seen.tables if not table.unsupported(table.name in rules.given_up))
    code = code_of(
        [*(call for destination in destinations for call in seen.calls if _is_accepted(call, destination)),
         *(call for found in inspected for call in found.asked)]
    )  # fmt: skip
    amount = Checklist(CheckSide.SOURCE)
    check_amount(amount, code)
    checks += amount.checks
    return StreamPreflight(preflight_of(checks), replicable, [table.name for table in seen.tables], code)


@dataclass(frozen=True)
class _Destination:
    checks: list[Check]
    place: tuple[str, str]
    """Server and database: the same for two destinations that are one."""
    asked: list[Call] = field(default_factory=list)


async def _look_at(
    destination: DestinationTarget, source: Target, seen: _Source, rules: TableRules, timeout: int
) -> _Destination:
    try:
        return await _inspect_destination(destination, source, seen, rules, timeout)
    except ConnectionFailure as failure:
        target = destination.target
        return _Destination(
            failed_connection(CheckSide.DESTINATION, failure), (f"{target.host}:{target.port}", target.dbname)
        )


async def _inspect_source(
    target: Target, rules: TableRules, chosen: TableNames | None, plugin: str, timeout: int, stream_id: str,
    kind: CaptureKind,
) -> _Source:  # fmt: skip
    async with connected(target, timeout) as connection:
        everything = await read_tables(connection)
        tables = (
            await chosen_tables(everything, rules)
            if chosen is None
            else [table for table in everything if table.name in chosen]
        )
        checklist = await check_source(
            connection, tables, tentative=False, given_up=rules.given_up, reads_standby=target.reads_standby, kind=kind
        )
        if stream_id and any(table.name in rules.given_up for table in tables):
            await check_publication(checklist, connection, stream_id)
        if kind is CaptureKind.WAL:
            await check_mining(checklist, connection, tables, reads_standby=target.reads_standby)
        elif target.reads_standby:
            await check_standby(checklist, connection, target, timeout)
        if tables:
            await check_inheritance(checklist, connection, tables)
        columns = await read_columns(connection, tables)
        identifier = await read_system_identifier(connection)
        text = await read_text_settings(connection)
        intervals = await read_infinite_intervals(connection, tables)
        left_out = await read_left_out(connection, tables)
        of_made = await read_left_out_of_made(connection, tables)
        calls = await read_calls(connection, tables)
    if plugin:
        await check_output_plugin(checklist, target, plugin, timeout)
    return _Source(checklist.checks, tables, columns, identifier, text, intervals, left_out, of_made, calls)


async def _inspect_destination(
    destination: DestinationTarget, source: Target, seen: _Source, rules: TableRules, timeout: int
) -> _Destination:
    target = destination.target.for_writing
    async with connected(target, timeout) as connection:
        names = rules.names
        by_name = {names.of(name): name for name in seen.columns}
        present = [table for table in await read_tables(connection) if table.name in by_name]
        columns = await read_columns(connection, present)
        sent = sent_columns(seen.columns, rules.transformations)
        checklist = await check_destination(
            connection, {names.of(name): of_table for name, of_table in sent.items()}, present, columns,
            destination.initial_copy, frozenset(names.of(name) for name in destination.own),
        )  # fmt: skip
        moved = {name: names.of(name) for name in destination.own & seen.columns.keys()}
        check_moved(
            checklist,
            {name: there for name, there in moved.items() if destination.named.get(name, there) != there},
            {table.name for table in present},
        )
        at_source = Checklist(CheckSide.SOURCE)
        if seen.tables:
            changed = [table for table in seen.tables if table.name not in rules.given_up]
            named_here = {by_name[there]: of_table for there, of_table in columns.items()}
            check_compared(at_source, checklist, destination.compared, changed, sent, named_here, rules.transformations)
            await check_handlers(checklist, connection, destination.handlers, sent, named_here)
            await check_statements(
                at_source, checklist, connection, destination.statements, changed, sent, named_here, rules
            )
        if rules.transformations:
            check_targets(checklist, seen.tables, seen.columns, columns, rules.transformations, names)
        if seen.text is not None:
            check_text(checklist, seen.text, await read_text_settings(connection))
            check_intervals(checklist, seen.intervals, connection.info.server_version)
        asked: list[Call] = []
        if seen.tables:
            there = {by_name[table.name] for table in present}
            of_made = await those_to_be_made(
                connection, [left for left in seen.left_out_of_made if left.part.table not in there]
            )
            check_left_out(checklist, [*(part for part in seen.left_out if part.table not in there), *of_made])
            calls = [call for call in seen.calls if _may_come(call, destination, there)]
            asked = await check_carried_code(checklist, connection, calls)
        system = await read_system_identifier(connection)
        _check_different(checklist, source, target, seen.system_identifier, system)
    checks = [*at_source.checks, *checklist.checks]
    return _Destination(checks, (system or f"{target.host}:{target.port}", target.dbname), asked)


def _may_come(call: Call, destination: DestinationTarget, there: set[tuple[str, str]]) -> bool:
    """To this destination, without anybody's having accepted it."""
    if call.table not in destination.own:
        return call.table not in there
    return not _is_accepted(call, destination) and (call.table not in there or call.follows)


def _is_accepted(call: Call, destination: DestinationTarget) -> bool:
    return call.digest in destination.accepted.get(call.table, frozenset())


def _check_different(
    checklist: Checklist, source: Target, destination: Target, source_system: str | None, system: str | None
) -> None:
    same_server = source_system is not None and source_system == system
    same_address = (source.host, source.port) == (destination.host, destination.port)
    if (same_server or same_address) and source.dbname == destination.dbname:
        checklist.fail(
            "different_databases", "Two databases", "Source and destination are the same database.",
            "Choose another destination.",
        )  # fmt: skip
    else:
        checklist.ok("different_databases", "Two databases", "Source and destination differ.")
