"""States, statistics and metrics of appliers name the event that they wait for."""

import psycopg
import pytest

from harness.cluster import wait_for
from harness.scene import Scene

TABLE = "CREATE TABLE item (id integer PRIMARY KEY, body text); INSERT INTO item VALUES (1, 'one'), (2, 'two');"


def waited(scene: Scene, state: str, activity: str) -> bool:
    """Some applier is in this state, and has counted time for it."""
    return any(component["state"] == state and component["time_ns"][activity] > 0
               for component in scene.engine.components(scene.stream) if component["sub_component"] == "APPLY SERVER")


def shows_waits(scene: Scene) -> bool:
    """The first executes; the second has executed and waits for its turn; the third waits for the first."""
    shown = {transaction["state"]: transaction for transaction in scene.engine.transactions(scene.stream)}
    if shown.keys() != {"EXECUTE TRANSACTION", "WAIT COMMIT", "WAIT DEPENDENCY"}:
        return False
    first = shown["EXECUTE TRANSACTION"]
    assert first["tables"] == ['"public"."item"'] and first["lcrs"] == 1 and first["applier"]
    assert shown["WAIT COMMIT"]["applier"] not in (None, first["applier"])
    assert shown["WAIT COMMIT"]["waits_for_xid"] == shown["WAIT DEPENDENCY"]["waits_for_xid"] == first["xid"]
    assert shown["WAIT DEPENDENCY"]["applier"] is None
    return True


def seconds_in_metrics(scene: Scene, activity: str) -> float:
    return sum(float(line.rsplit(" ", 1)[1]) for line in scene.engine.request("GET", "/metrics").splitlines()
               if line.startswith("thalweg_component_time_seconds_total{") and f'stream="{scene.stream}"' in line
               and 'sub_component="APPLY SERVER"' in line and f'activity="{activity}"' in line)


@pytest.mark.both_ways
def test_dependency_and_commit_order_are_accounted(scene: Scene) -> None:
    scene.run_at_source(TABLE)
    # A group holds one transaction, so that the second and third are not one with the first.
    scene.start_stream(parallelism=3, group_size=1, commit_serialization="full")
    with psycopg.connect(scene.destination.conninfo(scene.database)) as blocker:
        blocker.execute("SELECT FROM item WHERE id = 1 FOR UPDATE")
        scene.at_source("UPDATE item SET body = 'first' WHERE id = 1")
        scene.at_source("UPDATE item SET body = 'beside' WHERE id = 2")
        scene.at_source("UPDATE item SET body = 'after' WHERE id = 1")
        wait_for(lambda: waited(scene, "WAIT COMMIT", "commit_order"), 30, "the second transaction waits for its turn")
        wait_for(lambda: waited(scene, "WAIT DEPENDENCY", "dependency"), 30, "the third waits for the first")
        assert scene.at_destination("SELECT body FROM item ORDER BY id") == [("one",), ("two",)]
        wait_for(lambda: shows_waits(scene), 10, "the transactions are listed with what they wait for")
    scene.wait_applied()
    scene.assert_same()
    assert seconds_in_metrics(scene, "commit_order") > 0
    assert seconds_in_metrics(scene, "dependency") > 0


def test_deadlocks_are_counted(scene: Scene) -> None:
    """A trigger of the destination's own takes locks that no key of the source shows."""
    scene.run_at_source(TABLE)
    scene.start_stream(parallelism=2, group_size=1, commit_serialization="full")
    scene.destination.run_script(scene.database, """
        CREATE TABLE tally (n integer); INSERT INTO tally VALUES (0);
        GRANT SELECT, UPDATE ON tally TO thalweg;
        CREATE FUNCTION count_change() RETURNS trigger LANGUAGE plpgsql AS
          $$ BEGIN UPDATE public.tally SET n = n + 1; RETURN NULL; END $$;
        CREATE TRIGGER count_change AFTER UPDATE ON item FOR EACH ROW EXECUTE FUNCTION count_change();
        ALTER TABLE item ENABLE REPLICA TRIGGER count_change;
    """)
    with psycopg.connect(scene.destination.conninfo(scene.database)) as blocker:
        blocker.execute("SELECT FROM item WHERE id = 1 FOR UPDATE")
        scene.at_source("UPDATE item SET body = 'first' WHERE id = 1")
        scene.at_source("UPDATE item SET body = 'second' WHERE id = 2")
        wait_for(lambda: waited(scene, "WAIT COMMIT", "commit_order"), 30, "the second transaction waits for its turn")
    scene.wait_applied()
    scene.assert_same()
    assert scene.at_destination("SELECT n FROM tally") == [(2,)]
    assert sum(component["counters"]["deadlocks"] for component in scene.engine.components(scene.stream)
               if component["sub_component"] == "APPLY SERVER") == 1
    metrics = scene.engine.request("GET", "/metrics").splitlines()
    counted = [line for line in metrics if line.startswith("thalweg_deadlocks_total{") and scene.stream in line]
    assert sum(float(line.rsplit(" ", 1)[1]) for line in counted) == 1, counted
