"""Streams that mine the source's WAL follow a failover to a physical standby, which has no slot of theirs; or stop.

THALWEG_SWITCHOVERS sets how many switchovers under load there are.
"""

import json
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import SETTINGS, SOURCE_SETTINGS
from harness.cluster import Cluster, wait_for
from harness.engine import SECONDS, Engine, parse_lsn
from harness.failover import FailoverScene, Servers
from harness.fan_out import FanOut
from harness.mining import TABLES, WANTED, RandomWork, part, start_mining, start_mining_fan_out
from harness.outage import assert_says_what_to_do, wait_retrying

SWITCHOVERS = int(os.environ.get("THALWEG_SWITCHOVERS", "3"))


@pytest.fixture
def scene(request: pytest.FixtureRequest, workspace: Path, destination_cluster: Cluster) -> Iterator[FailoverScene]:
    name = f"mined_{request.node.name.removeprefix('test_')[:34]}"
    servers = Servers(workspace, name, SETTINGS | SOURCE_SETTINGS, synchronises=False)
    engine = Engine(workspace / f"engine-{name}")
    scene = FailoverScene(servers, destination_cluster, engine, name[:50], libraries=False)
    scene.make()
    scene.run_at_source(TABLES)
    yield scene
    scene.end(getattr(request.node, "failed", False))


def wait_for_commits_of_the_standby(scene: FailoverScene, wait: bool) -> None:
    """A commit returns once the standby has it, or at once."""
    scene.source.sql("postgres", f"ALTER SYSTEM SET synchronous_standby_names = '{'walreceiver' if wait else ''}'",
                     "SELECT pg_reload_conf()")


def assert_goes_on(scene: FailoverScene, *timelines: int) -> None:
    scene.wait_replicating()
    scene.wait_applied(2 * SECONDS)
    scene.assert_same(WANTED)
    assert scene.timeline() in timelines, scene.timeline()


def wait_diverged(scene: FailoverScene) -> str:
    error = scene.engine.wait_aborted(scene.stream)
    assert_says_what_to_do(error, "source_diverged")
    return str(error["message"])


def test_switchovers_under_load(scene: FailoverScene, random_: random.Random) -> None:
    """The primary stops, or is killed while commits wait for the standby; the engine runs, or is killed around it."""
    servers = scene.servers
    start_mining(scene, WANTED)
    with RandomWork(scene, random_) as work:
        for n in range(SWITCHOVERS):
            work.wait_for_more(random_.randint(3, 15))
            kind, engine = random_.choice(("stopped", "killed")), random_.choice(("runs", "before", "after", "both"))
            wait_for_commits_of_the_standby(scene, kind == "killed")
            work.wait_for_more(3)
            if engine in ("before", "both"):
                scene.engine.kill()
            if kind == "killed":
                servers.kill_primary()
            else:
                servers.primary.stop()
            servers.promote()
            if engine in ("before", "both"):
                scene.engine.start()
            if engine in ("after", "both"):
                time.sleep(random_.uniform(0, 2))
                scene.engine.kill()
                scene.engine.start()
            work.wait_for_more(5)
            scene.wait_replicating(2 * SECONDS)
            print(f"switchover {n}: {kind}, engine {engine}, timeline {scene.timeline()}")
            servers.follow()
    assert_goes_on(scene, SWITCHOVERS + 1)


def test_what_nobody_has_is_cut_off(scene: FailoverScene) -> None:
    """WAL that the standby never got is staged and mined, and none of the stream's changes is in it."""
    servers = scene.servers
    start_mining(scene, WANTED)
    scene.at_source("INSERT INTO log VALUES (1, 'both have it')")
    scene.wait_applied()
    with servers.standby_that_missed():
        # Some of it with positions that a heartbeat would move, too.
        for n in range(3):
            scene.run_at_source("INSERT INTO unwanted (body) SELECT repeat(md5(n::text), 100) FROM "
                                f"generate_series(1, 4000) n; SELECT pg_logical_emit_message(true, 'x', '{n}')")
            scene.source.sql("postgres", "SELECT pg_switch_wal()")
        scene.wait_applied()
        time.sleep(2)  # the engine has noted how far its destination is
    scene.run_at_source("INSERT INTO log SELECT 2, repeat('new', n) FROM generate_series(1, 500) n; "
                        "UPDATE accounts SET balance = 0 WHERE id < 50; ALTER TABLE items ADD COLUMN late int")
    scene.at_destination("ALTER TABLE items ADD COLUMN late int")
    scene.run_at_source("UPDATE items SET late = 7 WHERE kind = 1")
    assert_goes_on(scene, 2)
    scene.engine.kill()
    scene.engine.start()
    scene.at_source("INSERT INTO log VALUES (3, 'after a restart')")
    assert_goes_on(scene, 2)


