"""Row rules: which rows are copied and which changes come, compared with the same condition at the source."""

import itertools
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from harness.cluster import wait_for
from harness.compare import user_tables
from harness.engine import RefusedError, applied_there
from harness.fan_out import FanOut
from harness.judged import BEGINNINGS, assert_judged
from harness.paths import EnginePair
from harness.scene import Scene
from harness.workload import Writers

REGIONS = ("north", "south", "east", None)
ORDERS = """
CREATE TABLE orders (id bigint PRIMARY KEY, region text, n integer NOT NULL, note text);
ALTER TABLE orders REPLICA IDENTITY FULL;
"""
FILLED = ORDERS + """
INSERT INTO orders SELECT k, (ARRAY['north', 'south', 'east', NULL])[1 + k % 4], k % 10, repeat('old ', (k % 7)::int)
  FROM generate_series(1, 5000) k;
"""
# Rows that were north or have a small number, and never those of tests.
SUBSET = {"positive": [{"name": "north", "condition": "region = 'north'", "subset": True},
                       {"name": "small", "condition": "n < 3 AND region IS NOT NULL", "subset": True}],
          "negative": [{"name": "no_tests", "condition": "note LIKE 'test%'"}]}
NEWEST = "SELECT region FROM orders ORDER BY id DESC LIMIT 1"
SUBSET_AS_WHERE = "(region = 'north' OR n < 3 AND region IS NOT NULL) AND (note LIKE 'test%') IS NOT TRUE"


def rule(name: str, condition: str = "", **more: Any) -> dict[str, Any]:
    return {"name": name, **({"condition": condition} if condition else {}), **more}


def define(scene: Scene, rules: dict[str, Any], **parameters: Any) -> None:
    """`rules` by the name of the table; of every table of the source."""
    parameters.setdefault("source_plugin", "thalweg" if scene.libraries else "pgoutput")
    scene.engine.define_stream(scene.stream, scene.source_conninfo, scene.destination_conninfo,
                               user_tables(scene.source, scene.database), parameters)
    set_rules(scene, rules)


def set_rules(scene: Scene, rules: dict[str, Any]) -> None:
    """In the document that the next put_desired sends."""
    for table in scene.engine.streams[scene.stream]["tables"]:
        table.pop("rules", None)
        if table["table"] in rules:
            table["rules"] = rules[table["table"]]


def start(scene: Scene, rules: dict[str, Any], **parameters: Any) -> None:
    define(scene, rules, **parameters)
    scene.engine.put_desired()
    scene.wait_replicating()


def change(scene: Scene, rules: dict[str, Any]) -> None:
    set_rules(scene, rules)
    scene.engine.put_desired()


def restart_by_force(scene: Scene) -> None:
    scene.engine.kill()
    scene.engine.start()


def assert_rows(scene: Scene, where: str, table: str = "orders", database: str = "") -> int:
    """The destination has exactly the source's rows that the condition is TRUE for; `database`: another one there."""
    wanted = scene.at_source(f"SELECT t::text FROM {table} t WHERE {where} ORDER BY t::text COLLATE \"C\"")
    found = scene.destination.sql(database or scene.database,
                                  f"SELECT t::text FROM {table} t ORDER BY t::text COLLATE \"C\"")
    missing, extra = set(wanted) - set(found), set(found) - set(wanted)
    assert found == wanted, f"missing {sorted(missing)[:5]}, too many {sorted(extra)[:5]}"
    return len(wanted)


def write(connection: psycopg.Connection[Any], random_: random.Random, number: int) -> None:
    """Rows that come into the subset and leave it, some with a value that is stored outside the row; each writer has
    keys of its own."""
    def key() -> int:
        return random_.randrange(500) * 10 + number

    def note() -> str | None:
        return random_.choice((None, "a", "test it", random_.randbytes(3000).hex()))

    with connection.transaction():
        for _ in range(random_.randrange(1, 12)):
            kind = random_.randrange(10)
            if kind < 3:
                connection.execute(
                    "INSERT INTO orders VALUES (%s, %s, %s, %s) ON CONFLICT (id) DO UPDATE SET n = excluded.n",
                    (key(), random_.choice(REGIONS), random_.randrange(10), note()))
            elif kind < 6:
                connection.execute("UPDATE orders SET region = %s WHERE id = %s", (random_.choice(REGIONS), key()))
            elif kind < 8:
                connection.execute("UPDATE orders SET n = %s, note = %s WHERE id = %s",
                                   (random_.randrange(10), note(), key()))
            elif kind < 9:
                connection.execute("DELETE FROM orders WHERE id = %s", (key(),))
            else:
                connection.execute("UPDATE orders SET id = %s, n = %s WHERE id = %s AND NOT EXISTS (SELECT FROM "
                                   "orders WHERE id = %s)", (found := key(), random_.randrange(10), key(), found))


