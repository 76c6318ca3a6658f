"""DDL at the source that takes a table away from its stream: noticed within seconds, never silent, and cured."""

import random
import time
from typing import Any

import psycopg
import pytest

from harness.cluster import wait_for
from harness.compare import differences
from harness.engine import SECONDS, RefusedError, destination_path
from harness.fan_out import FanOut
from harness.scene import Scene
from harness.troubles import NOTICED, copy_again, resolve, states_of, table_of, wait_resumed, wait_state, wait_trouble
from harness.workload import Writers

PAIR = """CREATE TABLE kept (id integer PRIMARY KEY, body text);
          CREATE TABLE hit (id integer PRIMARY KEY, body text);
          INSERT INTO kept VALUES (1, 'one'); INSERT INTO hit SELECT n, 'old' FROM generate_series(1, 1000) n;"""
AGAIN = """DROP TABLE hit; CREATE TABLE hit (id integer PRIMARY KEY, body text);
           INSERT INTO hit SELECT n, 'new' FROM generate_series(500, 1500) n;"""
EVENTS = """CREATE TABLE event (id integer, day integer, body text, PRIMARY KEY (day, id)) PARTITION BY RANGE (day);
            CREATE TABLE event_1 PARTITION OF event FOR VALUES FROM (1) TO (2);
            CREATE TABLE event_2 PARTITION OF event FOR VALUES FROM (2) TO (3);
            INSERT INTO event SELECT n, 1 + n % 2, 'old' FROM generate_series(1, 100) n;"""
ALONE = """CREATE TABLE event_3 (id integer NOT NULL, day integer NOT NULL, body text, PRIMARY KEY (day, id));
           INSERT INTO event_3 SELECT n, 3, 'before' FROM generate_series(1, 50) n;
           ALTER TABLE event ATTACH PARTITION event_3 FOR VALUES FROM (3) TO (4);"""
# A partitioned table with its own partition: they were made at once, and its rows came before it was attached.
MIDDLE = """CREATE TABLE event_3 (id integer NOT NULL, day integer NOT NULL, body text, PRIMARY KEY (day, id))
              PARTITION BY RANGE (id);
            CREATE TABLE event_3_1 PARTITION OF event_3 FOR VALUES FROM (1) TO (1000);
            INSERT INTO event_3 SELECT n, 3, 'before' FROM generate_series(1, 50) n;
            ALTER TABLE event ATTACH PARTITION event_3 FOR VALUES FROM (3) TO (4);"""
# Faster than anybody looks: what its changes leave behind is where they began.
AWAY = """ALTER TABLE event DETACH PARTITION event_2;
          UPDATE event_2 SET body = 'away'; INSERT INTO event_2 VALUES (500, 2, 'away');
          ALTER TABLE event ATTACH PARTITION event_2 FOR VALUES FROM (2) TO (3);"""


def restart_by_force(scene: Scene) -> None:
    scene.engine.kill()
    scene.engine.start()


def test_a_replaced_table_stops_the_stream_until_it_is_copied_again(scene: Scene) -> None:
    scene.run_at_source(PAIR)
    scene.start_stream()
    scene.run_at_source(AGAIN)
    error = scene.engine.wait_aborted(scene.stream)
    assert (error["code"], error["table"]) == ("table_trouble", '"public"."hit"')
    assert wait_trouble(scene, "hit", "REPLACED")["resolutions"] == ["copy"]
    restart_by_force(scene)
    assert scene.engine.wait_aborted(scene.stream)["code"] == "table_trouble"
    scene.at_source("INSERT INTO kept VALUES (2, 'meanwhile')", "DELETE FROM hit WHERE id = 600")
    resolve(scene, "hit", "copy")
    restart_by_force(scene)
    scene.wait_replicating()
    scene.at_source("UPDATE hit SET body = 'after' WHERE id % 2 = 0")
    scene.wait_applied()
    scene.assert_same()
    assert table_of(scene, "hit")["trouble"] is None