def test_what_the_promoted_server_lacks_is_named(scene: FailoverScene) -> None:
    servers = scene.servers
    start_mining(scene, WANTED)
    scene.at_source("INSERT INTO log VALUES (1, 'both have it')")
    scene.wait_applied()
    with servers.standby_that_missed():
        lost = scene.at_source("WITH a AS (INSERT INTO log VALUES (2, 'lost')), b AS (DELETE FROM accounts WHERE id = "
                               "3) SELECT pg_current_xact_id()::text")[0][0]
        scene.run_at_source("INSERT INTO unwanted (body) VALUES ('lost, and nobody misses it')")
        again = scene.at_source("UPDATE items SET body = 'lost' WHERE kind = 1 RETURNING "
                                "pg_current_xact_id()::text")[0][0]
        scene.wait_applied()
        time.sleep(2)
    scene.at_source("INSERT INTO log VALUES (9, 'elsewhere')")
    message = wait_diverged(scene)
    assert "2 transactions of that timeline" in message, message
    assert f"{lost} at " in message and f"{again} at " in message, message
    assert "public.accounts, public.log" in message and "public.items" in message, message
    assert scene.timeline() == 1
    assert scene.slots() == 0, "a slot that nobody reads keeps WAL"
    assert not scene.at_destination("SELECT FROM log WHERE writer = 9")
    # The cure that copies nothing: the server that has it all.
    servers.go_back()
    scene.engine.retry(scene.stream)
    scene.wait_replicating()
    scene.at_source("INSERT INTO log VALUES (3, 'at the old server')")
    assert_goes_on(scene, 1)


def test_a_server_that_was_left_behind_is_no_source(scene: FailoverScene) -> None:
    servers = scene.servers
    start_mining(scene, WANTED)
    scene.wait_applied()
    servers.wait_standby()
    servers.primary.stop()
    servers.promote()
    scene.at_source("INSERT INTO log VALUES (1, 'on the second timeline')")
    assert_goes_on(scene, 2)
    servers.primary.stop()
    servers.primary, servers.standby = servers.standby, servers.primary
    servers.primary.start()
    scene.at_source("INSERT INTO log VALUES (2, 'on the first one')")
    scene.engine.kill()
    scene.engine.start()
    assert "left behind" in wait_diverged(scene)


def test_wal_that_the_promoted_server_no_longer_has(scene: FailoverScene) -> None:
    """No archive: the stream says so, and does not leave anything out."""
    servers = scene.servers
    start_mining(scene, WANTED)
    scene.wait_applied()
    scene.engine.kill()
    for n in range(4):
        scene.run_at_source(f"INSERT INTO log SELECT {n}, repeat(md5(n::text), 60) FROM generate_series(1, 8000) n")
    servers.wait_standby()
    servers.kill_primary()
    servers.promote()
    for n in range(3):
        scene.run_at_source(f"INSERT INTO log VALUES ({n}, 'forgets')")
        scene.source.sql("postgres", "SELECT pg_switch_wal()", "CHECKPOINT")
    scene.engine.start()
    error = scene.engine.wait_aborted(scene.stream)
    assert_says_what_to_do(error, "slot_lost")
    assert "removed" in error["message"], error


def test_several_destinations_follow_together(scene: FailoverScene) -> None:
    servers = scene.servers
    fan = FanOut(scene)
    try:
        start_mining_fan_out(fan, "a", "b")
        scene.at_source("INSERT INTO log VALUES (1, 'both have it')")
        fan.wait_applied()
        servers.wait_standby()
        servers.kill_primary()
        servers.promote()
        scene.at_source("INSERT INTO log VALUES (2, 'on the second timeline')")
        fan.wait_applied()
        fan.assert_same("a", "b", tables=WANTED)
        assert [scene.timeline(fan.made[name].database) for name in ("a", "b")] == [2, 2]
    finally:
        fan.close()


