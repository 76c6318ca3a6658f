"""Preflight: one database by itself, or both sides of a stream that is about to be made."""

from dataclasses import dataclass

from thalweg.inspection.catalogue import Table, read_columns, read_tables
from thalweg.inspection.checks import Checklist, failed_connection
from thalweg.inspection.connection import ConnectionFailure, connected, read_system_identifier
from thalweg.inspection.matching import select_tables
from thalweg.inspection.preflight_destination import Columns, check_destination
from thalweg.inspection.preflight_source import check_source
from thalweg.inspection.schemas import Check, CheckSide, CheckStatus, Preflight
from thalweg.inspection.target import Target
from thalweg.kernel.rules import TableRules

TableNames = frozenset[tuple[str, str]]


@dataclass(frozen=True)
class StreamPreflight:
    preflight: Preflight
    tables: list[tuple[str, str]]
    """What the rules choose: partitions go with their partitioned tables."""


@dataclass(frozen=True)
class _Source:
    checks: list[Check]
    tables: list[Table]
    columns: Columns
    system_identifier: str | None


def preflight_of(checks: list[Check]) -> Preflight:
    return Preflight(ready=all(check.status is not CheckStatus.FAILED for check in checks), checks=checks)


def chosen_tables(tables: list[Table], rules: TableRules) -> list[Table]:
    """The tables that the rules choose, without partitions of partitioned tables."""
    by_name = {table.name: table for table in tables if not table.is_partition}
    return [by_name[name] for name in select_tables(rules, by_name).chosen]


async def preflight_database(target: Target, side: CheckSide, timeout: int) -> Preflight:
    try:
        async with connected(target, timeout) as connection:
            if side is CheckSide.SOURCE:
                tables = await read_tables(connection)
                return preflight_of((await check_source(connection, tables, tentative=True)).checks)
            checklist = await check_destination(connection, None, [], {}, initial_copy=True)
            return preflight_of(checklist.checks)
    except ConnectionFailure as failure:
        return preflight_of(failed_connection(side, failure))


async def preflight_stream(
    source: Target, destination: Target, rules: TableRules, initial_copy: bool, timeout: int, own: TableNames
) -> StreamPreflight:
    """Never raises for what is wrong with a database: a check says it. `own` are tables that it replicates already."""
    try:
        seen = await _inspect_source(source, rules, timeout)
    except ConnectionFailure as failure:
        seen = _Source(failed_connection(CheckSide.SOURCE, failure), [], {}, None)
    try:
        checks = seen.checks + await _inspect_destination(destination, source, seen, initial_copy, timeout, own)
    except ConnectionFailure as failure:
        checks = seen.checks + failed_connection(CheckSide.DESTINATION, failure)
    return StreamPreflight(preflight_of(checks), [table.name for table in seen.tables])


async def _inspect_source(target: Target, rules: TableRules, timeout: int) -> _Source:
    async with connected(target, timeout) as connection:
        tables = chosen_tables(await read_tables(connection), rules)
        checklist = await check_source(connection, tables, tentative=False)
        columns = await read_columns(connection, tables)
        identifier = await read_system_identifier(connection)
    return _Source(checklist.checks, tables, columns, identifier)


async def _inspect_destination(
    target: Target, source: Target, seen: _Source, initial_copy: bool, timeout: int, own: TableNames
) -> list[Check]:
    async with connected(target, timeout) as connection:
        present = [table for table in await read_tables(connection) if table.name in seen.columns]
        columns = await read_columns(connection, present)
        checklist = await check_destination(connection, seen.columns, present, columns, initial_copy, own)
        _check_different(checklist, source, target, seen.system_identifier, await read_system_identifier(connection))
    return checklist.checks


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
