"""Tables that get another file at the source while they wait to be copied: the copy's snapshot shows them empty."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from harness.cluster import wait_for
from harness.engine import SECONDS
from harness.scene import Scene

BIG = """CREATE TABLE big (id integer PRIMARY KEY); INSERT INTO big SELECT generate_series(1, 5000);"""
KINDS = {
    "keyed": "CREATE TABLE item (id integer PRIMARY KEY, v integer);",
    "keyless": "CREATE TABLE item (id integer, v integer); ALTER TABLE item REPLICA IDENTITY FULL;",
    "partitioned": "CREATE TABLE item (id integer PRIMARY KEY, v integer) PARTITION BY HASH (id);"
                   "CREATE TABLE item_0 PARTITION OF item FOR VALUES WITH (MODULUS 2, REMAINDER 0);"
                   "CREATE TABLE item_1 PARTITION OF item FOR VALUES WITH (MODULUS 2, REMAINDER 1);",
}
ROWS = "INSERT INTO item SELECT n, 0 FROM generate_series(1, 10) n; ANALYZE;"
BEFORE = ("UPDATE item SET v = 1 WHERE id = 1", "DELETE FROM item WHERE id = 2")
CHANGES = {
    "rewritten": ("ALTER TABLE item ALTER v TYPE integer USING v + 0",),
    "truncated": ("TRUNCATE item",),
    "filled again": ("TRUNCATE item", "INSERT INTO item SELECT n, 5 FROM generate_series(1, 4) n"),
    "vacuumed": ("VACUUM FULL item",),
}


@contextmanager
def waiting(scene: Scene) -> Iterator[None]:
    """The only worker has begun with the big table; the other one waits."""
    scene.destination.run_script(scene.database, "SET ROLE thalweg; CREATE TABLE big (id integer PRIMARY KEY);")
    with scene.destination.connect(scene.database) as holder, holder.transaction():
        holder.execute("LOCK TABLE big IN SHARE MODE")
        scene.start_stream([("public", "big"), ("public", "item")], wait=False, copy_workers=1)
        wait_for(lambda: scene.at_destination("SELECT 1 FROM pg_locks WHERE NOT granted"), SECONDS,
                 "the copy has begun")
        yield


def assert_goes_on(scene: Scene) -> None:
    scene.wait_replicating()
    scene.at_source("INSERT INTO item VALUES (100, 1)", "UPDATE item SET v = v + 1 WHERE id IN (1, 3, 100)")
    scene.wait_applied()
    scene.assert_same()
    destination = scene.engine.destination(scene.stream)
    assert destination["error"] is None
    assert [table["trouble"] for table in destination["tables"]] == [None, None]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_table_that_gets_another_file(scene: Scene, kind: str, change: str) -> None:
    scene.run_at_source(BIG + KINDS[kind] + ROWS)
    with waiting(scene):
        scene.at_source(*BEFORE, *CHANGES[change])
    assert_goes_on(scene)


def test_a_killed_engine_goes_on_with_it(scene: Scene) -> None:
    scene.run_at_source(BIG + KINDS["partitioned"] + ROWS)
    with waiting(scene):
        scene.at_source(*BEFORE, *CHANGES["filled again"])
        scene.engine.kill()
    scene.engine.start()
    assert_goes_on(scene)


def test_a_table_that_is_replaced(scene: Scene) -> None:
    """The rows of the other one, which the snapshot shows, are not taken for those of the one that was named so."""
    scene.run_at_source(BIG + KINDS["keyed"] + ROWS + "CREATE TABLE other (LIKE item INCLUDING ALL);"
                                                      "INSERT INTO other VALUES (77, 7);")
    with waiting(scene):
        scene.run_at_source("BEGIN; ALTER TABLE item RENAME TO old; ALTER TABLE other RENAME TO item; COMMIT;")
    assert scene.engine.wait_aborted(scene.stream)["code"] == "table_trouble"
    assert scene.at_destination("SELECT 1 FROM item") == []
