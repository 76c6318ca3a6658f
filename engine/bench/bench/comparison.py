"""Row-exact comparison of large tables: SHA-256 over their rows as COPY text in one order, on both sides at once."""

import hashlib
import subprocess
import threading
from collections.abc import Iterable

from harness.cluster import Cluster, quote
from harness.compare import SESSION, Table, assert_same, columns_of

CHUNK = 1 << 20


def assert_identical(source: Cluster, destination: Cluster, source_database: str, destination_database: str,
                     tables: Iterable[Table]) -> None:
    """Names the first rows that differ, when any do."""
    for table in tables:
        columns = columns_of(source, source_database, table)
        order = _order(source, source_database, table, columns)
        sides = [_Digest(source, source_database, table, columns, order),
                 _Digest(destination, destination_database, table, columns, order)]
        for side in sides:
            side.thread.join()
        if sides[0].result() != sides[1].result():
            assert_same(source, destination, source_database, destination_database, [table])
            raise AssertionError(f"{quote(*table)}: the digests differ, the rows do not: the comparison is wrong")


class _Digest:
    def __init__(self, cluster: Cluster, database: str, table: Table, columns: list[str], order: str) -> None:
        listed = ", ".join(quote(column) for column in columns)
        self.script = f"{SESSION};\nCOPY (SELECT {listed} FROM {quote(*table)} ORDER BY {order}) TO STDOUT;\n"
        self.command = cluster.program("psql", "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1",
                                       f"--dbname={cluster.conninfo(database)}", f"--command={self.script}")
        self.hash = hashlib.sha256()
        self.status = -1
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        with subprocess.Popen(self.command, stdout=subprocess.PIPE) as process:
            assert process.stdout
            while block := process.stdout.read(CHUNK):
                self.hash.update(block)
        self.status = process.returncode

    def result(self) -> str:
        if self.status != 0:
            raise RuntimeError(f"psql ended with {self.status}")
        return self.hash.hexdigest()


def _order(cluster: Cluster, database: str, table: Table, columns: list[str]) -> str:
    """The primary key, or the row's whole text where there is none."""
    rows = cluster.sql(database, f"""
        SELECT attname FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY (indkey)
         WHERE indisprimary AND indrelid = '{quote(*table)}'::regclass ORDER BY array_position(indkey, attnum)""")
    if rows:
        return ", ".join(quote(str(row[0])) for row in rows)
    return f'ROW({", ".join(quote(column) for column in columns)})::text COLLATE "C"'
