"""A pgbench load while the engine, the destination's backends and both databases die at random moments."""

import os
import random
import signal
import time
from collections.abc import Callable

import pytest

from harness.crashes import crash_source, kill_engine
from harness.engine import SECONDS
from harness.scene import Scene
from harness.workload import make_pgbench_tables, strike_under_load


def kill_destination_backend(scene: Scene) -> None:
    """kill -9 of one backend: PostgreSQL then throws away every session and recovers from its WAL."""
    pids = scene.at_destination("SELECT pid FROM pg_stat_activity WHERE usename = 'thalweg' AND backend_type = "
                                "'client backend' ORDER BY pid")
    if pids:
        os.kill(int(str(pids[-1][0])), signal.SIGKILL)
        time.sleep(0.2)
    scene.destination.wait_ready()


def restart_source(scene: Scene) -> None:
    scene.source.restart("fast")


def restart_destination(scene: Scene) -> None:
    scene.destination.restart("fast")


FAULTS: list[Callable[[Scene], None]] = [kill_engine, kill_destination_backend, restart_source, restart_destination,
                                         kill_engine, crash_source, kill_engine, kill_destination_backend]


@pytest.mark.both_ways
def test_random_faults_lose_and_duplicate_nothing(scene: Scene, random_: random.Random) -> None:
    make_pgbench_tables(scene.source, scene.database, scale=1)
    scene.start_stream(parallelism=4)
    strike_under_load(scene, scene, random_.sample(FAULTS, len(FAULTS)), random_)
    assert scene.source.value(scene.database, "SELECT count(*) FROM pgbench_history") > 500
    scene.wait_applied(2 * SECONDS)
    scene.assert_same()


def test_faults_with_strict_commit_order(scene: Scene, random_: random.Random) -> None:
    make_pgbench_tables(scene.source, scene.database, scale=1)
    scene.start_stream(parallelism=3, commit_serialization="full", group_size=50)
    strike_under_load(scene, scene, (kill_engine, kill_destination_backend, kill_engine), random_)
    scene.wait_applied(2 * SECONDS)
    scene.assert_same()
