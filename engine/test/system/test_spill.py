"""Spill: a transaction larger than memory, and a disk without the space for one."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.cluster import wait_for
from harness.engine import Engine
from harness.processes import peak_resident_bytes
from harness.scene import Scene

MIB = 2**20
# Memory of the engine beside the budget and the queue: code and libraries, libpq's and the appliers' buffers, free
# blocks kept for reuse (16 MiB), and freed memory that malloc keeps.
OVERHEAD = 64 * MIB
BUDGET_MB = 32
QUEUE_MB = 8

TABLE = "CREATE TABLE big (id bigint PRIMARY KEY, body text NOT NULL);"
# Text that lz4 makes little of.
NOISE = "INSERT INTO big SELECT n, (SELECT string_agg(md5(n::text || part), '') FROM generate_series(1, 30) part) "


def reader(scene: Scene) -> dict[str, Any]:
    return next(component for component in scene.engine.components(scene.stream)
                if component["sub_component"] == "APPLY READER")


@pytest.mark.parametrize("threshold", [10_000, 100_000_000], ids=["by-threshold", "by-memory"])
def test_a_transaction_larger_than_memory(scene: Scene, threshold: int) -> None:
    scene.run_at_source(TABLE)
    scene.start_stream(memory_budget_mb=BUDGET_MB, queue_memory_mb=QUEUE_MB, txn_lcr_spill_threshold=threshold)
    scene.at_source("INSERT INTO big SELECT n, 'row number ' || n || repeat('.', 60) FROM generate_series(1, 500000) n")
    scene.wait_applied(120)
    peak = peak_resident_bytes(scene.engine.pid)
    counters = reader(scene)["counters"]
    assert counters["spilled_transactions"] == 1
    assert counters["spilled_lcrs"] == 500_000
    assert counters["spilled_bytes"] > 2 * BUDGET_MB * MIB, "the workload fits the budget: it shows nothing"
    assert peak <= (BUDGET_MB + QUEUE_MB) * MIB + OVERHEAD, f"{peak / MIB:.0f} MiB resident"
    gauges = reader(scene)["gauges"]
    assert gauges["spill_bytes"] == gauges["spill_transactions"] == gauges["spill_age_us"] == 0
    scene.assert_same()


def spill_error(scene: Scene, code: str) -> dict[str, Any]:
    status = scene.engine.wait_status(scene.stream, lambda found: found["error"] and found["error"]["code"] == code,
                                      60, code)
    assert status["status"] == "ENABLED" and status["phase"] == "RETRYING"
    assert status["error"]["cure"]
    assert status["retry_at"]
    return dict(status["error"])


def test_the_spill_limit_stops_a_stream_until_it_is_raised(scene: Scene) -> None:
    scene.run_at_source(TABLE)
    scene.start_stream(txn_lcr_spill_threshold=1000, spill_limit_mb=16)
    scene.at_source("INSERT INTO big VALUES (-1, 'before')")
    scene.wait_applied()
    scene.at_source(NOISE + "FROM generate_series(1, 60000) n", "INSERT INTO big VALUES (-2, 'after')")
    error = spill_error(scene, "spill_limit_reached")
    assert "spill_limit_mb" in error["message"] + error["cure"]
    assert scene.at_destination("SELECT id FROM big") == [(-1,)], "nothing behind it is applied"
    parameters = scene.engine.streams[scene.stream]["parameters"]
    scene.engine.set_stream(scene.stream, parameters=parameters | {"spill_limit_mb": 1000})
    scene.engine.retry(scene.stream)
    scene.wait_applied(120)
    scene.assert_same()
    assert scene.engine.status(scene.stream)["error"] is None


@pytest.fixture
def small_spill_disk(scene: Scene) -> Iterator[Path]:
    """The engine's spill directory on a disk of its own, of which spilling may take 24 MiB."""
    path = scene.engine.directory / "state" / "spill"
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=280m", "thalweg-test", str(path)], check=False)
    if mounted.returncode != 0:
        pytest.skip("this machine does not let us mount")
    try:
        yield path
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


def test_a_full_disk_stops_a_stream_until_there_is_space(scene: Scene, small_spill_disk: Path) -> None:
    scene.run_at_source(TABLE)
    scene.start_stream(txn_lcr_spill_threshold=1000)
    scene.at_source(NOISE + "FROM generate_series(1, 60000) n")
    error = spill_error(scene, "disk_full")
    assert str(small_spill_disk) in error["message"]
    subprocess.run(["mount", "-o", "remount,size=1g", str(small_spill_disk)], check=True)
    scene.wait_applied(120)
    scene.assert_same()


def test_a_transaction_that_stays_open_goes_to_disk(scene: Scene) -> None:
    scene.source.sql("postgres", "ALTER ROLE thalweg SET logical_decoding_work_mem = '64kB'")
    try:
        scene.run_at_source(TABLE)
        scene.start_stream(txn_age_spill_threshold=1)
        with scene.source.connect(scene.database, "thalweg") as connection:
            connection.execute("BEGIN")
            connection.execute("INSERT INTO big SELECT n, repeat('x', 200) FROM generate_series(1, 2000) n")
            wait_for(lambda: reader(scene)["gauges"]["spill_transactions"] == 1, 30, "the transaction spills")
            time.sleep(0.1)
            gauges = reader(scene)["gauges"]
            assert gauges["spill_bytes"] > 0 and gauges["spill_age_us"] >= 100_000
            connection.execute("COMMIT")
        scene.wait_applied()
        scene.assert_same()
    finally:
        scene.source.sql("postgres", "ALTER ROLE thalweg RESET logical_decoding_work_mem")


def test_what_a_killed_engine_spilled_is_removed(scene: Scene) -> None:
    scene.run_at_source(TABLE)
    scene.source.sql("postgres", "ALTER ROLE thalweg SET logical_decoding_work_mem = '64kB'")
    try:
        scene.start_stream(txn_lcr_spill_threshold=100)
        with scene.source.connect(scene.database, "thalweg") as connection:
            connection.execute("BEGIN")
            connection.execute(NOISE + "FROM generate_series(1, 5000) n")
            wait_for(lambda: reader(scene)["gauges"]["spill_bytes"] > 100_000, 30, "the transaction spills")
            left = set(files(scene.engine))
            assert left
            scene.engine.kill()
            connection.execute("ROLLBACK")
        scene.engine.start()
        scene.wait_replicating()
        scene.wait_applied()
        assert not left & set(files(scene.engine)) and not files(scene.engine)
        scene.assert_same()
    finally:
        scene.source.sql("postgres", "ALTER ROLE thalweg RESET logical_decoding_work_mem")


def files(engine: Engine) -> list[Path]:
    """Of spilled LCRs: the file that says from where on a change is in effect stays."""
    found = (engine.directory / "state" / "spill").rglob("*")
    return [path for path in found if path.is_file() and not path.name.startswith("in-effect-")]
