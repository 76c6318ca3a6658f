"""Streams that mine the source's WAL: exactly once through kills, restarts, several destinations, bounds, refusals."""

import contextlib
import itertools
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from harness.cluster import PASSWORD, Cluster, wait_for
from harness.compare import Table
from harness.crashes import crash_destination, crash_source, kill_engine
from harness.engine import SECONDS
from harness.fan_out import FanOut
from harness.markers import passed
from harness.mining import (
    TABLES,
    WANTED,
    RandomWork,
    change_schema,
    part,
    restart_lsn,
    start_mining,
    start_mining_fan_out,
)
from harness.outage import assert_says_what_to_do
from harness.scene import Scene
from harness.troubles import copy_again, wait_trouble
from harness.workload import Writers

MIB = 1 << 20


@pytest.fixture
def fan_out(scene: Scene) -> Iterator[FanOut]:
    fan_out = FanOut(scene)
    yield fan_out
    fan_out.close()


def wait_aborted(scene: Scene, code: str, naming: str = "") -> None:
    status = scene.engine.wait_status(scene.stream, lambda found: found["status"] == "ABORTED", SECONDS, "ABORTED")
    assert_says_what_to_do(status["error"], code)
    assert naming in status["error"]["message"], status["error"]


def test_the_copy_and_what_comes_after_it(scene: Scene) -> None:
    scene.run_at_source(TABLES)
    start_mining(scene, WANTED)
    scene.run_at_source("INSERT INTO accounts VALUES (1001, 'later', 'NaN'); DELETE FROM items WHERE kind = 1;"
                        "UPDATE accounts SET note = repeat('long ', 5000) WHERE id = 7;"
                        "INSERT INTO log VALUES (1, 'a');"
                        "UPDATE accounts SET balance = 0 WHERE id = 7; TRUNCATE log; INSERT INTO log VALUES (2, 'b')")
    scene.wait_applied()
    scene.assert_same(WANTED)
    plugins = scene.source.sql("postgres", "SELECT slot_type FROM pg_replication_slots WHERE slot_name = "
                               f"'thalweg_{scene.stream}' OR database = '{scene.database}'")
    assert plugins == [("physical",)], "no slot decodes"
    assert part(scene, "WAL SHIPMENT")["state"] == "RECEIVING WAL"
    assert part(scene, "LOGMINER BUILDER")["counters"]["records"] > 0
    scene.engine.request("POST", f"/v1/streams/{scene.stream}/markers", {"id": "m7x3c9v1", "label": "here"})
    stages = ["CAPTURE", "ENQUEUE", "DEQUEUE", "DISPATCH", "COMMIT"]
    wait_for(lambda: passed([scene.engine], scene.stream, "m7x3c9v1", stages), SECONDS, "the marker has passed")
    scene.engine.set_stream(scene.stream, status="DROPPED")
    scene.engine.wait_status(scene.stream, lambda found: found["status"] == "DROPPED", SECONDS, "DROPPED")
    scene.assert_nothing_left()


def test_a_restart_goes_on_where_it_was(scene: Scene) -> None:
    scene.run_at_source(TABLES)
    start_mining(scene, WANTED)
    with scene.source.connect(scene.database, "thalweg") as session:
        session.execute("BEGIN")
        session.execute("INSERT INTO log VALUES (1, 'before the restart')")
        scene.run_at_source("INSERT INTO log VALUES (2, 'and committed')")
        scene.wait_applied()
        assert scene.engine.terminate() == 0
        session.execute("INSERT INTO log VALUES (1, 'while it was down')")
        scene.run_at_source("INSERT INTO accounts VALUES (2001, 'x')")
        scene.engine.start()
        scene.wait_replicating()
        session.execute("SAVEPOINT s")
        session.execute("INSERT INTO log VALUES (1, 'rolled back')")
        session.execute("ROLLBACK TO s")
        session.execute("COMMIT")
    scene.wait_applied()
    scene.assert_same(WANTED)
    assert int(str(scene.at_destination("SELECT count(*) FROM log WHERE writer = 1")[0][0])) == 2


