"""A copy that cannot succeed is refused before it deletes or makes anything, and says what is in its way."""

from typing import Any

import pytest

from harness.engine import RefusedError, destination_path
from harness.fan_out import FanOut
from harness.scene import Scene
from harness.troubles import copy_again, resolve, wait_trouble

ITEM = "CREATE TABLE item (id integer PRIMARY KEY, body text);"
ROWS = "INSERT INTO item SELECT n, 'body' FROM generate_series(1, 100) n;"
FORCED = """ALTER TABLE item ENABLE ROW LEVEL SECURITY; ALTER TABLE item FORCE ROW LEVEL SECURITY;
            CREATE POLICY even ON item USING (id % 2 = 0);"""
NOT_FORCED = "ALTER TABLE item NO FORCE ROW LEVEL SECURITY"
EVENTS = """CREATE TABLE event (id integer, day integer, PRIMARY KEY (day, id)) PARTITION BY RANGE (day);
            CREATE TABLE event_1 PARTITION OF event FOR VALUES FROM (1) TO (2);
            INSERT INTO event SELECT n, 1 FROM generate_series(1, 20) n;"""
ATTACHED = """CREATE TABLE event_2 (id integer NOT NULL, day integer NOT NULL, PRIMARY KEY (day, id));
              INSERT INTO event_2 SELECT n, 2 FROM generate_series(1, 20) n;
              ALTER TABLE event ATTACH PARTITION event_2 FOR VALUES FROM (2) TO (3);"""


def refused_copy(scene: Scene, table: str) -> dict[str, str]:
    with pytest.raises(RefusedError) as refused:
        resolve(scene, table, "copy")
    return dict(refused.value.error)


def begin_copy_anyway(scene: Scene, table: str) -> None:
    """As if what is in its way had come after the copy was asked for."""
    scene.engine.kill()
    scene.at_destination(f"DELETE FROM thalweg.copy_range WHERE table_name = '{table}'",
                         "UPDATE thalweg.stream_table SET copy_again = true, planned = false, copied_from = NULL, "
                         "copied_to = NULL, constraints_done = false, trouble = NULL, stopped = false "
                         f"WHERE table_name = '{table}'")
    scene.engine.start()


def count(scene: Scene, table: str) -> int:
    return int(scene.destination.value(scene.database, f"SELECT count(*) FROM {table}"))


@pytest.mark.parametrize("side", ["source", "destination"])
def test_row_security_refuses_a_first_copy(scene: Scene, side: str) -> None:
    scene.run_at_source(ITEM + ROWS)
    cluster = scene.source
    if side == "source":
        scene.run_at_source(FORCED)
    else:
        cluster = scene.destination
        cluster.run_script(scene.database, "SET ROLE thalweg;" + ITEM + FORCED)
    scene.start_stream(wait=False)
    error = scene.engine.wait_aborted(scene.stream)
    assert (error["code"], error["table"], error["side"]) == ("insufficient_privilege", '"public"."item"', side)
    assert 'ALTER TABLE "public"."item" NO FORCE ROW LEVEL SECURITY' in error["message"]
    scene.assert_nothing_left()
    cluster.sql(scene.database, NOT_FORCED)
    scene.engine.retry(scene.stream)
    scene.wait_replicating()
    scene.assert_same()


@pytest.mark.parametrize("side", ["source", "destination"])
def test_row_security_refuses_a_copy_before_rows_are_deleted(scene: Scene, side: str) -> None:
    scene.run_at_source(ITEM + ROWS)
    scene.start_stream()
    cluster = scene.source if side == "source" else scene.destination
    cluster.run_script(scene.database, "SET ROLE thalweg;" + FORCED)
    assert refused_copy(scene, "item")["code"] == "insufficient_privilege"
    scene.wait_replicating()
    begin_copy_anyway(scene, "item")
    error = scene.engine.wait_aborted(scene.stream)
    assert (error["code"], error["table"], error["side"]) == ("insufficient_privilege", '"public"."item"', side)
    assert count(scene, "item") == 100
    cluster.sql(scene.database, NOT_FORCED)
    scene.engine.retry(scene.stream)
    scene.wait_replicating()
    scene.assert_same()


def assert_row_security_of_the_destination(error: dict[str, Any]) -> None:
    assert (error["code"], error["table"], error["side"]) == (
        "insufficient_privilege", '"public"."item"', "destination")
    assert "applies to the user thalweg at the destination" in error["message"]
    assert 'ALTER TABLE "public"."item" NO FORCE ROW LEVEL SECURITY' in error["message"]
    assert "row-level security policy for table" in error["message"], "PostgreSQL's own words"


def test_row_security_stops_a_running_stream_and_says_why(scene: Scene) -> None:
    """Decoding knows no policies: at the source they change nothing."""
    scene.run_at_source(ITEM + ROWS)
    scene.start_stream()
    scene.run_at_source(FORCED + "UPDATE item SET body = 'more' WHERE id = 2;")
    scene.wait_applied()
    scene.source.sql(scene.database, NOT_FORCED)
    scene.destination.run_script(scene.database, "SET ROLE thalweg;" + FORCED)
    scene.at_source("UPDATE item SET body = 'again' WHERE id < 4")
    assert_row_security_of_the_destination(scene.engine.wait_aborted(scene.stream))
    scene.destination.sql(scene.database, NOT_FORCED)
    scene.engine.retry(scene.stream)
    scene.wait_replicating()
    scene.wait_applied()
    scene.assert_same()


