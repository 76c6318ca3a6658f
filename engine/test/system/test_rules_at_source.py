"""Rules that the source evaluates: what reaches the destination is the same, and less comes from the source."""

import random
import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from harness.cluster import wait_for
from harness.compare import user_tables
from harness.engine import SECONDS, applied_here
from harness.scene import Scene
from harness.workload import Writers

TABLES = """
CREATE TABLE item (id bigint PRIMARY KEY, region text, n integer, at timestamptz, price numeric, note text);
ALTER TABLE item ALTER note SET STORAGE EXTERNAL;
CREATE TABLE member (id bigint PRIMARY KEY, region text, n integer, note text);
ALTER TABLE member REPLICA IDENTITY FULL;
CREATE TABLE pupil (LIKE member INCLUDING ALL);
ALTER TABLE pupil REPLICA IDENTITY FULL;
CREATE TABLE visit (id bigint PRIMARY KEY, region text, n integer, note text);
INSERT INTO item SELECT k, (ARRAY['north', 'south', NULL])[1 + k % 3], k % 10, NULL, k / 7.0, 'old' FROM
  generate_series(1, 900) k;
INSERT INTO member SELECT k, (ARRAY['north', 'south', NULL])[1 + k % 3], k % 10, 'old' FROM generate_series(1, 900) k;
INSERT INTO pupil SELECT * FROM member;
"""
# Updates carry rows over these conditions: what misses a row at the destination is discarded there.
HANDLERS = [{"kind": "insert_exists", "action": "overwrite"}, {"kind": "update_missing", "action": "discard"},
            {"kind": "delete_missing", "action": "discard"}]
REGIONS = ("north", "south", "it's \"odd\" \\", None)


def rule(name: str, condition: str = "", **more: Any) -> dict[str, Any]:
    return {"name": name, **({"condition": condition} if condition else {}), **more}


WRITES = ["INSERT", "UPDATE"]
RULES: dict[str, dict[str, Any]] = {
    "item": {"positive": [rule("north", "region = 'north' AND (n < 7 OR n IS NULL)", operations=WRITES),
                          rule("odd", "region IN ('it''s \"odd\" \\', 'x') AND price >= 50.5", operations=WRITES),
                          rule("gone", operations=["DELETE"])],
             "negative": [rule("tests", "note LIKE 'test%'", operations=["INSERT"])]},
    "member": {"positive": [rule("north", "region = 'north'", subset=True),
                            rule("small", "n BETWEEN 2 AND 4", subset=True)]},
    "pupil": {"positive": [rule("all", subset=True)], "negative": [rule("southern", "region = 'south'")]},
    "visit": {"positive": [rule("computed", "n + 1 > 5 AND region IS NOT NULL", operations=WRITES)]}}


