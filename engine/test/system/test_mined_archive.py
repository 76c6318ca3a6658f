"""Streams that mine the source's WAL and have an archive of it: slots dropped, WAL forgotten, the limit reached."""

import itertools
import json
import os
import random
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import SETTINGS, SOURCE_SETTINGS
from harness.cluster import Cluster, wait_for
from harness.engine import SECONDS, Engine, parse_lsn
from harness.mining import TABLES, WANTED, RandomWork, part, restart_lsn, start_mining
from harness.outage import assert_says_what_to_do
from harness.scene import Scene

MIB = 1 << 20
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def archive(workspace: Path) -> Path:
    place = workspace / "archive"
    place.mkdir(exist_ok=True)
    place.chmod(0o777)  # the server writes it as its own user
    return place


@pytest.fixture(scope="module")
def archived_cluster(workspace: Path, archive: Path) -> Iterator[Cluster]:
    file = f"{archive}/%f"
    cluster = Cluster(workspace, "archived", SETTINGS | SOURCE_SETTINGS | {
        "archive_mode": "on", "archive_command": f"'umask 022; cp %p {file}.new && mv {file}.new {file}'",
        "max_wal_size": "'64MB'", "min_wal_size": "'32MB'", "wal_keep_size": "0"})
    cluster.initialise()
    cluster.start()
    yield cluster
    cluster.stop("immediate")


@pytest.fixture
def scene(request: pytest.FixtureRequest, workspace: Path, archived_cluster: Cluster, destination_cluster: Cluster,
          archive: Path, libraries: bool) -> Iterator[Scene]:
    number = next(_numbers)
    engine = Engine(workspace / f"archive-engine-{number}")
    scene = Scene(archived_cluster, destination_cluster, engine, f"archived{number}", libraries)
    (engine.directory / "state").mkdir(mode=0o700)
    name_archives(scene, {"main": {"directory": str(archive)},
                          "fetched": {"command": f"cp {archive}/%f %p"},
                          "empty": {"directory": str(workspace)}})
    scene.make()
    scene.run_at_source(TABLES)
    yield scene
    scene.remove()
    if getattr(request.node, "failed", False):
        print("--- the end of the engine's log")
        print("\n".join(engine.log.read_text(errors="replace").splitlines()[-40:]))
    shutil.rmtree(engine.directory, ignore_errors=True)


def name_archives(scene: Scene, archives: object) -> None:
    (scene.engine.directory / "state" / "wal-archives.json").write_text(json.dumps(archives))


def drop_slot(scene: Scene) -> None:
    """While somebody reads it: its sender is ended first, as often as needed."""
    slot = f"thalweg_{scene.stream}"

    def dropped() -> bool:
        scene.source.sql("postgres", "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE "
                                     f"slot_name = '{slot}' AND active")
        scene.source.sql("postgres", "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE "
                                     f"slot_name = '{slot}' AND NOT active")
        return not scene.source.value("postgres", "SELECT count(*) FROM pg_replication_slots WHERE slot_name = "
                                      f"'{slot}'")
    wait_for(dropped, SECONDS, "the slot is dropped")


def freeze(scene: Scene) -> None:
    os.kill(scene.engine.pid, signal.SIGSTOP)


def unfreeze(scene: Scene) -> None:
    os.kill(scene.engine.pid, signal.SIGCONT)


def forget(scene: Scene) -> None:
    """The source keeps no WAL but what a slot needs."""
    for n in range(3):
        scene.run_at_source(f"INSERT INTO log VALUES ({n}, 'forgets')")
        scene.source.sql("postgres", "SELECT pg_switch_wal()", "CHECKPOINT")


def shipment(scene: Scene) -> str:
    return str(part(scene, "WAL SHIPMENT")["state"])


def archived_bytes(scene: Scene) -> int:
    return int(part(scene, "WAL SHIPMENT")["counters"]["archived_bytes"])


