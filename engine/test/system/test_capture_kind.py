"""A stream's capture_kind changes at a position, both ways and without a new copy: no change is lost or comes twice."""

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.cluster import wait_for
from harness.engine import SECONDS, parse_lsn
from harness.fan_out import FanOut
from harness.mining import TABLES, WANTED, RandomWork, start_mining
from harness.outage import assert_says_what_to_do
from harness.paths import EnginePair
from harness.scene import Scene

OTHER = {"logical": "wal", "wal": "logical"}
SLOT_TYPES = {"logical": "logical", "wal": "physical"}


@pytest.fixture
def fan_out(scene: Scene) -> Iterator[FanOut]:
    fan_out = FanOut(scene)
    yield fan_out
    fan_out.close()


@pytest.fixture
def pair(scene: Scene, tmp_path: Path) -> Iterator[EnginePair]:
    pair = EnginePair(scene, tmp_path)
    yield pair
    pair.close()


def has_kind(scene: Scene, kind: str) -> bool:
    slots = scene.source.sql("postgres", "SELECT slot_name, slot_type FROM pg_replication_slots WHERE slot_name IN "
                             f"('thalweg_{scene.stream}', 'thalweg_{scene.stream}_next')")
    return slots == [(f"thalweg_{scene.stream}", SLOT_TYPES[kind])]


def wait_kind(scene: Scene, kind: str) -> None:
    wait_for(lambda: has_kind(scene, kind), SECONDS, f"the capture is {kind}")
    scene.engine.wait_status(scene.stream, lambda found: found["phase"] == "REPLICATING" and not found["kind_change"],
                             SECONDS, f"it runs by {kind}")


def change_kind(scene: Scene, kind: str) -> None:
    scene.engine.set_stream(scene.stream, capture_kind=kind)


def wait_prepared(scene: Scene, kind: str) -> list[str]:
    """The destinations for which the change waits."""
    status = scene.engine.wait_status(scene.stream, lambda found: (found["kind_change"] or {}).get("position"), SECONDS,
                                      "the change is prepared")
    assert status["kind_change"]["to"] == kind
    return list(status["kind_change"]["waits_for"])


@contextmanager
def apply_held(scene: Scene) -> Iterator[None]:
    """While something waits to be applied."""
    with scene.destination.connect(scene.database) as blocker:
        blocker.execute("BEGIN")
        blocker.execute("LOCK TABLE log IN ACCESS EXCLUSIVE MODE")
        scene.run_at_source("INSERT INTO log VALUES (7, 'waits for the lock')")
        yield
        blocker.execute("ROLLBACK")


def start(scene: Scene, kind: str, **more: object) -> None:
    start_mining(scene, WANTED, capture_kind=kind, **more)


def test_both_ways_through_kills_of_the_engine(scene: Scene, random_: random.Random) -> None:
    scene.run_at_source(TABLES)
    kind = "logical"
    with RandomWork(scene, random_) as work:
        start(scene, kind, parameters={"parallelism": 3})
        for n in range(4):
            work.wait_for_more(random_.randint(5, 20))
            kind = OTHER[kind]
            change_kind(scene, kind)
            if n % 3 != 2:
                for _ in range(random_.randint(1, 2)):
                    time.sleep(random_.uniform(0, 0.5))
                    scene.engine.kill()
                    scene.engine.start()
            wait_kind(scene, kind)
        work.wait_for_more(10)
    scene.wait_applied(2 * SECONDS)
    scene.assert_same(WANTED)
    assert not list((scene.engine.directory / "state").glob(f"spill/{scene.stream}/mined-wal*")), "it is logical again"


