"""A stream's life: two-phase commits, truncates, parameters that change while it runs, stop, start, drop, restart."""

import random
import time
from typing import Any

import psycopg
import pytest

from harness.cluster import PASSWORD, wait_for
from harness.engine import SECONDS, destination_path
from harness.scene import Scene
from harness.workload import PgBench, Writers, make_pgbench_tables

TABLE = "CREATE TABLE item (id integer PRIMARY KEY, body text); INSERT INTO item VALUES (1, 'one');"


def test_two_phase_commit(scene: Scene) -> None:
    """A prepared transaction arrives with its COMMIT PREPARED, never before, also over a restart of the engine."""
    scene.run_at_source(TABLE)
    scene.start_stream()
    name = f"held_{scene.database}"
    scene.at_source("INSERT INTO item VALUES (2, 'before')")
    scene.run_at_source(f"BEGIN; INSERT INTO item VALUES (10, 'p'); UPDATE item SET body = 'prepared' WHERE id = 1;"
                        f"PREPARE TRANSACTION '{name}';"
                        f"BEGIN; INSERT INTO item VALUES (11, 'q'); PREPARE TRANSACTION '{name}_lost';")
    scene.at_source("INSERT INTO item VALUES (3, 'meanwhile')")
    scene.wait_applied()
    rows = "SELECT id, body FROM item ORDER BY id"
    assert scene.at_destination(rows) == [(1, "one"), (2, "before"), (3, "meanwhile")]
    scene.engine.kill()
    scene.engine.start()
    scene.at_source(f"COMMIT PREPARED '{name}'", f"ROLLBACK PREPARED '{name}_lost'")
    scene.wait_applied()
    assert scene.at_destination(rows) == [(1, "prepared"), (2, "before"), (3, "meanwhile"), (10, "p")]


def test_truncate(scene: Scene) -> None:
    scene.run_at_source("""
        CREATE TABLE parent (id integer PRIMARY KEY);
        CREATE TABLE child (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, parent integer REFERENCES parent);
        CREATE TABLE other (id integer PRIMARY KEY);
        INSERT INTO parent SELECT generate_series(1, 100); INSERT INTO child (parent) SELECT id FROM parent;
        INSERT INTO other SELECT generate_series(1, 100);
    """)
    scene.start_stream()
    scene.run_at_source("""
        INSERT INTO other VALUES (500); TRUNCATE other; INSERT INTO other VALUES (1);
        BEGIN; INSERT INTO parent VALUES (900); TRUNCATE parent, child RESTART IDENTITY; INSERT INTO parent VALUES (1);
        INSERT INTO child (parent) VALUES (1); COMMIT;
        BEGIN; TRUNCATE other; ROLLBACK;
        INSERT INTO parent VALUES (2); TRUNCATE parent CASCADE; INSERT INTO parent VALUES (7);
    """)
    scene.wait_applied()
    scene.assert_same()
    counts = scene.engine.destination(scene.stream)["tables"]
    assert {table["table"]: table["truncates"] for table in counts} == {"parent": 2, "child": 2, "other": 1}


def applier_count(scene: Scene) -> int:
    return sum(component["sub_component"] == "APPLY SERVER" for component in scene.engine.components(scene.stream))


def applier_connections(scene: Scene) -> int:
    return int(scene.destination.value(scene.database, "SELECT count(*) FROM pg_stat_activity WHERE application_name "
                                       f"LIKE 'thalweg {scene.stream} applier %'"))


def test_parameters_change_while_running(scene: Scene, random_: random.Random) -> None:
    make_pgbench_tables(scene.source, scene.database, scale=1)
    scene.start_stream(parallelism=1)
    log = scene.engine.directory / "pgbench.log"
    with PgBench(scene.source, scene.database, rate=500, clients=4, log=log, seed=random_.randrange(2**31)):
        for parameters in ({"parallelism": 6}, {"parallelism": 6, "commit_serialization": "full"},
                           {"parallelism": 2, "group_size": 1}, {"parallelism": 4},
                           {"commit_serialization": "none", "group_size": 500},
                           {"memory_budget_mb": 64, "queue_size": 256}):
            time.sleep(1)
            scene.engine.set_stream(scene.stream, parameters=parameters)
            if wanted := parameters.get("parallelism"):
                scene.engine.wait_status(scene.stream, lambda _, wanted=wanted: applier_count(scene) == wanted, 30,
                                         f"{wanted} appliers")
                # A surplus applier is not only left idle: its connection is closed.
                wait_for(lambda wanted=wanted: applier_connections(scene) == wanted, 30, f"{wanted} connections")
        time.sleep(1)
    scene.wait_applied()
    scene.assert_same()


