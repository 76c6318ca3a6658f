"""A source that has nothing for the stream must not keep WAL for it."""

import time

from harness.engine import parse_lsn
from harness.scene import Scene

SEGMENT = 16 * 2**20  # bytes
IDLE = 60  # seconds
PAUSE = 2.0  # seconds between two segments of another database


def test_idle_stream_retains_no_wal(scene: Scene) -> None:
    """For a minute another database of the server writes 30 segments; the slot follows, and holds few all the while."""
    scene.run_at_source("CREATE TABLE quiet (id integer PRIMARY KEY);")
    scene.start_stream()
    scene.source.sql("postgres", "DROP TABLE IF EXISTS busy", "CREATE TABLE busy (n integer)")

    def slot() -> tuple[int, int, int]:
        """restart_lsn, confirmed_flush_lsn and the bytes of WAL that the slot holds back."""
        row = scene.source.sql("postgres", "SELECT restart_lsn, confirmed_flush_lsn, "
                                           "pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint "
                                           f"FROM pg_replication_slots WHERE slot_name = 'thalweg_{scene.stream}'")[0]
        return parse_lsn(str(row[0])), parse_lsn(str(row[1])), int(row[2])

    before = slot()
    begun = time.monotonic()
    retained = []
    while time.monotonic() - begun < IDLE:
        # A checkpoint logs the running transactions, from which restart_lsn follows; a server does so every 15 s.
        scene.source.sql("postgres", "INSERT INTO busy SELECT generate_series(1, 100)", "SELECT pg_switch_wal()",
                         "CHECKPOINT")
        time.sleep(PAUSE)
        retained.append(slot()[2])
    end = parse_lsn(str(scene.source.value("postgres", "SELECT pg_current_wal_flush_lsn()")))
    for _ in range(60):
        scene.source.sql("postgres", "CHECKPOINT")
        if slot()[0] >= end:
            break
        time.sleep(0.5)
    restart, confirmed, _ = slot()
    assert confirmed >= end, "the confirmed position stayed behind"
    assert restart >= end, f"restart_lsn holds {end - restart} bytes of WAL"
    assert restart - before[0] > 20 * SEGMENT, "the other database wrote less WAL than this test needs"
    assert confirmed - before[1] > 20 * SEGMENT
    # Not only at the end: keepalives are answered, and what was answered is forgotten, while the source idles. The slot
    # may hold, at any one moment, the segments since the walsender last heard from the engine.
    assert max(retained[5:]) < 12 * SEGMENT, f"the slot held up to {max(retained) // 2**20} MiB: {retained}"
    assert scene.engine.status(scene.stream)["phase"] == "REPLICATING"
    scene.at_source("INSERT INTO quiet VALUES (1)")
    scene.wait_applied()
    scene.assert_same()
    scene.source.sql("postgres", "DROP TABLE busy")
