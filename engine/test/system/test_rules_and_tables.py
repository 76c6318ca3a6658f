"""Row rules that change, vanish or refer to one another while the stream has them."""

from harness.cluster import wait_for
from harness.scene import Scene
from harness.troubles import wait_state, wait_trouble
from test_rules import FILLED, assert_rows, change, rule, start


def test_a_dropped_table_stops_alone(scene: Scene) -> None:
    """Its last changes cannot be judged any more; and another table that has a new name is not taken for it."""
    scene.run_at_source(FILLED + """
        CREATE TABLE event (id bigint PRIMARY KEY, origin text);
        CREATE TABLE plain (id bigint PRIMARY KEY, line text);""")
    start(scene, {"orders": {"positive": [rule("north", "region = 'north'")]},
                  "event": {"negative": [rule("no_tests", "origin = 'test'")]}}, on_table_trouble="stop_table")
    scene.engine.set_stream(scene.stream, status="DISABLED")
    scene.engine.wait_phase(scene.stream, "STOPPED")
    scene.at_source("INSERT INTO orders VALUES (6001, 'north', 1)", "DROP TABLE orders",
                    "ALTER TABLE plain RENAME TO called", "ALTER TABLE event RENAME TO happened",
                    "INSERT INTO called VALUES (1, 'a')", "INSERT INTO happened VALUES (1, 'shop'), (2, 'test')")
    wait_trouble(scene, "orders", "DROPPED")
    scene.engine.set_stream(scene.stream, status="ENABLED")
    scene.wait_replicating()
    scene.wait_applied()
    assert scene.at_destination("SELECT id FROM plain") == [(1,)]
    assert scene.at_destination("SELECT id FROM event") == [(1,)]
    assert scene.at_destination("SELECT count(*) FROM orders") == [(1250,)]
    wait_state(scene, "orders", "STOPPED")


def test_labels_that_swap_their_names_are_their_names(scene: Scene) -> None:
    """No session begins in between, and nothing tells the engine."""
    scene.run_at_source("CREATE TYPE mood AS ENUM ('low', 'high');"
                        "CREATE TABLE orders (id bigint PRIMARY KEY, feeling mood);")
    start(scene, {"orders": {"positive": [rule("high", "feeling = 'high'")]}})
    insert = "INSERT INTO orders SELECT k, (ARRAY['low', 'high'])[1 + k % 2]::mood FROM generate_series({}, {}) k"
    scene.at_source(insert.format(1, 10))
    scene.wait_applied()
    assert assert_rows(scene, "feeling = 'high'") == 5
    scene.at_source(*(f"ALTER TYPE mood RENAME VALUE '{before}' TO '{after}'" for before, after in
                      (("high", "x"), ("low", "high"), ("x", "low"))), insert.format(11, 21))
    scene.wait_applied()
    of_then = "SELECT id FROM orders WHERE id > 10 AND feeling = 'high' ORDER BY id"
    assert len(scene.at_source(of_then)) == 6
    assert scene.at_destination("SELECT id FROM orders WHERE id > 10 ORDER BY id") == scene.at_source(of_then)


def test_a_truncate_that_reaches_a_table_whose_rules_drop_it(scene: Scene) -> None:
    """The foreign key at the destination forbids that the parent is emptied alone, and nothing empties the child
    against its rules: the stream stops, with all rows as they were."""
    scene.run_at_source("""
        CREATE TABLE parent (id integer PRIMARY KEY);
        CREATE TABLE child (id integer PRIMARY KEY, parent integer REFERENCES parent);
        INSERT INTO parent VALUES (1), (2);
        INSERT INTO child VALUES (1, 1), (2, 2), (3, 1);""")
    kept = {"child": {"negative": [rule("keep", operations=["TRUNCATE"])]}}
    start(scene, kept)
    scene.at_source("TRUNCATE parent CASCADE", "INSERT INTO parent VALUES (7)", "INSERT INTO child VALUES (7, 7)")
    error = scene.engine.wait_aborted(scene.stream)
    assert error["sqlstate"] == "0A000" and "foreign key" in error["message"]
    assert scene.at_destination("SELECT id FROM parent ORDER BY id") == [(1,), (2,)]
    assert scene.at_destination("SELECT id FROM child ORDER BY id") == [(1,), (2,), (3,)]
    # Either the rule lets it pass, or the key goes.
    scene.at_destination("ALTER TABLE child DROP CONSTRAINT child_parent_fkey")
    scene.engine.retry(scene.stream)
    scene.wait_replicating()
    scene.wait_applied()
    assert scene.at_destination("SELECT id FROM parent") == [(7,)]
    assert scene.at_destination("SELECT id FROM child ORDER BY id") == [(1,), (2,), (3,), (7,)]
    change(scene, {})
    wait_for(lambda: scene.engine.status(scene.stream)["rule_counts"] is None, 60, "the rules are no longer in force")
    scene.wait_replicating()
    scene.at_source("TRUNCATE parent CASCADE")
    scene.wait_applied()
    assert scene.at_destination("SELECT id FROM child") == []