def test_several_destinations_of_which_one_is_away(fan_out: FanOut, random_: random.Random) -> None:
    scene = fan_out.scene
    scene.run_at_source(TABLES)
    with RandomWork(scene, random_) as work:
        fan_out.engine.define_stream(scene.stream, scene.source_conninfo, "", WANTED, {})
        fan_out.set_destinations([fan_out.make(name).definition() for name in ("one", "two")])
        for name in ("one", "two"):
            fan_out.wait_phase(name, "REPLICATING")
        work.wait_for_more(20)
        for kind in ("wal", "logical"):
            fan_out.made["two"].relay.sever()
            work.wait_for_more(10)
            change_kind(scene, kind)
            wait_for(lambda kind=kind: has_kind(scene, kind), 2 * SECONDS, kind)  # type: ignore[misc]
            work.wait_for_more(10)
            fan_out.mend("two")
            work.wait_for_more(10)
    fan_out.wait_applied("one", "two", seconds=2 * SECONDS)
    fan_out.assert_same("one", "two", tables=WANTED)


@pytest.mark.parametrize("kind", ["logical", "wal"])
def test_a_transaction_is_open_at_the_switch(scene: Scene, kind: str) -> None:
    scene.run_at_source(TABLES)
    start(scene, kind, capture_memory_mb=1)
    large = "INSERT INTO items SELECT 50, n, repeat(md5(n::text), 5), NULL FROM generate_series({}, {}) n"
    with scene.source.connect(scene.database, "thalweg") as session:
        with apply_held(scene):
            change_kind(scene, OTHER[kind])
            assert wait_prepared(scene, OTHER[kind]) == ["warehouse"]
            assert scene.engine.destination(scene.stream)["in_effect"] is None, "told once the kind has changed"
            session.execute("BEGIN")
            session.execute(large.format(1, 20_000))
            scene.run_at_source("BEGIN; INSERT INTO log VALUES (8, 'before it'); PREPARE TRANSACTION "
                                f"'{scene.stream}'")
        wait_kind(scene, OTHER[kind])
        session.execute(large.format(20_001, 30_000))
        scene.run_at_source(f"COMMIT PREPARED '{scene.stream}'")
        session.execute("COMMIT")
    scene.wait_applied()
    scene.assert_same(WANTED)
    scene.engine.wait_in_effect(scene.stream)


@pytest.mark.parametrize(("kind", "restarts"), [("logical", False), ("wal", False), ("wal", True)])
def test_a_change_is_withdrawn(scene: Scene, kind: str, restarts: bool) -> None:
    scene.run_at_source(TABLES)
    start(scene, kind)
    with apply_held(scene):
        change_kind(scene, OTHER[kind])
        wait_prepared(scene, OTHER[kind])
        assert scene.slots() == 2
        if restarts:
            scene.engine.kill()
            scene.engine.start()
        change_kind(scene, kind)
        if not restarts:
            wait_for(lambda: has_kind(scene, kind), SECONDS, "its slot goes, though nothing is applied")
    wait_kind(scene, kind)
    scene.run_at_source("INSERT INTO log VALUES (9, 'goes on')")
    scene.wait_applied()
    scene.assert_same(WANTED)
    assert not list((scene.engine.directory / "state").glob(f"spill/{scene.stream}/mined-wal-next"))


def test_the_stream_is_dropped_meanwhile(scene: Scene) -> None:
    scene.run_at_source(TABLES)
    start(scene, "logical")
    with apply_held(scene):
        change_kind(scene, "wal")
        wait_prepared(scene, "wal")
    scene.engine.set_stream(scene.stream, status="DROPPED")
    scene.engine.wait_status(scene.stream, lambda found: found["status"] == "DROPPED", SECONDS, "DROPPED")
    scene.assert_nothing_left()


def test_a_slot_of_somebody_else_is_in_the_way(scene: Scene) -> None:
    scene.run_at_source(TABLES)
    start(scene, "wal")
    name = f"thalweg_{scene.stream}_next"
    with scene.source.connect(scene.database) as session:
        session.execute("SELECT pg_create_logical_replication_slot(%s, 'test_decoding')", (name,))
    change_kind(scene, "logical")
    scene.engine.wait_status(scene.stream, lambda found: name in (found["error"] or {}).get("message", ""), SECONDS,
                             "it says what is in the way")
    goes_on(scene, "as it was")
    scene.source.sql("postgres", f"SELECT pg_drop_replication_slot('{name}')")
    wait_kind(scene, "logical")
    goes_on(scene, "decoded")
    scene.wait_applied()
    scene.assert_same(WANTED)