@pytest.mark.both_ways
def test_a_subset_follows_its_rows_through_kills(scene: Scene, random_: random.Random) -> None:
    scene.run_at_source(FILLED)
    define(scene, {"orders": SUBSET}, copy_range_rows=1000)
    with Writers(scene.source, scene.database, 3, random_, write) as writers:
        scene.engine.put_desired()
        time.sleep(random_.uniform(0.2, 1))
        restart_by_force(scene)
        scene.wait_replicating()
        for _ in range(3):
            before = min(writers.rounds)
            wait_for(lambda before=before: min(writers.rounds) > before + 50, 60, "there is a load")
            time.sleep(random_.uniform(0, 0.5))
            restart_by_force(scene)
        scene.wait_replicating()
    scene.wait_applied()
    assert assert_rows(scene, SUBSET_AS_WHERE) > 500

    scene.at_source("TRUNCATE orders", "INSERT INTO orders VALUES (1, 'north', 5, 'a'), (2, 'south', 5, 'a')")
    scene.wait_applied()
    assert assert_rows(scene, SUBSET_AS_WHERE) == 1
    scene.engine.drop_stream(scene.stream)
    scene.assert_nothing_left()


@pytest.mark.both_ways
def test_sets_pass_and_drop_changes(scene: Scene) -> None:
    """Without subset: a change passes or does not, as it is."""
    scene.run_at_source(FILLED + """
        CREATE TABLE event (id bigint PRIMARY KEY, origin text, line text);
        CREATE TABLE audit (id bigint PRIMARY KEY, line text);
        CREATE TABLE plain (id bigint PRIMARY KEY, line text);
        INSERT INTO event SELECT k, CASE k % 3 WHEN 0 THEN 'test' END, 'old' FROM generate_series(1, 999) k;
        INSERT INTO audit VALUES (1, 'never');
        INSERT INTO plain VALUES (1, 'always');""")
    start(scene, {"orders": {"positive": [rule("own", "id % 3 = 1 AND operation <> 'TRUNCATE'")]},
                  "event": {"negative": [rule("no_purges", operations=["DELETE", "TRUNCATE"]),
                                         rule("no_tests", "origin = 'test'", operations=["INSERT", "UPDATE"])]},
                  "audit": {"positive": []}})
    assert assert_rows(scene, "id % 3 = 1") == 1667
    assert assert_rows(scene, "origin IS DISTINCT FROM 'test'", "event") == 666
    assert assert_rows(scene, "false", "audit") == 0
    assert_rows(scene, "true", "plain")

    scene.at_source("UPDATE orders SET n = n + 1, region = 'west'", "DELETE FROM orders WHERE id < 100",
                    "INSERT INTO orders SELECT k, 'new', 0 FROM generate_series(6001, 6100) k",
                    "INSERT INTO event SELECT k, CASE k % 2 WHEN 0 THEN 'test' END, 'new' FROM "
                    "generate_series(1001, 1100) k", "UPDATE event SET line = 'changed'", "UPDATE audit SET line = 'x'",
                    "INSERT INTO audit VALUES (2, 'never')", "UPDATE plain SET line = 'changed'")
    scene.wait_applied()
    assert_rows(scene, "id % 3 = 1")
    assert_rows(scene, "origin IS DISTINCT FROM 'test'", "event")
    assert_rows(scene, "false", "audit")
    assert_rows(scene, "true", "plain")

    # Of the three tables of one TRUNCATE, that one is emptied which has no rules.
    kept = [scene.at_destination(f"SELECT * FROM {table} ORDER BY id") for table in ("orders", "event")]
    scene.at_source("DELETE FROM event WHERE id < 50", "TRUNCATE orders, event, plain")
    scene.wait_applied()
    assert [scene.at_destination(f"SELECT * FROM {table} ORDER BY id") for table in ("orders", "event")] == kept
    assert_rows(scene, "true", "plain")


