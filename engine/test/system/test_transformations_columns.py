"""Columns of tables with transformations that change while changes are still to be read: nothing that is masked, or not
kept, comes under another name, and what can be told goes on."""

import random
import time
from typing import Any

import psycopg
import pytest

from harness.cluster import wait_for
from harness.engine import AbortedError
from harness.scene import Scene
from harness.workload import Writers
from test_rules import define
from test_transformations import set_steps

SECRET = "TOP-SECRET"
TABLE = "CREATE TABLE t (id int PRIMARY KEY, mail text, notes text)"
KEEP = [{"type": "keep_columns", "columns": ["id", "notes"]}]
MASK = [{"type": "mask_column", "column": "mail", "with": "partial", "keep_first": 1, "keep_last": 0}]


def start(scene: Scene, steps: list[dict[str, Any]], **parameters: Any) -> None:
    define(scene, {}, **parameters)
    set_steps(scene, steps, "t")
    scene.engine.put_desired()
    scene.wait_replicating()


def start_kept(scene: Scene, definition: str = TABLE, **parameters: Any) -> None:
    scene.run_at_source(definition)
    scene.at_destination("CREATE TABLE t (id int PRIMARY KEY, notes text)", "ALTER TABLE t OWNER TO thalweg")
    start(scene, KEEP, **parameters)


def wait_refused(scene: Scene) -> str:
    error = scene.engine.wait_aborted(scene.stream)
    assert error["code"] == "transformation_refused" and error["table"] == '"public"."t"', error
    assert SECRET not in str(scene.at_destination("TABLE t"))
    return str(error["message"])


@pytest.mark.parametrize("plugin", ["thalweg", "pgoutput"])
@pytest.mark.parametrize(("before", "after", "cause"), [
    ("RENAME notes TO x; RENAME mail TO notes", "RENAME x TO y", "other names"),
    ("DROP notes; RENAME mail TO notes", "ADD z int", "other names"),
    ("DROP notes; RENAME mail TO notes", "DROP notes; ADD notes text", "cannot say"),
])
def test_a_column_that_is_not_kept_does_not_come_under_a_kept_name(scene: Scene, plugin: str, before: str, after: str,
                                                                   cause: str) -> None:
    """The catalogue has gone on before the change is read."""
    start_kept(scene, source_plugin=plugin)
    scene.at_source(f"INSERT INTO t VALUES (1, '{SECRET}', 'n')")
    scene.wait_applied()
    before, after = ("; ".join(f"ALTER TABLE t {action}" for action in some.split("; ")) for some in (before, after))
    scene.run_at_source(f"BEGIN; {before}; INSERT INTO t (id, notes) VALUES (2, '{SECRET}'); {after}; COMMIT;")
    assert cause in wait_refused(scene)
    # The answer: other steps.
    set_steps(scene, [*KEEP, {"type": "mask_column", "column": "notes", "with": "null"}], "t")
    scene.engine.put_desired()
    wait_for(lambda: scene.engine.status(scene.stream)["status"] != "ABORTED", 20, "the answer is taken")
    scene.wait_applied()
    assert scene.at_destination("TABLE t ORDER BY id") == [(1, "n"), (2, None)]


def test_a_column_whose_number_was_not_seen_is_not_known_by_its_name(scene: Scene) -> None:
    """The engine is killed before the columns change, and nothing changes the table afterwards."""
    start_kept(scene, "CREATE TABLE t (id int PRIMARY KEY, notes text)")
    scene.at_source("INSERT INTO t VALUES (1, 'n')", "ALTER TABLE t ADD mail text",
                    f"INSERT INTO t VALUES (2, 'n', '{SECRET}')")
    scene.wait_applied()
    scene.engine.kill()
    scene.at_source("ALTER TABLE t DROP notes", "ALTER TABLE t RENAME mail TO notes",
                    f"INSERT INTO t VALUES (3, '{SECRET}')")
    scene.engine.start()
    wait_refused(scene)


def test_the_first_change_may_not_bring_another_column(scene: Scene) -> None:
    start_kept(scene)
    scene.at_source("ALTER TABLE t DROP notes", "ALTER TABLE t RENAME mail TO notes",
                    f"INSERT INTO t VALUES (1, '{SECRET}')")
    wait_refused(scene)


def write(connection: psycopg.Connection[Any], random_: random.Random, number: int) -> None:
    key = random_.randrange(300) * 10 + number
    with connection.transaction():
        connection.execute("INSERT INTO t (id, mail, notes) VALUES (%s, %s, 'n') ON CONFLICT (id) DO UPDATE "
                           "SET mail = excluded.mail, notes = t.notes || 'n'", (key, SECRET))


def test_columns_that_come_and_go_under_load_stop_nothing(scene: Scene) -> None:
    """Kills in between, so that changes come again while the catalogue is far ahead."""
    start_kept(scene)
    with Writers(scene.source, scene.database, 2, random.Random(53), write):
        for number in range(6):
            scene.at_source(f"ALTER TABLE t ADD a{number} text", f"ALTER TABLE t ADD b{number} int DEFAULT 7")
            time.sleep(0.3)
            if number % 2:
                scene.engine.kill()
            scene.at_source(f"ALTER TABLE t DROP a{number}", f"ALTER TABLE t RENAME b{number} TO c{number}")
            if number % 2:
                scene.engine.start()
            time.sleep(0.3)
    scene.wait_applied()
    rows = scene.at_source("SELECT id, notes FROM t ORDER BY id")
    assert scene.at_destination("TABLE t ORDER BY id") == rows and len(rows) > 50


