"""The whole error queue executed: in order, exactly once whatever dies meanwhile, and without what a copy has."""

import threading
from contextlib import suppress
from typing import Any

import pytest

from harness.cluster import wait_for
from harness.engine import SECONDS, RefusedError
from harness.error_queue import errors
from harness.scene import Scene
from harness.troubles import resolve

MANY = 3000
# A row that is applied twice shows: the table has no key, and the count of updates is in the row.
TABLES = """CREATE TABLE item (id integer PRIMARY KEY, n integer);
            CREATE TABLE log (item integer, n integer); ALTER TABLE log REPLICA IDENTITY FULL;
            INSERT INTO item SELECT i, 0 FROM generate_series(1, 50) i;"""
CHANGES = f"""DO $$ BEGIN FOR i IN 1..{MANY} LOOP
                UPDATE item SET n = n + 1 WHERE id = 1 + i % 50;
                INSERT INTO log SELECT id, n FROM item WHERE id = 1 + i % 50; COMMIT;
              END LOOP; END $$"""


def execute_all(scene: Scene) -> str:
    return str(errors(scene, "/execute", "POST")["state"])


def wait_executed(scene: Scene) -> Any:
    def ended() -> Any:
        execution = errors(scene, "?limit=1")["execution"]
        return execution if execution["state"] != "RUNNING" else None
    return wait_for(ended, 120, "the execution ends")


def park_many(scene: Scene) -> None:
    scene.run_at_source(TABLES)
    scene.start_stream(disable_on_error=False)
    scene.at_destination("CREATE TABLE kept AS TABLE item", "DELETE FROM item")
    scene.at_source(CHANGES)
    scene.wait_applied(300)
    assert errors(scene, "?limit=1")["total"] == MANY
    scene.at_destination("INSERT INTO item TABLE kept", "DROP TABLE kept")


def test_an_engine_that_is_killed_while_it_executes_loses_and_doubles_nothing(scene: Scene) -> None:
    park_many(scene)
    killed = 0
    while killed < 3:
        asked = threading.Thread(target=_execute_of_one_that_dies, args=(scene,))
        asked.start()
        # Looked at at the destination, for the engine is to die in the middle.
        _wait_until_left(scene, max(0, _left(scene) - 200))
        scene.engine.kill()
        asked.join()
        killed += 1
        assert scene.at_destination("SELECT count(*) FROM log")[0][0] <= MANY
        scene.engine.start()
        scene.wait_replicating()
    execute_all(scene)
    assert wait_executed(scene)["state"] == "DONE"
    assert errors(scene, "?limit=1")["total"] == 0
    scene.assert_same()


def _left(scene: Scene) -> int:
    return int(scene.destination.value(scene.database, "SELECT count(*) FROM thalweg.error_queue"))


def _wait_until_left(scene: Scene, most: int) -> None:
    wait_for(lambda: _left(scene) <= most, 60, "some are executed", pause=0.001)


def _execute_of_one_that_dies(scene: Scene) -> None:
    with suppress(Exception):
        execute_all(scene)


def test_all_is_executed_and_a_table_that_changes_meanwhile_is_looked_up_again(scene: Scene) -> None:
    park_many(scene)
    asked = threading.Thread(target=lambda: execute_all(scene))
    asked.start()
    for number in range(5):
        _wait_until_left(scene, MANY - 1 - number * 400)
        scene.at_destination(f"ALTER TABLE item ADD COLUMN extra_{number} integer DEFAULT 7")
    asked.join()
    ended = wait_executed(scene)
    assert (ended["state"], ended["error_id"], ended["executed"]) == ("DONE", None, MANY)
    scene.at_destination(*(f"ALTER TABLE item DROP COLUMN extra_{number}" for number in range(5)))
    scene.assert_same()


def copy_again(scene: Scene, table: str) -> None:
    """Of a table without trouble: the stream replicates until it begins anew."""
    before = scene.engine.destination(scene.stream)["instantiation"]["finished_at"]
    resolve(scene, table, "copy")

    def is_copied(found: dict[str, Any]) -> bool:
        copied = found["destinations"][0]["instantiation"]
        return found["phase"] == "REPLICATING" and bool(copied) and copied["finished_at"] not in (None, before)

    scene.engine.wait_status(scene.stream, is_copied, SECONDS, f"{table} is copied again")


PAIR = """CREATE TABLE hit (id integer PRIMARY KEY, body text); CREATE TABLE other (id integer PRIMARY KEY, body text);
          INSERT INTO hit VALUES (1, 'one'), (2, 'two'); INSERT INTO other VALUES (1, 'one');"""


def test_a_copy_takes_out_what_it_has_and_the_rest_is_executed_without_it(scene: Scene) -> None:
    scene.run_at_source(PAIR)
    scene.start_stream(disable_on_error=False)
    scene.at_destination("DELETE FROM hit", "DELETE FROM other")
    scene.at_source("UPDATE hit SET body = 'one again' WHERE id = 1")
    scene.wait_applied()  # the next one does not depend on it, and could be parked first
    scene.run_at_source("BEGIN; UPDATE hit SET body = 'two again' WHERE id = 2; "
                        "UPDATE other SET body = 'one more' WHERE id = 1; COMMIT")
    scene.wait_applied()
    alone, both = errors(scene)["errors"]
    assert (alone["tables"], len(both["tables"])) == (['"public"."hit"'], 2)
    scene.at_source("UPDATE hit SET body = 'later'")  # parked behind them, and before the copy, too
    scene.wait_applied()
    assert errors(scene)["total"] == 3
    copy_again(scene, "hit")
    wait_for(lambda: errors(scene)["total"] == 1, 60, "what the copy has is discarded")
    (left,) = errors(scene)["errors"]
    assert left["id"] == both["id"]
    tables = scene.engine.destination(scene.stream)["instantiation"]["tables"]
    copied = next(table for table in tables if table["table"] == "hit")
    assert (copied["errors_discarded"], copied["state"]) == (2, "COPIED")
    assert copied["copied_at"] is not None
    scene.at_destination("INSERT INTO other VALUES (1, 'one')")
    assert execute_all(scene) == "DONE"
    # The old change of the copied table would have brought an old row back.
    scene.assert_same()
    scene.at_source("UPDATE hit SET body = 'last'")
    scene.wait_applied()
    scene.assert_same()


def test_a_copy_and_an_execution_wait_for_each_other(scene: Scene) -> None:
    park_many(scene)
    scene.at_destination(
        "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.02); RETURN NEW; END'",
        "CREATE TRIGGER slow BEFORE UPDATE ON item FOR EACH ROW EXECUTE FUNCTION slow()",
        "ALTER TABLE item ENABLE ALWAYS TRIGGER slow",
    )
    assert execute_all(scene) == "RUNNING"
    with pytest.raises(RefusedError) as busy:
        resolve(scene, "item", "copy")
    assert busy.value.status == 503
    scene.at_destination("DROP TRIGGER slow ON item")
    wait_executed(scene)
    copy_again(scene, "item")  # which waits until the execution's session has ended
    scene.assert_same()