def test_the_copy_takes_what_inserts_would_bring(scene: Scene) -> None:
    scene.run_at_source("""
        CREATE TYPE mood AS ENUM ('low', 'high');
        CREATE SCHEMA "odd names";
        CREATE TABLE "odd names"."the ""odd"" table" (id integer, "or" text COLLATE "C", "old.x" mood, at timestamptz,
                                                  PRIMARY KEY (id, "or"));
        CREATE TABLE part (day integer, line text, PRIMARY KEY (day, line)) PARTITION BY RANGE (day);
        CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM (1) TO (5);
        CREATE TABLE part_2 PARTITION OF part FOR VALUES FROM (5) TO (10);
        INSERT INTO "odd names"."the ""odd"" table"
            SELECT k, chr(97 + k % 26) || '''', (ARRAY['low', 'high', NULL])[1 + k % 3]::mood,
            '2026-01-01 00:00Z'::timestamptz + k * interval '1 hour' FROM generate_series(1, 20000) k;
        INSERT INTO part SELECT 1 + k % 9, 'line ' || k FROM generate_series(1, 1000) k;
    """)
    odd = """"or" >= 'c' AND "or" < 'q' AND ("old.x" <> 'high' OR at > '2026-06-01 00:00:00Z')
             AND "or" LIKE '%''' AND NOT "or" LIKE 'e\\%'"""
    start(scene, {'the "odd" table': {"positive": [rule("some", odd + " AND old.id IS NULL", operations=["INSERT"]),
                                               rule("updates", operations=["UPDATE"])]},
                  "part": {"negative": [rule("late", "day BETWEEN 3 AND 6")]}}, copy_range_rows=1000)
    assert 1000 < assert_rows(scene, odd, '"odd names"."the ""odd"" table"') < 12000
    assert 500 < assert_rows(scene, "NOT day BETWEEN 3 AND 6", "part") < 600
    scene.at_source("INSERT INTO part SELECT 1 + k % 9, 'new ' || k FROM generate_series(1, 1000) k",
                    "DELETE FROM part WHERE line LIKE '% 1%'",
                    'INSERT INTO "odd names"."the ""odd"" table" SELECT -id, "or", "old.x", at FROM '
                    '"odd names"."the ""odd"" table"')
    scene.wait_applied()
    assert_rows(scene, odd, '"odd names"."the ""odd"" table"')
    assert_rows(scene, "NOT day BETWEEN 3 AND 6", "part")


@pytest.mark.both_ways
def test_rules_read_documents(scene: Scene) -> None:
    """Copied rows and changes, with documents that are stored outside the row, too."""
    fill = """INSERT INTO event SELECT k, 'line ' || k % 7, CASE WHEN k % 11 > 0 THEN jsonb_build_object(
        'n', k % 10, 'text', (k % 10)::text, 'tags', jsonb_build_array('a', E'größe "x"\\n', k % 3), 'who', CASE k % 4
        WHEN 0 THEN '{"name": "\\ud83d\\ude00"}' WHEN 1 THEN '["name"]' END::jsonb, 'long', (SELECT string_agg(md5(
        (k * i)::text), '') FROM generate_series(1, 200 * (k % 5 / 4)) i)) END FROM generate_series"""
    scene.run_at_source("CREATE TABLE event (id bigint PRIMARY KEY, line text, payload jsonb);"
                        "ALTER TABLE event REPLICA IDENTITY FULL;" + fill + "(1, 3000) k")
    wanted = """(payload->>'text')::int & 3 = 1 AND payload->'tags'->>-2 = 'größe "x"\n' OR payload->'who' ? 'name'
        AND greatest((payload->'n')::int, 3) < 5 OR payload->'who'->>'name' = '\U0001f600' AND line ^@ 'line 1'
        OR md5(line) LIKE '0%' OR jsonb_typeof(payload->'long') = 'string'
        AND jsonb_array_length(payload->'tags') = 3"""
    start(scene, {"event": {"positive": [rule("some", wanted, subset=True)]}}, copy_range_rows=1000)
    assert 500 < assert_rows(scene, wanted, "event") < 2500
    scene.at_source(fill + "(3001, 4000) k", "UPDATE event SET line = 'line 1' WHERE id % 5 = 0",
                    """UPDATE event SET payload = payload || '{"text": "1"}' WHERE id % 13 = 0""",
                    "UPDATE event SET payload = payload - 'who' WHERE id % 17 = 0",
                    "DELETE FROM event WHERE id % 19 = 0")
    scene.wait_applied()
    assert 500 < assert_rows(scene, wanted, "event") < 3500


@pytest.fixture
def streaming_scene(scene: Scene) -> Iterator[Scene]:
    """The source streams every transaction above 64 kB."""
    scene.source.sql("postgres", "ALTER ROLE thalweg SET logical_decoding_work_mem = '64kB'")
    yield scene
    scene.source.wait_ready()
    scene.source.sql("postgres", "ALTER ROLE thalweg RESET logical_decoding_work_mem")