@pytest.mark.parametrize("round_", range(4))
def test_starts_beside_open_transactions(scene: Scene, random_: random.Random, round_: int) -> None:
    scene.run_at_source(TABLES)
    with RandomWork(scene, random_, writers=6) as work:
        work.wait_for_more(round_)
        start_mining(scene, WANTED, parameters={"parallelism": 3})
        work.wait_for_more(5)
    scene.wait_applied(2 * SECONDS)
    scene.assert_same(WANTED)


def test_kills_of_all_three_lose_and_duplicate_nothing(scene: Scene, random_: random.Random) -> None:
    scene.run_at_source(TABLES)
    with RandomWork(scene, random_) as work:
        start_mining(scene, WANTED, parameters={"parallelism": 3})
        before = restart_lsn(scene)
        faults = [kill_engine, crash_source, crash_destination, kill_engine, crash_source, kill_engine]
        for n, fault in enumerate(random_.sample(faults, len(faults))):
            work.wait_for_more(random_.randint(10, 60))
            change_schema(scene, n)
            time.sleep(random_.uniform(0, 0.4))
            print(f"fault: {fault.__name__}")
            fault(scene)
        work.wait_for_more(20)
    scene.wait_applied(2 * SECONDS)
    scene.assert_same(WANTED)
    assert restart_lsn(scene) > before, "the source keeps WAL that is staged"


def test_a_start_behind_a_checkpoint_without_whole_pages(scene: Scene) -> None:
    """The cure asks for a checkpoint, and without one the start is refused."""
    scene.run_at_source(TABLES)
    off = ("ALTER SYSTEM SET full_page_writes = off", "SELECT pg_reload_conf()")
    on = ("ALTER SYSTEM RESET full_page_writes", "SELECT pg_reload_conf()")

    def is_set(value: str) -> bool:
        return bool(scene.source.value("postgres", "SHOW full_page_writes") == value)

    try:
        scene.source.sql("postgres", *off)
        wait_for(lambda: is_set("off"), SECONDS, "it is off")
        scene.source.sql("postgres", "CHECKPOINT")
        scene.run_at_source("ALTER TABLE accounts ADD COLUMN late int; ALTER TABLE accounts DROP COLUMN late")
        scene.source.sql("postgres", *on)
        wait_for(lambda: is_set("on"), SECONDS, "it is on")
        start_mining(scene, WANTED, wait=False)
        wait_aborted(scene, "full_page_writes_off", "run CHECKPOINT")
        scene.source.sql("postgres", "CHECKPOINT")
        scene.engine.retry(scene.stream)
        scene.wait_replicating()
    finally:
        scene.source.sql("postgres", *on, "CHECKPOINT")
    scene.at_source("UPDATE accounts SET note = 'late' WHERE id < 10")
    scene.wait_applied()
    scene.assert_same(WANTED)


def test_two_destinations(fan_out: FanOut, random_: random.Random) -> None:
    scene = fan_out.scene
    scene.run_at_source(TABLES)
    with RandomWork(scene, random_) as work:
        start_mining_fan_out(fan_out, "one", "two")
        work.wait_for_more(30)
        fan_out.made["two"].relay.cut()
        work.wait_for_more(60)
        scene.engine.kill()
        scene.engine.start()
        work.wait_for_more(30)
        fan_out.mend("two")
        work.wait_for_more(10)
    fan_out.wait_applied("one", "two", seconds=2 * SECONDS)
    fan_out.assert_same("one", "two", tables=WANTED)


