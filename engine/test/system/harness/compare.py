"""Row-by-row, byte-exact comparison of tables on both sides."""

import itertools
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from typing import Any

import psycopg

from harness.cluster import Cluster, quote

SHOWN = 5

# Text that does not depend on the session: shortest exact floats, one time zone, one interval style.
SESSION = "SET extra_float_digits = 3; SET timezone = 'UTC'; SET intervalstyle = 'postgres'; SET bytea_output = 'hex'"

Table = tuple[str, str]


def user_tables(cluster: Cluster, database: str) -> list[Table]:
    """Every table and partition root outside the system's and Thalweg's own schemas."""
    rows = cluster.sql(database, """
        SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence = 'p'
           AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'thalweg') ORDER BY 1, 2""")
    return [(str(schema), str(table)) for schema, table in rows]


def columns_of(cluster: Cluster, database: str, table: Table) -> list[str]:
    rows = cluster.sql(database, f"""
        SELECT attname FROM pg_attribute WHERE attrelid = '{quote(*table).replace("'", "''")}'::regclass
           AND attnum > 0 AND NOT attisdropped ORDER BY attnum""")
    return [str(row[0]) for row in rows]


def lines_of(connection: psycopg.Connection[Any], table: Table, columns: list[str]) -> Generator[bytes, None, None]:
    """The rows as COPY text, sorted by their whole text: an order that every type has and both sides share."""
    listed = ", ".join(quote(column) for column in columns)
    query = (f'COPY (SELECT {listed} FROM {quote(*table)} AS row_ ORDER BY ROW({listed})::text COLLATE "C") TO STDOUT')
    with connection.cursor() as cursor, cursor.copy(query) as copy:
        for block in copy:
            yield bytes(block)


def differences(source: Cluster, destination: Cluster, source_database: str, destination_database: str,
                tables: Iterable[Table]) -> list[str]:
    """The differences, a line each; empty when every table holds exactly the same rows."""
    found: list[str] = []
    with source.connect(source_database) as left, destination.connect(destination_database) as right:
        left.execute(SESSION)
        right.execute(SESSION)
        for table in tables:
            columns = columns_of(source, source_database, table)
            theirs = columns_of(destination, destination_database, table)
            if sorted(columns) != sorted(theirs):
                found.append(f"{quote(*table)}: columns {columns} at the source, {theirs} at the destination")
                continue
            # Closed at once when one of them fails: a connection waits for ever to end behind a copy that nobody reads.
            with closing(lines_of(left, table, columns)) as ours, closing(lines_of(right, table, columns)) as others:
                found += _different_rows(table, ours, others)
    return found


def _different_rows(table: Table, left: Iterator[bytes], right: Iterator[bytes]) -> list[str]:
    shown: list[str] = []
    counts = [0, 0]
    different = 0
    for ours, theirs in itertools.zip_longest(left, right):
        counts[0] += ours is not None
        counts[1] += theirs is not None
        if ours != theirs:
            different += 1
            if len(shown) < SHOWN:
                shown.append(f"{quote(*table)}: source {ours!r}, destination {theirs!r}")
    if different:
        shown.insert(0, f"{quote(*table)}: {counts[0]} rows at the source, {counts[1]} at the destination, "
                        f"{different} lines differ")
    return shown


def assert_same(source: Cluster, destination: Cluster, source_database: str, destination_database: str,
                tables: Iterable[Table]) -> None:
    found = differences(source, destination, source_database, destination_database, tables)
    assert not found, "\n" + "\n".join(found)
