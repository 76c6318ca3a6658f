"""One fault at a time, each for a while: what the stream says while it lasts, and that nothing is lost after it."""

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest

from harness.cluster import Cluster, wait_for
from harness.engine import RefusedError, destination_path
from harness.outage import (
    SECONDS,
    assert_recovered,
    assert_says_what_to_do,
    kill_postmaster,
    start_again,
    wait_retrying,
)
from harness.scene import Scene
from harness.workload import PgBench, Writers, make_pgbench_tables
from harness.workspace import give_to_postgres

TABLE = "CREATE TABLE item (id integer PRIMARY KEY, body text); INSERT INTO item VALUES (1, 'one');"
GONE = ("database_unreachable", "connection_lost")


def backends(cluster: Cluster, condition: str) -> list[int]:
    rows = cluster.sql("postgres", f"SELECT pid FROM pg_stat_activity WHERE usename = 'thalweg' AND {condition}")
    return [int(row[0]) for row in rows]


def test_every_process_is_killed(scene: Scene, random_: random.Random) -> None:
    """kill -9 of the walsender, of every applier's backend, of both postmasters, and of the engine, under load."""
    make_pgbench_tables(scene.source, scene.database, scale=1)
    scene.start_stream(parallelism=4)
    log = scene.engine.directory / "pgbench.log"
    with PgBench(scene.source, scene.database, rate=300, clients=3, log=log, seed=random_.randrange(2**31)):
        time.sleep(0.5)
        (walsender,) = backends(scene.source, "backend_type = 'walsender'")
        before = appliers(scene)
        os.kill(walsender, signal.SIGKILL)
        # The engine says REPLICATING until it has noticed; appliers of its next session prove that it has.
        for pid in wait_for(lambda: new_appliers(scene, before), 30, "the appliers of the next session"):
            with suppress(ProcessLookupError):  # once one is killed the server ends the others itself
                os.kill(pid, signal.SIGKILL)
        scene.destination.wait_ready()
        for cluster in (scene.source, scene.destination):
            kill_postmaster(cluster)
            status = wait_retrying(scene.engine, scene.stream, "database_unreachable", naming=str(cluster.port))
            assert status["status"] == "ENABLED" and status["retry_at"]
            start_again(cluster)
            scene.wait_replicating()
        scene.engine.kill()
        scene.engine.start()
        scene.wait_replicating()
    scene.wait_applied()
    scene.assert_same()
    assert_recovered(scene.engine, scene.stream)


def appliers(scene: Scene) -> set[int]:
    return set(backends(scene.destination, f"application_name LIKE 'thalweg {scene.stream} applier %'"))


def new_appliers(scene: Scene, before: set[int]) -> set[int] | None:
    """All four, and none of the session before."""
    found = appliers(scene)
    return found if len(found) >= 4 and not found & before else None


def test_a_read_only_destination_is_waited_for(scene: Scene) -> None:
    """By a setting, then as a standby: the change is no data error, so nothing is parked although that is allowed."""
    scene.run_at_source(TABLE)
    scene.start_stream(disable_on_error=False)
    scene.destination.sql("postgres", "ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()")

    def is_told() -> bool:
        """The server tells its processes before it starts another one."""
        with scene.destination.connect("postgres") as newcomer:
            return newcomer.execute("SHOW default_transaction_read_only").fetchone() == ("on",)

    try:
        wait_for(is_told, SECONDS, "the sessions are read-only")
        scene.at_source("INSERT INTO item VALUES (2, 'two')", "UPDATE item SET body = 'changed' WHERE id = 1")
        status = wait_retrying(scene.engine, scene.stream, "destination_read_only")
        assert status["error"]["sqlstate"] == "25006" and status["retry_at"]
    finally:
        with scene.destination.connect("postgres", options="-c default_transaction_read_only=off") as connection:
            connection.execute("ALTER SYSTEM RESET default_transaction_read_only")
            connection.execute("SELECT pg_reload_conf()")
    scene.wait_replicating()
    scene.wait_applied()
    scene.assert_same()

    scene.destination.stop()
    (scene.destination.directory / "standby.signal").touch()
    give_to_postgres(scene.destination.directory / "standby.signal")
    scene.destination.start()
    scene.at_source("INSERT INTO item VALUES (3, 'three')")
    wait_retrying(scene.engine, scene.stream, "destination_read_only")
    assert scene.destination.value("postgres", "SELECT pg_promote()")
    scene.wait_replicating()
    scene.wait_applied()
    scene.assert_same()
    assert scene.engine.request("GET", destination_path(scene.stream) + "/errors")["errors"] == []
    assert_recovered(scene.engine, scene.stream)