def write_large(connection: psycopg.Connection[Any], random_: random.Random, number: int) -> None:
    """One transaction with savepoints, some rolled back; some touch no row of the subset; one in four is rolled
    back."""
    connection.execute("BEGIN")
    outside = random_.random() < 0.3
    regions = ["south"] if outside else ["north", "south", "east"]
    base = connection.execute("SELECT coalesce(max(id) / 10, 0) FROM orders WHERE id %% 10 = %s", (number,)).fetchone()
    assert base
    next_key = int(base[0]) + 1
    for level in range(random_.randrange(1, 5)):
        connection.execute(f"SAVEPOINT level_{level}")
        rows = random_.randrange(1, 1200)
        connection.execute("INSERT INTO orders SELECT (%s + k) * 10 + %s, (%s::text[])[1 + k %% %s], 3 + k %% 7, "
                           "repeat(md5(k::text), 3) FROM generate_series(1, %s) k",
                           (next_key, number, regions, len(regions), rows))
        next_key += rows + 1
        if not outside:
            connection.execute("UPDATE orders SET region = %s WHERE id %% 10 = %s AND id %% 7 = %s",
                               (random_.choice(REGIONS), number, random_.randrange(7)))
            connection.execute("DELETE FROM orders WHERE id %% 10 = %s AND id %% 11 = %s",
                               (number, random_.randrange(11)))
        ending = random_.randrange(3)
        if ending:
            connection.execute(("RELEASE", "ROLLBACK TO")[ending - 1] + f" level_{level}")
    connection.execute("ROLLBACK" if random_.random() < 0.25 else "COMMIT")


@pytest.mark.both_ways
def test_transactions_that_come_in_pieces(streaming_scene: Scene, random_: random.Random) -> None:
    scene = streaming_scene
    scene.run_at_source(ORDERS)
    start(scene, {"orders": SUBSET}, parallelism=3)
    with Writers(scene.source, scene.database, 3, random_, write_large) as writers:
        wait_for(lambda: min(writers.rounds) > 5, 120, "there is a load")
        restart_by_force(scene)
        scene.wait_replicating()
        wait_for(lambda: min(writers.rounds) > 12, 120, "there is a load")
    scene.wait_applied()
    assert assert_rows(scene, SUBSET_AS_WHERE) > 100
    wait_for(lambda: not scene.engine.transactions(scene.stream), 30, "one that was filtered to nothing ends, too")


def test_what_cannot_be_decided_stops_and_loses_nothing(scene: Scene) -> None:
    scene.run_at_source(FILLED + "ALTER TABLE orders REPLICA IDENTITY DEFAULT;")
    start(scene, {"orders": {"positive": [rule("north", "region = 'north'")]}})
    scene.at_source("INSERT INTO orders VALUES (5001, 'north', 1, 'before')", "DELETE FROM orders WHERE id = 4",
                    "INSERT INTO orders VALUES (5002, 'north', 1, 'after'), (5003, 'south', 1, 'after')")
    error = scene.engine.wait_aborted(scene.stream)
    assert (error["code"], error["table"]) == ("rule_undecidable", '"public"."orders"')
    assert '"north"' in error["message"] and "DELETE" in error["message"]
    assert 'ALTER TABLE "public"."orders" REPLICA IDENTITY FULL' in error["message"]
    # It stays so over a restart, and a retry meets the same change: nothing is passed over.
    restart_by_force(scene)
    assert scene.engine.wait_aborted(scene.stream)["code"] == "rule_undecidable"
    scene.run_at_source("ALTER TABLE orders REPLICA IDENTITY FULL;")
    scene.engine.retry(scene.stream)
    assert scene.engine.wait_aborted(scene.stream)["code"] == "rule_undecidable"
    # A rule that does without the value, until the change has been read.
    change(scene, {"orders": {"positive": [rule("north", "region = 'north'", operations=["INSERT", "UPDATE"]),
                                           rule("deleted", "id % 4 = 0", operations=["DELETE"])]}})
    scene.wait_replicating()
    scene.wait_applied()
    assert_rows(scene, "region = 'north'")
    change(scene, {"orders": {"positive": [rule("north", "region = 'north'")]}})
    scene.wait_replicating()
    scene.at_source("DELETE FROM orders WHERE id % 5 = 0", "UPDATE orders SET n = 11")
    scene.wait_applied()
    assert assert_rows(scene, "region = 'north'") > 500


