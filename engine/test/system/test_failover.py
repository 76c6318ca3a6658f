"""A failover of the source: to a standby with a copy of the slot, which goes on along a new timeline.

PostgreSQL 17 keeps the copy itself, and capture never gets ahead of the standby there; before, a test copies the slot's
file and lets the standby catch up.
"""

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import SETTINGS, SOURCE_SETTINGS
from harness.cluster import Cluster, wait_for
from harness.engine import SECONDS, Engine
from harness.failover import FailoverScene, Servers
from harness.fan_out import FanOut
from harness.outage import assert_recovered, start_again, wait_retrying
from harness.paths import EnginePair
from harness.workload import PgBench, make_pgbench_tables

TABLE = "CREATE TABLE t (id bigint PRIMARY KEY, v text NOT NULL);"


@pytest.fixture
def scene(request: pytest.FixtureRequest, workspace: Path, destination_cluster: Cluster) -> Iterator[FailoverScene]:
    name = request.node.name.removeprefix("test_")[:40]
    servers = Servers(workspace, name, SETTINGS | SOURCE_SETTINGS)
    engine = Engine(workspace / f"engine-{name}")
    # Servers of another release (THALWEG_PG_BIN) come without our libraries.
    ours = destination_cluster.value("postgres", "SELECT count(*) FROM pg_available_extensions WHERE name = "
                                                 "'thalweg_datalayer'")
    scene = FailoverScene(servers, destination_cluster, engine, f"f_{name}"[:50], libraries=bool(ours))
    scene.make()
    yield scene
    scene.end(getattr(request.node, "failed", False))


def insert(scene: FailoverScene, first: int, last: int) -> None:
    scene.at_source(f"INSERT INTO t SELECT n, repeat(md5(n::text), 10) FROM generate_series({first}, {last}) n")


def fail_over(scene: FailoverScene) -> None:
    scene.servers.kill_primary()
    scene.servers.promote()


def test_a_running_stream_goes_on_at_the_promoted_standby(scene: FailoverScene, random_: random.Random) -> None:
    """Under load, again after a restart of the engine, and once more along a third timeline."""
    make_pgbench_tables(scene.source, scene.database, scale=1)
    servers = scene.servers
    scene.start_stream(parallelism=4)
    log = scene.engine.directory / "pgbench.log"

    def load(seconds: float) -> None:
        with PgBench(scene.source, scene.database, rate=400, clients=4, log=log, seed=random_.randrange(2**31)):
            time.sleep(seconds)

    load(1)
    servers.carry_slot(scene.slot)
    if servers.synchronises:
        with PgBench(scene.source, scene.database, rate=400, clients=4, log=log, seed=random_.randrange(2**31)):
            time.sleep(2)
            servers.kill_primary()
    else:
        load(2)
        servers.wait_standby()
        servers.kill_primary()
    wait_retrying(scene.engine, scene.stream, "database_unreachable", "connection_lost")
    servers.promote()
    scene.wait_replicating()
    load(1)
    scene.wait_applied()
    scene.assert_same()
    assert scene.timeline() == 2
    assert_recovered(scene.engine, scene.stream)

    scene.engine.kill()
    servers.promote_again()
    load(1)
    scene.engine.start()
    scene.wait_replicating()
    load(1)
    scene.wait_applied()
    scene.assert_same()
    assert scene.timeline() == 3
    assert scene.source.value(scene.database, "SELECT count(*) FROM pgbench_history") > 10


def test_a_standby_is_waited_for_until_it_is_promoted(scene: FailoverScene) -> None:
    """Where the address alone decides which server is meant."""
    scene.run_at_source(TABLE)
    servers = scene.servers
    scene.engine.add_stream(scene.stream, scene.source_conninfo.replace("target_session_attrs=read-write", ""),
                            scene.destination_conninfo, [("public", "t")])
    scene.wait_replicating()
    insert(scene, 1, 100)
    scene.wait_applied()
    servers.carry_slot(scene.slot)
    servers.wait_standby()
    servers.kill_primary()
    wait_retrying(scene.engine, scene.stream, "source_read_only")
    servers.promote()
    insert(scene, 101, 200)
    scene.wait_replicating()
    scene.wait_applied()
    scene.assert_same()


