"""Partitions that are truncated alone: told by the plugin also where the catalogs have nothing of it any more."""

import time

import pytest

from harness.cluster import wait_for
from harness.compare import differences
from harness.engine import SECONDS
from harness.scene import Scene
from harness.troubles import copy_again, resolve, table_of, wait_trouble

EVENTS = """CREATE TABLE event (id integer, day integer, body text, PRIMARY KEY (day, id)) PARTITION BY RANGE (day);
            CREATE TABLE event_1 PARTITION OF event FOR VALUES FROM (1) TO (2);
            CREATE TABLE event_2 PARTITION OF event FOR VALUES FROM (2) TO (3);
            INSERT INTO event SELECT n, 1 + n % 2, 'old' FROM generate_series(1, 100) n;"""
THIRD = "CREATE TABLE event_3 PARTITION OF event FOR VALUES FROM (3) TO (4)"


def assert_same(scene: Scene) -> None:
    scene.wait_applied()
    found = differences(scene.source, scene.destination, scene.database, scene.database, [("public", "event")])
    assert not found, found


def assert_told_and_cured(scene: Scene, partition: str) -> None:
    assert scene.engine.wait_aborted(scene.stream)["code"] == "table_trouble"
    assert f'"{partition}" was truncated' in wait_trouble(scene, "event", "PARTITIONS CHANGED")["reason"]
    copy_again(scene, "event")
    assert_same(scene)
    scene.at_source("UPDATE event SET body = 'after' WHERE id % 3 = 0")
    assert_same(scene)


def assert_well(scene: Scene) -> None:
    time.sleep(5)  # two looks
    assert_same(scene)
    assert table_of(scene, "event")["trouble"] is None
    assert scene.engine.status(scene.stream)["status"] == "ENABLED"


def notes(scene: Scene) -> str:
    (noted,), = scene.at_destination("SELECT partitions::text FROM thalweg.stream_table")
    return str(noted)


def test_a_partition_is_truncated_behind_its_table_in_one_transaction(scene: Scene) -> None:
    """The catalog names the same transaction as for the whole table, which is applied."""
    scene.run_at_source(EVENTS)
    scene.start_stream([("public", "event")])
    scene.run_at_source("BEGIN; TRUNCATE event; INSERT INTO event VALUES (1, 1, 'gone'), (2, 2, 'stays'); "
                        "TRUNCATE event_1; COMMIT")
    assert_told_and_cured(scene, "event_1")
    assert "truncated" not in notes(scene)


def test_a_partition_comes_and_is_truncated_in_one_transaction(scene: Scene) -> None:
    """Its file is the first one that a look sees: nothing there says that it had rows. The engine is killed."""
    scene.run_at_source(EVENTS)
    scene.start_stream([("public", "event")])
    scene.at_destination(THIRD)
    scene.run_at_source(f"BEGIN; {THIRD}; INSERT INTO event SELECT n, 3, 'gone' FROM generate_series(1, 9) n; "
                        "TRUNCATE event_3; COMMIT")
    scene.engine.kill()
    scene.engine.start()
    assert_told_and_cured(scene, "event_3")


def test_a_truncate_that_is_rolled_back_is_no_trouble(scene: Scene) -> None:
    """Also of a transaction that comes in pieces, and nothing that a user writes is taken for the plugin's word."""
    scene.run_at_source(EVENTS)
    scene.at_source(f"ALTER DATABASE {scene.database} SET logical_decoding_work_mem = '64kB'")
    scene.start_stream([("public", "event")])
    filled = "INSERT INTO event SELECT n, 2, repeat('stays', 100) FROM generate_series(1001, 6000) n"
    scene.run_at_source(f"BEGIN; SAVEPOINT s; TRUNCATE event_1; ROLLBACK TO s; {filled}; COMMIT")
    scene.run_at_source(f"BEGIN; {filled.replace('1001', '7001').replace('6000', '9000')}; SAVEPOINT s; "
                        "TRUNCATE event_1; ROLLBACK TO s; INSERT INTO event VALUES (900, 1, 'stays'); COMMIT")
    scene.at_source("SELECT pg_logical_emit_message(true, 'thalweg_output.truncated_partition', "
                    "int4send(1) || int4send('event'::regclass::int) || int4send('event_1'::regclass::int) || "
                    "'public\\000event_1\\000'::bytea)")
    assert_well(scene)
    assert "truncated" not in notes(scene)


@pytest.mark.parametrize("pause", [0, 0.2])
def test_accepted_before_the_stream_has_stopped(scene: Scene, pause: float) -> None:
    """Its trouble is shown a moment before; the run that has read of it starts over."""
    scene.run_at_source(EVENTS)
    scene.start_stream([("public", "event")])
    scene.run_at_source("TRUNCATE event_1")
    wait_for(lambda: table_of(scene, "event")["trouble"], SECONDS, "it is told", pause=0.02)
    scene.at_destination("TRUNCATE event_1")
    time.sleep(pause)
    resolve(scene, "event", "accept")
    scene.engine.wait_status(scene.stream, lambda found: found["status"] == "ENABLED" and
                             found["phase"] == "REPLICATING", SECONDS, "it goes on")
    scene.run_at_source("INSERT INTO event VALUES (1, 1, 'after')")
    assert_well(scene)