class Twins:
    """Two streams with the same tables and rules: thalweg_output decodes for one, pgoutput for the other."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.other = scene.stream + "p"
        self.other_database = scene.database + "p"
        scene.destination.make_database(self.other_database, owner="thalweg")

    def define(self, rules: dict[str, Any]) -> None:
        scene = self.scene
        tables = user_tables(scene.source, scene.database)
        for stream, database, plugin in ((scene.stream, scene.database, "thalweg"),
                                         (self.other, self.other_database, "pgoutput")):
            scene.engine.define_stream(stream, scene.source_conninfo, "", tables,
                                       {"source_plugin": plugin, "conflict_handlers": HANDLERS},
                                       destinations=[applied_here(scene.destination.conninfo(database, "thalweg"))])
        self.set_rules(rules)

    def set_rules(self, rules: dict[str, Any]) -> None:
        for stream in (self.scene.stream, self.other):
            for table in self.scene.engine.streams[stream]["tables"]:
                table.pop("rules", None)
                if table["table"] in rules:
                    table["rules"] = rules[table["table"]]
        self.scene.engine.put_desired()

    def wait_replicating(self) -> None:
        for stream in (self.scene.stream, self.other):
            self.scene.engine.wait_phase(stream, "REPLICATING")

    def wait_applied(self) -> None:
        for stream in (self.scene.stream, self.other):
            self.scene.engine.wait_applied(stream, self.scene.source, self.scene.database)

    def wait_confirmed(self) -> None:
        """Changes from before are not read again, which would be in the tables' form of then."""
        here = self.scene.source.value("postgres", "SELECT pg_current_wal_flush_lsn()")
        behind = ("SELECT count(*) FROM pg_replication_slots WHERE slot_name IN "
                  f"('thalweg_{self.scene.stream}', 'thalweg_{self.other}') AND confirmed_flush_lsn < '{here}'")
        wait_for(lambda: self.scene.source.value("postgres", behind) == 0, SECONDS, "the source may forget it")

    def assert_same(self) -> None:
        self.wait_applied()
        for _, table in user_tables(self.scene.source, self.scene.database):
            rows = f"SELECT t::text FROM {table} t ORDER BY id"
            found, wanted = (self.scene.destination.sql(database, rows)
                             for database in (self.scene.database, self.other_database))
            missing, extra = set(wanted) - set(found), set(found) - set(wanted)
            assert found == wanted, f"{table}: missing {sorted(missing)[:5]}, too many {sorted(extra)[:5]}"
            assert len(found) > 20, table

    def at_all_ends(self, statement: str) -> None:
        for database in (self.scene.database, self.other_database):
            self.scene.destination.sql(database, statement)
        self.scene.at_source(statement)

    def remove(self) -> None:
        self.scene.engine.stop()
        self.scene.destination.sql("postgres", f'DROP DATABASE IF EXISTS "{self.other_database}" WITH (FORCE)')


@pytest.fixture
def twins(scene: Scene) -> Iterator[Twins]:
    made = Twins(scene)
    yield made
    made.remove()


def write(connection: psycopg.Connection[Any], random_: random.Random, number: int) -> None:
    def key() -> int:
        return random_.randrange(300) * 10 + number

    def note() -> str | None:
        return random_.choice((None, "a", "test it", random_.randbytes(3000).hex()))

    table = random_.choice(("item", "member", "pupil", "visit"))
    region = random_.choice(REGIONS)
    n = random_.choice((None, *range(10)))
    with connection.transaction():
        for _ in range(random_.randrange(1, 10)):
            kind = random_.randrange(10)
            if kind < 3:
                connection.execute(f"INSERT INTO {table} (id, region, n, note) VALUES (%s, %s, %s, %s) ON CONFLICT (id)"
                                   " DO UPDATE SET n = excluded.n", (key(), region, n, note()))
            elif kind < 5:
                connection.execute(f"UPDATE {table} SET region = %s WHERE id = %s", (region, key()))
            elif kind < 7:
                connection.execute(f"UPDATE {table} SET n = %s, note = %s WHERE id = %s", (n, note(), key()))
            elif kind < 8:
                connection.execute("UPDATE item SET at = now(), price = %s WHERE id = %s",
                                   (random_.choice((None, 50.5, 1, "NaN")), key()))
            elif kind < 9:
                connection.execute(f"DELETE FROM {table} WHERE id = %s", (key(),))
            else:
                # The others' destinations keep rows that the rules have left behind, which a new key may meet.
                connection.execute("UPDATE member SET id = %s, n = %s WHERE id = %s AND NOT EXISTS (SELECT FROM member "
                                   "WHERE id = %s)", (found := key(), n, key(), found))


Place = tuple[list[str], str | None]


def wait_places(scene: Scene, stream: str, wanted: dict[str, Place]) -> None:
    found: dict[str, Place] = {}

    def are_there() -> bool:
        counts = scene.engine.status(stream)["rule_counts"] or {"tables": []}
        found.update({table["table"]: (table["at_source"], table["at_engine_because"]) for table in counts["tables"]})
        return wanted.items() <= found.items()

    try:
        wait_for(are_there, 30, "the rules are evaluated where they should be")
    except TimeoutError:
        assert found == wanted