def test_one_of_several_destinations_has_what_the_promoted_server_lacks(scene: FailoverScene) -> None:
    """It is given up. The other one follows; or stops with it, where the session's end has dropped the way back."""
    servers = scene.servers
    fan = FanOut(scene)

    def given_up() -> dict[str, Any] | None:
        """The error, of the whole stream or of the destination alone."""
        status = scene.engine.status(scene.stream)
        part = status if status["status"] == "ABORTED" else fan.status("a")
        return dict(part["error"]) if part["status"] == "ABORTED" else None

    try:
        start_mining_fan_out(fan, "a", "b")
        scene.at_source("INSERT INTO log VALUES (1, 'both have it')")
        fan.wait_applied()
        servers.wait_standby()
        servers.standby.stop()
        fan.made["b"].relay.sever()
        fan.wait("b", lambda destination: destination["phase"] == "RETRYING", "is away")
        scene.at_source("INSERT INTO log VALUES (2, 'only one destination has it')")
        fan.wait_applied("a")
        servers.kill_primary()
        servers.standby.start()
        servers.promote()
        scene.at_source("INSERT INTO log VALUES (3, 'on the second timeline')")
        wait_for(given_up, SECONDS, "it is given up")
        error = given_up()
        assert error and error["code"] == "source_diverged" and error["cure"], error
        if scene.engine.status(scene.stream)["status"] == "ABORTED":
            fan.made["b"].relay.mend()
            rows = scene.destination.sql(fan.made["b"].database, "SELECT writer FROM log WHERE writer > 1")
            assert rows == [], "nothing of the second timeline"
        else:
            fan.mend("b")
            fan.wait_applied("b")
            fan.assert_same("b", tables=WANTED)
    finally:
        fan.close()


def test_a_standby_is_waited_for(scene: FailoverScene) -> None:
    """Where the address alone decides which server is meant, and it is not promoted yet."""
    servers = scene.servers
    scene.engine.put_stream(scene.stream, scene.source_conninfo.replace("target_session_attrs=read-write", ""),
                            scene.destination_conninfo, WANTED, {}, capture_kind="wal")
    scene.wait_replicating()
    scene.wait_applied()
    servers.wait_standby()
    servers.kill_primary()
    wait_retrying(scene.engine, scene.stream, "source_read_only")
    servers.promote()
    scene.at_source("INSERT INTO log VALUES (1, 'on the second timeline')")
    assert_goes_on(scene, 2)
    wait_for(lambda: part(scene, "WAL SHIPMENT")["state"] == "RECEIVING WAL", SECONDS, "it receives")


def confirmed(scene: FailoverScene) -> int:
    """Mining goes on behind it after a restart."""
    (state,) = scene.engine.directory.rglob("mining.json")
    return parse_lsn(json.loads(state.read_text())["confirmed"])


def test_a_new_stream_that_was_idle(scene: FailoverScene) -> None:
    """It goes back to its first dictionary, where it has noted nothing later: the standby lacks nothing of it."""
    start_mining(scene, WANTED)
    scene.wait_applied()
    wait_for(lambda: list(scene.engine.directory.rglob("dictionary-*")), SECONDS, "there is a dictionary")
    scene.servers.wait_standby()
    with scene.servers.standby_that_missed():
        scene.run_at_source("INSERT INTO unwanted (body) VALUES ('on the standby it never was')")
        end = parse_lsn(str(scene.source.value("postgres", "SELECT pg_current_wal_lsn()")))
        wait_for(lambda: confirmed(scene) >= end, SECONDS, "the engine has gone beyond")
    scene.at_source("INSERT INTO log VALUES (9, 'new')")
    assert_goes_on(scene, 2)


def test_a_change_of_kind_waits_meanwhile(scene: FailoverScene) -> None:
    """No server has a slot of the stream: what mined is found by its staged WAL."""
    start_mining(scene, WANTED)
    scene.run_at_source("INSERT INTO log VALUES (1, 'both have it')")
    scene.wait_applied()
    scene.servers.wait_standby()
    scene.servers.kill_primary()
    scene.engine.wait_phase(scene.stream, "RETRYING")
    scene.engine.set_stream(scene.stream, capture_kind="logical")
    scene.servers.promote()
    scene.at_source("INSERT INTO log VALUES (2, 'at the promoted server')")
    assert_goes_on(scene, 2)
    scene.engine.wait_status(scene.stream, lambda found: found["phase"] == "REPLICATING" and not found["kind_change"],
                             SECONDS, "the kind has changed")
    assert scene.source.sql("postgres", "SELECT slot_type FROM pg_replication_slots") == [("logical",)]
    scene.at_source("INSERT INTO log VALUES (3, 'decoded')")
    scene.wait_applied()
    scene.assert_same(WANTED)