def test_one_table_stops_and_the_others_go_on(scene: Scene, random_: random.Random) -> None:
    scene.run_at_source(PAIR)
    scene.start_stream(on_table_trouble="stop_table")

    def write(connection: psycopg.Connection[Any], random_: random.Random, number: int) -> None:
        for table in ("kept", "hit"):
            connection.execute(f"INSERT INTO {table} VALUES ({random_.randrange(3000)}, 'w') ON CONFLICT (id) DO "
                               f"UPDATE SET body = {table}.body || '+'")

    before = scene.at_destination("SELECT count(*) FROM hit")
    scene.run_at_source(AGAIN)
    with Writers(scene.source, scene.database, 2, random_, write):
        wait_trouble(scene, "hit", "REPLACED")
        wait_state(scene, "hit", "STOPPED")
        restart_by_force(scene)
        scene.wait_replicating()
        wait_state(scene, "hit", "STOPPED")
        assert scene.at_destination("SELECT count(*) FROM hit") == before
        resolve(scene, "hit", "copy")
        restart_by_force(scene)
        wait_for(lambda: table_of(scene, "hit")["trouble"] is None, 60, "its trouble is over")
        scene.wait_replicating()
    scene.wait_applied()
    scene.assert_same()


def test_a_table_that_is_dropped_while_the_stream_is_stopped(scene: Scene) -> None:
    scene.run_at_source(PAIR)
    scene.start_stream(on_table_trouble="stop_table")
    scene.engine.set_stream(scene.stream, status="DISABLED")
    scene.engine.wait_phase(scene.stream, "STOPPED")
    scene.run_at_source("DROP TABLE hit; INSERT INTO kept VALUES (2, 'two')")
    assert wait_trouble(scene, "hit", "DROPPED")["resolutions"] == ["remove"]
    with pytest.raises(RefusedError) as refused:
        resolve(scene, "hit", "copy")
    assert refused.value.error["code"] == "missing_table"
    scene.engine.set_stream(scene.stream, status="ENABLED")
    scene.wait_replicating()
    scene.wait_applied()
    assert table_of(scene, "hit")["state"] == "STOPPED"
    scene.assert_same([("public", "kept")])
    scene.engine.set_stream(scene.stream, tables=[{"schema": "public", "table": "kept"}])
    wait_for(lambda: len(scene.engine.destination(scene.stream)["tables"]) == 1, 30, "the table is taken out")
    scene.wait_replicating()


def name_tables(scene: Scene, *names: str) -> None:
    scene.engine.set_stream(scene.stream, tables=[{"schema": "public", "table": name} for name in names])
    wait_for(lambda: {name for name, _ in states_of(scene)} == set(names), SECONDS, "these are its tables")


def test_a_table_that_is_missing_before_its_first_copy_is_left_out(scene: Scene) -> None:
    scene.run_at_source(PAIR)
    scene.start_stream([("public", "kept")], on_table_trouble="stop_table")
    scene.run_at_source("ALTER TABLE hit RENAME TO called;")
    name_tables(scene, "kept", "hit")
    trouble = wait_trouble(scene, "hit", "MISSING")
    assert trouble["resolutions"] == ["remove"]
    assert '"public"."hit" does not exist at the source' in trouble["reason"] and "called" not in trouble["reason"]
    wait_state(scene, "hit", "STOPPED")
    scene.wait_replicating()
    scene.at_source("INSERT INTO kept VALUES (2, 'meanwhile')")
    scene.wait_applied()
    scene.assert_same([("public", "kept")])
    with pytest.raises(RefusedError) as refused:
        resolve(scene, "hit", "copy")
    assert refused.value.error["code"] == "missing_table"

    # One that cannot be replicated is refused, and stops nothing.
    scene.run_at_source("CREATE TABLE hit (id integer, body text);")
    wait_for(lambda: table_of(scene, "hit")["trouble"]["resolutions"] == ["copy"], NOTICED, "it can be copied")
    with pytest.raises(RefusedError) as refused:
        resolve(scene, "hit", "copy")
    assert refused.value.error["code"] == "replica_identity_missing"
    scene.run_at_source("ALTER TABLE hit ADD PRIMARY KEY (id); INSERT INTO hit VALUES (1, 'new');")
    scene.destination.run_script(scene.database, "SET ROLE thalweg; CREATE TABLE public.hit (id integer PRIMARY "
                                                 "KEY, body text); INSERT INTO public.hit VALUES (7, 'somebody''s');")
    with pytest.raises(RefusedError) as refused:
        resolve(scene, "hit", "copy")
    assert refused.value.error["code"] == "destination_table_not_empty"
    assert scene.engine.status(scene.stream)["phase"] == "REPLICATING"
    scene.at_destination("TRUNCATE hit")
    copy_again(scene, "hit")
    scene.at_source("INSERT INTO hit VALUES (2, 'after')")
    scene.wait_applied()
    scene.assert_same([("public", "kept"), ("public", "hit")])


