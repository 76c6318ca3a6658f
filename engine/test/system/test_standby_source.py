"""The source is read at a standby: PostgreSQL 16 and later decode there, and the primary keeps no slot."""

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import SETTINGS, SOURCE_SETTINGS
from harness.cluster import Cluster, server_programs, wait_for
from harness.engine import SECONDS, Engine
from harness.failover import FailoverScene, Servers
from harness.fan_out import FanOut
from harness.markers import passed
from harness.outage import assert_recovered, kill_postmaster, wait_retrying
from harness.paths import EnginePair
from harness.scene import SOURCE_ROLE
from harness.standby import DECODES_AT_A_STANDBY_FROM, StandbyScene, programs_that_decode_at_a_standby
from harness.troubles import wait_trouble
from harness.workload import PgBench, make_pgbench_tables

STAGES = ["CAPTURE", "ENQUEUE", "DEQUEUE", "DISPATCH", "COMMIT"]
TABLE = "CREATE TABLE t (id bigint PRIMARY KEY, v text NOT NULL);"


def make_servers(workspace: Path, name: str) -> Servers:
    return Servers(workspace, name, SETTINGS | SOURCE_SETTINGS | {"wal_receiver_status_interval": "1s"},
                   programs=programs_that_decode_at_a_standby(workspace), synchronises=False)


@pytest.fixture
def scene(request: pytest.FixtureRequest, workspace: Path, destination_cluster: Cluster) -> Iterator[StandbyScene]:
    name = request.node.name.removeprefix("test_")[:30]
    servers = make_servers(workspace, name)
    engine = Engine(workspace / f"engine-{name}")
    scene = StandbyScene(servers, destination_cluster, engine, f"s_{name}"[:50], libraries=False)
    scene.make()
    yield scene
    scene.end(getattr(request.node, "failed", False))


def load(scene: StandbyScene, random_: random.Random) -> PgBench:
    return PgBench(scene.source, scene.database, rate=400, clients=4, log=scene.engine.directory / "pgbench.log",
                   seed=random_.randrange(2**31))


def insert(scene: StandbyScene, first: int, last: int) -> None:
    scene.at_source(f"INSERT INTO t SELECT n, repeat(md5(n::text), 10) FROM generate_series({first}, {last}) n")


def test_a_stream_reads_from_the_standby(scene: StandbyScene, random_: random.Random) -> None:
    """Copied under load, with another table later; the engine is killed, and the standby comes back."""
    make_pgbench_tables(scene.source, scene.database, scale=1)
    scene.run_at_source(TABLE)
    insert(scene, 1, 100)
    servers = scene.servers
    tables = [("public", f"pgbench_{name}") for name in ("accounts", "branches", "history", "tellers")]
    with load(scene, random_):
        time.sleep(0.5)
        scene.start_stream(tables, parallelism=4, heartbeat_interval=1)
        assert (scene.slots_at(standby=True), scene.slots_at(standby=False)) == (1, 0)
        wait_for(lambda: passed([scene.engine], scene.stream, None, STAGES), SECONDS, "a heartbeat came")
        scene.engine.kill()
        time.sleep(0.5)
        scene.engine.start()
        scene.wait_replicating()
        scene.engine.set_stream(scene.stream, tables=[{"schema": schema, "table": table}
                                                      for schema, table in [*tables, ("public", "t")]])
        wait_for(lambda: scene.at_destination("SELECT to_regclass('public.t') IS NOT NULL") == [(True,)], SECONDS,
                 "the added table is there")
        scene.wait_replicating()
        insert(scene, 101, 200)
        servers.standby.stop()
        wait_retrying(scene.engine, scene.stream, "source_standby_missing", "connection_lost")
        time.sleep(1)
        servers.standby.start()
        scene.wait_replicating()
        time.sleep(0.5)
    scene.wait_applied()
    scene.assert_same()
    assert_recovered(scene.engine, scene.stream)
    assert (scene.slots_at(standby=True), scene.slots_at(standby=False)) == (1, 0)
    assert scene.at_source("SELECT count(*) > 500 FROM pgbench_history") == [(True,)]
    scene.engine.drop_stream(scene.stream)
    assert (scene.slots_at(standby=True), scene.publications()) == (0, 0)


def test_a_promotion_under_load(scene: StandbyScene, random_: random.Random) -> None:
    """The session that reads lives on along the new timeline, beside an old primary that takes other changes."""
    make_pgbench_tables(scene.source, scene.database, scale=1)
    scene.start_stream(parallelism=4)
    with load(scene, random_):
        time.sleep(1)
        scene.servers.promote()
        with load(scene, random_):
            time.sleep(0.5)
            wait_retrying(scene.engine, scene.stream, "source_standby_missing")
            assert scene.timeline() == 1
            kill_postmaster(scene.servers.standby)
            scene.wait_replicating()
            time.sleep(0.5)
    scene.wait_applied()
    scene.assert_same()
    assert scene.timeline() == 2
    scene.engine.kill()
    with load(scene, random_):
        scene.engine.start()
        scene.wait_replicating()
        time.sleep(0.5)
    scene.wait_applied()
    scene.assert_same()
    # The old primary comes back as a standby: it has no slot, and the stream stays where its slot is.
    scene.servers.follow()
    scene.servers.wait_standby()
    scene.engine.kill()
    scene.engine.start()
    scene.wait_replicating()
    scene.wait_applied()
    assert (scene.slots_at(standby=True), scene.slots_at(standby=False)) == (0, 1)
    # Changes of tables are looked for at the server that the stream reads, too.
    scene.servers.standby.sql("postgres", "SELECT pg_wal_replay_pause()")
    scene.run_at_source("ALTER TABLE pgbench_tellers RENAME TO aside")
    wait_trouble(scene, "pgbench_tellers", "RENAMED")