def test_no_old_row_of_a_partition_is_believed(scene: Scene) -> None:
    """PostgreSQL calls the old key of a partition a whole row, as the root has FULL: the region looks like NULL."""
    scene.run_at_source("""
        CREATE TABLE visit (id bigint PRIMARY KEY, region text) PARTITION BY RANGE (id);
        CREATE TABLE visit_1 PARTITION OF visit FOR VALUES FROM (0) TO (100);
        ALTER TABLE visit REPLICA IDENTITY FULL;
        INSERT INTO visit SELECT k, CASE k % 2 WHEN 0 THEN 'north' END FROM generate_series(1, 99) k;""")
    start(scene, {"visit": {"positive": [rule("north", "region = 'north'")]}})
    assert assert_rows(scene, "region = 'north'", "visit") == 49
    scene.at_source("DELETE FROM visit WHERE id = 2")
    error = scene.engine.wait_aborted(scene.stream)
    assert error["code"] == "rule_undecidable" and "is partitioned" in error["message"]


def test_what_fails_stops_and_loses_nothing(scene: Scene) -> None:
    scene.run_at_source(FILLED)
    start(scene, {"orders": {"positive": [rule("tenth", "100 / (n - 50) < 0")]}})
    assert assert_rows(scene, "true") == 5000
    scene.at_source("UPDATE orders SET n = 50 WHERE id = 7", "UPDATE orders SET n = 3 WHERE id = 8")
    error = scene.engine.wait_aborted(scene.stream)
    assert (error["code"], error["sqlstate"], error["table"]) == ("rule_failed", "22012", '"public"."orders"')
    assert '"tenth"' in error["message"]
    change(scene, {"orders": {"positive": [rule("tenth", "coalesce(100 / nullif(n - 50, 0), -1) < 0")]}})
    scene.wait_replicating()
    scene.wait_applied()
    assert_rows(scene, "true")


def test_a_copy_that_a_rule_fails_for_stops(scene: Scene) -> None:
    scene.run_at_source(FILLED + "UPDATE orders SET n = 50 WHERE id = 4321;")
    define(scene, {"orders": {"negative": [rule("tenth", "100 / (n - 50) > 0")]}})
    scene.engine.put_desired()
    error = scene.engine.wait_aborted(scene.stream)
    assert (error["code"], error["sqlstate"], error["table"]) == ("rule_failed", "22012", '"public"."orders"')
    scene.at_source("UPDATE orders SET n = 5 WHERE id = 4321")
    scene.engine.retry(scene.stream)
    scene.wait_replicating()
    scene.wait_applied()
    assert_rows(scene, "true")


def test_a_rule_that_does_not_fit_is_refused(scene: Scene) -> None:
    scene.run_at_source(FILLED)
    define(scene, {"orders": {"positive": [rule("regional", "id > 0 AND\n  regoin = 'north'")]}})
    scene.engine.put_desired()
    error = scene.engine.wait_aborted(scene.stream)
    assert (error["code"], error["table"]) == ("rule_refused", '"public"."orders"')
    assert '"regional"' in error["message"] and "line 2, column 3" in error["message"]
    assert scene.slots() == 0 and scene.publications() == 0, "nothing is made of a stream that is refused"
    change(scene, {"orders": {"positive": [rule("late", "now() > '2026-01-01 00:00:00Z'")]}})
    wait_for(lambda: '"late"' in scene.engine.wait_aborted(scene.stream)["message"], 30, "it is refused again")
    change(scene, {"orders": {"positive": [rule("regional", "region = 'north'")]}})
    scene.wait_replicating()
    assert assert_rows(scene, "region = 'north'") == 1250
    # The table changes under a rule that runs.
    scene.at_source("ALTER TABLE orders RENAME region TO area", "INSERT INTO orders VALUES (6001, 'north', 1)")
    error = scene.engine.wait_aborted(scene.stream)
    assert error["code"] == "rule_refused" and 'no column "region"' in error["message"]
    with pytest.raises(RefusedError) as refused:
        change(scene, {"orders": {"positive": [rule("", "true")]}})
    assert refused.value.error["code"] == "invalid_request"
    assert "/streams/0/tables/0/rules/positive/0/name" in refused.value.error["message"]


@pytest.mark.both_ways
def test_changed_rules_take_effect_at_one_position(scene: Scene, random_: random.Random) -> None:
    """Each transaction writes a row of either region: before the position, which the engine tells, one kind comes,
    behind it the other."""
    scene.run_at_source(BEGINNINGS)
    start(scene, {"orders": {"positive": [rule("r", "region = 'north'")]}})
    told = [("0/0", "north")]

    def both(connection: psycopg.Connection[Any], _: random.Random, number: int) -> None:
        connection.execute("INSERT INTO orders (region) VALUES ('north'), ('south')")

    with Writers(scene.source, scene.database, 1, random_, both) as writers:
        for region in ("south", "north", "south"):
            before = writers.rounds[0]
            wait_for(lambda before=before: writers.rounds[0] > before + 100, 60, "there is a load")
            change(scene, {"orders": {"positive": [rule("r", f"region = '{region}'")]}})
            told.append((scene.engine.wait_in_effect(scene.stream)["from"], region))
            wait_for(lambda region=region: scene.at_destination(NEWEST) == [(region,)], 60, "the rule takes effect")
    scene.wait_applied()
    assert_judged(scene, told)
    regions = scene.at_destination("SELECT region FROM orders ORDER BY id")
    assert sum(before != after for before, after in itertools.pairwise(regions)) == 3