def test_what_the_promoted_server_never_had_is_not_passed_over(scene: FailoverScene) -> None:
    """The destination was ahead of the standby: nothing may go on, and the message says by how much."""
    scene.run_at_source(TABLE)
    servers = scene.servers
    servers.wait_for_no_standby()
    scene.start_stream()
    insert(scene, 1, 100)
    scene.wait_applied()
    servers.carry_slot(scene.slot)
    with servers.standby_that_missed():
        insert(scene, 101, 200)
        scene.wait_applied()
    insert(scene, 1001, 1100)
    error = scene.engine.wait_aborted(scene.stream)
    assert error["code"] == "source_diverged", error
    assert "on timeline 2, which left timeline 1 at" in error["message"], error
    assert "bytes of WAL further" in error["message"], error
    assert scene.timeline() == 1
    assert scene.at_destination("SELECT count(*), max(id) FROM t") == [(200, 200)]
    # The cure that copies nothing: the server that has it all.
    servers.go_back()
    scene.engine.retry(scene.stream)
    scene.wait_replicating()
    insert(scene, 201, 300)
    scene.wait_applied()
    scene.assert_same()


def test_the_server_that_was_left_behind_is_no_source(scene: FailoverScene) -> None:
    """It comes back as it was, takes changes, and stands first in the address."""
    scene.run_at_source(TABLE)
    servers = scene.servers
    scene.start_stream()
    insert(scene, 1, 100)
    scene.wait_applied()
    servers.carry_slot(scene.slot)
    servers.wait_standby()
    fail_over(scene)
    scene.wait_replicating()
    insert(scene, 101, 200)
    scene.wait_applied()
    left_behind = servers.standby
    start_again(left_behind)
    if servers.synchronises:
        left_behind.sql("postgres", "ALTER SYSTEM SET synchronized_standby_slots = ''", "SELECT pg_reload_conf()")
    left_behind.sql(scene.database, "INSERT INTO t SELECT n, 'lost' FROM generate_series(5000, 5100) n")
    scene.engine.kill()
    scene.engine.start()
    error = scene.engine.wait_aborted(scene.stream)
    assert error["code"] == "source_diverged" and "left behind" in error["message"], error
    left_behind.stop()
    scene.engine.retry(scene.stream)
    scene.wait_replicating()
    insert(scene, 201, 300)
    scene.wait_applied()
    scene.assert_same()


def test_a_promoted_server_without_the_slot_is_named(scene: FailoverScene) -> None:
    scene.run_at_source(TABLE)
    scene.start_stream(source_plugin="pgoutput")
    if scene.servers.synchronises:
        scene.source.sql("postgres", "ALTER SYSTEM SET synchronized_standby_slots = ''", "SELECT pg_reload_conf()")
        scene.servers.standby.sql("postgres", "ALTER SYSTEM SET sync_replication_slots = off",
                                  "SELECT pg_reload_conf()", "SELECT pg_sleep(1)")
    scene.servers.wait_standby()
    fail_over(scene)
    error = scene.engine.wait_aborted(scene.stream)
    assert error["code"] == "slot_lost" and "what was promoted had no copy" in error["message"], error


def test_each_destination_is_judged_by_itself(scene: FailoverScene) -> None:
    """Of two, one is ahead of the standby; the other was away, and its backlog on disk is ahead: that comes anew."""
    scene.run_at_source(TABLE)
    servers = scene.servers
    if servers.synchronises:
        scene.source.sql("postgres", "ALTER SYSTEM SET synchronized_standby_slots = ''", "SELECT pg_reload_conf()")
    fan = FanOut(scene)
    try:
        fan.start_stream("a", "b")
        insert(scene, 1, 100)
        fan.wait_applied()
        servers.carry_slot(scene.slot)
        servers.wait_standby()
        servers.standby.stop()
        fan.made["b"].relay.sever()
        fan.wait("b", lambda destination: destination["phase"] == "RETRYING", "is away")
        insert(scene, 101, 3000)
        fan.wait_applied("a")
        reached = fan.source_position()
        fan.wait("b", lambda destination: destination["backlog"]["state"] == "ON DISK"
                 and destination["backlog"]["frames"] >= 2900, "has a backlog")
        fan.wait_slot(reached)
        servers.kill_primary()
        servers.standby.start()
        servers.promote()
        insert(scene, 10_001, 10_500)
        ahead = fan.wait("a", lambda destination: destination["status"] == "ABORTED", "is given up")
        assert ahead["error"]["code"] == "source_diverged", ahead
        assert fan.status("b")["status"] != "ABORTED"
        fan.mend("b")
        fan.wait_phase("b", "REPLICATING")
        insert(scene, 10_501, 11_000)
        fan.wait_applied("b")
        fan.assert_same("b")
        assert scene.timeline(fan.made["b"].database) == 2
        assert scene.timeline(fan.made["a"].database) == 1
        # The backlog that lies now is of the new timeline, and holds over a restart and another switch.
        fan.made["b"].relay.sever()
        fan.wait("b", lambda destination: destination["phase"] == "RETRYING", "is away again")
        insert(scene, 11_001, 14_000)
        fan.wait("b", lambda destination: destination["backlog"]["frames"] >= 3000, "has a backlog again")
        fan.wait_slot(fan.source_position())
        scene.engine.kill()
        servers.promote_again()
        scene.engine.start()
        insert(scene, 14_001, 14_100)
        fan.mend("b")
        fan.wait_applied("b")
        fan.assert_same("b")
        assert scene.timeline(fan.made["b"].database) == 3
    finally:
        fan.close()


