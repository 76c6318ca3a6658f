"""One transaction at the source while its consumer runs: how long until its last row is seen at the destination."""

import time
from dataclasses import dataclass
from typing import Any

import psycopg

from bench.rig import SOURCE_DATABASE, Rig, used

LIMIT_SECONDS = 900
POLL_SECONDS = 0.01


@dataclass(frozen=True)
class LiveTransaction:
    seconds: float  # from its first statement's request until it is visible
    after_commit: float  # seconds, from COMMIT's return
    source_wal: int  # bytes
    destination_wal: int
    cpu: tuple[float, float, float]  # seconds of source, engine and destination

    @property
    def wal_ratio(self) -> float:
        return self.destination_wal / self.source_wal


def run_transaction(rig: Rig, database: str, statement: str, table: str, run: str) -> LiveTransaction:
    """`run` is its row in `sentinel`. Both sides' `table` must hold as many rows as soon as that row is visible."""
    rig.checkpoint()
    cpu_before, wal_before = rig.cpu(), rig.wal()
    with rig.source.connect(SOURCE_DATABASE) as writer, rig.destination.connect(database) as watch:
        begun = time.monotonic()
        with writer.transaction():
            writer.execute(statement)
            writer.execute("INSERT INTO sentinel VALUES (%s)", (run,))
        committed = time.monotonic()
        source_wal = rig.wal()[0]
        _await(watch, run)
        visible = time.monotonic()
        expected, found = _count(writer, table), _count(watch, table)
    if found != expected:
        raise AssertionError(f"{run}: {found} rows of {table} are visible, not {expected}")
    return LiveTransaction(visible - begun, visible - committed, source_wal - wal_before[0],
                           rig.wal()[1] - wal_before[1], used(cpu_before, rig.cpu()))


def _await(watch: psycopg.Connection[Any], run: str) -> None:
    end = time.monotonic() + LIMIT_SECONDS
    while not watch.execute("SELECT FROM sentinel WHERE run = %s", (run,)).fetchall():
        if time.monotonic() > end:
            raise TimeoutError(f"{run}: not visible within {LIMIT_SECONDS} s")
        time.sleep(POLL_SECONDS)


def _count(connection: psycopg.Connection[Any], table: str) -> int:
    row = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    return int(row[0]) if row else 0