def test_two_engines_keep_the_same_rules(scene: Scene, tmp_path: Path, random_: random.Random) -> None:
    pair = EnginePair(scene, tmp_path)
    try:
        scene.run_at_source(FILLED)
        tables = user_tables(scene.source, scene.database)
        pair.sender.define_stream(scene.stream, scene.source_conninfo, "", tables, {},
                                  destinations=[applied_there("bravo", pair.receiver.place.address, pair.port)])
        pair.receiver.define_stream(scene.stream, scene.source_conninfo, scene.destination_conninfo, tables, {},
                                    receive_from={"engine": "alpha"})
        for engine in (pair.sender, pair.receiver):
            engine.streams[scene.stream]["tables"][0]["rules"] = SUBSET
            engine.put_desired()
        pair.wait_replicating()
        with Writers(scene.source, scene.database, 2, random_, write) as writers:
            wait_for(lambda: min(writers.rounds) > 100, 60, "there is a load")
        pair.wait_applied()
        assert assert_rows(scene, SUBSET_AS_WHERE) > 500
        pair.drop_stream()
    finally:
        pair.close()


def test_destinations_here_and_elsewhere_keep_the_same_subset(scene: Scene, tmp_path: Path,
                                                               random_: random.Random) -> None:
    """Both behind backlogs. Engines are killed and links broken; in the end the one elsewhere catches up from disk."""
    pair, fan = EnginePair(scene, tmp_path), FanOut(scene)
    try:
        scene.run_at_source(FILLED)
        tables = user_tables(scene.source, scene.database)
        scene.engine.define_stream(scene.stream, scene.source_conninfo, "", tables, {})
        set_rules(scene, {"orders": SUBSET})
        fan.set_destinations([fan.make("a").definition(),
                              applied_there("bravo", "127.0.0.1", pair.relay.port, id="bravo", backlog=True)])
        fan.wait("bravo", lambda found: found["phase"] == "RETRYING", "waits for the other engine")
        pair.receiver.define_stream(scene.stream, scene.source_conninfo, scene.destination_conninfo, tables, {},
                                    receive_from={"engine": "alpha"})
        pair.receiver.streams[scene.stream]["tables"][0]["rules"] = SUBSET
        pair.receiver.put_desired()
        for name in ("a", "bravo"):
            fan.wait_phase(name, "REPLICATING")

        def kill_receiver() -> None:
            pair.receiver.kill()
            pair.receiver.start()

        strikes = [lambda: restart_by_force(scene), kill_receiver, pair.relay.cut, fan.made["a"].relay.cut]
        with Writers(scene.source, scene.database, 3, random_, write) as writers:
            for strike in random_.sample(strikes, len(strikes)):
                before = min(writers.rounds)
                wait_for(lambda before=before: min(writers.rounds) > before + 50, 60, "there is a load")
                strike()
            pair.relay.sever()
            fan.wait("bravo", lambda found: found["backlog"]["state"] == "ON DISK", "has its backlog on disk")
            before = min(writers.rounds)
            wait_for(lambda: min(writers.rounds) > before + 50, 60, "there is a load")
            restart_by_force(scene)
        fan.wait_applied("a")
        pair.relay.mend()
        fan.wait_applied("a", "bravo")
        assert assert_rows(scene, SUBSET_AS_WHERE) > 500
        assert_rows(scene, SUBSET_AS_WHERE, database=fan.made["a"].database)
        counts = scene.engine.status(scene.stream)["rule_counts"]["tables"]
        assert [table["table"] for table in counts] == ["orders"], "they are the stream's, of all destinations"
    finally:
        pair.close()
        fan.close()


