"""Row filters of a stream's publication, and what evaluating one costs: tried on some of the table's rows."""

from collections.abc import Mapping
from dataclasses import dataclass

from psycopg import errors, sql

from thalweg.inspection.connection import Connection, read_all, read_one

ROW_FILTERS = """
SELECT schemaname AS schema, tablename AS "table", rowfilter AS filter
  FROM pg_publication_tables WHERE pubname IN (%(name)s::text, %(name)s::text || '_inserts') AND rowfilter IS NOT NULL
 ORDER BY 1, 2
"""
"""From PostgreSQL 15 on."""
FILTERS_MEASURED = 3
FILTER_ROWS = 200


@dataclass(frozen=True)
class RowFilter:
    """A row filter of the stream's publication: the source's walsender evaluates it for every change of the table."""

    table: tuple[str, str]
    expression: str
    row_us: float | None
    """Microseconds of one evaluation, tried on some of the table's rows. None: it could not be tried."""


async def read_row_filters(connection: Connection, publication: str) -> list[RowFilter]:
    try:
        rows = await read_all(connection, ROW_FILTERS, {"name": publication})
    except errors.UndefinedColumn:
        return []
    return [
        RowFilter((row["schema"], row["table"]), row["filter"], await _cost(connection, row))
        for row in rows[:FILTERS_MEASURED]
    ]


async def _cost(connection: Connection, row: Mapping[str, str]) -> float | None:
    """Microseconds a row: what counting rows takes with the filter, less what it takes without."""
    table = sql.Identifier(row["schema"], row["table"]).as_string()
    rows = f"FROM (SELECT * FROM {table} LIMIT {FILTER_ROWS}) AS tried"  # noqa: S608 - names are quoted
    try:
        plain = await _run_ms(connection, f"SELECT count(*) {rows}")
        # The source's own deparsed expression, of built-in immutable functions only: PostgreSQL allows no others.
        filtered = await _run_ms(connection, f"SELECT count(*) FILTER (WHERE {row['filter']}), count(*) {rows}")
        count = await read_one(connection, f"SELECT count(*) AS rows {rows}")
    except (errors.InsufficientPrivilege, errors.QueryCanceled, errors.DataError):
        return None
    return 1000 * max(0.0, filtered - plain) / count["rows"] if count["rows"] else None


async def _run_ms(connection: Connection, query: str) -> float:
    row = await read_one(connection, f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {query}")
    (plan,) = row["QUERY PLAN"]
    return float(plan["Execution Time"])
