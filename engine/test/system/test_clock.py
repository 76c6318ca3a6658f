"""The engines' wall clock is stepped while they work: nothing that waits, times out or is scheduled may notice."""

import random
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from harness.clock_shift import ClockShift, compiler
from harness.cluster import wait_for
from harness.paths import EnginePair
from harness.scene import Scene
from harness.workload import PgBench, make_pgbench_tables

HOUR = 3600
DAY = 24 * HOUR


@pytest.fixture
def clock(scene: Scene, tmp_path: Path) -> Iterator[ClockShift]:
    if compiler() is None:
        pytest.skip("no C compiler")
    clock = ClockShift(tmp_path)
    scene.engine.terminate()
    clock.take(scene.engine)
    scene.engine.start()
    yield clock


def shown(engine_time: str) -> float:
    return datetime.fromisoformat(engine_time).timestamp()


def test_a_step_breaks_no_link_and_delays_nothing(scene: Scene, clock: ClockShift, tmp_path: Path,
                                                  random_: random.Random) -> None:
    """Two engines under load; between them run acknowledgements, heartbeats and time-outs."""
    make_pgbench_tables(scene.source, scene.database, scale=1)
    pair = EnginePair(scene, tmp_path)
    try:
        pair.receiver.terminate()
        clock.take(pair.receiver)
        pair.receiver.start()
        pair.start_stream()
        log = scene.engine.directory / "pgbench.log"
        with PgBench(scene.source, scene.database, rate=300, clients=2, log=log, seed=random_.randrange(2**31)):
            for step in (HOUR, -HOUR, 0):
                clock.step_to(step)
                now = shown(pair.sender.request("GET", "/v1/stats")["sampled_at"])
                assert abs(now - time.time() - step) < 60, "the step did not reach the engine"
                pair.wait_applied()
                for _ in range(10):
                    for engine in (pair.sender, pair.receiver):
                        status = engine.status(scene.stream)
                        assert (status["phase"], status["error"]) == ("REPLICATING", None), (step, status)
                    time.sleep(0.1)
        pair.wait_applied()
        scene.assert_same()
        for engine in (pair.sender, pair.receiver):
            link = next(part for part in engine.components(scene.stream) if part["type"].startswith("PROPAGATION"))
            assert link["counters"]["breaks"] == 0, link
            assert link["gauges"]["latency_us"] >= 0
    finally:
        pair.close()


def test_a_step_back_puts_off_no_retry(scene: Scene, clock: ClockShift) -> None:
    """A stream that waits to try again does so after its delay, not when the wall clock has come round to it again."""
    scene.run_at_source("CREATE TABLE item (id integer PRIMARY KEY);")
    scene.start_stream()
    scene.destination.stop("immediate")
    scene.engine.wait_phase(scene.stream, "RETRYING")
    clock.step_to(-DAY)
    scene.at_source("INSERT INTO item VALUES (1)")
    scene.destination.start()
    scene.wait_replicating()
    scene.wait_applied()
    scene.assert_same()
    # And forward: the next outage's times are the new clock's.
    clock.step_to(DAY)
    scene.destination.stop("immediate")
    status = wait_for(lambda: (found := scene.engine.status(scene.stream))["retry_at"] and found, 30, "a retry is set")
    assert abs(shown(status["retry_at"]) - time.time() - DAY) < 60
    assert abs(shown(status["error"]["at"]) - time.time() - DAY) < 60
    scene.destination.start()
    scene.wait_replicating()
    scene.at_source("INSERT INTO item VALUES (2)")
    scene.wait_applied()
    scene.assert_same()