def test_a_read_only_user_of_the_source_is_named_as_such(scene: Scene) -> None:
    scene.run_at_source(TABLE)
    in_this = f"ALTER ROLE thalweg IN DATABASE {scene.database}"
    scene.source.sql("postgres", f"{in_this} SET default_transaction_read_only = on")
    scene.start_stream(wait=False)
    status = wait_retrying(scene.engine, scene.stream, "source_read_only")
    assert "default_transaction_read_only" in status["error"]["cure"]
    scene.source.sql("postgres", f"{in_this} RESET default_transaction_read_only")
    scene.wait_replicating()
    scene.wait_applied()
    scene.assert_same()


def test_a_slot_that_the_server_invalidates(scene: Scene) -> None:
    """The destination stands still until the source may keep no more WAL: never on over the gap, and a new start."""
    scene.run_at_source(TABLE + "CREATE TABLE filler (n integer PRIMARY KEY);")
    scene.start_stream()
    slot = f"FROM pg_replication_slots WHERE slot_name = 'thalweg_{scene.stream}'"
    with scene.destination.connect(scene.database) as blocker:
        blocker.execute("BEGIN")
        blocker.execute("LOCK TABLE item IN ACCESS EXCLUSIVE MODE")
        scene.at_source("INSERT INTO item VALUES (2, 'captured')")
        scene.source.sql("postgres", "ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'", "SELECT pg_reload_conf()")
        try:
            def lost() -> bool:
                scene.at_source("INSERT INTO filler SELECT coalesce(max(n), 0) + 1 FROM filler",
                                "SELECT pg_switch_wal()", "CHECKPOINT")
                return bool(scene.source.value("postgres", f"SELECT wal_status = 'lost' {slot}"))

            wait_for(lost, 30, "the server gives the slot's WAL up")
        finally:
            scene.source.sql("postgres", "ALTER SYSTEM RESET max_slot_wal_keep_size", "SELECT pg_reload_conf()")
        scene.at_source("INSERT INTO item VALUES (3, 'beyond the gap')")
        blocker.execute("ROLLBACK")
    error = scene.engine.wait_aborted(scene.stream)
    assert_says_what_to_do(error, "slot_lost")
    assert "create it again" in error["cure"]
    assert not scene.at_destination("SELECT 1 FROM item WHERE id = 3"), "it went on over a gap"
    scene.engine.kill()
    scene.engine.start()
    assert_says_what_to_do(scene.engine.wait_aborted(scene.stream), "slot_lost")
    # The cure that it names works.
    scene.engine.drop_stream(scene.stream)
    scene.assert_nothing_left()
    scene.at_destination("DROP TABLE item, filler")
    scene.start_stream()
    scene.at_source("INSERT INTO item VALUES (4, 'after')")
    scene.wait_applied()
    scene.assert_same()


@contextmanager
def small_disk(path: Path, size: str) -> Iterator[None]:
    path.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "thalweg-test", str(path)],
                      check=False).returncode != 0:
        pytest.skip("this machine does not let us mount")
    give_to_postgres(path)
    path.chmod(0o700)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


def brought_up(cluster: Cluster) -> bool:
    """After a panic the server tries to recover by itself, and ends where that fails: it may run now, and not soon."""
    if not cluster.is_running():
        cluster.start()
    try:
        cluster.connect("postgres").close()
    except psycopg.OperationalError:
        return False
    return True