def captured(scene: Scene, stream: str, counter: str) -> int:
    (capture,) = (found for found in scene.engine.components(stream) if found["type"] == "CAPTURE")
    return int(capture["counters"][counter])


def judged(scene: Scene, stream: str, table: str) -> int:
    (counts,) = (found for found in scene.engine.status(stream)["rule_counts"]["tables"] if found["table"] == table)
    return int(counts["passed"]) + int(counts["dropped"])


def test_the_same_reaches_the_destination_as_from_pgoutput(twins: Twins, random_: random.Random) -> None:
    scene = twins.scene
    scene.run_at_source(TABLES)
    twins.define(RULES)
    twins.wait_replicating()
    computed = "the rule computed computes (int4pl)"
    wait_places(scene, scene.stream, {
        "item": (["INSERT", "UPDATE"], None),
        "member": (["INSERT"], "an update may bring a row into the subset, or take it out"),
        "pupil": (["INSERT"], "an update may bring a row into the subset, or take it out"),
        "visit": ([], computed)})
    wait_places(scene, twins.other, {table: ([], "the stream's slot uses pgoutput") for table in RULES})
    with Writers(scene.source, scene.database, 3, random_, write) as writers:
        for _ in range(2):
            writers.wait_for_more(60)
            time.sleep(random_.uniform(0, 0.5))
            scene.engine.kill()
            scene.engine.start()
            twins.wait_replicating()
        writers.wait_for_more(60)
    twins.assert_same()

    # Other rules.
    with Writers(scene.source, scene.database, 3, random_, write) as writers:
        writers.wait_for_more(40)
    # Each stream changes its rules at a position of its own: nothing lies between the two.
    twins.wait_applied()
    twins.set_rules(RULES | {"item": {"positive": [rule("south", "region = 'south'", operations=WRITES),
                                                   rule("gone", operations=["DELETE"])]},
                             "visit": {"negative": [rule("large", "n >= 5", operations=WRITES)]}})
    for stream in (scene.stream, twins.other):
        scene.engine.wait_in_effect(stream)
    twins.wait_replicating()
    wait_places(scene, scene.stream, {"visit": (["INSERT", "UPDATE"], None)})
    with Writers(scene.source, scene.database, 3, random_, write) as writers:
        writers.wait_for_more(60)
    twins.assert_same()

    # The table is another one than the source's filter was made for.
    twins.at_all_ends("ALTER TABLE item ALTER region TYPE varchar(40)")
    twins.at_all_ends("ALTER TABLE visit ALTER n TYPE bigint")
    with Writers(scene.source, scene.database, 3, random_, write) as writers:
        writers.wait_for_more(60)
    twins.assert_same()
    changed: Place = ([], "the table has changed since the capture started")
    wait_places(scene, scene.stream, {"item": changed, "visit": changed})
    scene.engine.kill()
    scene.engine.start()
    twins.wait_replicating()
    wait_places(scene, scene.stream, {"item": (["INSERT", "UPDATE"], None)})

    twins.wait_confirmed()
    twins.at_all_ends("ALTER TABLE item RENAME region TO area")
    scene.at_source("INSERT INTO item (id, area) VALUES (5001, 'south')")
    for stream in (scene.stream, twins.other):
        assert scene.engine.wait_aborted(stream)["code"] == "rule_refused"
    twins.set_rules(RULES | {"item": {"positive": [rule("south", "area = 'south'")]}})
    twins.wait_replicating()
    scene.at_source("INSERT INTO item (id, area) VALUES (5002, 'north'), (5003, 'south')")
    twins.assert_same()
    assert [row for (row,) in scene.at_destination("SELECT id FROM item WHERE id > 5000 ORDER BY id")] == [5001, 5003]