def test_the_stream_is_paused(scene: Scene) -> None:
    scene.run_at_source(TABLES)
    start(scene, "logical")
    scene.engine.set_stream(scene.stream, status="DISABLED")
    scene.engine.wait_phase(scene.stream, "STOPPED")
    change_kind(scene, "wal")
    scene.run_at_source("INSERT INTO log VALUES (9, 'while it was paused'); DELETE FROM items WHERE kind = 1")
    assert has_kind(scene, "logical")
    scene.engine.set_stream(scene.stream, status="ENABLED")
    wait_kind(scene, "wal")
    scene.wait_applied()
    scene.assert_same(WANTED)


def trouble(scene: Scene, code: str) -> None:
    status = scene.engine.wait_status(scene.stream, lambda found: (found["error"] or {}).get("code") == code, SECONDS,
                                      code)
    assert_says_what_to_do(status["error"], code)
    assert "goes on" in status["error"]["message"]
    assert status["kind_change"]["position"] is None


def goes_on(scene: Scene, line: str) -> None:
    scene.run_at_source(f"INSERT INTO log VALUES (3, '{line}')")
    wait_for(lambda: scene.at_destination(f"SELECT 1 FROM log WHERE line = '{line}'"), SECONDS, "it is applied")


@pytest.mark.parametrize("kind", ["logical", "wal"])
def test_no_room_for_another_slot(scene: Scene, kind: str) -> None:
    scene.run_at_source(TABLES)
    start(scene, kind)
    fill = f"fill_{scene.stream}"
    scene.source.sql("postgres", f"SELECT pg_create_physical_replication_slot('{fill}_' || n) FROM generate_series(1, "
                     "current_setting('max_replication_slots')::int - (SELECT count(*)::int FROM "
                     "pg_replication_slots)) n")
    try:
        change_kind(scene, OTHER[kind])
        trouble(scene, "slot_limit_reached")
        goes_on(scene, "no room")
        assert scene.slots() == 1
    finally:
        scene.source.sql("postgres", "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "
                         f"WHERE starts_with(slot_name, '{fill}')")
    wait_kind(scene, OTHER[kind])
    scene.wait_applied()
    scene.assert_same(WANTED)


def test_what_a_start_refuses_a_change_waits_for(scene: Scene) -> None:
    scene.run_at_source(TABLES)
    start(scene, "logical")
    scene.source.set(full_page_writes="off")
    scene.source.reload()
    try:
        change_kind(scene, "wal")
        trouble(scene, "full_page_writes_off")
        goes_on(scene, "by decoding")
    finally:
        scene.source.set(full_page_writes="on")
        scene.source.reload()
    wait_kind(scene, "wal")
    goes_on(scene, "by mining")
    scene.assert_same(WANTED)


def test_a_destination_at_another_engine(pair: EnginePair, random_: random.Random) -> None:
    scene = pair.scene
    scene.run_at_source(TABLES)
    with RandomWork(scene, random_) as work:
        pair.start_stream()
        for kind in ("wal", "logical"):
            work.wait_for_more(10)
            pair.sender.set_stream(scene.stream, capture_kind=kind)
            pair.relay.cut()
            wait_for(lambda kind=kind: has_kind(scene, kind), SECONDS, kind)  # type: ignore[misc]
            work.wait_for_more(10)
    pair.wait_applied()
    scene.assert_same(WANTED)


def test_the_position_is_that_of_the_other_kind(scene: Scene) -> None:
    scene.run_at_source(TABLES)
    start(scene, "logical")
    with apply_held(scene):
        change_kind(scene, "wal")
        wait_prepared(scene, "wal")
        position = parse_lsn(scene.engine.status(scene.stream)["kind_change"]["position"])
    wait_kind(scene, "wal")
    assert parse_lsn(scene.engine.wait_in_effect(scene.stream)["from"]) >= position