def test_a_missing_table_is_not_called_by_anothers_name(scene: Scene) -> None:
    """The one that the stream publishes under another name is a table that it has copied."""
    scene.run_at_source(PAIR)
    scene.start_stream()
    scene.run_at_source("ALTER TABLE hit RENAME TO called;")
    wait_trouble(scene, "hit", "RENAMED")
    name_tables(scene, "kept", "hit", "absent")
    error = scene.engine.wait_aborted(scene.stream)
    assert (error["code"], error["table"]) == ("missing_table", '"public"."absent"')
    assert "renamed" not in error["message"] and "called" not in error["message"]
    assert wait_trouble(scene, "absent", "MISSING")["resolutions"] == ["remove"]
    name_tables(scene, "kept", "hit")
    scene.wait_replicating()


def test_none_of_the_tables_exists(scene: Scene) -> None:
    """Then the stream does not go on without them."""
    scene.start_stream([("public", "absent")], wait=False, on_table_trouble="stop_table")
    assert scene.engine.wait_aborted(scene.stream)["code"] == "missing_table"
    scene.assert_nothing_left()


def test_a_swap_is_noticed_however_the_names_go_back(scene: Scene) -> None:
    """Changes that were left out stay left out, though the source looks again as it did."""
    scene.run_at_source(PAIR)
    scene.start_stream(on_table_trouble="stop_table")
    scene.run_at_source("ALTER TABLE hit RENAME TO aside; CREATE TABLE hit (id integer PRIMARY KEY, body text);")
    wait_state(scene, "hit", "STOPPED")
    scene.at_source("INSERT INTO aside VALUES (5000, 'left out')")
    scene.run_at_source("DROP TABLE hit; ALTER TABLE aside RENAME TO hit;")
    scene.at_source("INSERT INTO hit VALUES (5001, 'left out')")
    scene.wait_applied()
    restart_by_force(scene)
    scene.wait_replicating()
    assert table_of(scene, "hit")["state"] == "STOPPED"
    copy_again(scene, "hit")
    scene.wait_applied()
    scene.assert_same()


def test_a_renamed_table_goes_on_and_is_followed(scene: Scene) -> None:
    scene.run_at_source(PAIR + "CREATE SCHEMA other;")
    scene.start_stream()
    scene.run_at_source("ALTER TABLE hit RENAME TO called; ALTER TABLE called SET SCHEMA other;")
    trouble = wait_trouble(scene, "hit", "RENAMED")
    assert trouble["renamed_to"] == {"schema": "other", "table": "called"} and trouble["resolutions"] == ["follow"]
    scene.at_source("INSERT INTO other.called VALUES (2000, 'under the new name')")
    scene.wait_applied()
    assert scene.at_destination("SELECT body FROM public.hit WHERE id = 2000") == [("under the new name",)]
    restart_by_force(scene)
    scene.wait_replicating()
    scene.at_source("UPDATE other.called SET body = 'changed' WHERE id = 2000")
    scene.wait_applied()
    scene.at_source("DELETE FROM other.called WHERE id = 1")
    scene.engine.set_stream(scene.stream, tables=[{"schema": "public", "table": "kept"},
                                                  {"schema": "other", "table": "called"}])
    restart_by_force(scene)
    scene.wait_replicating()
    scene.at_source("INSERT INTO other.called VALUES (2001, 'followed')")
    scene.wait_applied()
    scene.assert_same([("public", "kept"), ("other", "called")])
    assert [table["trouble"] for table in scene.engine.destination(scene.stream)["tables"]] == [None, None]