def test_a_parked_truncate_of_the_whole_table_is_no_trouble_of_its_partitions(scene: Scene) -> None:
    scene.run_at_source(EVENTS)
    scene.start_stream([("public", "event")], disable_on_error=False)
    scene.at_destination("CREATE TABLE hangs_on (id integer, day integer, FOREIGN KEY (day, id) REFERENCES event)")
    scene.run_at_source("TRUNCATE event")
    parked = "SELECT count(*) FROM thalweg.error_queue"
    wait_for(lambda: scene.at_destination(parked) == [(1,)], SECONDS, "it is parked")
    time.sleep(6)  # three looks
    assert table_of(scene, "event")["trouble"] is None
    assert scene.engine.status(scene.stream)["status"] == "ENABLED"


def test_a_table_that_becomes_a_partition_of_another_one(scene: Scene) -> None:
    """Nothing comes for it any more, also where it had no rows. Without it the stream goes on, and its rows come."""
    scene.run_at_source(EVENTS + "CREATE TABLE event_3 (LIKE event INCLUDING ALL);")
    scene.destination.run_script(scene.database, "SET ROLE thalweg; CREATE TABLE event (id integer, day integer, "
                                                 "body text, PRIMARY KEY (day, id)); CREATE TABLE event_3 "
                                                 "(LIKE event INCLUDING ALL)")
    scene.start_stream([("public", "event"), ("public", "event_3")])
    scene.run_at_source("ALTER TABLE event ATTACH PARTITION event_3 FOR VALUES FROM (3) TO (4)")
    trouble = wait_trouble(scene, "event_3", "DROPPED")
    scene.run_at_source("INSERT INTO event_3 SELECT n, 3, 'the whole''s' FROM generate_series(1, 30) n")
    assert 'is a partition of "public"."event" at the source now' in trouble["reason"]
    assert trouble["resolutions"] == ["remove"]
    assert scene.engine.wait_aborted(scene.stream)["code"] == "table_trouble"
    scene.engine.set_stream(scene.stream, tables=[{"schema": "public", "table": "event"}])
    scene.wait_replicating()
    assert_well(scene)


@pytest.mark.both_ways
def test_tables_that_inherit_are_others(scene: Scene) -> None:
    """Rows of a child are not its parent's: not in a TRUNCATE, not in another copy, not where both have a key."""
    tables = ("CREATE TABLE parent (id integer PRIMARY KEY, body text); "
              "CREATE TABLE child (PRIMARY KEY (id)) INHERITS (parent);")
    scene.run_at_source(tables + "INSERT INTO parent SELECT n, 'parent' FROM generate_series(1, 20) n; "
                                 "INSERT INTO child SELECT n, 'child' FROM generate_series(11, 40) n;")
    scene.destination.run_script(scene.database, f"SET ROLE thalweg; {tables}")
    scene.start_stream([("public", "parent"), ("public", "child")])

    def assert_rows_same() -> None:
        scene.wait_applied()
        for table in ("parent", "child"):
            rows = f"SELECT id, body FROM ONLY {table} ORDER BY id"
            assert scene.at_source(rows) == scene.at_destination(rows)

    scene.at_source("UPDATE ONLY parent SET body = 'new' WHERE id IN (1, 16)", "DELETE FROM ONLY parent WHERE id = 15")
    assert_rows_same()
    copy_again(scene, "parent")
    assert_rows_same()
    scene.at_destination("CREATE TABLE hangs_on (id integer REFERENCES parent)")
    copy_again(scene, "parent")
    assert_rows_same()
    scene.at_destination("DROP TABLE hangs_on")
    scene.at_source("TRUNCATE ONLY parent", "INSERT INTO parent VALUES (17, 'again')")
    assert_rows_same()
    scene.at_source("TRUNCATE parent", "INSERT INTO child VALUES (17, 'last')")
    assert_rows_same()


def test_the_whole_table_is_truncated_after_its_partition(scene: Scene) -> None:
    """Nothing is missing then: neither by this one nor by another copy."""
    scene.run_at_source(EVENTS)
    scene.start_stream([("public", "event")])
    scene.engine.kill()
    scene.run_at_source("TRUNCATE event_1; TRUNCATE event; INSERT INTO event VALUES (1, 1, 'stays')")
    scene.engine.start()
    scene.wait_replicating()
    assert_well(scene)
    wait_for(lambda: "truncated" not in notes(scene), SECONDS, "its note is settled")