def test_commit_order_is_the_sources_with_full_serialization(scene: Scene, random_: random.Random) -> None:
    """Every snapshot of the destination is a prefix of the source's history."""
    scene.run_at_source("CREATE TABLE tick (id integer PRIMARY KEY, slot integer);")
    scene.start_stream(parallelism=4, commit_serialization="full", group_size=1)

    def write(connection: psycopg.Connection[Any], random_: random.Random, writer: int) -> None:
        connection.execute("INSERT INTO tick SELECT coalesce(max(id), 0) + 1, %s FROM tick",
                           (random_.randrange(100),))

    with Writers(scene.source, scene.database, 1, random_, write):
        for _ in range(60):
            highest, count = scene.at_destination("SELECT coalesce(max(id), 0), count(*) FROM tick")[0]
            assert highest == count, "a later commit came before an earlier one"
            time.sleep(0.03)
    scene.wait_applied()
    scene.assert_same()


def test_stop_start_and_changes_between(scene: Scene) -> None:
    scene.run_at_source(TABLE)
    scene.start_stream()
    for round_ in range(2, 5):
        scene.at_source(f"INSERT INTO item VALUES ({round_}, 'running')")
        scene.engine.set_stream(scene.stream, status="DISABLED")
        scene.engine.wait_status(scene.stream, lambda status: status["status"] == "DISABLED", 30, "DISABLED")
        scene.engine.wait_phase(scene.stream, "STOPPED")
        scene.at_source(f"INSERT INTO item VALUES ({round_ * 100}, 'stopped')")
        assert scene.slots() == 1, "stopping must not lose the slot"
        scene.engine.set_stream(scene.stream, status="ENABLED")
        scene.wait_replicating()
    scene.wait_applied()
    scene.assert_same()


def test_tables_are_added_and_taken_out_while_running(scene: Scene, random_: random.Random) -> None:
    """A table that comes later is copied and joins in; one that is taken out stays as it is. Under load."""
    scene.run_at_source("".join(f"CREATE TABLE t{n} (id bigint PRIMARY KEY, body text); INSERT INTO t{n} "
                                "SELECT i, 'old' FROM generate_series(1, 20000) i;" for n in range(3)))
    scene.start_stream([("public", "t0"), ("public", "t1")])

    def write(connection: psycopg.Connection[Any], random_: random.Random, number: int) -> None:
        row = random_.randrange(1, 40_000)
        with connection.transaction():
            for table in range(3):
                connection.execute(f"INSERT INTO t{table} VALUES ({row}, 'new') ON CONFLICT (id) "
                                   f"DO UPDATE SET body = t{table}.body || '+'")
            connection.execute(f"DELETE FROM t{random_.randrange(3)} WHERE id = {random_.randrange(1, 40_000)}")

    def take(*tables: str) -> None:
        scene.engine.set_stream(scene.stream, tables=[{"schema": "public", "table": table} for table in tables])
        published = f"SELECT tablename FROM pg_publication_tables WHERE pubname = 'thalweg_{scene.stream}' ORDER BY 1"
        wait_for(lambda: scene.at_source(published) == [(table,) for table in tables], 60, "the publication follows")
        scene.engine.wait_status(scene.stream, lambda status: status["phase"] == "REPLICATING" and all(
            table["state"] == "REPLICATING" for table in status["destinations"][0]["tables"]), 60,
            "all tables replicate")

    with Writers(scene.source, scene.database, 2, random_, write):
        time.sleep(1)
        take("t0", "t1", "t2")
        time.sleep(1)
    scene.wait_applied()
    scene.assert_same()
    take("t0", "t2")
    before = scene.at_destination("SELECT count(*), sum(length(body)) FROM t1")
    scene.at_source(*(f"UPDATE t{n} SET body = 'after' WHERE id % 7 = 0" for n in range(3)))
    scene.wait_applied()
    scene.assert_same([("public", "t0"), ("public", "t2")])
    assert scene.at_destination("SELECT count(*), sum(length(body)) FROM t1") == before