def test_a_full_disk_at_the_source(scene: Scene, workspace: Path) -> None:
    """WAL and tables share a disk that fills up until the server panics; then an operator makes room."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    settings = scene.source.settings | {"max_wal_size": "'32MB'", "min_wal_size": "'32MB'"}
    cluster = Cluster(workspace, f"full-{scene.database}", {name: value for name, value in settings.items()
                                                            if name != "port"})
    first = scene.source
    with small_disk(cluster.directory, "120m"):
        cluster.initialise()
        cluster.start()
        scene.source = cluster
        try:
            scene.make_source()
            scene.run_at_source(TABLE)
            scene.start_stream()
            panicked = fill(cluster, scene.database)
            status = scene.engine.status(scene.stream)
            if panicked:
                status = wait_retrying(scene.engine, scene.stream, *GONE, "disk_full")
            assert status["status"] == "ENABLED", status
            subprocess.run(["mount", "-o", "remount,size=1g", str(cluster.directory)], check=True)
            wait_for(lambda: brought_up(cluster), SECONDS, "the server runs again")
            scene.wait_replicating()
            scene.at_source("INSERT INTO item VALUES (0, 'there is space again')")
            scene.wait_applied()
            scene.assert_same()
            assert_recovered(scene.engine, scene.stream)
        finally:
            scene.engine.stop()
            cluster.stop("immediate")
            scene.source = first


def test_a_full_disk_under_the_engines_state(scene: Scene) -> None:
    """A desired state that cannot be stored is refused; the one before it stays in force, over a kill as well."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    state = scene.engine.directory / "state"
    scene.engine.terminate()
    shutil.rmtree(state)
    with small_disk(state, "4m"):
        scene.engine.start()
        scene.run_at_source(TABLE)
        scene.start_stream()
        before = scene.engine.request("GET", "/v1/status")["engine"]["desired_revision"]
        ballast = state / "ballast"
        with pytest.raises(OSError, match="No space"), ballast.open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)
        with pytest.raises(RefusedError) as refused:
            scene.engine.set_stream(scene.stream, status="DISABLED")
        assert refused.value.status == 503
        assert_says_what_to_do(refused.value.error, "disk_full")
        message = refused.value.error["message"]
        assert f"stays at revision {before}" in message and str(state / "desired.json") in message
        for _ in range(2):
            assert scene.engine.request("GET", "/v1/status")["engine"]["desired_revision"] == before
            scene.wait_replicating()
            scene.engine.kill()
            scene.engine.start()
        scene.at_source("INSERT INTO item VALUES (2, 'two')")
        scene.wait_applied()
        scene.assert_same()
        ballast.unlink()
        scene.engine.set_stream(scene.stream, status="DISABLED")
        scene.engine.wait_status(scene.stream, lambda found: found["status"] == "DISABLED", 30, "DISABLED")
        scene.engine.stop()


def fill(cluster: Cluster, database: str) -> bool:
    """Writes until the disk is full. True when the server went down over it, as it does when WAL finds no space."""
    for part in range(2, 400):
        try:
            cluster.sql(database, f"INSERT INTO item SELECT {part * 10_000} + n, repeat(md5(n::text), 30) "
                                  "FROM generate_series(1, 2000) n", "SELECT pg_switch_wal()")
        except psycopg.errors.DiskFull:
            continue  # the statement failed and the server stands: the WAL goes on growing
        except psycopg.OperationalError:
            return True
    return False


def test_both_databases_restart_at_once(scene: Scene, random_: random.Random) -> None:
    scene.run_at_source("CREATE TABLE event (id bigint PRIMARY KEY, body text);")
    scene.start_stream()

    def write(connection: psycopg.Connection[object], random_: random.Random, number: int) -> None:
        connection.execute("INSERT INTO event VALUES (%s, 'new') ON CONFLICT (id) DO UPDATE SET body = 'again'",
                           (random_.randrange(100_000),))

    for mode in ("fast", "immediate"):
        with Writers(scene.source, scene.database, 2, random_, write):
            time.sleep(0.7)
        for cluster in (scene.source, scene.destination):
            cluster.stop(mode)
        wait_retrying(scene.engine, scene.stream, *GONE)
        for cluster in (scene.destination, scene.source):
            cluster.start()
        scene.wait_replicating()
    scene.wait_applied()
    scene.assert_same()
    assert_recovered(scene.engine, scene.stream)
