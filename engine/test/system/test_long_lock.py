"""A destination that is held up for longer than anything takes to be missed."""

import time

from harness.scene import Scene

LOCKED_S = 40
"""Above the half minute within which a peer that has gone is missed."""
COPY_LOCKED_S = 27
"""Above the 20 s within which the source misses the engine."""


def test_a_lock_ends_no_copy(scene: Scene) -> None:
    scene.run_at_source("CREATE TABLE wide (id int PRIMARY KEY, line text);"
                        "INSERT INTO wide SELECT n, repeat(md5(n::text), 60) FROM generate_series(1, 40000) n")
    scene.at_destination("CREATE TABLE wide (id int PRIMARY KEY, line text)", "ALTER TABLE wide OWNER TO thalweg")
    with scene.destination.connect(scene.database) as blocker:
        blocker.execute("BEGIN")
        blocker.execute("LOCK TABLE wide IN SHARE MODE")  # it may be read, as a start does
        scene.start_stream(wait=False)
        time.sleep(COPY_LOCKED_S)
        blocker.execute("ROLLBACK")
    scene.wait_replicating()
    scene.wait_applied()
    scene.assert_same()
    assert "stream_retrying" not in scene.engine.log.read_text()


def test_a_lock_ends_no_session(scene: Scene) -> None:
    scene.run_at_source("CREATE TABLE log (writer int, line text); ALTER TABLE log REPLICA IDENTITY FULL")
    scene.start_stream(queue_memory_mb=1, queue_size=64)
    with scene.destination.connect(scene.database) as blocker:
        blocker.execute("BEGIN")
        blocker.execute("LOCK TABLE log IN ACCESS EXCLUSIVE MODE")
        locked_at = time.monotonic()
        for n in range(16):  # more than the queue, the appliers and the sockets hold
            scene.run_at_source(f"INSERT INTO log SELECT {n}, repeat(md5(n::text), 60) FROM generate_series(1, 8000) n")
        time.sleep(max(0.0, locked_at + LOCKED_S - time.monotonic()))
        blocker.execute("ROLLBACK")
    scene.wait_applied(120)
    scene.assert_same()
    assert "stream_retrying" not in scene.engine.log.read_text()
