"""A source that is shut down: PostgreSQL waits for those who read its WAL until they have confirmed all of it."""

import time

import pytest

from harness.cluster import wait_for
from harness.engine import SECONDS
from harness.mining import TABLES, WANTED, part, start_mining
from harness.scene import Scene

# PostgreSQL itself would wait for ever; pg_ctl does for a minute.
SHUTDOWN_SECONDS = 40


def waits_for_the_destination(scene: Scene, kind: str) -> bool:
    """The source has WAL that it may not forget, however long it waits."""
    if kind == "wal":
        return bool(part(scene, "WAL SHIPMENT")["state"] == "PAUSED FOR STAGING SPACE")
    return any(component["type"] == "CAPTURE" and component["counters"].get("lcrs", 0) > 20_000
               for component in scene.engine.components(scene.stream))


@pytest.mark.parametrize("kind", ["logical", "wal"])
def test_a_destination_that_is_held_up_does_not_keep_the_source_from_its_end(scene: Scene, kind: str) -> None:
    scene.run_at_source(TABLES)
    start_mining(scene, WANTED, capture_kind=kind, staging_limit_mb=64,
                 parameters={"queue_memory_mb": 1, "queue_size": 64})
    with scene.destination.connect(scene.database) as blocker:
        blocker.execute("BEGIN")
        blocker.execute("LOCK TABLE log IN ACCESS EXCLUSIVE MODE")
        for n in range(8):
            scene.run_at_source(f"INSERT INTO log SELECT {n}, repeat(md5(n::text), 60) FROM "
                                "generate_series(1, 8000) n")
        wait_for(lambda: waits_for_the_destination(scene, kind), SECONDS, "it waits")
        before = time.monotonic()
        scene.source.stop("fast")
        took = time.monotonic() - before
        scene.source.start()
        blocker.execute("ROLLBACK")
    assert took < SHUTDOWN_SECONDS
    scene.run_at_source("INSERT INTO log VALUES (9, 'after it'); DELETE FROM items WHERE kind = 2")
    scene.wait_applied(2 * SECONDS)
    scene.assert_same(WANTED)