def test_what_is_parked_of_a_renamed_table_follows_it(scene: Scene) -> None:
    """Also where another table takes the old name meanwhile, with a row of the same key."""
    scene.run_at_source(PAIR)
    scene.start_stream(disable_on_error=False)
    scene.at_destination("DELETE FROM hit WHERE id = 7")
    scene.at_source("UPDATE hit SET body = 'parked' WHERE id = 7")
    scene.wait_applied()
    errors = destination_path(scene.stream) + "/errors"
    (parked,) = scene.engine.request("GET", errors)["errors"]
    scene.run_at_source("ALTER TABLE hit RENAME TO called;")
    wait_trouble(scene, "hit", "RENAMED")
    scene.engine.set_stream(scene.stream, tables=[{"schema": "public", "table": name} for name in ("kept", "called")])
    wait_for(lambda: ("called", "REPLICATING") in states_of(scene), 60, "the rename is followed")
    scene.run_at_source("CREATE TABLE hit (id integer PRIMARY KEY, body text); INSERT INTO hit VALUES (7, 'another');")
    scene.engine.set_stream(scene.stream, tables=[{"schema": "public", "table": name}
                                                  for name in ("kept", "called", "hit")])
    wait_for(lambda: ("hit", "REPLICATING") in states_of(scene), 60, "the other one is copied")
    scene.wait_applied()
    (still,) = scene.engine.request("GET", errors)["errors"]
    assert still["id"] == parked["id"]
    scene.at_destination("INSERT INTO called VALUES (7, 'old')")
    assert scene.engine.request("POST", f"{errors}/{parked['id']}/execute") == {"state": "DONE"}
    scene.wait_applied()
    scene.assert_same()


def test_a_rename_on_both_sides_by_hand(scene: Scene) -> None:
    """Renamed while the stream is stopped, with changes before and after it, then at the destination as well."""
    scene.run_at_source(PAIR)
    scene.start_stream()
    scene.engine.set_stream(scene.stream, status="DISABLED")
    scene.engine.wait_phase(scene.stream, "STOPPED")
    scene.run_at_source("UPDATE hit SET body = 'before' WHERE id < 10; ALTER TABLE hit RENAME TO called;"
                        "UPDATE called SET body = 'after' WHERE id > 990;")
    wait_trouble(scene, "hit", "RENAMED")
    names = [{"schema": "public", "table": name} for name in ("kept", "called")]
    scene.engine.set_stream(scene.stream, tables=names)
    wait_for(lambda: ("called", "COPIED") in states_of(scene), 60, "it is not waiting for a copy")
    scene.engine.set_stream(scene.stream, tables=[{"schema": "public", "table": name} for name in ("kept", "hit")])
    scene.at_destination("ALTER TABLE hit RENAME TO called")
    scene.engine.set_stream(scene.stream, status="ENABLED")
    scene.wait_replicating()
    scene.wait_applied()
    scene.engine.set_stream(scene.stream, tables=[{"schema": "public", "table": name} for name in ("kept", "called")])
    wait_for(lambda: ("called", "REPLICATING") in states_of(scene), 60, "the rename is followed")
    scene.wait_replicating()
    scene.wait_applied()
    scene.assert_same()


def test_a_partition_that_comes_without_its_roots_replica_identity(scene: Scene) -> None:
    """The source refuses its updates, and says so only to whoever makes them."""
    scene.run_at_source("CREATE TABLE event (id integer, body text) PARTITION BY RANGE (id);"
                        "CREATE TABLE event_1 PARTITION OF event FOR VALUES FROM (0) TO (100);"
                        "ALTER TABLE event REPLICA IDENTITY FULL; ALTER TABLE event_1 REPLICA IDENTITY FULL;"
                        "INSERT INTO event VALUES (1, 'one');")
    scene.start_stream([("public", "event")])
    grow = "CREATE TABLE event_2 PARTITION OF event FOR VALUES FROM (100) TO (200)"
    scene.run_at_source(grow)
    scene.at_destination(grow)
    trouble = wait_trouble(scene, "event", "UNIDENTIFIED", SECONDS)
    assert '"public"."event_2" has no replica identity' in trouble["reason"]
    assert "REPLICA IDENTITY FULL" in trouble["cure"]
    assert trouble["resolutions"] == []
    scene.engine.set_stream(scene.stream, status="DISABLED")
    scene.engine.wait_phase(scene.stream, "STOPPED")
    scene.engine.set_stream(scene.stream, status="ENABLED")
    scene.wait_replicating()
    scene.at_source("INSERT INTO event VALUES (150, 'new')")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        scene.at_source("UPDATE event SET body = 'changed' WHERE id = 150")
    scene.run_at_source("ALTER TABLE event_2 REPLICA IDENTITY FULL")
    wait_for(lambda: table_of(scene, "event")["trouble"] is None, SECONDS, "its trouble is over")
    scene.at_source("UPDATE event SET body = 'changed' WHERE id = 150")
    scene.wait_applied()
    found = differences(scene.source, scene.destination, scene.database, scene.database, [("public", "event")])
    assert not found, found


