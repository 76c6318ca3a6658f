"""Destinations that were restored to an earlier state catch up from the WAL that the engine keeps, by themselves."""

import itertools
import json
import random
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from conftest import DESTINATION_SETTINGS, SETTINGS
from harness.cluster import wait_for
from harness.compare import differences
from harness.engine import SECONDS, Engine, parse_lsn
from harness.fan_out import Destination, FanOut
from harness.mining import (
    TABLES,
    WANTED,
    RandomWork,
    change_schema,
    part,
    start_mining,
    start_mining_fan_out,
)
from harness.outage import assert_says_what_to_do
from harness.paths import EnginePair
from harness.restores import Backup, RestoredScene, own_destination
from harness.scene import Scene

_numbers = itertools.count(1)


@pytest.fixture
def scene(request: pytest.FixtureRequest, workspace: Path, source_cluster: Any) -> Iterator[RestoredScene]:
    name = f"restored_{next(_numbers)}_{request.node.name.removeprefix('test_').split('[')[0][:30]}"
    destination = own_destination(workspace, name, SETTINGS | DESTINATION_SETTINGS)
    engine = Engine(workspace / f"engine-{name}")
    scene = RestoredScene(source_cluster, destination, engine, name[:50])
    scene.make()
    scene.run_at_source(TABLES)
    yield scene
    scene.remove()
    destination.stop("immediate")
    if getattr(request.node, "failed", False):
        print("--- the end of the engine's log")
        print("\n".join(engine.log.read_text(errors="replace").splitlines()[-40:]))
    shutil.rmtree(engine.directory, ignore_errors=True)


def change_layouts(scene: Scene) -> None:
    """Changes of how rows look in the WAL, and in which files they are. Destinations do not have to follow."""
    scene.run_at_source("""
        SET lock_timeout = '20s';
        BEGIN; ALTER TABLE accounts ADD COLUMN soon_gone int; ALTER TABLE accounts DROP COLUMN soon_gone; COMMIT;
        BEGIN; ALTER TABLE items ADD COLUMN gone int; ROLLBACK;
        VACUUM FULL items; VACUUM FULL accounts;""")


def events(scene: Scene, name: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in scene.engine.log.read_text(errors="replace").splitlines()
             if f'"event":"{name}"' in line]
    return [event for event in found if event.get("stream") == scene.stream]


@contextmanager
def prepared(scene: Scene) -> Iterator[None]:
    """A transaction and a prepared one that are open when the backup is taken, and end later."""
    with scene.source.connect(scene.database, "thalweg") as session:
        session.execute("BEGIN")
        session.execute("INSERT INTO log VALUES (70, 'before the backup')")
        session.execute("SAVEPOINT part")
        session.execute("INSERT INTO log VALUES (70, 'in a subtransaction')")
        scene.run_at_source(f"BEGIN; INSERT INTO log VALUES (71, 'prepared'); PREPARE TRANSACTION '{scene.stream}'")
        try:
            yield
        finally:
            scene.source.sql(scene.database, f"COMMIT PREPARED '{scene.stream}'")
        session.execute("INSERT INTO log VALUES (70, 'behind the backup')")
        session.execute("COMMIT")


def work_and_back_up(scene: RestoredScene, work: RandomWork) -> Backup:
    """Work before the backup and behind it. The work behind it is confirmed, and so only kept."""
    change_schema(scene, 1)
    work.wait_for_more(30)
    with prepared(scene):
        backup = Backup(scene.destination)
        work.wait_for_more(60)
        change_layouts(scene)
    work.wait_for_more(60)
    scene.wait_applied()
    time.sleep(2)  # the state of mining has gone on, and was written
    return backup


def assert_equal(scene: Scene) -> None:
    scene.wait_replicating()
    scene.wait_applied(2 * SECONDS)
    scene.assert_same(WANTED)


def while_it_runs(scene: RestoredScene, backup: Backup, work: RandomWork) -> None:
    scene.relay.sever()
    work.wait_for_more(20)
    backup.put_back()
    scene.relay.mend()