def test_drop_leaves_nothing_but_the_tables(scene: Scene) -> None:
    scene.run_at_source(TABLE)
    scene.start_stream()
    assert (scene.slots(), scene.publications(), scene.has_destination_schema()) == (1, 2, True)
    scene.engine.drop_stream(scene.stream)
    scene.assert_nothing_left()
    assert scene.at_destination("SELECT * FROM item") == [(1, "one")]
    assert scene.engine.request("GET", "/v1/status")["streams"] == []


def test_drop_while_copying_and_while_stopped(scene: Scene) -> None:
    scene.run_at_source("CREATE TABLE many (id integer PRIMARY KEY, body text);"
                        "INSERT INTO many SELECT n, repeat('x', 100) FROM generate_series(1, 200000) n;")
    scene.start_stream(wait=False, copy_range_rows=2000)
    scene.engine.wait_phase(scene.stream, "INSTANTIATING")
    scene.engine.drop_stream(scene.stream)
    scene.assert_nothing_left()
    scene.at_destination("DROP TABLE IF EXISTS many")
    scene.start_stream()
    scene.engine.set_stream(scene.stream, status="DISABLED")
    scene.engine.wait_phase(scene.stream, "STOPPED")
    scene.engine.drop_stream(scene.stream)
    scene.assert_nothing_left()


def test_drop_by_force_says_what_is_left(scene: Scene) -> None:
    scene.run_at_source(TABLE)
    scene.start_stream()
    scene.destination.stop()
    try:
        scene.engine.set_stream(scene.stream, status="DROPPED", force=True)
        status = scene.engine.wait_status(scene.stream, lambda found: found["status"] == "DROPPED", 60, "DROPPED")
    finally:
        scene.destination.start()
    assert scene.slots() == 0 and scene.publications() == 0
    assert "DROP SCHEMA" in status["error"]["message"], status["error"]


def test_terminate_drains_and_restart_goes_on(scene: Scene, random_: random.Random) -> None:
    make_pgbench_tables(scene.source, scene.database, scale=1)
    scene.start_stream()
    log = scene.engine.directory / "pgbench.log"
    with PgBench(scene.source, scene.database, rate=300, clients=3, log=log, seed=random_.randrange(2**31)):
        for _ in range(3):
            time.sleep(0.7)
            assert scene.engine.terminate(20) == 0
            scene.engine.start()
            scene.wait_replicating()
    scene.wait_applied()
    scene.assert_same()


def test_two_streams_of_one_source(scene: Scene) -> None:
    """Streams beside each other in one engine; dropping one leaves the other's bookkeeping alone."""
    scene.run_at_source("CREATE TABLE a (id integer PRIMARY KEY); CREATE TABLE b (id integer PRIMARY KEY);")
    scene.start_stream([("public", "a")])
    first = scene.stream
    scene.stream = "second00" + first[:4]
    scene.start_stream([("public", "b")])
    scene.at_source("INSERT INTO a SELECT generate_series(1, 100)", "INSERT INTO b SELECT generate_series(1, 100)")
    scene.wait_applied()
    scene.engine.wait_applied(first, scene.source, scene.database)
    scene.assert_same()
    scene.engine.drop_stream(first)
    assert scene.has_destination_schema()
    scene.at_source("INSERT INTO b VALUES (1000)")
    scene.wait_applied()
    assert scene.at_destination("SELECT count(*) FROM b") == [(101,)]
    scene.engine.drop_stream(scene.stream)
    scene.assert_nothing_left()


