"""Tables that lose their replica identity under a running stream: PostgreSQL refuses updates and deletes of them.

It says so only to whoever makes them, so the engine says it of the table, with the SQL that cures it."""

from typing import Any

import psycopg
import pytest

from harness.cluster import wait_for
from harness.compare import differences
from harness.engine import SECONDS
from harness.mining import start_mining
from harness.scene import Scene
from harness.troubles import NOTICED, table_of, wait_trouble

HIT = """CREATE TABLE kept (id integer PRIMARY KEY, body text);
         CREATE TABLE hit (id integer PRIMARY KEY, code integer NOT NULL, body text);
         INSERT INTO kept VALUES (1, 'one'); INSERT INTO hit SELECT n, -n, 'old' FROM generate_series(1, 100) n;"""
CODE = "CREATE UNIQUE INDEX hit_code ON hit (code);"
CHOSEN = CODE + "ALTER TABLE hit REPLICA IDENTITY USING INDEX hit_code;"
# Indexes that identify no row: with nulls, of a part of the rows, of computed values, deferrable, not unique.
UNUSABLE = """ALTER TABLE hit ADD other integer, ADD computed integer GENERATED ALWAYS AS (id * 2) STORED NOT NULL;
              CREATE UNIQUE INDEX hit_computed ON hit (computed);
              CREATE UNIQUE INDEX hit_other ON hit (other); CREATE INDEX hit_body ON hit (code);
              CREATE UNIQUE INDEX hit_part ON hit (code) WHERE id > 0; CREATE UNIQUE INDEX hit_sum ON hit ((id - code));
              ALTER TABLE hit ADD CONSTRAINT hit_late UNIQUE (code) DEFERRABLE;"""
NO_KEY = "ALTER TABLE hit DROP CONSTRAINT hit_pkey"
UPDATE = "UPDATE hit SET body = 'changed' WHERE id % 2 = 0"
DELETE = "DELETE FROM hit WHERE id % 5 = 0"
EVENTS = """CREATE TABLE event (id integer PRIMARY KEY, body text) PARTITION BY RANGE (id);
            CREATE TABLE event_1 PARTITION OF event FOR VALUES FROM (0) TO (100);
            CREATE TABLE event_2 PARTITION OF event FOR VALUES FROM (100) TO (200);
            INSERT INTO event SELECT n, 'old' FROM generate_series(1, 199) n;"""


def start(scene: Scene, kind: str, *tables: str) -> None:
    names = [("public", table) for table in tables]
    start_mining(scene, names) if kind == "wal" else scene.start_stream(names)


def is_refused(scene: Scene, *statements: str) -> None:
    for statement in statements:
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
            scene.at_source(statement)


def statements_of(trouble: dict[str, Any]) -> list[str]:
    """The first way's, which its words have, too."""
    statements: list[str] = trouble["cure_sql"].splitlines()
    assert trouble["cure"].startswith(" ".join(["At the source, run", *statements]))
    return statements


def wait_well(scene: Scene, table: str) -> None:
    wait_for(lambda: table_of(scene, table)["trouble"] is None, NOTICED, "its trouble is over")


def assert_same(scene: Scene, *tables: str) -> None:
    names = [("public", table) for table in tables]
    found = differences(scene.source, scene.destination, scene.database, scene.database, names)
    assert not found, found


@pytest.mark.parametrize("kind", ["logical", "wal"])
@pytest.mark.parametrize(("before", "loss", "says", "cure"), [
    ("", NO_KEY, "it has no primary key", "FULL"),
    (CODE, NO_KEY, "it has no primary key", 'USING INDEX "hit_code"'),
    (CODE, "ALTER TABLE hit REPLICA IDENTITY NOTHING", "set to NOTHING", "DEFAULT"),
    (CHOSEN, "DROP INDEX hit_code", "the index that was chosen for it is gone", "DEFAULT"),
    (UNUSABLE, NO_KEY, "it has no primary key", "FULL"),
], ids=["key", "index instead", "nothing", "index", "no usable index"])
def test_it_is_told_with_its_cure_and_passes(
    scene: Scene, kind: str, before: str, loss: str, says: str, cure: str
) -> None:
    scene.run_at_source(HIT + before)
    start(scene, kind, "kept", "hit")
    scene.at_source(UPDATE)
    scene.run_at_source(loss)
    is_refused(scene, UPDATE, DELETE)
    trouble = wait_trouble(scene, "hit", "UNIDENTIFIED")
    assert says in trouble["reason"] and "PostgreSQL refuses updates and deletes" in trouble["reason"]
    assert (trouble["resolutions"], trouble["renamed_to"]) == ([], None)
    (statement,) = statements_of(trouble)
    assert statement == f'ALTER TABLE "public"."hit" REPLICA IDENTITY {cure};'
    assert ("add a primary key, at each destination too" in trouble["cure"]) == (cure == "FULL")

    # Nothing is lost: what the source lets pass comes.
    assert scene.engine.status(scene.stream)["phase"] == "REPLICATING"
    scene.at_source("INSERT INTO hit VALUES (1000, 1000, 'new')", "UPDATE kept SET body = 'two'")
    scene.wait_applied()
    assert_same(scene, "kept", "hit")
    assert table_of(scene, "kept")["trouble"] is None

    scene.run_at_source(statement)
    wait_well(scene, "hit")
    scene.at_source(UPDATE.replace("changed", "cured"), DELETE)
    scene.wait_applied()
    assert_same(scene, "kept", "hit")