def on_another_timeline(scene: RestoredScene, backup: Backup, work: RandomWork) -> None:
    scene.relay.sever()
    work.wait_for_more(20)
    backup.put_back(recovers=True)
    wait_for(lambda: not scene.destination.value("postgres", "SELECT pg_is_in_recovery()"), SECONDS, "it was promoted")
    assert scene.destination.value("postgres", "SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8)") == "00000002"
    scene.relay.mend()


def while_it_is_stopped(scene: RestoredScene, backup: Backup, work: RandomWork) -> None:
    assert scene.engine.terminate() == 0
    work.wait_for_more(20)
    backup.put_back()
    scene.engine.start()


def after_a_kill(scene: RestoredScene, backup: Backup, work: RandomWork) -> None:
    scene.engine.kill()
    backup.put_back()
    scene.engine.start()


RESTORES: list[Callable[[RestoredScene, Backup, RandomWork], None]] = [
    while_it_runs, on_another_timeline, while_it_is_stopped, after_a_kill]


@pytest.mark.parametrize("restore", RESTORES, ids=lambda restore: restore.__name__)
def test_the_only_destination_is_restored(
        scene: RestoredScene, random_: random.Random,
        restore: Callable[[RestoredScene, Backup, RandomWork], None]) -> None:
    with RandomWork(scene, random_) as work:
        start_mining(scene, WANTED, parameters={"parallelism": 3})
        backup = work_and_back_up(scene, work)
        restore(scene, backup, work)
        work.wait_for_more(20)
    assert_equal(scene)
    (went_back,) = events(scene, "mining_goes_back")
    assert parse_lsn(went_back["from"]) < parse_lsn(went_back["to"])
    assert part(scene, "LOGMINER BUILDER")["state"] in ("WAITING FOR WAL", "CAPTURING CHANGES")
    # It goes on as if nothing had been.
    assert scene.engine.terminate() == 0
    scene.engine.start()
    scene.run_at_source("INSERT INTO log VALUES (99, 'after all that')")
    assert_equal(scene)
    assert len(events(scene, "mining_goes_back")) == 1


def test_kills_while_it_is_mined_again(scene: RestoredScene, random_: random.Random) -> None:
    with RandomWork(scene, random_) as work:
        start_mining(scene, WANTED, parameters={"parallelism": 3})
        backup = work_and_back_up(scene, work)
        while_it_runs(scene, backup, work)
        wait_for(lambda: events(scene, "mining_goes_back"), SECONDS, "it is mined again", pause=0.005)
        for _ in range(4):
            time.sleep(random_.uniform(0, 1.5))
            scene.engine.kill()
            scene.engine.start()
        work.wait_for_more(10)
    assert_equal(scene)


def test_what_the_error_queue_had_comes_back_with_it(scene: RestoredScene, random_: random.Random) -> None:
    """A transaction that was parked before the backup is parked once; one from behind it is parked again."""
    start_mining(scene, WANTED, parameters={"disable_on_error": False})
    scene.at_destination("DELETE FROM accounts WHERE id IN (5, 6)")
    scene.run_at_source("UPDATE accounts SET note = 'parked before' WHERE id = 5")
    scene.wait_applied()
    backup = Backup(scene.destination)
    scene.run_at_source("UPDATE accounts SET note = 'parked behind' WHERE id = 6; INSERT INTO log VALUES (1, 'new')")
    scene.wait_applied()
    time.sleep(2)
    assert scene.engine.terminate() == 0
    backup.put_back()
    scene.engine.start()
    scene.run_at_source("INSERT INTO log VALUES (2, 'newer')")
    scene.wait_replicating()
    scene.wait_applied()
    scene.assert_same([("public", "log")])
    assert scene.at_destination("SELECT count(*) FROM thalweg.error_queue") == [(2,)]


def test_a_destination_is_restored_to_a_moment_of_its_copy(scene: RestoredScene, random_: random.Random) -> None:
    scene.run_at_source("INSERT INTO items SELECT 5, n, repeat(md5(n::text), 200), NULL FROM generate_series(1, 30000) "
                        "n;")
    with RandomWork(scene, random_) as work:
        start_mining(scene, WANTED, wait=False)
        scene.engine.wait_phase(scene.stream, "INSTANTIATING")
        wait_for(lambda: scene.destination.value(scene.database, "SELECT to_regclass('thalweg.stream') IS NOT NULL"),
                 SECONDS, "the stream is registered")
        backup = Backup(scene.destination)
        scene.wait_replicating()
        work.wait_for_more(30)
        scene.wait_applied()
        time.sleep(2)
        while_it_runs(scene, backup, work)
    assert_equal(scene)


