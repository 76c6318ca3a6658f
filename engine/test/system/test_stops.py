"""A stream that waits for somebody's lock while it starts says so, and ends as soon as it is wanted to."""

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

from harness.cluster import Cluster, wait_for
from harness.engine import DESTINATION
from harness.fan_out import FanOut
from harness.scene import Scene

# A table that autovacuum has analysed meanwhile is not measured at the start, and another statement waits.
TABLES = """CREATE TABLE item (id integer PRIMARY KEY, body text) WITH (autovacuum_enabled = off);
            INSERT INTO item SELECT i, 'b' FROM generate_series(1, 1000) i;
            CREATE TABLE aside (id integer PRIMARY KEY);"""
SOON = 5  # seconds


@dataclass(frozen=True)
class Lock:
    at: str  # the side
    taken_by: str
    statement: str  # what waits for it
    started_before: bool = False

    def cluster(self, scene: Scene) -> Cluster:
        return scene.source if self.at == "source" else scene.destination


LOCKS = {
    "slot": Lock("source", "INSERT INTO aside VALUES (1)", "CREATE_REPLICATION_SLOT"),
    "table": Lock("source", "LOCK TABLE item", "SELECT"),
    "publication": Lock("source", "LOCK TABLE item IN SHARE UPDATE EXCLUSIVE MODE", "CREATE PUBLICATION"),
    "bookkeeping": Lock("destination", "LOCK TABLE thalweg.stream_table", "thalweg.stream_table", started_before=True),
    "progress": Lock("destination", "LOCK TABLE thalweg.stream IN EXCLUSIVE MODE", "UPDATE thalweg.stream",
                     started_before=True),
}


@contextmanager
def held(lock: Lock, scene: Scene) -> Iterator[int]:
    with psycopg.connect(lock.cluster(scene).conninfo(scene.database), application_name="somebody") as connection:
        connection.execute(lock.taken_by)
        yield connection.info.backend_pid


def the_wait(scene: Scene, lock: Lock, pid: int) -> dict[str, Any]:
    def shown() -> dict[str, Any] | None:
        waits = scene.engine.status(scene.stream)["waits"]
        return next((wait for wait in waits if [by["pid"] for by in wait["blockers"]] == [pid]), None)

    wait = dict(wait_for(shown, 20, "the status says what it waits for"))
    assert (wait["side"], wait["database"], wait["destination"]) == (
        lock.at, lock.at, None if lock.at == "source" else DESTINATION)
    assert lock.statement in wait["statement"]
    assert wait["blockers"][0]["application_name"] == "somebody"
    return wait


def wait_given_up(scene: Scene, lock: Lock) -> None:
    """Until no statement of the engine waits at the server, though the lock is held: a request to cancel one takes its
    moment there. But for those who only look at the tables, also while the stream is stopped."""
    waiting = ("SELECT count(*) FROM pg_stat_activity WHERE usename = 'thalweg' AND application_name NOT LIKE "
               "'thalweg tables %' AND wait_event_type = 'Lock'")
    wait_for(lambda: lock.cluster(scene).value(scene.database, waiting) == 0, SOON,
             "what the engine has given up ends at the server")


def disable(scene: Scene) -> None:
    scene.engine.set_stream(scene.stream, status="DISABLED")
    scene.engine.wait_status(scene.stream, lambda found: found["status"] == "DISABLED", SOON, "DISABLED")


@pytest.mark.parametrize("kind", LOCKS)
def test_a_start_that_waits_for_a_lock(scene: Scene, kind: str) -> None:
    lock = LOCKS[kind]
    scene.run_at_source(TABLES)
    if lock.started_before:
        scene.start_stream([("public", "item")])
        disable(scene)
    with held(lock, scene) as pid:
        if lock.started_before:
            scene.engine.set_stream(scene.stream, status="ENABLED")
        else:
            scene.start_stream([("public", "item")], wait=False)
        the_wait(scene, lock, pid)
        disable(scene)
        wait_given_up(scene, lock)
        wait_for(lambda: scene.slots() == int(lock.started_before), SOON, "no slot holds WAL for a stream not there")
        assert scene.engine.status(scene.stream)["error"] is None

        scene.engine.set_stream(scene.stream, status="ENABLED")
        the_wait(scene, lock, pid)
        begun = time.monotonic()
        assert scene.engine.terminate() == 0
        assert time.monotonic() - begun < SOON
        wait_given_up(scene, lock)
        scene.engine.start()
        the_wait(scene, lock, pid)
        if lock.at == "source":
            scene.engine.set_stream(scene.stream, status="DROPPED")
            scene.engine.wait_status(scene.stream, lambda found: found["status"] == "DROPPED", SOON, "DROPPED")
            scene.assert_nothing_left()
            scene.engine.streams.clear()
            scene.stream = secrets.token_hex(5)
            scene.start_stream([("public", "item")], wait=False)
            the_wait(scene, lock, pid)
    scene.wait_replicating()
    assert scene.engine.status(scene.stream)["waits"] == []
    scene.at_source("INSERT INTO item VALUES (2000, 'after')", "UPDATE item SET body = 'c' WHERE id % 3 = 0")
    scene.wait_applied()
    scene.assert_same([("public", "item")])