def test_what_rules_decide_is_counted(scene: Scene) -> None:
    scene.run_at_source(FILLED + "CREATE TABLE plain (id bigint PRIMARY KEY);")
    start(scene, {"orders": {"positive": [rule("north", "region = 'north'", subset=True)]}})
    scene.at_source("INSERT INTO orders VALUES (5001, 'north', 1), (5002, 'north', 1), (5003, 'south', 1)",
                    "UPDATE orders SET n = 2 WHERE id IN (5001, 5002, 5003)",
                    "UPDATE orders SET region = 'north' WHERE id = 5003",
                    "UPDATE orders SET region = 'east' WHERE id IN (5001, 5002)",
                    "DELETE FROM orders WHERE id IN (5001, 5003)", "INSERT INTO plain VALUES (1)")
    scene.wait_applied()
    counts = scene.engine.status(scene.stream)["rule_counts"]
    # The source does not send the INSERT that the rule drops.
    expected = {"passed": 2 + 2 + 1, "dropped": 1 + 1, "became_inserts": 1, "became_deletes": 2}
    assert counts["tables"] == [{"schema": "public", "table": "orders", **expected, "by_policy": 0,
                                 "at_source": ["INSERT"],
                                 "at_engine_because": "an update may bring a row into the subset, or take it out"}]
    labels = f'stream="{scene.stream}",destination="",schema="public",table="orders"'
    outcomes = zip(("passed", "dropped", "became_insert", "became_delete"), expected.values(), strict=True)
    metrics = str(scene.engine.request("GET", "/metrics")).splitlines()
    assert [line for line in metrics if line.startswith("thalweg_rule_changes_total")] == [
        f'thalweg_rule_changes_total{{{labels},outcome="{outcome}"}} {count}' for outcome, count in outcomes]
    # They are a capture's.
    restart_by_force(scene)
    scene.wait_replicating()
    again = scene.engine.status(scene.stream)["rule_counts"]
    assert again["counted_since"] > counts["counted_since"]
    change(scene, {})
    wait_for(lambda: scene.engine.status(scene.stream)["rule_counts"] is None, 60, "there is nothing to count")


def check(scene: Scene, rules: dict[str, Any], table: str = "orders") -> list[dict[str, Any]]:
    answer = scene.engine.request("POST", "/v1/rules/check", {
        "source": {"conninfo": scene.source_conninfo},
        "tables": [{"schema": "public", "table": table, "rules": rules}]})
    return list(answer["problems"])