class TwoServers(FanOut):
    """Its destinations are at servers of their own: `one` at the scene's, `two` at another."""

    def __init__(self, scene: Scene, other: Scene) -> None:
        super().__init__(scene)
        self.other = other

    def make(self, name: str) -> Destination:
        self.made[name] = Destination(self.scene if name == "one" else self.other, name)
        return self.made[name]

    def assert_both_same(self) -> None:
        found = [line for destination in self.made.values()
                 for line in differences(self.scene.source, destination.scene.destination, self.scene.database,
                                         destination.database, WANTED)]
        assert not found, "\n" + "\n".join(found)


@pytest.fixture
def fan_out(scene: RestoredScene, destination_cluster: Any) -> Iterator[TwoServers]:
    other = Scene(scene.source, destination_cluster, scene.engine, scene.database)
    if not destination_cluster.value("postgres", "SELECT count(*) FROM pg_roles WHERE rolname = 'thalweg'"):
        destination_cluster.sql("postgres", "CREATE ROLE thalweg LOGIN PASSWORD 'system-test'",
                                "GRANT SET ON PARAMETER session_replication_role TO thalweg")
    fan_out = TwoServers(scene, other)
    yield fan_out
    fan_out.close()


@pytest.mark.parametrize("engine", ["runs", "is stopped", "is killed"])
def test_one_of_two_is_restored(fan_out: TwoServers, random_: random.Random, engine: str) -> None:
    scene = fan_out.scene
    with RandomWork(scene, random_) as work:
        start_mining_fan_out(fan_out, "one", "two")
        work.wait_for_more(30)
        backup = Backup(scene.destination)
        work.wait_for_more(60)
        change_layouts(scene)
        work.wait_for_more(60)
        fan_out.wait_applied("one", "two")
        time.sleep(2)
        if engine == "is stopped":
            assert scene.engine.terminate() == 0
        elif engine == "is killed":
            scene.engine.kill()
        fan_out.made["one"].relay.sever()
        backup.put_back()
        fan_out.made["one"].relay.mend()
        if engine != "runs":
            scene.engine.start()
        work.wait_for_more(20)
    fan_out.wait_applied("one", "two", seconds=2 * SECONDS)
    fan_out.assert_both_same()
    assert len(events(scene, "mining_goes_back")) == 1
    for name in ("one", "two"):
        fan_out.wait_phase(name, "REPLICATING")
        assert fan_out.status(name)["error"] is None


def test_one_is_restored_whose_backlog_had_gone(fan_out: TwoServers, random_: random.Random) -> None:
    """The backlog on disk is of later changes than those that it lacks, and part of it was applied."""
    scene = fan_out.scene
    with RandomWork(scene, random_) as work:
        start_mining_fan_out(fan_out, "one", "two")
        work.wait_for_more(20)
        backup = Backup(scene.destination)
        work.wait_for_more(60)
        fan_out.wait_applied("one", "two")
        time.sleep(2)
        fan_out.made["one"].relay.sever()
        scene.run_at_source("INSERT INTO items SELECT 60, n, md5(n::text), NULL FROM generate_series(1, 20000) n; "
                            "DELETE FROM items WHERE kind = 60 AND number % 2 = 0")
        fan_out.wait_applied("two")
        fan_out.wait("one", lambda found: found["backlog"]["lcrs"] > 10_000, "has a backlog on disk")
        backup.put_back()
        fan_out.mend("one")
        work.wait_for_more(20)
    fan_out.wait_applied("one", "two", seconds=2 * SECONDS)
    fan_out.assert_both_same()