@pytest.mark.parametrize("name", ["main", "fetched"])
def test_a_slot_that_is_dropped_costs_nothing(scene: Scene, random_: random.Random, name: str) -> None:
    with RandomWork(scene, random_) as work:
        start_mining(scene, WANTED, wal_archive=name)
        work.wait_for_more(20)
        for _ in range(3):
            freeze(scene)
            drop_slot(scene)
            forget(scene)
            work.wait_for_more(20)
            forget(scene)
            unfreeze(scene)
            work.wait_for_more(20)
        drop_slot(scene)  # beside the engine
        work.wait_for_more(20)
    scene.wait_applied(2 * SECONDS)
    scene.assert_same(WANTED)
    assert archived_bytes(scene) > 0
    wait_for(lambda: shipment(scene) == "RECEIVING WAL", SECONDS, "it has returned to the source")


def test_a_start_without_the_slot(scene: Scene) -> None:
    start_mining(scene, WANTED, wal_archive="main")
    scene.wait_applied()
    scene.engine.kill()
    drop_slot(scene)
    scene.run_at_source("INSERT INTO accounts VALUES (5001, 'while nobody looked')")
    forget(scene)
    forget(scene)
    scene.engine.start()
    scene.wait_applied()
    scene.assert_same(WANTED)
    assert archived_bytes(scene) > 0


def test_the_limit_is_kept_and_the_source_keeps_nothing(scene: Scene) -> None:
    start_mining(scene, WANTED, wal_archive="main", staging_limit_mb=64,
                 parameters={"queue_memory_mb": 1, "queue_size": 64})
    with scene.destination.connect(scene.database) as blocker:
        blocker.execute("BEGIN")
        blocker.execute("LOCK TABLE log IN ACCESS EXCLUSIVE MODE")
        for n in range(16):
            scene.run_at_source(f"INSERT INTO log SELECT {n}, repeat(md5(n::text), 60) FROM "
                                "generate_series(1, 8000) n")
        end = parse_lsn(str(scene.source.value("postgres", "SELECT pg_switch_wal()")))
        wait_for(lambda: restart_lsn(scene) >= end - 16 * MIB, SECONDS, "the source may forget what is in the archive")
        forget(scene)
        assert part(scene, "WAL SHIPMENT")["gauges"]["staged_bytes"] < 68 * MIB
        blocker.execute("ROLLBACK")
    scene.wait_applied(2 * SECONDS)
    scene.assert_same(WANTED)


def test_a_transaction_that_stays_open_pins_no_staging(scene: Scene) -> None:
    start_mining(scene, WANTED, wal_archive="fetched", staging_limit_mb=64)
    with scene.source.connect(scene.database, "thalweg") as session:
        session.execute("BEGIN")
        session.execute("INSERT INTO log VALUES (7, 'open all the time')")
        for n in range(16):
            scene.run_at_source(f"INSERT INTO log SELECT {n}, repeat(md5(n::text), 60) FROM "
                                "generate_series(1, 8000) n")
        scene.wait_applied(2 * SECONDS)
        assert part(scene, "WAL SHIPMENT")["gauges"]["staged_bytes"] < 68 * MIB
        assert part(scene, "LOGMINER BUILDER")["gauges"]["open_wal_bytes"] > 64 * MIB
        # A restart reads all of it again, from where the transaction began.
        scene.engine.kill()
        scene.engine.start()
        scene.wait_replicating()
        session.execute("INSERT INTO log VALUES (7, 'and after the restart')")
        session.execute("COMMIT")
    scene.wait_applied(2 * SECONDS)
    scene.assert_same(WANTED)


def test_an_archive_that_cannot_be_used(scene: Scene, archive: Path) -> None:
    start_mining(scene, WANTED, wait=False, wal_archive="nobody's")
    status = scene.engine.wait_status(scene.stream, lambda found: found["status"] == "ABORTED", SECONDS, "ABORTED")
    assert_says_what_to_do(status["error"], "wal_archive_failed")
    assert "main" in status["error"]["message"], "it names those that there are"
    name_archives(scene, {"nobody's": {"directory": str(archive)}})
    scene.engine.retry(scene.stream)
    scene.wait_replicating()
    assert scene.engine.request("GET", "/v1/status")["engine"]["wal_archives"] == ["nobody's"]
    # One that is wrong later ends nothing while the source has all.
    name_archives(scene, {})
    scene.run_at_source("INSERT INTO accounts VALUES (6001, 'still')")
    scene.wait_applied()
    scene.assert_same(WANTED)