def test_a_primary_key_that_is_added_cures_it(scene: Scene) -> None:
    """Of an identity that is no longer DEFAULT, too."""
    scene.run_at_source(HIT + CHOSEN)
    start(scene, "logical", "hit")
    scene.run_at_source("DROP INDEX hit_code; " + NO_KEY)
    trouble = wait_trouble(scene, "hit", "UNIDENTIFIED")
    default = 'ALTER TABLE "public"."hit" REPLICA IDENTITY DEFAULT;'
    assert trouble["cure"].endswith(f"Or add a primary key, at each destination too, and run {default}")
    scene.run_at_source(f"ALTER TABLE hit ADD PRIMARY KEY (id); {default}")
    wait_well(scene, "hit")
    scene.at_source(UPDATE, DELETE)
    scene.wait_applied()
    assert_same(scene, "hit")


def test_a_unique_index_is_key_enough_at_the_destination(scene: Scene) -> None:
    """It came with the copy; the source gets a key in its place, and the next session compares the two."""
    scene.run_at_source("""CREATE TABLE hit (id integer NOT NULL, "co,de" integer NOT NULL, body text);
                           CREATE UNIQUE INDEX hit_id ON hit ("co,de", id);
                           ALTER TABLE hit REPLICA IDENTITY USING INDEX hit_id;
                           INSERT INTO hit SELECT n, -n, 'old' FROM generate_series(1, 100) n;""")
    start(scene, "logical", "hit")
    scene.run_at_source("DROP INDEX hit_id")
    wait_trouble(scene, "hit", "UNIDENTIFIED")
    scene.run_at_source('ALTER TABLE hit ADD PRIMARY KEY (id, "co,de"), REPLICA IDENTITY DEFAULT')
    wait_well(scene, "hit")
    scene.engine.kill()
    scene.engine.start()
    scene.wait_replicating()
    scene.at_source(UPDATE, DELETE)
    scene.wait_applied()
    assert_same(scene, "hit")
    # One of a part of the rows is none.
    scene.engine.kill()
    scene.at_destination("DROP INDEX hit_id", 'CREATE UNIQUE INDEX hit_id ON hit ("co,de", id) WHERE id > 0')
    scene.engine.start()
    error = scene.engine.wait_aborted(scene.stream)
    assert "no primary key or unique index on (id, co,de)" in error["message"], error


def test_it_is_told_of_a_stream_that_is_stopped_and_outlasts_a_restart(scene: Scene) -> None:
    scene.run_at_source(HIT)
    start(scene, "logical", "kept", "hit")
    scene.engine.set_stream(scene.stream, status="DISABLED")
    scene.engine.wait_phase(scene.stream, "STOPPED")
    scene.run_at_source(NO_KEY)
    is_refused(scene, UPDATE)
    wait_trouble(scene, "hit", "UNIDENTIFIED")
    scene.engine.kill()
    scene.engine.start()
    scene.engine.set_stream(scene.stream, status="ENABLED")
    scene.wait_replicating()
    trouble = wait_trouble(scene, "hit", "UNIDENTIFIED")
    scene.at_source("INSERT INTO hit VALUES (1000, 1000, 'new')")
    scene.run_at_source(statements_of(trouble)[-1])
    wait_well(scene, "hit")
    scene.at_source(UPDATE, DELETE)
    scene.wait_applied()
    assert_same(scene, "hit")


