"""Tables without a key, whose updates and deletes somebody has given up: inserts and truncates come, nothing else."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from harness.cluster import wait_for
from harness.compare import user_tables
from harness.engine import applied_there
from harness.fan_out import FanOut
from harness.paths import EnginePair
from harness.scene import Scene
from harness.troubles import copy_again, resolve, table_of, wait_resumed, wait_trouble
from harness.workload import Writers

LOG = "CREATE TABLE log (at bigint, line text);"
BOTH = LOG + """CREATE TABLE kept (id bigint PRIMARY KEY, body text);
                INSERT INTO log SELECT n, repeat('old ', 20) FROM generate_series(1, 200000) n;
                INSERT INTO kept SELECT n, 'old' FROM generate_series(1, 1000) n;"""
EVENTS = """CREATE TABLE event (day integer, line text) PARTITION BY RANGE (day);
            CREATE TABLE event_1 PARTITION OF event FOR VALUES FROM (1) TO (2);
            CREATE TABLE event_2 PARTITION OF event FOR VALUES FROM (2) TO (3);
            INSERT INTO event SELECT 1 + n % 2, 'old' FROM generate_series(1, 100) n;"""


@pytest.fixture
def fan(scene: Scene) -> Iterator[FanOut]:
    fan = FanOut(scene)
    yield fan
    fan.close()


def define(scene: Scene, *inserts_only: str, **parameters: Any) -> None:
    parameters.setdefault("source_plugin", "thalweg" if scene.libraries else "pgoutput")
    scene.engine.define_stream(scene.stream, scene.source_conninfo, scene.destination_conninfo,
                               user_tables(scene.source, scene.database), parameters)
    scene.engine.give_up_updates(scene.stream, *inserts_only)


def start(scene: Scene, *inserts_only: str, **parameters: Any) -> None:
    define(scene, *inserts_only, **parameters)
    scene.engine.put_desired()
    scene.wait_replicating()


def change(scene: Scene, *inserts_only: str) -> None:
    scene.engine.give_up_updates(scene.stream, *inserts_only)
    scene.engine.put_desired()


def restart_by_force(scene: Scene) -> None:
    scene.engine.kill()
    scene.engine.start()


def lines(scene: Scene, table: str = "log") -> int:
    return int(scene.destination.value(scene.database, f"SELECT count(*) FROM {table}"))


def write(connection: psycopg.Connection[Any], random_: random.Random, number: int) -> None:
    """Each line once: a lost one is missing, one that came twice is there twice."""
    with connection.transaction():
        for _ in range(random_.randrange(1, 30)):
            connection.execute("INSERT INTO log VALUES (%s, %s)", (random_.getrandbits(62), f"of {number}"))
        connection.execute("INSERT INTO kept VALUES (%s, 'new') ON CONFLICT (id) DO UPDATE SET body = kept.body || '+'",
                           (random_.randrange(2000),))


@pytest.mark.both_ways
def test_each_insert_comes_once_and_nothing_else(scene: Scene, random_: random.Random) -> None:
    scene.run_at_source(BOTH)
    define(scene, "log")
    with Writers(scene.source, scene.database, 2, random_, write):
        scene.engine.put_desired()
        wait_for(lambda: lines_there(scene), 60, "the copy is under way")
        restart_by_force(scene)
        scene.wait_replicating()
        restart_by_force(scene)
        scene.wait_replicating()
    scene.wait_applied()
    scene.assert_same()
    before = lines(scene)
    assert before > 200000

    # PostgreSQL lets both happen at the source, and they stay there.
    scene.at_source("UPDATE log SET line = 'changed' WHERE at % 3 = 0", "DELETE FROM log WHERE at % 2 = 0",
                    "INSERT INTO log VALUES (0, 'after')", "DELETE FROM kept WHERE id % 2 = 0")
    scene.wait_applied()
    assert lines(scene) == before + 1
    assert not scene.at_destination("SELECT FROM log WHERE line = 'changed'")
    scene.assert_same([("public", "kept")])

    scene.at_source("TRUNCATE log", "INSERT INTO log VALUES (1, 'first')")
    scene.wait_applied()
    scene.assert_same()
    scene.engine.drop_stream(scene.stream)
    scene.assert_nothing_left()


def lines_there(scene: Scene) -> bool:
    """Whether the destination has the table: its rows come in one transaction."""
    return bool(scene.destination.value(scene.database, "SELECT to_regclass('public.log') IS NOT NULL"))


def test_without_consent_it_is_refused(scene: Scene) -> None:
    scene.run_at_source(LOG)
    scene.start_stream(wait=False)
    error = scene.engine.wait_aborted(scene.stream)
    assert (error["code"], error["table"]) == ("replica_identity_missing", '"public"."log"')
    scene.at_source("INSERT INTO log VALUES (1, 'a')", "UPDATE log SET line = 'b'")
    assert scene.publications() == 0, "nothing is made of a stream that is refused"


def test_partitions_come_through_their_root(scene: Scene) -> None:
    scene.run_at_source(EVENTS)
    start(scene, "event")
    scene.at_source("INSERT INTO event SELECT 1 + n % 2, 'new' FROM generate_series(1, 100) n",
                    "CREATE TABLE event_3 PARTITION OF event FOR VALUES FROM (3) TO (4)")
    scene.at_destination("CREATE TABLE event_3 PARTITION OF event FOR VALUES FROM (3) TO (4)",
                         "ALTER TABLE event_3 OWNER TO thalweg")
    scene.at_source("INSERT INTO event VALUES (3, 'third')")
    scene.wait_applied()
    scene.assert_same()
    scene.at_source("UPDATE event SET line = 'changed' WHERE day = 1", "DELETE FROM event WHERE day = 2")
    scene.wait_applied()
    assert lines(scene, "event") == 201
    # PostgreSQL writes a row that goes to another partition as one that is deleted and one that is inserted.
    scene.at_source("UPDATE event SET day = 1, line = 'moved' WHERE day = 3")
    scene.wait_applied()
    assert scene.at_destination("SELECT day FROM event WHERE line IN ('third', 'moved') ORDER BY 1") == [(1,), (3,)]
    scene.at_source("TRUNCATE event", "INSERT INTO event VALUES (1, 'first')")
    scene.wait_applied()
    assert scene.at_destination("SELECT day, line FROM event") == [(1, "first")]


def test_two_destinations_one_at_another_engine(fan: FanOut, scene: Scene, tmp_path: Path) -> None:
    pair = EnginePair(scene, tmp_path)
    try:
        scene.run_at_source(LOG + "INSERT INTO log SELECT n, 'old' FROM generate_series(1, 1000) n;")
        scene.engine.define_stream(scene.stream, scene.source_conninfo, "", [("public", "log")], {})
        remote = applied_there("bravo", "127.0.0.1", pair.relay.port, id="bravo", backlog=True)
        scene.engine.give_up_updates(scene.stream, "log")
        fan.set_destinations([fan.make("a").definition(), remote])
        fan.wait("bravo", lambda found: found["phase"] == "RETRYING", "waits for the other engine")
        pair.receiver.define_stream(scene.stream, scene.source_conninfo, scene.destination_conninfo,
                                    [("public", "log")], {}, receive_from={"engine": "alpha"})
        pair.receiver.give_up_updates(scene.stream, "log")
        pair.receiver.put_desired()
        for name in ("a", "bravo"):
            fan.wait_phase(name, "REPLICATING")
        scene.at_source("INSERT INTO log SELECT n, 'new' FROM generate_series(1, 5000) n")
        restart_by_force(scene)
        fan.wait_applied("a", "bravo")
        scene.assert_same()
        fan.assert_same("a")
        scene.at_source("UPDATE log SET line = 'changed'", "DELETE FROM log", "INSERT INTO log VALUES (0, 'last')")
        fan.wait_applied("a", "bravo")
        for database in (scene.database, fan.made["a"].database):
            assert scene.destination.value(database, "SELECT count(*) FROM log WHERE line <> 'changed'") == 6001
        pair.receiver.drop_stream(scene.stream)
    finally:
        pair.close()


def test_a_stream_over_two_engines_gives_up_what_both_say(scene: Scene, tmp_path: Path) -> None:
    pair = EnginePair(scene, tmp_path)
    try:
        scene.run_at_source(LOG)
        pair.start_stream(wait=False)
        assert pair.receiver.wait_aborted(scene.stream)["code"] == "replica_identity_missing"
        for engine in (pair.receiver, pair.sender):
            engine.give_up_updates(scene.stream, "log")
            engine.put_desired()
        pair.wait_replicating()
        scene.at_source("INSERT INTO log VALUES (1, 'a')", "UPDATE log SET line = 'b'",
                        "INSERT INTO log VALUES (2, 'c')")
        pair.wait_applied()
        assert scene.at_destination("SELECT at, line FROM log ORDER BY at") == [(1, "a"), (2, "c")]
        pair.drop_stream()
        scene.assert_nothing_left()
    finally:
        pair.close()


def test_a_table_that_somebody_has_sent_updates_of_too(scene: Scene) -> None:
    scene.run_at_source(BOTH)
    start(scene, "log")
    scene.run_at_source(f"ALTER PUBLICATION thalweg_{scene.stream} ADD TABLE log;")
    reason = wait_trouble(scene, "log", "UNPUBLISHED")["reason"]
    assert "sends updates and deletes" in reason
    assert scene.engine.wait_aborted(scene.stream)["code"] == "table_trouble"
    resolve(scene, "log", "copy")
    wait_resumed(scene, "log")
    scene.wait_replicating()
    scene.at_source("UPDATE log SET line = 'changed' WHERE at = 1", "INSERT INTO log VALUES (0, 'after')")
    scene.wait_applied()
    assert lines(scene) == 200001


def test_a_consent_is_given_later_and_taken_back(scene: Scene) -> None:
    """Given: nothing that was there is lost. Taken back: what was given up meanwhile comes with another copy only."""
    scene.run_at_source(BOTH + "ALTER TABLE log REPLICA IDENTITY FULL;")
    start(scene)
    scene.at_source("UPDATE log SET line = 'came' WHERE at = 1")
    scene.run_at_source("ALTER TABLE log REPLICA IDENTITY DEFAULT;")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        scene.at_source("UPDATE log SET line = 'refused' WHERE at = 2")
    change(scene, "log")
    wait_for(lambda: scene.source.value(scene.database, "SELECT pubname LIKE '%_inserts' FROM pg_publication_tables "
                                        "WHERE tablename = 'log'"), 30, "the table is in the other publication")
    scene.at_source("UPDATE log SET line = 'given up' WHERE at = 2", "INSERT INTO log VALUES (0, 'new')")
    scene.wait_replicating()
    scene.wait_applied()
    restart_by_force(scene)
    scene.wait_replicating()
    scene.wait_applied()
    assert table_of(scene, "log")["trouble"] is None
    assert scene.at_destination("SELECT at, left(line, 4) FROM log WHERE at < 3 ORDER BY at") == [
        (0, "new"), (1, "came"), (2, "old ")]

    scene.run_at_source("ALTER TABLE log REPLICA IDENTITY FULL;")
    change(scene)
    trouble = wait_trouble(scene, "log", "UNPUBLISHED")
    assert "Only inserts" in trouble["reason"] and trouble["resolutions"] == ["copy"]
    assert scene.engine.wait_aborted(scene.stream)["code"] == "table_trouble"
    copy_again(scene, "log")
    scene.at_source("UPDATE log SET line = 'comes again' WHERE at % 2 = 0", "DELETE FROM log WHERE at % 3 = 0")
    scene.wait_applied(180)  # without a key, 166 667 rows one by one
    scene.assert_same()


def test_a_stream_of_an_older_engine_says_that_it_cannot(scene: Scene) -> None:
    """Its slot is older than the publication would be: decoding would never get past the changes in between."""
    scene.run_at_source(BOTH)
    scene.start_stream([("public", "kept")])
    scene.run_at_source(f"DROP PUBLICATION thalweg_{scene.stream}_inserts;")
    restart_by_force(scene)
    scene.wait_replicating()
    scene.engine.streams[scene.stream]["tables"].append({"schema": "public", "table": "log"})
    change(scene, "log")
    error = scene.engine.wait_aborted(scene.stream)
    assert error["code"] == "publication_lost" and f"thalweg_{scene.stream}_inserts" in error["message"]
