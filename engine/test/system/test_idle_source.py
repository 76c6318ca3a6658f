"""A source that has nothing for the stream must not keep WAL for it."""

import time

from harness.engine import parse_lsn
from harness.scene import Scene

SEGMENT = 16 * 2**20  # bytes


def test_idle_stream_retains_no_wal(scene: Scene) -> None:
    """Another database of the same server writes 20 segments; the slot follows though its tables never change."""
    scene.run_at_source("CREATE TABLE quiet (id integer PRIMARY KEY);")
    scene.start_stream()
    scene.source.sql("postgres", "DROP TABLE IF EXISTS busy", "CREATE TABLE busy (n integer)")

    def slot() -> tuple[int, int]:
        row = scene.source.sql("postgres", "SELECT restart_lsn, confirmed_flush_lsn FROM pg_replication_slots "
                                           f"WHERE slot_name = 'thalweg_{scene.stream}'")[0]
        return parse_lsn(str(row[0])), parse_lsn(str(row[1]))

    before = slot()
    for _ in range(20):
        scene.source.sql("postgres", "INSERT INTO busy SELECT generate_series(1, 100)", "SELECT pg_switch_wal()")
        time.sleep(0.5)
    end = parse_lsn(str(scene.source.value("postgres", "SELECT pg_current_wal_flush_lsn()")))
    for _ in range(60):
        scene.source.sql("postgres", "CHECKPOINT")  # logs running transactions, from which restart_lsn follows
        if slot()[0] >= end:
            break
        time.sleep(0.5)
    restart, confirmed = slot()
    assert confirmed >= end, "the confirmed position stayed behind"
    assert restart >= end, f"restart_lsn holds {end - restart} bytes of WAL"
    assert restart - before[0] > 15 * SEGMENT
    scene.source.sql("postgres", "DROP TABLE busy")