def test_a_backlog_that_only_its_own_history_can_use_is_refused(scene: FailoverScene) -> None:
    """The slot has passed what the destination has; what is between lies on disk with what the new server never had."""
    scene.run_at_source(TABLE)
    servers = scene.servers
    if servers.synchronises:
        scene.source.sql("postgres", "ALTER SYSTEM SET synchronized_standby_slots = ''", "SELECT pg_reload_conf()")
    fan = FanOut(scene)
    try:
        fan.start_stream("a", "b")
        fan.made["b"].relay.sever()
        fan.wait("b", lambda destination: destination["phase"] == "RETRYING", "is away")
        insert(scene, 1, 3000)
        fan.wait_applied("a")
        fan.wait_slot(fan.source_position())
        servers.carry_slot(scene.slot)
        servers.wait_standby()
        servers.standby.stop()
        insert(scene, 3001, 6000)
        fan.wait("b", lambda destination: destination["backlog"]["frames"] >= 6000, "has a backlog")
        fan.wait_slot(fan.source_position())
        servers.kill_primary()
        servers.standby.start()
        servers.promote()
        fan.wait("a", lambda destination: destination["status"] == "ABORTED", "is given up")
        fan.mend("b")
        found = fan.wait("b", lambda destination: destination["status"] == "ABORTED", "is given up, too")
        assert found["error"]["code"] == "source_diverged", found
        assert "on the engine's disk" in found["error"]["message"], found
        assert scene.destination.value(fan.made["b"].database, "SELECT count(*) FROM t") == 0
        # The server that was killed has all of it.
        servers.go_back()
        insert(scene, 6001, 6100)
        fan.wait_applied("a", "b")
        fan.assert_same("a", "b")
    finally:
        fan.close()


def test_a_path_over_two_engines_goes_on(scene: FailoverScene, tmp_path: Path) -> None:
    scene.run_at_source(TABLE)
    servers = scene.servers
    pair = EnginePair(scene, tmp_path)
    try:
        pair.start_stream()
        insert(scene, 1, 1000)
        pair.wait_applied()
        servers.carry_slot(scene.slot)
        insert(scene, 1001, 2000)
        pair.wait_applied()
        servers.wait_standby()
        fail_over(scene)
        insert(scene, 2001, 3000)
        pair.wait_replicating()
        pair.wait_applied(2 * SECONDS)
        scene.assert_same()
        assert scene.timeline() == 2
    finally:
        pair.close()


def test_a_path_over_two_engines_refuses_what_was_never_there(scene: FailoverScene, tmp_path: Path) -> None:
    scene.run_at_source(TABLE)
    servers = scene.servers
    servers.wait_for_no_standby()
    pair = EnginePair(scene, tmp_path)
    try:
        pair.start_stream()
        servers.carry_slot(scene.slot)
        with servers.standby_that_missed():
            insert(scene, 1, 1000)
            pair.wait_applied()
        insert(scene, 5001, 6000)
        error = pair.receiver.wait_aborted(scene.stream)
        assert error["code"] == "source_diverged", error
        assert scene.at_destination("SELECT count(*), max(id) FROM t") == [(1000, 1000)]
        wait_for(lambda: scene.source.value("postgres", "SELECT count(*) FROM pg_replication_slots WHERE active") == 0,
                 SECONDS, "nobody reads the new server's slot")
    finally:
        pair.close()