@pytest.mark.parametrize("change", [
    "TRUNCATE event_1", "ALTER TABLE event DETACH PARTITION event_2", "DROP TABLE event_2", ALONE, AWAY,
    f"BEGIN; {ALONE} COMMIT", f"BEGIN; {ALONE.replace('INSERT', 'SAVEPOINT s; INSERT')} COMMIT", MIDDLE,
], ids=["truncate", "detach", "drop", "attach", "away", "attach_at_once", "attach_savepoint", "attach_middle"])
def test_changes_of_partitions_that_nothing_publishes(scene: Scene, change: str) -> None:
    scene.run_at_source(EVENTS)
    scene.start_stream([("public", "event")])
    scene.run_at_source(change)
    assert scene.engine.wait_aborted(scene.stream)["code"] == "table_trouble"
    assert wait_trouble(scene, "event", "PARTITIONS CHANGED")["resolutions"] == ["copy", "accept"]
    copy_again(scene, "event")
    scene.at_source("UPDATE event SET body = 'after' WHERE id % 3 = 0")
    scene.wait_applied()
    found = differences(scene.source, scene.destination, scene.database, scene.database, [("public", "event")])
    assert not found, found


def test_a_partition_that_was_truncated_before_anybody_looked(scene: Scene) -> None:
    """Also one that has come and was truncated while the engine was away, and one that was detached meanwhile."""
    scene.run_at_source(EVENTS)
    scene.start_stream([("public", "event")])
    for number, restarts, detour in ((3, False, False), (4, True, False), (5, False, True)):
        ahead = f"CREATE TABLE event_{number} PARTITION OF event FOR VALUES FROM ({number}) TO ({number + 1})"
        scene.at_destination(ahead)
        if restarts:
            scene.engine.kill()
        scene.run_at_source(f"{ahead}; INSERT INTO event SELECT n, {number}, 'gone' FROM generate_series(1, 9) n; "
                            f"TRUNCATE event_{number}")
        if detour:
            scene.run_at_source(f"BEGIN; ALTER TABLE event DETACH PARTITION event_{number}; ALTER TABLE event ATTACH "
                                f"PARTITION event_{number} FOR VALUES FROM ({number}) TO ({number + 1}); COMMIT")
        else:
            scene.run_at_source(f"INSERT INTO event VALUES (100, {number}, 'stays')")
        if restarts:
            scene.engine.start()
        assert_told_and_cured(scene, f"event_{number}")


def test_a_partition_that_is_made_as_one_brings_no_rows_of_its_own(scene: Scene) -> None:
    """With a partition of its own, and where defaults write the columns' catalog rows anew."""
    scene.run_at_source(EVENTS)
    scene.start_stream([("public", "event")])
    scene.at_destination("CREATE TABLE event_rest PARTITION OF event DEFAULT")
    scene.engine.kill()
    scene.run_at_source("CREATE TABLE event_5 PARTITION OF event FOR VALUES FROM (5) TO (6) PARTITION BY RANGE (id); "
                        "CREATE TABLE event_5_1 PARTITION OF event_5 FOR VALUES FROM (1) TO (9); "
                        "INSERT INTO event VALUES (1, 5, 'below')")
    scene.run_at_source("ALTER TABLE event ALTER id SET DEFAULT 1, ALTER day SET DEFAULT 6, ALTER body SET DEFAULT ''; "
                        "CREATE TABLE event_6 PARTITION OF event FOR VALUES FROM (6) TO (7); "
                        "INSERT INTO event DEFAULT VALUES")
    scene.engine.start()
    scene.wait_replicating()
    time.sleep(5)  # two looks
    scene.wait_applied()
    assert table_of(scene, "event")["trouble"] is None
    assert_events_same(scene)


@pytest.mark.parametrize("end", ["DROP TABLE event_3", "ALTER TABLE event DETACH PARTITION event_3"])
@pytest.mark.parametrize("away", [False, True])
def test_a_partition_that_came_and_went_between_two_looks(scene: Scene, end: str, away: bool) -> None:
    """The catalogues have nothing of it, or had nothing; its rows have come all the same."""
    scene.run_at_source(EVENTS)
    scene.start_stream([("public", "event")])
    scene.at_destination("CREATE TABLE event_rest PARTITION OF event DEFAULT")
    if away:
        scene.engine.kill()
    made = "CREATE TABLE event_3 PARTITION OF event FOR VALUES FROM (3) TO (4)"
    scene.run_at_source(f"BEGIN; {made}; INSERT INTO event VALUES (1, 3, 'never'); ROLLBACK")
    scene.run_at_source(f"{made}; INSERT INTO event SELECT n, 3, 'gone' FROM generate_series(1, 9) n; {end}")
    if away:
        scene.engine.start()
    assert_told_and_cured(scene, '"event_3" was detached or dropped')