def stream_early(scene: Scene) -> None:
    """Less memory for transactions: the source sends large ones before their end."""
    scene.source.sql(scene.database, f'ALTER ROLE thalweg IN DATABASE "{scene.database}" '
                                     "SET logical_decoding_work_mem = '64kB'")
    scene.run_at_source("CREATE TABLE t (id int PRIMARY KEY, mail text, note text)")
    start(scene, MASK)


def rows(first: int, last: int, columns: str = "id, mail, note") -> str:
    return f"INSERT INTO t ({columns}) SELECT g, '{SECRET}', repeat('n', 100) FROM generate_series({first}, {last}) g;"


@pytest.mark.parametrize("how", ["whole", "savepoint"])
def test_columns_that_are_changed_and_rolled_back_stop_nothing(scene: Scene, how: str) -> None:
    stream_early(scene)
    renamed = f"ALTER TABLE t RENAME mail TO m2; {rows(1000, 40000, 'id, m2, note')}"
    if how == "whole":
        scene.run_at_source(f"BEGIN; {renamed} ROLLBACK;")
    else:
        scene.run_at_source(f"BEGIN; SAVEPOINT s; {renamed} ROLLBACK TO s; {rows(100000, 130000)} COMMIT;")
    scene.at_source("INSERT INTO t VALUES (1, 'y', 'z')")
    scene.wait_applied()
    assert scene.at_destination("SELECT count(*) FROM t") == [(1 if how == "whole" else 30002,)]
    assert SECRET not in str(scene.at_destination("SELECT DISTINCT mail FROM t"))


def test_a_large_transaction_that_adds_a_column_is_read_again(scene: Scene) -> None:
    stream_early(scene)
    scene.at_destination("ALTER TABLE t ADD more int")
    scene.run_at_source(f"BEGIN; ALTER TABLE t ADD more int; {rows(1000, 40000)} COMMIT;")
    scene.wait_applied()
    assert scene.at_destination("SELECT DISTINCT mail FROM t") == [("T" + "*" * 9,)]
    assert scene.at_destination("SELECT count(*) FROM t") == [(39001,)]


def test_a_large_transaction_that_renames_a_masked_column_is_refused(scene: Scene) -> None:
    stream_early(scene)
    scene.run_at_source(f"BEGIN; ALTER TABLE t RENAME mail TO m2; ALTER TABLE t RENAME note TO mail; "
                        f"{rows(1000, 40000, 'id, m2, mail')} COMMIT;")
    wait_refused(scene)
    assert scene.at_destination("SELECT count(*) FROM t") == [(0,)]


@pytest.mark.parametrize("mask", [{"with": "digits"}, {"with": "partial", "keep_first": 1, "keep_last": 1}])
def test_masks_that_count_characters_are_refused_where_the_source_does_not_know_any(
        scene: Scene, mask: dict[str, Any]) -> None:
    scene.source.leave(scene.database)
    scene.source.sql("postgres", f'DROP DATABASE "{scene.database}"',
                     f'CREATE DATABASE "{scene.database}" OWNER thalweg TEMPLATE template0 '
                     "ENCODING 'SQL_ASCII' LOCALE 'C'")
    scene.source.run_script(scene.database, "SET ROLE thalweg; CREATE TABLE t (id int PRIMARY KEY, v text); "
                                            "INSERT INTO t VALUES (1, convert_from('\\x6dc3a4', 'SQL_ASCII'));")
    scene.engine.define_stream(scene.stream, scene.source_conninfo, scene.destination_conninfo, [("public", "t")],
                               {"source_plugin": "pgoutput"})
    set_steps(scene, [{"type": "mask_column", "column": "v", **mask}], "t")
    scene.engine.put_desired()
    assert "SQL_ASCII" in scene.engine.wait_aborted(scene.stream)["message"]
    # A hash is one of bytes: copied and replicated, it is the same.
    set_steps(scene, [{"type": "mask_column", "column": "v", "with": "hash"}], "t")
    scene.engine.put_desired()
    wait_for(lambda: scene.engine.status(scene.stream)["status"] != "ABORTED", 20, "the answer is taken")
    scene.wait_replicating()
    scene.source.run_script(scene.database, "INSERT INTO t SELECT 2, v FROM t;")
    wait_for(lambda: len(scene.at_destination("TABLE t")) == 2, 20, "the second row comes")
    assert len(scene.at_destination("SELECT DISTINCT v FROM t")) == 1


def test_a_refusal_is_one_while_the_stream_stands(scene: Scene) -> None:
    """A restart reads the same change again, and nothing else has been said meanwhile."""
    start_kept(scene)
    scene.run_at_source("BEGIN; ALTER TABLE t RENAME notes TO x; ALTER TABLE t RENAME mail TO notes; "
                        f"INSERT INTO t (id, notes) VALUES (2, '{SECRET}'); COMMIT;")
    wait_refused(scene)
    scene.engine.kill()
    scene.engine.start()
    wait_refused(scene)
    scene.engine.retry(scene.stream)
    with pytest.raises(AbortedError, match="transformation_refused"):
        scene.wait_applied()
    assert scene.at_destination("TABLE t") == []