def test_two_roles_share_a_destinations_bookkeeping(scene: Scene) -> None:
    """The second role is refused with the cure, which works; what that role made in the schema stays with it."""
    scene.run_at_source("CREATE TABLE a (id integer PRIMARY KEY); CREATE TABLE b (id integer PRIMARY KEY);")
    scene.start_stream([("public", "a")])
    first = scene.stream
    role = f"other_{scene.database}"
    scene.destination.sql("postgres", f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'",
                          f"GRANT SET ON PARAMETER session_replication_role TO {role}")
    scene.at_destination(f"GRANT CREATE ON DATABASE {scene.database} TO {role}",
                         f"GRANT CREATE ON SCHEMA public TO {role}")
    try:
        scene.stream = "second00" + first[:4]
        scene.engine.add_stream(scene.stream, scene.source_conninfo, scene.destination.conninfo(scene.database, role),
                                [("public", "b")], source_plugin="thalweg")
        refused = scene.engine.wait_status(scene.stream, lambda found: bool(found["error"]), SECONDS, "a refusal")
        assert refused["error"]["sqlstate"] == "42501", refused["error"]
        scene.destination.sql("postgres", f"GRANT thalweg TO {role}")
        scene.engine.retry(scene.stream)
        scene.wait_replicating()
        scene.at_source("INSERT INTO a VALUES (1)", "INSERT INTO b VALUES (1)")
        scene.wait_applied()
        scene.engine.wait_applied(first, scene.source, scene.database)
        scene.assert_same()
        scene.at_destination("CREATE TYPE thalweg.mine AS ENUM ('kept')")
        for stream in (first, scene.stream):
            scene.engine.drop_stream(stream)
        kept = scene.at_destination("SELECT typname FROM pg_type WHERE typtype = 'e' "
                                    "AND typnamespace = 'thalweg'::regnamespace")
        assert kept == [("mine",)]
    finally:
        scene.engine.stop()
        scene.at_destination(f"DROP OWNED BY {role} CASCADE")
        scene.destination.sql("postgres", f"DROP OWNED BY {role} CASCADE", f"DROP ROLE {role}")


def test_statistics_count_what_flowed(scene: Scene) -> None:
    scene.run_at_source(TABLE)
    scene.start_stream(heartbeat_interval=0)  # heartbeats count in the latencies
    for number in range(100, 200):
        scene.at_source(f"INSERT INTO item VALUES ({number}, 'n')")
    scene.at_source("UPDATE item SET body = 'u' WHERE id < 110", "DELETE FROM item WHERE id >= 190")
    scene.wait_applied()
    stats = next(found for found in scene.engine.request("GET", "/v1/stats")["streams"] if found["id"] == scene.stream)
    (table,) = stats["tables"]
    last = table.pop("last_change")
    assert table == {"schema": "public", "table": "item", "inserts": 100, "updates": 11, "deletes": 10, "truncates": 0}
    assert last["at_source"] < last["at_destination"]
    applied = sum(component["counters"]["lcrs"] for component in stats["components"]
                  if component["sub_component"] == "APPLY SERVER")
    assert applied == 121
    assert sum(count for _, count in stats["latency"]["buckets"]) == 102
    for component in stats["components"]:
        assert component["state"]
        if component["time_ns"]:
            assert sum(component["time_ns"].values()) > 0, component
    metrics = scene.engine.request("GET", "/metrics")
    labels = f'stream="{scene.stream}",destination="warehouse",schema="public",table="item",operation="insert"'
    assert f"thalweg_table_changes_total{{{labels}}} 100" in metrics, metrics[-2000:]


@pytest.mark.both_ways
def test_parked_transactions_and_their_dependants(scene: Scene) -> None:
    """disable_on_error off: the failing transaction and what depends on it are parked; the rest goes on."""
    scene.run_at_source(TABLE)
    scene.start_stream(disable_on_error=False)
    scene.at_destination("INSERT INTO item VALUES (5, 'in the way')")
    scene.at_source("INSERT INTO item VALUES (5, 'five')", "UPDATE item SET body = 'five and more' WHERE id = 5",
                    "INSERT INTO item VALUES (6, 'six')")
    scene.wait_applied()
    rows = scene.at_destination("SELECT id, body FROM item WHERE id >= 5 ORDER BY id")
    assert rows == [(5, "in the way"), (6, "six")]
    path = destination_path(scene.stream) + "/errors"
    errors = scene.engine.request("GET", path)["errors"]
    assert len(errors) == 2 and errors[0]["sqlstate"] == "23505", errors
    scene.at_destination("DELETE FROM item WHERE id = 5")
    scene.engine.request("POST", f"{path}/{errors[0]['id']}/execute")
    scene.engine.wait_status(scene.stream, lambda _: not scene.engine.request("GET", path)["errors"], 30,
                             "the error queue is empty")
    scene.assert_same()