def test_rules_are_tried_on_rows_and_changes(scene: Scene) -> None:
    scene.run_at_source(FILLED + "CREATE TABLE keyed (id bigint PRIMARY KEY, region text, n numeric(9, 2));")

    def ask(table: str, rules: dict[str, Any], sample: int, *changes: dict[str, Any]) -> list[dict[str, Any]]:
        answer = scene.engine.request("POST", "/v1/rules/test", {
            "source": {"conninfo": scene.source_conninfo}, "source_name": "source", "sample": sample,
            "tables": [{"schema": "public", "table": table, "rules": rules}], "changes": list(changes)})
        return list(answer["changes"])

    def update(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
        return {"operation": "UPDATE", "old": old, "new": new}

    # Rows of the table, as PostgreSQL judges them.
    judged = ask("orders", SUBSET, 100)
    passed = {int(change["new"]["id"]) for change in judged if change["verdict"] == "PASSED"}
    keys = [int(change["new"]["id"]) for change in judged]
    wanted = scene.at_source(f"SELECT id FROM orders WHERE {SUBSET_AS_WHERE} AND id = ANY (ARRAY{keys})")
    assert passed == {key for (key,) in wanted} and 20 < len(passed) < 80

    north, south = {"id": 1, "region": "north", "n": 9, "note": None}, {"id": 1, "region": "south", "n": 9}
    verdicts = [("BECOMES INSERT", update(south, north)), ("BECOMES DELETE", update(north, south)),
                ("PASSED", update(north, north | {"n": 8})), ("DROPPED", update(south, south | {"n": 8})),
                ("PASSED", {"operation": "DELETE", "old": north}), ("PASSED", {"operation": "TRUNCATE"})]
    judged = ask("orders", SUBSET, 0, *(change for _, change in verdicts))
    assert [change["verdict"] for change in judged] == [verdict for verdict, _ in verdicts]
    assert judged[0]["rules"] == [
        {"set": "negative", "rule": "no_tests", "outcome": "NULL", "before": "NULL"},
        {"set": "positive", "rule": "north", "outcome": "TRUE", "before": "FALSE"},
        {"set": "positive", "rule": "small", "outcome": "FALSE", "before": "FALSE"}]

    # Of the old row the rules see what the replica identity sends.
    rules = {"positive": [rule("some", "region = 'north' AND 1 / (n - 0.5) > 0")],
             "negative": [rule("no_truncates", operations=["TRUNCATE"])]}
    stops = ask("keyed", rules, 0, {"operation": "DELETE", "old": {"id": 1, "region": "north"}},
                {"operation": "INSERT", "new": {"id": 1, "region": "north", "n": "0.50"}})
    errors = [change["error"] for change in stops]
    assert [change["verdict"] for change in stops] == 2 * ["STOPS THE STREAM"]
    assert [(error["code"], error["sqlstate"]) for error in errors] == [
        ("rule_undecidable", ""), ("rule_failed", "22012")]
    assert [change["rules"][-1]["outcome"] for change in stops] == ["UNDECIDABLE", "FAILED"]
    assert stops[0]["rules"][0] == {"set": "negative", "rule": "no_truncates", "outcome": "OTHER OPERATION",
                                    "before": None}
    with pytest.raises(RefusedError) as refused:
        ask("keyed", rules, 0, {"operation": "INSERT", "new": {"idd": 1}})
    assert refused.value.error["code"] == "invalid_request" and '"idd"' in refused.value.error["message"]


def test_rules_are_tried_on_documents_as_they_are_written(scene: Scene) -> None:
    scene.run_at_source("CREATE TABLE event (id bigint PRIMARY KEY, payload jsonb)")

    def ask(payload: str) -> Any:
        rules = {"positive": [rule("some", "payload->>'n' = '1000' AND payload->'a' ->> 0 = 'b'")]}
        answer = scene.engine.request("POST", "/v1/rules/test", {
            "source": {"conninfo": scene.source_conninfo}, "source_name": "source", "sample": 0,
            "tables": [{"schema": "public", "table": "event", "rules": rules}],
            "changes": [{"operation": "INSERT", "new": {"id": 1, "payload": payload}}]})
        return answer["changes"][0]["verdict"]

    assert ask('{"n":7,"a":[ "\\u0062" ],"n":1e3}') == "PASSED"
    assert ask('{"n":1e3,"a":{}}') == "DROPPED"
    with pytest.raises(RefusedError) as refused:
        ask('{"n":')
    assert refused.value.error["code"] == "invalid_request" and "payload" in refused.value.error["message"]


def test_rules_are_checked_before_they_are_used(scene: Scene) -> None:
    scene.run_at_source(FILLED + "CREATE TABLE keyed (id bigint PRIMARY KEY, region text, note text);")
    assert check(scene, SUBSET) == []
    found = check(scene, {"positive": [rule("good", "n = 1"), rule("first", "n = 1 AND\n missing = 2"),
                                       rule("second", "missing IS NULL")], "negative": [rule("third", "n =")]})
    assert [tuple(problem[field] for field in ("rule", "code", "line", "column", "offset")) for problem in found] == [
        ("third", "rule_refused", 1, 4, 3), ("first", "rule_refused", 2, 2, 11), ("second", "rule_refused", 1, 1, 0)]
    assert (found[1]["schema"], found[1]["table"]) == ("public", "orders")

    found = check(scene, {"positive": [rule("old", "region = 'north'"), rule("key", "id < 10"),
                                       rule("inserts", "region = 'south'", operations=["INSERT", "UPDATE"])]}, "keyed")
    assert [(problem["rule"], problem["code"], problem["line"], problem["certain"]) for problem in found] == [
        ("old", "rule_undecidable", None, True), ("inserts", "rule_undecidable", None, False)]
    for problem in found:
        assert 'ALTER TABLE "public"."keyed" REPLICA IDENTITY FULL' in problem["message"]
    found = check(scene, {"positive": [rule("in", "region = 'north'", subset=True)]}, "keyed")
    assert [(problem["rule"], problem["code"]) for problem in found] == [("in", "rule_undecidable")]
    # An update that leaves a value as it was which is stored apart is foreseen.
    long = {"positive": [rule("long", "note <> 'x'", operations=["INSERT", "UPDATE"])]}
    (foreseen,) = check(scene, long, "keyed")
    assert (foreseen["rule"], foreseen["certain"]) == ("long", False)
    scene.at_source("ALTER TABLE keyed REPLICA IDENTITY FULL")
    assert check(scene, long, "keyed") == []
    scene.at_source("ALTER TABLE keyed REPLICA IDENTITY DEFAULT")
    start(scene, {"keyed": long})
    scene.at_source("INSERT INTO keyed SELECT 1, 'north', string_agg(md5(k::text), '') FROM generate_series(1, 300) k",
                    "UPDATE keyed SET note = note || 'y'")
    scene.wait_applied()
    assert_rows(scene, "true", "keyed")
    scene.at_source("UPDATE keyed SET region = 'south'")
    assert scene.engine.wait_aborted(scene.stream)["code"] == foreseen["code"]
    (missing,) = check(scene, SUBSET, "nothing")
    assert (missing["code"], missing["rule"]) == ("missing_table", None)
    with pytest.raises(RefusedError) as refused:
        check(scene, {"positive": [{"condition": "true"}]})
    assert refused.value.error["code"] == "invalid_request"