def test_a_partition_that_was_rolled_back_is_no_trouble(scene: Scene) -> None:
    """Also of a transaction that came in pieces, before its end."""
    scene.run_at_source(EVENTS)
    scene.at_source(f"ALTER DATABASE {scene.database} SET logical_decoding_work_mem = '64kB'")
    scene.start_stream([("public", "event")])
    scene.at_destination("CREATE TABLE event_rest PARTITION OF event DEFAULT")
    made = "CREATE TABLE event_3 PARTITION OF event FOR VALUES FROM (3) TO (4)"
    filled = "INSERT INTO event SELECT n, 3, repeat('never', 100) FROM generate_series(1, 5000) n"
    scene.run_at_source(f"BEGIN; {made}; {filled}; ROLLBACK")
    scene.run_at_source(f"BEGIN; SAVEPOINT s; {made}; {filled}; ROLLBACK TO s; "
                        "INSERT INTO event VALUES (900, 1, 'stays'); COMMIT")
    time.sleep(5)  # two looks
    scene.at_source("INSERT INTO event VALUES (901, 2, 'after')")
    scene.wait_applied()
    assert table_of(scene, "event")["trouble"] is None
    assert_events_same(scene)


def test_an_empty_table_that_is_attached_is_no_trouble(scene: Scene) -> None:
    scene.run_at_source(EVENTS)
    scene.start_stream([("public", "event")])
    scene.at_destination("CREATE TABLE event_3 PARTITION OF event FOR VALUES FROM (3) TO (4)")
    scene.run_at_source("CREATE TABLE event_3 (LIKE event INCLUDING ALL); "
                        "ALTER TABLE event ATTACH PARTITION event_3 FOR VALUES FROM (3) TO (4)")
    time.sleep(5)  # two looks
    scene.at_source("INSERT INTO event VALUES (2, 3, 'through the root')")
    scene.wait_applied()
    assert table_of(scene, "event")["trouble"] is None
    assert_events_same(scene)


@pytest.mark.parametrize("destinations_own", [False, True])
def test_a_truncate_that_a_rule_drops_is_no_trouble_of_the_partitions(scene: Scene, destinations_own: bool) -> None:
    scene.run_at_source(EVENTS)
    event = {"schema": "public", "table": "event"}
    keeps = {"negative": [{"name": "keeps", "operations": ["TRUNCATE"]}]}
    scene.engine.define_stream(scene.stream, scene.source_conninfo, scene.destination_conninfo, [], {})
    stream = scene.engine.streams[scene.stream]
    stream["tables"] = [event if destinations_own else event | {"rules": keeps}]
    if destinations_own:
        stream["destinations"][0]["rules"] = [event | keeps]
    scene.engine.put_desired()
    scene.wait_replicating()
    scene.run_at_source("TRUNCATE event; INSERT INTO event VALUES (1000, 1, 'after'); TRUNCATE event_2")
    scene.wait_applied()
    time.sleep(5)  # two looks
    assert table_of(scene, "event")["trouble"] is None
    assert scene.at_destination("SELECT count(*) FROM event") == [(101,)]


def test_a_partition_of_a_partition_that_was_away(scene: Scene) -> None:
    """Made with the one above it, in one transaction."""
    scene.run_at_source("CREATE TABLE event (id integer, day integer, body text, PRIMARY KEY (day, id)) "
                        "PARTITION BY RANGE (day);"
                        "CREATE TABLE event_0 PARTITION OF event FOR VALUES FROM (0) TO (9) PARTITION BY RANGE (day);"
                        "CREATE TABLE event_2 PARTITION OF event_0 FOR VALUES FROM (2) TO (3);"
                        "INSERT INTO event VALUES (1, 2, 'old');")
    scene.start_stream([("public", "event")])
    scene.run_at_source(AWAY.replace("ALTER TABLE event ", "ALTER TABLE event_0 "))
    assert scene.engine.wait_aborted(scene.stream)["code"] == "table_trouble"
    assert "attached again" in wait_trouble(scene, "event", "PARTITIONS CHANGED")["reason"]