def test_a_transaction_above_the_memory_comes_in_pieces(scene: Scene) -> None:
    scene.run_at_source(TABLES)
    start_mining(scene, WANTED, capture_memory_mb=1)
    scene.run_at_source("""
        BEGIN; INSERT INTO items SELECT 50, n, repeat(md5(n::text), 5), NULL FROM generate_series(1, 20000) n;
        SAVEPOINT a; INSERT INTO items SELECT 51, n, repeat(md5(n::text), 5), NULL FROM generate_series(1, 20000) n;
        ROLLBACK TO a; UPDATE items SET body = 'u' WHERE kind = 50 AND number % 2 = 0;
        SAVEPOINT b; DELETE FROM items WHERE kind = 50 AND number % 3 = 0; RELEASE b; COMMIT;
        BEGIN; INSERT INTO items SELECT 52, n, repeat(md5(n::text), 5), NULL FROM generate_series(1, 20000) n; ROLLBACK;
        INSERT INTO log VALUES (1, 'behind them');""")
    scene.wait_applied()
    scene.assert_same(WANTED)
    builder = part(scene, "LOGMINER BUILDER")
    assert builder["counters"]["streamed_transactions"] == 2
    assert builder["gauges"]["held_bytes"] < MIB


def test_images_of_pages_after_a_checkpoint_are_counted(scene: Scene) -> None:
    scene.run_at_source(TABLES)
    start_mining(scene, WANTED)
    scene.run_at_source("INSERT INTO log SELECT n, repeat('x', 60) FROM generate_series(1, 50000) n")
    scene.wait_applied()
    before = part(scene, "LOGMINER BUILDER")["counters"]
    scene.source.sql("postgres", "CHECKPOINT")
    scene.run_at_source("DELETE FROM log WHERE writer % 50 = 0")
    scene.wait_applied()
    after = part(scene, "LOGMINER BUILDER")["counters"]
    mined, images = (after[name] - before[name] for name in ("mined_bytes", "image_bytes"))
    assert mined * 0.8 < images < mined


def test_a_full_staging_holds_the_source_back(scene: Scene) -> None:
    scene.run_at_source(TABLES)
    start_mining(scene, WANTED, staging_limit_mb=64, parameters={"queue_memory_mb": 1, "queue_size": 64})
    with scene.destination.connect(scene.database) as blocker:
        blocker.execute("BEGIN")
        blocker.execute("LOCK TABLE log IN ACCESS EXCLUSIVE MODE")
        for n in range(8):
            scene.run_at_source(f"INSERT INTO log SELECT {n}, repeat(md5(n::text), 60) FROM "
                                "generate_series(1, 8000) n")
        wait_for(lambda: part(scene, "WAL SHIPMENT")["state"] == "PAUSED FOR STAGING SPACE", SECONDS, "it is full")
        assert part(scene, "WAL SHIPMENT")["gauges"]["staged_bytes"] < 68 * MIB
        held = restart_lsn(scene)
        time.sleep(1)
        assert restart_lsn(scene) == held
        blocker.execute("ROLLBACK")
    scene.wait_applied(2 * SECONDS)
    scene.assert_same(WANTED)


def test_updates_that_were_given_up_later_come(scene: Scene) -> None:
    """Rows from before the consent are mined behind it."""
    scene.run_at_source(TABLES + "INSERT INTO log SELECT n, 'old' FROM generate_series(1, 100) n;")
    start_mining(scene, WANTED)
    scene.engine.set_stream(scene.stream, status="DISABLED")
    scene.engine.wait_phase(scene.stream, "STOPPED")
    scene.run_at_source("UPDATE log SET line = 'came' WHERE writer <= 50; DELETE FROM log WHERE writer = 60;"
                        "ALTER TABLE log REPLICA IDENTITY DEFAULT;")
    scene.engine.give_up_updates(scene.stream, "log")
    scene.engine.set_stream(scene.stream, status="ENABLED")
    scene.wait_replicating()
    scene.run_at_source("UPDATE log SET line = 'given up' WHERE writer > 50; DELETE FROM log WHERE writer = 70;"
                        "INSERT INTO log VALUES (0, 'new')")
    kill_engine(scene)
    scene.wait_applied()
    found = dict(scene.at_destination("SELECT line, count(*) FROM log GROUP BY 1"))
    assert found == {"came": 50, "old": 49, "new": 1}