@pytest.mark.parametrize(("loss", "cure"), [
    ("ALTER TABLE event DROP CONSTRAINT event_pkey", "FULL"),
    ("ALTER TABLE event_1 REPLICA IDENTITY NOTHING; ALTER TABLE event_2 REPLICA IDENTITY NOTHING", "DEFAULT"),
], ids=["key", "nothing"])
def test_partitions_are_what_the_source_refuses(scene: Scene, loss: str, cure: str) -> None:
    scene.run_at_source(EVENTS)
    start(scene, "logical", "event")
    scene.run_at_source(loss)
    is_refused(scene, "UPDATE event SET body = 'changed'")
    trouble = wait_trouble(scene, "event", "UNIDENTIFIED")
    assert '"event_1", "public"."event_2" have no replica identity' in trouble["reason"]
    statements = [f'ALTER TABLE "public"."event_{number}" REPLICA IDENTITY {cure};' for number in (1, 2)]
    assert statements_of(trouble) == statements
    scene.run_at_source(statements[0])
    wait_for(lambda: '"event_1"' not in table_of(scene, "event")["trouble"]["reason"], NOTICED, "one is well")
    is_refused(scene, "UPDATE event SET body = 'changed'")
    scene.run_at_source(statements[1])
    wait_well(scene, "event")
    scene.at_source("UPDATE event SET body = 'changed' WHERE id % 2 = 0", "DELETE FROM event WHERE id % 5 = 0")
    scene.wait_applied()
    assert_same(scene, "event")


def test_a_partitioned_table_needs_none_itself(scene: Scene) -> None:
    """The source looks at the partition whose row it is."""
    scene.run_at_source(EVENTS)
    start(scene, "logical", "event")
    scene.run_at_source("ALTER TABLE event REPLICA IDENTITY NOTHING; ALTER TABLE event_1 REPLICA IDENTITY NOTHING")
    wait_trouble(scene, "event", "UNIDENTIFIED")
    scene.run_at_source("ALTER TABLE event_1 REPLICA IDENTITY FULL; ALTER TABLE event_2 REPLICA IDENTITY FULL")
    wait_well(scene, "event")
    scene.at_source("UPDATE event SET body = 'changed' WHERE id % 2 = 0", "DELETE FROM event WHERE id % 5 = 0")
    scene.wait_applied()
    assert_same(scene, "event")


def test_a_table_that_is_renamed_as_well_can_be_followed(scene: Scene) -> None:
    scene.run_at_source(HIT)
    start(scene, "logical", "kept", "hit")
    scene.run_at_source(NO_KEY + "; ALTER TABLE hit RENAME TO called")
    trouble = wait_trouble(scene, "hit", "UNIDENTIFIED")
    assert (trouble["resolutions"], trouble["renamed_to"]) == (["follow"], {"schema": "public", "table": "called"})
    scene.engine.set_stream(scene.stream, tables=[{"schema": "public", "table": name} for name in ("kept", "called")])
    trouble = wait_trouble_of_followed(scene)
    assert (trouble["resolutions"], trouble["renamed_to"]) == ([], None)
    scene.run_at_source(statements_of(trouble)[-1])
    wait_well(scene, "called")
    scene.at_source("UPDATE called SET body = 'changed'")
    scene.wait_applied()
    assert_same(scene, "called")


def wait_trouble_of_followed(scene: Scene) -> dict[str, Any]:
    def is_there() -> bool:
        return "called" in {table["table"] for table in scene.engine.destination(scene.stream)["tables"]}

    wait_for(is_there, SECONDS, "the rename is followed")
    return wait_trouble(scene, "called", "UNIDENTIFIED", SECONDS)


def test_where_only_inserts_are_wanted_none_is_missed(scene: Scene) -> None:
    """Nor where it is FULL."""
    scene.run_at_source(HIT + "CREATE TABLE log (line text); ALTER TABLE kept REPLICA IDENTITY FULL;")
    scene.engine.define_stream(scene.stream, scene.source_conninfo, scene.destination_conninfo,
                               [("public", name) for name in ("kept", "hit", "log")], {})
    scene.engine.give_up_updates(scene.stream, "log")
    scene.engine.put_desired()
    scene.wait_replicating()
    scene.run_at_source("ALTER TABLE kept DROP CONSTRAINT kept_pkey; " + NO_KEY)
    wait_trouble(scene, "hit", "UNIDENTIFIED")
    scene.at_source("INSERT INTO log VALUES ('one')", "UPDATE log SET line = 'two'", "UPDATE kept SET body = 'two'")
    scene.wait_applied()
    assert [table_of(scene, name)["trouble"] for name in ("kept", "log")] == [None, None]