def test_what_rules_drop_is_not_sent(twins: Twins) -> None:
    scene = twins.scene
    scene.run_at_source(TABLES)
    twins.define({"item": RULES["item"]})
    twins.wait_replicating()
    scene.at_source("INSERT INTO item SELECT k, CASE k % 1000 WHEN 0 THEN 'north' ELSE 'south' END, 1 FROM "
                    "generate_series(10001, 30000) k")
    twins.wait_applied()
    assert judged(scene, twins.other, "item") == 20000
    assert judged(scene, scene.stream, "item") == 20
    for stream in (scene.stream, twins.other):
        assert captured(scene, stream, "lcrs") == 20
    assert len(scene.at_destination("SELECT id FROM item WHERE id > 10000")) == 20


class Decoding:
    """The plugin asked by SQL, as anybody with REPLICATION can."""

    def __init__(self, scene: Scene) -> None:
        scene.run_at_source("CREATE TABLE words (id integer PRIMARY KEY, a text);")
        scene.at_source("CREATE PUBLICATION words FOR TABLE words",
                        "SELECT pg_create_logical_replication_slot('words', 'thalweg_output')",
                        "INSERT INTO words VALUES (1, repeat('a', 100000) || 'b')")
        self.scene = scene
        self.relation = scene.source.value(scene.database, "SELECT 'words'::regclass::oid::int")

    def read(self, condition: str, connection: psycopg.Connection[Any] | None = None) -> None:
        row_filter = f'({self.relation} insert "public" "words" (("a" 25 100)) {condition})'
        with self.scene.source.connect(self.scene.database) as own:
            (connection or own).execute(
                "SELECT count(*) FROM pg_logical_slot_peek_binary_changes('words', NULL, NULL, 'proto_version', '1', "
                "'publication_names', 'words', 'batch_version', '3', 'row_filters', %s)", (row_filter,))


@pytest.fixture
def decoding(scene: Scene) -> Iterator[Decoding]:
    if not scene.libraries:
        pytest.skip("pgoutput evaluates no rules")
    yield Decoding(scene)
    scene.at_source("SELECT pg_drop_replication_slot('words')")


def test_a_filter_of_any_size_can_be_cancelled(decoding: Decoding) -> None:
    """Each LIKE by itself cannot: PostgreSQL does not look while it matches."""
    patterns = ((b"%" + b"a" * length + b"c%").hex() for length in range(800, 1200))
    slow = "".join(f'(call textlike (column 0) (value 25 "{pattern}"))' for pattern in patterns)
    with decoding.scene.source.connect(decoding.scene.database) as connection:
        connection.execute("SET statement_timeout = '1s'")
        with pytest.raises(psycopg.errors.QueryCanceled) as canceled:
            decoding.read(f"(or {slow})", connection)
        assert "in the change callback" in str(canceled.value.diag.context)
        # One that ends in the midst of the reading, however fast the machine is.
        places: list[str] = []
        for milliseconds in (25 * 2**doubled for doubled in range(10)):
            connection.execute(f"SET statement_timeout = {milliseconds}")
            with pytest.raises(psycopg.errors.QueryCanceled) as canceled:
                decoding.read("(and " + '(null (value 25 ""))' * 400_000 + ")", connection)
            places.append(str(canceled.value.diag.context))
            if "row filter of table public.words" in places[-1]:
                break
        assert "row filter of table public.words" in places[-1], places


def test_a_filter_that_is_too_large_or_not_valid_is_refused(decoding: Decoding) -> None:
    with pytest.raises(psycopg.errors.ProgramLimitExceeded, match="8388608 bytes"):
        decoding.read("(and " + '(null (value 25 ""))' * 500_000 + ")")
    for condition in ('(call textlike (column 0) (value 25 "616"))', '"' + "é" * 200, '(true "a""b")'):
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="is not valid"):
            decoding.read(condition)
    decoding.read('(call texteq (column 0) (value 25 "61"))')