def test_an_archive_without_what_the_source_has_archived(scene: Scene) -> None:
    """It is tried before the copy: one that is wrong would be found when it is needed."""
    scene.source.sql("postgres", "SELECT pg_switch_wal()")
    wait_for(lambda: scene.source.value("postgres", "SELECT last_archived_wal IS NOT NULL FROM pg_stat_archiver"),
             SECONDS, "the source has archived something")
    start_mining(scene, WANTED, wait=False, wal_archive="empty")
    error = scene.engine.wait_aborted(scene.stream)
    assert_says_what_to_do(error, "wal_archive_failed")
    assert "archived last" in error["message"]
    assert not scene.at_destination("SELECT FROM pg_tables WHERE tablename = 'accounts'"), "nothing was copied"


def test_neither_the_source_nor_the_archive_has_it(scene: Scene, archive: Path) -> None:
    start_mining(scene, WANTED, wal_archive="main")
    scene.wait_applied()
    freeze(scene)
    drop_slot(scene)
    scene.run_at_source("INSERT INTO accounts VALUES (7001, 'in a segment that is hidden')")
    first = str(scene.source.value("postgres", "SELECT pg_walfile_name(pg_current_wal_insert_lsn())"))
    forget(scene)
    forget(scene)
    wait_for((archive / first).exists, SECONDS, "it is archived")
    hidden = archive / f"{first}.hidden"
    (archive / first).rename(hidden)
    unfreeze(scene)
    wait_for(lambda: shipment(scene) == "WAITING FOR SOURCE OR ARCHIVE", SECONDS, "it waits")
    time.sleep(2)
    assert scene.engine.status(scene.stream)["status"] == "ENABLED"
    assert part(scene, "WAL SHIPMENT")["gauges"]["archive_wait_us"] > 1_000_000
    log = scene.engine.log.read_text()
    assert f"The archive main does not have {first} either." in log
    hidden.rename(archive / first)
    scene.wait_applied()
    scene.assert_same(WANTED)
    assert part(scene, "WAL SHIPMENT")["gauges"]["archive_wait_us"] == 0


@pytest.mark.parametrize("name", ["main", "fetched"])
def test_a_restart_beside_an_archive_that_lacks_for_now(scene: Scene, archive: Path, name: str) -> None:
    start_mining(scene, WANTED, wal_archive=name, staging_limit_mb=64)
    with scene.source.connect(scene.database, "thalweg") as session:
        session.execute("BEGIN")
        session.execute("INSERT INTO log VALUES (7, 'open all the time')")
        for n in range(7):
            scene.run_at_source(f"INSERT INTO log SELECT {n}, repeat(md5(n::text), 60) FROM "
                                "generate_series(1, 1000) n")
            scene.source.sql("postgres", "SELECT pg_switch_wal()")
        scene.wait_applied(2 * SECONDS)
        wait_for(lambda: part(scene, "WAL SHIPMENT")["gauges"]["staged_bytes"] < 80 * MIB, SECONDS, "the oldest went")
        scene.engine.kill()
        places = {"main": {"directory": str(archive.parent / "nothing")}, "fetched": {"command": "exit 1"}}
        (archive.parent / "nothing").mkdir(exist_ok=True)
        name_archives(scene, places)
        scene.engine.start()
        status = scene.engine.wait_status(scene.stream, lambda found: found["status"] == "ABORTED", SECONDS, "ABORTED")
        assert_says_what_to_do(status["error"], "wal_archive_failed")
        assert f"the archive {name} does not have 0000" in status["error"]["message"]
        name_archives(scene, {"main": {"directory": str(archive)}, "fetched": {"command": f"cp {archive}/%f %p"}})
        scene.engine.retry(scene.stream)
        scene.wait_replicating()
        session.execute("COMMIT")
    scene.wait_applied(2 * SECONDS)
    scene.assert_same(WANTED)
