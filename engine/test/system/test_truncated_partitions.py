"""Partitions that are truncated alone: told by the plugin also where the catalogs have nothing of it any more."""

import time

from harness.cluster import wait_for
from harness.compare import differences
from harness.engine import SECONDS
from harness.scene import Scene
from harness.troubles import copy_again, table_of, wait_trouble

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
    """Its file is the first one that a look sees: nothing there says that it had rows. The engine is killed behind it."""
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