def test_row_security_stops_one_of_several_destinations(scene: Scene) -> None:
    fan = FanOut(scene)
    try:
        scene.run_at_source(ITEM + ROWS)
        fan.start_stream("a", "b")
        scene.destination.run_script(fan.made["b"].database, "SET ROLE thalweg;" + FORCED)
        scene.at_source("UPDATE item SET body = 'again' WHERE id < 4")
        found = fan.wait("b", lambda destination: destination["status"] == "ABORTED", "ABORTED")
        assert_row_security_of_the_destination(found["error"])
        fan.wait_applied("a")
    finally:
        fan.close()


def test_row_security_refuses_a_parked_transaction_and_says_why(scene: Scene) -> None:
    """Nor does the view of its contents call the rows missing that a policy hides."""
    scene.run_at_source(ITEM + ROWS)
    scene.start_stream(disable_on_error=False)
    scene.at_destination("DELETE FROM item WHERE id = 3")
    scene.at_source("UPDATE item SET body = 'parked' WHERE id IN (1, 3)")
    scene.wait_applied()
    errors = destination_path(scene.stream) + "/errors"
    (parked,) = scene.engine.request("GET", errors)["errors"]
    scene.destination.run_script(scene.database, "SET ROLE thalweg;" + FORCED)
    with pytest.raises(RefusedError) as refused:
        scene.engine.request("POST", f"{errors}/{parked['id']}/execute")
    error = refused.value.error
    assert error["code"] == "insufficient_privilege"
    assert 'ALTER TABLE "public"."item" NO FORCE ROW LEVEL SECURITY' in error["message"]
    (first, _) = scene.engine.request("GET", f"{errors}/{parked['id']}")["changes"]
    assert first["rows_found"] is None and "row-level security" in first["problem"]


def test_rows_that_a_policy_hides_come_with_their_partition(scene: Scene) -> None:
    scene.run_at_source(EVENTS)
    scene.start_stream([("public", "event")])
    hidden = ATTACHED.replace("ALTER TABLE event ATTACH", "ALTER TABLE event_2 ENABLE ROW LEVEL SECURITY;"
                              "ALTER TABLE event_2 FORCE ROW LEVEL SECURITY; ALTER TABLE event ATTACH")
    scene.run_at_source(hidden)
    assert '"public"."event_2" was attached with rows' in wait_trouble(scene, "event", "PARTITIONS CHANGED")["reason"]


def test_another_owners_row_security_is_bypassed_only(scene: Scene) -> None:
    scene.at_source(ITEM, ROWS, "GRANT SELECT ON item TO thalweg", "ALTER TABLE item ENABLE ROW LEVEL SECURITY")
    scene.start_stream(wait=False)
    error = scene.engine.wait_aborted(scene.stream)
    assert error["code"] == "insufficient_privilege"
    assert "ALTER ROLE thalweg BYPASSRLS" in error["message"] and "NO FORCE" not in error["message"]


def test_policies_of_a_partition_do_not_count(scene: Scene) -> None:
    """The copy reads and writes the whole table, to which only its own policies apply."""
    scene.run_at_source(EVENTS + "ALTER TABLE event_1 ENABLE ROW LEVEL SECURITY;"
                                 "ALTER TABLE event_1 FORCE ROW LEVEL SECURITY;")
    scene.start_stream([("public", "event")])
    assert count(scene, "event") == 20


@pytest.mark.parametrize("columns", ["(x integer)", "(id integer NOT NULL, day integer NOT NULL)"])
def test_a_table_with_a_new_partitions_name_refuses_a_copy(scene: Scene, columns: str) -> None:
    scene.run_at_source(EVENTS)
    scene.start_stream([("public", "event")], on_table_trouble="stop_table")
    scene.destination.run_script(scene.database, f"SET ROLE thalweg; CREATE TABLE public.event_2 {columns};")
    scene.run_at_source(ATTACHED)
    wait_trouble(scene, "event", "PARTITIONS CHANGED")
    refusal = refused_copy(scene, "event")
    assert (refusal["code"], refusal["table"]) == ("destination_table_differs", '"public"."event"')
    assert "table public.event_2 has that name" in refusal["message"]
    begin_copy_anyway(scene, "event")
    error = scene.engine.wait_aborted(scene.stream)
    assert (error["code"], error["table"]) == ("destination_table_differs", '"public"."event"')
    assert count(scene, "event") == 20
    scene.at_destination("ALTER TABLE event_2 RENAME TO somebodys")
    scene.engine.retry(scene.stream)
    scene.wait_replicating()
    scene.wait_applied()
    scene.assert_same()
    assert count(scene, "event") == 40


def test_a_partition_whose_name_is_free_again_is_copied(scene: Scene) -> None:
    scene.run_at_source(EVENTS)
    scene.start_stream([("public", "event")], on_table_trouble="stop_table")
    scene.run_at_source(ATTACHED)
    wait_trouble(scene, "event", "PARTITIONS CHANGED")
    copy_again(scene, "event")
    scene.assert_same()


def test_an_index_with_a_primary_keys_name_refuses_a_first_copy(scene: Scene) -> None:
    scene.run_at_source(ITEM + ROWS)
    scene.destination.run_script(scene.database, "SET ROLE thalweg; CREATE TABLE other (id integer);"
                                                 "CREATE INDEX item_pkey ON other (id);")
    scene.start_stream(wait=False)
    error = scene.engine.wait_aborted(scene.stream)
    assert (error["code"], error["table"]) == ("destination_table_differs", '"public"."item"')
    assert "index public.item_pkey of public.other has its name" in error["message"]
    scene.assert_nothing_left()
    scene.at_destination("ALTER INDEX item_pkey RENAME TO other_id")
    scene.engine.retry(scene.stream)
    scene.wait_replicating()
    scene.assert_same()