@pytest.mark.parametrize("spills", [False, True])
def test_the_others_have_followed_a_change_of_columns(fan_out: TwoServers, random_: random.Random,
                                                      spills: bool) -> None:
    """Changes with a column that they have no more are nothing to them: they have them."""
    scene = fan_out.scene
    scene.run_at_source("ALTER TABLE accounts ADD COLUMN passing int DEFAULT 9")
    drop = "ALTER TABLE accounts DROP COLUMN passing"
    with RandomWork(scene, random_) as work:
        start_mining_fan_out(fan_out, "one", "two")
        if spills:
            fan_out.set_destinations([made.definition(txn_lcr_spill_threshold=100) for made in fan_out.made.values()])
        work.wait_for_more(20)
        backup = Backup(scene.destination)
        scene.run_at_source("UPDATE accounts SET passing = 8 WHERE id <= 250")
        work.wait_for_more(40)
        scene.run_at_source("SET lock_timeout = '20s'; " + drop)
        fan_out.wait_applied("one", "two")
        for destination in fan_out.made.values():
            destination.scene.destination.sql(destination.database, drop)
        work.wait_for_more(20)
        fan_out.wait_applied("one", "two")
        time.sleep(2)
        fan_out.made["one"].relay.sever()
        backup.put_back()
        fan_out.made["one"].relay.mend()
        work.wait_for_more(20)
    fan_out.wait_applied("one", "two", seconds=2 * SECONDS)
    assert events(scene, "mining_goes_back")
    assert fan_out.status("two")["error"] is None
    one = fan_out.made["one"]
    assert one.scene.destination.value(one.database, "SELECT count(*) FROM accounts WHERE passing = 8")
    one.scene.destination.sql(one.database, drop)
    fan_out.assert_both_same()


@pytest.mark.parametrize("receiver", ["runs", "is killed"])
def test_a_destination_of_another_engine_is_restored(scene: RestoredScene, random_: random.Random, tmp_path: Path,
                                                     receiver: str) -> None:
    pair = EnginePair(scene, tmp_path)
    try:
        with RandomWork(scene, random_) as work:
            pair.start_stream(capture_kind="wal", tables=WANTED)
            work.wait_for_more(30)
            backup = Backup(scene.destination)
            work.wait_for_more(60)
            change_layouts(scene)
            work.wait_for_more(30)
            pair.wait_applied()
            time.sleep(2)
            if receiver == "is killed":
                pair.receiver.kill()
            scene.relay.sever()
            backup.put_back()
            scene.relay.mend()
            if receiver == "is killed":
                pair.receiver.start()
            work.wait_for_more(20)
        pair.wait_replicating()
        pair.wait_applied(2 * SECONDS)
        scene.assert_same(WANTED)
        assert events(scene, "mining_goes_back")
    finally:
        pair.close()


def test_what_is_not_kept_is_a_gap(scene: RestoredScene, random_: random.Random) -> None:
    with RandomWork(scene, random_) as work:
        start_mining(scene, WANTED, wal_keep_mb=0)
        work.wait_for_more(20)
        reached = str(scene.destination.value(scene.database, "SELECT max(low_watermark) FROM thalweg.stream"))
        backup = Backup(scene.destination)
        work.wait_for_more(30)
        scene.wait_applied()
        time.sleep(2)
        assert scene.engine.terminate() == 0  # a dictionary of now: nothing older is needed
        scene.engine.start()
        scene.wait_replicating()
        work.wait_for_more(10)
        time.sleep(2)
        while_it_runs(scene, backup, work)
    error = scene.engine.wait_aborted(scene.stream)
    assert_says_what_to_do(error, "position_gap")
    assert "keeps the WAL of what commits from" in error["message"], error
    assert "wal_keep_mb" in error["message"], error
    assert parse_lsn(error["lsn"]) >= parse_lsn(reached)
    assert "copy" in error["cure"], error


def test_with_logical_decoding_it_is_a_gap(scene: RestoredScene, random_: random.Random) -> None:
    with RandomWork(scene, random_) as work:
        start_mining(scene, WANTED, capture_kind="logical")
        work.wait_for_more(20)
        backup = Backup(scene.destination)
        work.wait_for_more(30)
        scene.wait_applied()
        time.sleep(2)
        while_it_runs(scene, backup, work)
    error = scene.engine.wait_aborted(scene.stream)
    assert_says_what_to_do(error, "position_gap")
    assert "log mining" in error["cure"], error