def test_other_forms_of_a_stream(scene: StandbyScene, tmp_path: Path) -> None:
    """Over two engines, of which one makes the slot and the other reads it; then with destinations that come later."""
    scene.run_at_source(TABLE)
    insert(scene, 1, 100)
    scene.servers.wait_standby()
    pair = EnginePair(scene, tmp_path)
    pair.receiver.read_from = "standby"
    try:
        pair.start_stream()
        insert(scene, 101, 200)
        pair.wait_applied()
        scene.assert_same()
        pair.drop_stream()
        assert scene.slots_at(standby=True) == 0
    finally:
        pair.close()
    fan = FanOut(scene)
    try:
        fan.start_stream("a")
        insert(scene, 201, 300)
        fan.set_destinations([*fan.destinations(), fan.make("b").definition()])
        fan.wait_phase("b", "REPLICATING")
        fan.made["b"].relay.sever()
        insert(scene, 301, 3000)
        fan.wait_applied("a")
        scene.servers.wait_standby()
        kill_postmaster(scene.servers.primary)
        scene.servers.promote()
        insert(scene, 3001, 3100)
        fan.mend("b")
        fan.wait_applied("a", "b")
        fan.assert_same("a", "b")
        assert {scene.timeline(fan.made[name].database) for name in "ab"} == {2}
    finally:
        fan.close()


def test_servers_that_do_not_fit(scene: StandbyScene, source_cluster: Cluster) -> None:
    """A primary of another cluster; then a standby whose primary does not know what its slots need."""
    scene.run_at_source(TABLE)
    insert(scene, 1, 100)
    servers, right = scene.servers, scene.source_conninfo
    if not source_cluster.value("postgres", "SELECT count(*) FROM pg_roles WHERE rolname = 'thalweg'"):
        source_cluster.sql("postgres", SOURCE_ROLE)
    source_cluster.make_database(scene.database, owner="thalweg")
    servers.wait_standby()
    wrong = right.replace(f"port={servers.primary.port},", f"port={source_cluster.port},")
    assert wrong != right
    scene.engine.add_stream(scene.stream, wrong, scene.destination_conninfo, [("public", "t")])
    error = scene.engine.wait_aborted(scene.stream)
    assert error["code"] == "source_changed" and "not servers of one cluster" in error["message"], error
    assert source_cluster.value(scene.database, "SELECT count(*) FROM pg_publication") == 0

    scene.engine.set_stream(scene.stream, source={"name": "source", "conninfo": right, "read_from": "standby"})
    wait_for(lambda: scene.engine.status(scene.stream)["status"] != "ABORTED", SECONDS, "the engine begins again")
    scene.wait_replicating()
    scene.wait_applied()
    scene.assert_same()
    servers.standby.sql("postgres", "ALTER SYSTEM SET hot_standby_feedback = off", "SELECT pg_reload_conf()")
    wait_for(lambda: servers.primary.value("postgres", "SELECT bool_and(xmin IS NULL AND catalog_xmin IS NULL) "
                                           "FROM pg_replication_slots"), SECONDS, "the primary keeps nothing")
    scene.at_source("CREATE TABLE gone (v int)", "DROP TABLE gone", "VACUUM pg_class", "VACUUM pg_attribute",
                    "INSERT INTO t VALUES (101, 'after')")
    error = scene.engine.wait_aborted(scene.stream)
    assert error["code"] == "slot_lost" and "hot_standby_feedback" in error["message"], error


def test_a_standby_before_16_is_refused(workspace: Path, destination_cluster: Cluster) -> None:
    if int(server_programs().parent.name) >= DECODES_AT_A_STANDBY_FROM:
        pytest.skip("the server under test decodes at a standby")
    servers = Servers(workspace, "older", SETTINGS | SOURCE_SETTINGS)
    scene = FailoverScene(servers, destination_cluster, Engine(workspace / "engine-older"), "s_older", libraries=False)
    try:
        scene.make()
        scene.run_at_source(TABLE)
        servers.wait_standby()
        scene.engine.read_from = "standby"
        scene.start_stream(wait=False)
        error = scene.engine.wait_aborted(scene.stream)
        assert error["code"] == "unsupported_version" and "from 16 on" in error["message"], error
        assert scene.publications() == 0
    finally:
        scene.remove()