def test_updates_are_given_up_while_somebody_tries_them(scene: Scene, random_: random.Random) -> None:
    """The source refuses them until they are given up, and takes them from then on. Nobody asks for their rows."""
    scene.run_at_source(TABLES)
    start_mining(scene, WANTED)

    def attempt(connection: psycopg.Connection[Any], random_: random.Random, number: int) -> None:
        connection.execute("INSERT INTO log VALUES (%s, %s)", (number, str(random_.random())))
        with contextlib.suppress(psycopg.errors.ObjectNotInPrerequisiteState):
            connection.execute("DELETE FROM log WHERE writer = %s AND line < '0.1'", (number,))

    scene.run_at_source("ALTER TABLE log REPLICA IDENTITY DEFAULT;")
    with Writers(scene.source, scene.database, 3, random_, attempt) as writers:
        writers.wait_for_more(100)
        scene.engine.give_up_updates(scene.stream, "log")
        scene.engine.put_desired()
        wait_for(lambda: scene.source.value(scene.database, "SELECT pubname LIKE '%_inserts' FROM "
                                            "pg_publication_tables WHERE tablename = 'log'"), SECONDS, "given up")
        writers.wait_for_more(300)
        kill_engine(scene)
        writers.wait_for_more(100)
    scene.wait_applied()
    scene.wait_replicating()
    there = "SELECT count(*) FROM log WHERE writer < 3"
    assert scene.at_destination(there)[0][0] > int(scene.source.value(scene.database, there))


def test_updates_are_taken_back_while_rows_change(scene: Scene, random_: random.Random) -> None:
    """Publication, snapshot of the copy, session: updates between the last two come as well. Each row changes once."""
    scene.run_at_source(TABLES + "CREATE TABLE ledger (id int PRIMARY KEY, value text);"
                        "INSERT INTO ledger SELECT n, 'old' FROM generate_series(1, 20000) n;")
    ledger: list[Table] = [*WANTED, ("public", "ledger")]
    scene.engine.define_stream(scene.stream, scene.source_conninfo, scene.destination_conninfo, ledger, {},
                               capture_kind="wal")
    scene.engine.give_up_updates(scene.stream, "ledger")
    scene.engine.put_desired()
    scene.wait_replicating()
    ids = itertools.count(1)

    def change(connection: psycopg.Connection[Any], random_: random.Random, number: int) -> None:
        row = next(ids)
        connection.execute("UPDATE ledger SET value = 'new' WHERE id = %s" if row % 2 else
                           "DELETE FROM ledger WHERE id = %s", (row,))
        time.sleep(0.004)

    with Writers(scene.source, scene.database, 1, random_, change) as writers:
        scene.engine.give_up_updates(scene.stream)
        scene.engine.put_desired()
        wait_trouble(scene, "ledger", "UNPUBLISHED")
        copy_again(scene, "ledger")
        scene.wait_replicating()
        writers.wait_for_more(200)
    scene.wait_applied()
    scene.assert_same(ledger)