def test_a_stopped_tables_partitions_stay_its_trouble(scene: Scene) -> None:
    """The engine takes it out of the publication, which is nobody's doing at the source."""
    scene.run_at_source(EVENTS + "CREATE TABLE kept (id integer PRIMARY KEY, body text);")
    scene.start_stream(on_table_trouble="stop_table")
    scene.run_at_source(ALONE)
    wait_state(scene, "event", "STOPPED")
    published = "SELECT tablename FROM pg_publication_tables WHERE tablename LIKE 'event%'"
    wait_for(lambda: not scene.at_source(published), NOTICED, "nothing of it is published")
    restart_by_force(scene)
    scene.wait_replicating()
    wait_state(scene, "event", "STOPPED")
    time.sleep(5)  # two looks
    trouble = table_of(scene, "event")["trouble"]
    assert (trouble["kind"], trouble["resolutions"]) == ("PARTITIONS CHANGED", ["copy"])
    assert "was attached with rows" in trouble["reason"]
    copy_again(scene, "event")
    assert_events_same(scene)


def assert_events_same(scene: Scene) -> None:
    scene.wait_applied()
    found = differences(scene.source, scene.destination, scene.database, scene.database, [("public", "event")])
    assert not found, found


def assert_told_and_cured(scene: Scene, naming: str) -> None:
    """The trouble of the partitions, and another copy makes both sides the same."""
    assert scene.engine.wait_aborted(scene.stream)["code"] == "table_trouble"
    assert naming in wait_trouble(scene, "event", "PARTITIONS CHANGED")["reason"]
    copy_again(scene, "event")
    assert_events_same(scene)


def taken_over(scene: Scene) -> bool:
    """The files of now are those that are recorded, and nothing of the TRUNCATE is left to be looked for."""
    files = {row[0]: row[1] for row in scene.at_source(
        "SELECT relname, relfilenode::int FROM pg_class WHERE relname LIKE 'event\\__'")}
    (identity,), = scene.at_destination("SELECT identity->'leaves' FROM thalweg.stream_table")
    return {leaf[3]: leaf[1] for leaf in identity} == files


@pytest.mark.both_ways
def test_a_truncate_of_the_whole_table_goes_through_the_stream(scene: Scene) -> None:
    """Also the second one, also with what is written before and after it in its transaction, also while the engine is
    away."""
    scene.run_at_source(EVENTS)
    scene.start_stream([("public", "event")])
    scene.run_at_source("TRUNCATE event;")
    wait_for(lambda: taken_over(scene), NOTICED, "the new files are known")
    for number in range(2):
        scene.run_at_source(f"BEGIN; DELETE FROM event WHERE id = 1; TRUNCATE event; INSERT INTO event VALUES (1, 1, "
                            f"'{number}'), (2, 2, 'x'); COMMIT; INSERT INTO event VALUES (3, 2, 'after');")
    wait_for(lambda: taken_over(scene), NOTICED, "the new files are known")
    assert_events_same(scene)
    scene.engine.kill()
    scene.run_at_source("TRUNCATE event; INSERT INTO event VALUES (5, 1, 'away');")
    scene.engine.start()
    scene.wait_replicating()
    wait_for(lambda: taken_over(scene), NOTICED, "the new files are known")
    assert_events_same(scene)
    assert table_of(scene, "event")["trouble"] is None
    assert scene.engine.status(scene.stream)["status"] == "ENABLED"


def test_a_truncate_of_the_whole_table_that_comes_late(scene: Scene) -> None:
    """The source's catalogs are ahead of what is applied for as long as the destination is locked."""
    scene.run_at_source(EVENTS)
    scene.start_stream([("public", "event")])
    with psycopg.connect(scene.destination.conninfo(scene.database)) as blocker:
        blocker.execute("LOCK TABLE event_1")
        scene.run_at_source("INSERT INTO event VALUES (1000, 1, 'before'); TRUNCATE event;"
                            "INSERT INTO event VALUES (1001, 1, 'after');")
        time.sleep(6)  # three looks
        assert table_of(scene, "event")["trouble"] is None
    wait_for(lambda: taken_over(scene), NOTICED, "the new files are known")
    assert_events_same(scene)
    assert scene.engine.status(scene.stream)["status"] == "ENABLED"