def test_a_removal_that_waits_for_a_lock(scene: Scene) -> None:
    """It says so; whoever forces it gets what is left behind instead."""
    lock = Lock("destination", "LOCK TABLE thalweg.stream_table", "thalweg.stream_table")
    scene.run_at_source(TABLES)
    scene.start_stream([("public", "item")])
    with held(lock, scene) as pid:
        scene.engine.set_stream(scene.stream, status="DROPPED")
        the_wait(scene, lock, pid)
        scene.engine.set_stream(scene.stream, force=True)
        dropped = scene.engine.wait_status(scene.stream, lambda found: found["status"] == "DROPPED", 10, "DROPPED")
        assert "DELETE FROM thalweg.stream_table" in dropped["error"]["message"]
        wait_given_up(scene, lock)


def test_a_copy_to_a_destination_that_falls_silent(scene: Scene) -> None:
    """Nor does anybody there take the request to cancel it."""
    fan = FanOut(scene)
    try:
        scene.run_at_source("CREATE TABLE item (id integer PRIMARY KEY, body text); INSERT INTO item SELECT i, "
                            "repeat(md5(i::text), 16) FROM generate_series(1, 100000) i;")
        fan.start_stream("a", wait=False, copy_workers=1)
        relay = fan.made["a"].relay
        fan.wait("a", lambda destination: any(table["state"] == "COPYING" for table in destination["tables"]),
                 "COPYING")
        relay.silence()
        scene.engine.set_stream(scene.stream, status="DISABLED")
        scene.engine.wait_status(scene.stream, lambda found: found["status"] == "DISABLED", 30, "DISABLED")
        relay.mend()
        relay.cut()
        scene.engine.set_stream(scene.stream, status="ENABLED")
        fan.wait_phase("a", "REPLICATING")
        fan.assert_same()
    finally:
        fan.close()


def test_several_destinations_that_wait_for_a_lock(scene: Scene) -> None:
    """The capture waits for the source, or one destination for its own server while the other goes on."""
    fan = FanOut(scene)
    lock = LOCKS["slot"]
    scene.run_at_source(TABLES)
    try:
        with held(lock, scene) as pid:
            fan.start_stream("a", "b", wait=False)
            the_wait(scene, lock, pid)
            disable(scene)
            wait_given_up(scene, lock)
            scene.engine.set_stream(scene.stream, status="ENABLED")
            the_wait(scene, lock, pid)
        for name in ("a", "b"):
            fan.wait_phase(name, "REPLICATING")
        disable(scene)
        database = fan.made["b"].database
        with psycopg.connect(scene.destination.conninfo(database), application_name="somebody") as blocker:
            blocker.execute("LOCK TABLE thalweg.stream IN EXCLUSIVE MODE")
            scene.engine.set_stream(scene.stream, status="ENABLED")
            fan.wait_phase("a", "REPLICATING")
            [wait] = wait_for(lambda: scene.engine.status(scene.stream)["waits"], 20, "it says what it waits for")
            assert (wait["side"], wait["destination"], wait["database"]) == ("destination", "b", "b")
            assert [by["pid"] for by in wait["blockers"]] == [blocker.info.backend_pid]
            begun = time.monotonic()
            assert scene.engine.terminate() == 0
            assert time.monotonic() - begun < SOON
        scene.engine.start()
        fan.wait_phase("b", "REPLICATING")
        scene.at_source("UPDATE item SET body = 'c' WHERE id % 3 = 0")
        fan.wait_applied()
        fan.assert_same()
    finally:
        fan.close()