def test_refusals_say_what_to_do(scene: Scene) -> None:
    scene.run_at_source(TABLES + "CREATE TABLE odd (id int PRIMARY KEY, shape aclitem)")
    start_mining(scene, [("public", "odd")], wait=False)
    wait_aborted(scene, "unsupported_table", "shape")
    assert scene.slots() == 0, "a slot that nobody reads"
    scene.run_at_source("ALTER TABLE odd DROP COLUMN shape")
    scene.source.set(full_page_writes="off")
    scene.source.reload()
    try:
        scene.engine.retry(scene.stream)
        wait_aborted(scene, "full_page_writes_off")
    finally:
        scene.source.set(full_page_writes="on")
        scene.source.reload()
    scene.engine.retry(scene.stream)
    scene.wait_replicating()
    scene.run_at_source("INSERT INTO odd VALUES (1)")
    scene.wait_applied()
    # A column that comes later stops the stream where it stands.
    scene.at_destination("ALTER TABLE odd ADD COLUMN shape aclitem")
    scene.run_at_source("ALTER TABLE odd ADD COLUMN shape aclitem; INSERT INTO odd VALUES (2, 'thalweg=r/thalweg')")
    wait_aborted(scene, "unsupported_table", "shape")


@pytest.mark.parametrize("runs", [True, False], ids=["engine runs", "engine is down"])
def test_changes_that_the_wal_does_not_tell_are_never_left_out(scene: Scene, runs: bool) -> None:
    scene.run_at_source(TABLES)
    start_mining(scene, WANTED)
    scene.wait_applied()
    if not runs:
        assert scene.engine.terminate() == 0
    scene.source.set(wal_level="replica")
    scene.source.restart("fast")
    try:
        scene.run_at_source("INSERT INTO accounts VALUES (3001, 'untold'); UPDATE accounts SET id = 3002 WHERE id = 1")
        if runs:
            wait_aborted(scene, "wal_level_too_low")
    finally:
        scene.source.set(wal_level="logical")
        scene.source.restart("fast")
    if runs:
        scene.engine.retry(scene.stream)
    else:
        scene.engine.start()
    scene.run_at_source("INSERT INTO log VALUES (1, 'told again')")
    wait_aborted(scene, "wal_incomplete", "wal_level")


def test_a_slot_that_is_gone(scene: Scene) -> None:
    scene.run_at_source(TABLES)
    start_mining(scene, WANTED)
    scene.engine.kill()
    wait_for(lambda: not scene.source.value("postgres", "SELECT active FROM pg_replication_slots WHERE slot_name = "
                                            f"'thalweg_{scene.stream}'"), SECONDS, "the slot is free")
    scene.source.sql("postgres", f"SELECT pg_drop_replication_slot('thalweg_{scene.stream}')")
    scene.engine.start()
    wait_aborted(scene, "slot_lost")


def test_a_staging_that_is_lost(scene: Scene) -> None:
    scene.run_at_source(TABLES)
    start_mining(scene, WANTED)
    scene.wait_applied()
    scene.engine.kill()
    (folder,) = (scene.engine.directory / "state").glob(f"spill/{scene.stream}/mined-wal")
    for path in sorted(folder.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    scene.engine.start()
    wait_aborted(scene, "position_gap")


def test_rights_and_settings_of_the_source(scene: Scene, workspace: Path) -> None:
    scene.run_at_source(TABLES)
    scene.source.sql("postgres", f"CREATE ROLE plain{scene.stream} LOGIN PASSWORD '{PASSWORD}' IN ROLE thalweg")
    try:
        conninfo = scene.source.conninfo(scene.database, f"plain{scene.stream}")
        scene.engine.put_stream(scene.stream, conninfo, scene.destination_conninfo, WANTED, {}, capture_kind="wal")
        wait_aborted(scene, "insufficient_privilege")
    finally:
        scene.source.sql("postgres", f"DROP ROLE plain{scene.stream}")
    low = Cluster(workspace, f"low-{scene.database}", {"wal_level": "replica", "fsync": "off"})
    low.initialise()
    low.start()
    try:
        elsewhere = Scene(low, scene.destination, scene.engine, scene.database)
        elsewhere.make_source()
        elsewhere.run_at_source(TABLES)
        scene.engine.put_stream(elsewhere.stream, elsewhere.source_conninfo, scene.destination_conninfo, WANTED, {},
                                capture_kind="wal")
        wait_aborted(elsewhere, "wal_level_too_low")
    finally:
        low.stop("immediate")