@pytest.mark.parametrize("away", [False, True], ids=["running", "away"])
def test_a_truncate_of_the_whole_table_and_one_of_a_partition(scene: Scene, away: bool) -> None:
    scene.run_at_source(EVENTS)
    scene.start_stream([("public", "event")])
    if away:
        scene.engine.kill()
    scene.run_at_source("TRUNCATE event; INSERT INTO event VALUES (1, 1, 'lost'), (2, 2, 'stays'); TRUNCATE event_1;")
    if away:
        scene.engine.start()
    assert scene.engine.wait_aborted(scene.stream)["code"] == "table_trouble"
    reason = wait_trouble(scene, "event", "PARTITIONS CHANGED")["reason"]
    assert "event_1" in reason and "event_2" not in reason
    copy_again(scene, "event")
    assert_events_same(scene)


def test_a_truncated_partition_whose_rows_come_again(scene: Scene) -> None:
    """A failure that the TRUNCATE causes is reported as the trouble, though that of the whole might still come."""
    scene.run_at_source(EVENTS)
    scene.start_stream([("public", "event")], group_size=1)
    (key,), = scene.at_source("SELECT id FROM event WHERE day = 1 LIMIT 1")
    scene.run_at_source(f"TRUNCATE event_1; INSERT INTO event VALUES ({key}, 1, 'again');")
    assert_told_and_cured(scene, "event_1")


def test_partitions_that_are_right_as_they_are(scene: Scene) -> None:
    """One that is made for rows to come is no trouble; one that was emptied on both sides by hand is accepted."""
    scene.run_at_source(EVENTS)
    scene.start_stream([("public", "event")])
    ahead = "CREATE TABLE event_4 PARTITION OF event FOR VALUES FROM (4) TO (5)"
    scene.at_destination(ahead)
    scene.run_at_source(f"{ahead}; INSERT INTO event VALUES (1, 4, 'through the root');")
    scene.wait_applied()
    scene.run_at_source("TRUNCATE event_1;")
    scene.engine.wait_aborted(scene.stream)
    assert "event_1" in wait_trouble(scene, "event", "PARTITIONS CHANGED")["reason"]
    assert "event_4" not in table_of(scene, "event")["trouble"]["reason"]
    scene.at_destination("TRUNCATE event_1")
    resolve(scene, "event", "accept")
    wait_resumed(scene, "event")
    scene.wait_replicating()
    scene.at_source("INSERT INTO event VALUES (1, 1, 'after')")
    scene.wait_applied()
    assert table_of(scene, "event")["trouble"] is None
    found = differences(scene.source, scene.destination, scene.database, scene.database, [("public", "event")])
    assert not found, found


def test_a_table_that_somebody_took_out_of_the_publication(scene: Scene) -> None:
    """Also where that is undone while the engine is away: changes are missing all the same."""
    scene.run_at_source(PAIR)
    scene.start_stream()
    scene.engine.kill()
    publication = f"thalweg_{scene.stream}"
    scene.run_at_source(f"ALTER PUBLICATION {publication} DROP TABLE hit; DELETE FROM hit WHERE id < 100;"
                        f"ALTER PUBLICATION {publication} ADD TABLE hit;")
    scene.engine.start()
    assert scene.engine.wait_aborted(scene.stream)["code"] == "table_trouble"
    wait_trouble(scene, "hit", "UNPUBLISHED")
    copy_again(scene, "hit")
    scene.wait_applied()
    scene.assert_same()


def test_each_destination_of_several_copies_again(scene: Scene) -> None:
    fan = FanOut(scene)
    try:
        scene.run_at_source(PAIR)
        fan.start_stream("a", "b")
        scene.run_at_source(AGAIN)
        for name in ("a", "b"):
            error = fan.wait(name, lambda found: found["status"] == "ABORTED", "ABORTED")["error"]
            assert error["code"] == "table_trouble"
        scene.at_source("INSERT INTO kept VALUES (2, 'meanwhile')")
        for name in ("a", "b"):
            resolve(scene, "hit", "copy", name)
        for name in ("a", "b"):
            fan.wait_phase(name, "REPLICATING")
        scene.at_source("UPDATE hit SET body = 'after' WHERE id % 2 = 0")
        fan.wait_applied()
        fan.assert_same()
    finally:
        fan.close()
