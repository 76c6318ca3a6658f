"""One name that stood for two tables of a stream, or two names for one: each change goes to the table that it is of."""


import pytest

from harness.cluster import wait_for
from harness.engine import RefusedError, destination_path
from harness.error_queue import errors, execute
from harness.scene import Scene
from harness.troubles import copy_again, states_of, table_of, wait_state, wait_trouble

PAIR = """CREATE TABLE {moved} (id integer PRIMARY KEY, body text);
          CREATE TABLE {gone} (id integer PRIMARY KEY, body text);
          CREATE TABLE kept (id integer PRIMARY KEY, body text);
          INSERT INTO {moved} SELECT n, 'moved' FROM generate_series(1, 100) n;
          INSERT INTO {gone} SELECT n, 'gone' FROM generate_series(1, 100) n;"""


def tables(*names: str) -> list[dict[str, str]]:
    return [{"schema": "public", "table": name} for name in names]


@pytest.mark.parametrize("first", ["a", "b"])
def test_tables_that_swap_names(scene: Scene, first: str) -> None:
    scene.run_at_source(PAIR.format(moved="a", gone="b"))
    scene.start_stream(on_table_trouble="stop_table")
    scene.run_at_source("BEGIN; ALTER TABLE a RENAME TO x; ALTER TABLE b RENAME TO a; ALTER TABLE x RENAME TO b;"
                        "COMMIT;")
    for name in ("a", "b"):
        wait_state(scene, name, "STOPPED")
    copy_again(scene, first)
    scene.at_source(f"INSERT INTO {first} VALUES (1000, 'after the copy')",
                    f"UPDATE {first} SET body = 'changed' WHERE id = 5")
    scene.wait_applied()
    scene.assert_same([("public", first)])
    copy_again(scene, "b" if first == "a" else "a")
    scene.at_source("INSERT INTO a VALUES (2000, 'later')", "INSERT INTO b VALUES (2000, 'later')")
    scene.wait_applied()
    scene.assert_same()


@pytest.mark.parametrize(("moved", "gone"), [("c", "z"), ("z", "c")])
def test_a_table_takes_the_name_of_one_that_was_dropped(scene: Scene, moved: str, gone: str) -> None:
    scene.run_at_source(PAIR.format(moved=moved, gone=gone))
    scene.start_stream(on_table_trouble="stop_table")
    scene.run_at_source(f"DROP TABLE {gone}; ALTER TABLE {moved} RENAME TO {gone};")
    wait_state(scene, gone, "STOPPED")
    copy_again(scene, gone)
    scene.at_source(f"INSERT INTO {gone} VALUES (1000, 'after the copy')",
                    f"UPDATE {gone} SET body = 'changed' WHERE id = 5")
    scene.wait_applied()
    scene.assert_same([("public", gone), ("public", "kept")])
    reason = wait_trouble(scene, moved, "DROPPED")["reason"]
    assert f'"public"."{moved}" is "public"."{gone}" at the source now' in reason
    assert table_of(scene, gone)["trouble"] is None
    scene.engine.set_stream(scene.stream, tables=tables(gone, "kept"))
    wait_for(lambda: len(scene.engine.destination(scene.stream)["tables"]) == 2, 30, "the table is taken out")
    scene.wait_replicating()
    scene.at_source(f"INSERT INTO {gone} VALUES (1001, 'after it was taken out')")
    scene.wait_applied()
    scene.assert_same([("public", gone), ("public", "kept")])


@pytest.mark.parametrize("is_running", [False, True])
def test_a_renamed_table_is_followed_though_another_has_its_name(scene: Scene, is_running: bool) -> None:
    """It is not copied again: nothing of it was lost. The other one is."""
    scene.run_at_source(PAIR.format(moved="hit", gone="other"))
    scene.start_stream()
    scene.at_destination("INSERT INTO hit VALUES (-1, 'not copied again')")
    if not is_running:
        scene.engine.set_stream(scene.stream, status="DISABLED")
        scene.engine.wait_phase(scene.stream, "STOPPED")
    scene.run_at_source("UPDATE hit SET body = 'before' WHERE id < 10; ALTER TABLE hit RENAME TO called;"
                        "UPDATE called SET body = 'after' WHERE id > 90;"
                        "CREATE TABLE hit (id integer PRIMARY KEY, t text);"
                        "INSERT INTO hit VALUES (1, 'another');")
    wait_trouble(scene, "hit", "REPLACED")
    scene.engine.set_stream(scene.stream, status="ENABLED", tables=tables("kept", "other", "called", "hit"))
    wait_for(lambda: states_of(scene) == {(name, "REPLICATING") for name in ("kept", "other", "called", "hit")}, 60,
             "all are replicated")
    scene.at_source("INSERT INTO hit VALUES (2, 'later')", "INSERT INTO called VALUES (1000, 'later')")
    scene.wait_applied()
    assert scene.at_destination("DELETE FROM called WHERE id = -1 RETURNING body") == [("not copied again",)]
    scene.assert_same()


def test_what_was_parked_of_a_table_that_has_anothers_name_goes_with_its_copy(scene: Scene) -> None:
    scene.run_at_source(PAIR.format(moved="c", gone="z"))
    scene.start_stream(on_table_trouble="stop_table", disable_on_error=False)
    scene.at_destination("DELETE FROM c WHERE id < 10")
    scene.at_source("UPDATE c SET body = 'parked' WHERE id = 5")
    scene.wait_applied()
    assert [error["tables"] for error in errors(scene)["errors"]] == [['"public"."c"']]
    scene.run_at_source("DROP TABLE z; ALTER TABLE c RENAME TO z;")
    wait_state(scene, "z", "STOPPED")
    copy_again(scene, "z")
    wait_for(lambda: errors(scene)["total"] == 0, 60, "what the copy has is discarded")
    scene.assert_same([("public", "z"), ("public", "kept")])


@pytest.mark.parametrize("taken_out", ["hit", "kept"])
def test_what_was_parked_of_a_table_that_was_replaced_and_taken_out_is_left_out(scene: Scene, taken_out: str) -> None:
    """A destination's table may keep the name for long after its table has left the stream."""
    scene.run_at_source("CREATE TABLE hit (id integer PRIMARY KEY, body text);"
                        "CREATE TABLE kept (id integer PRIMARY KEY, body text);"
                        "CREATE TABLE third (id integer PRIMARY KEY, body text);")
    scene.start_stream(disable_on_error=False)
    scene.at_destination("INSERT INTO third VALUES (1, 'in the way')")
    scene.run_at_source("BEGIN; INSERT INTO hit VALUES (1, 'of the first'); INSERT INTO kept VALUES (1, 'kept');"
                        "INSERT INTO third VALUES (1, 'third'); COMMIT;")
    scene.wait_applied()
    (parked,) = errors(scene)["errors"]
    scene.run_at_source("DROP TABLE hit; CREATE TABLE hit (id integer PRIMARY KEY, body text);"
                        "INSERT INTO hit VALUES (2, 'of the second');")
    wait_trouble(scene, "hit", "REPLACED")
    copy_again(scene, "hit")
    staying = [name for name in ("hit", "kept", "third") if name != taken_out]
    scene.engine.set_stream(scene.stream, tables=tables(*staying))
    wait_for(lambda: len(states_of(scene)) == 2, 30, "the table is taken out")
    scene.wait_replicating()
    scene.at_destination("DELETE FROM third")
    problems = {change["table"]: change["problem"] for change in errors(scene, f"/{parked['id']}")["changes"]}
    execute = destination_path(scene.stream) + f"/errors/{parked['id']}/execute"
    if taken_out == "hit":
        assert problems == {"hit": '"public"."hit" is not in the stream any more: its changes are left out',
                            "kept": None, "third": None}
        assert scene.engine.request("POST", execute) == {"state": "DONE"}
        scene.assert_same()
        return
    assert "is another table now" in problems["hit"]
    with pytest.raises(RefusedError) as refused:
        scene.engine.request("POST", execute)
    assert refused.value.error["code"] == "missing_table"
    assert scene.at_destination("SELECT id FROM hit UNION ALL SELECT id FROM kept") == [(2,)]


def test_an_execution_during_which_another_table_takes_the_name(scene: Scene) -> None:
    scene.run_at_source("CREATE TABLE hit (id integer PRIMARY KEY, body text); INSERT INTO hit VALUES (7, 'old');"
                        "CREATE TABLE slow (id integer PRIMARY KEY); CREATE TABLE kept (id integer PRIMARY KEY);")
    scene.start_stream(disable_on_error=False)
    scene.at_destination("DELETE FROM hit", "INSERT INTO slow VALUES (1)")
    scene.at_source("INSERT INTO slow VALUES (1)")
    scene.at_source("UPDATE hit SET body = 'of the first' WHERE id = 7")
    scene.wait_applied()
    assert errors(scene)["total"] == 2
    scene.at_destination("DELETE FROM slow", "INSERT INTO hit VALUES (7, 'old')")
    with scene.destination.connect(scene.database) as blocker:
        blocker.execute("BEGIN")
        blocker.execute("LOCK TABLE slow IN SHARE MODE")
        errors(scene, "/execute", "POST")
        scene.run_at_source("ALTER TABLE hit RENAME TO called;")
        wait_trouble(scene, "hit", "RENAMED")
        scene.engine.set_stream(scene.stream, tables=tables("kept", "slow", "called"))
        wait_for(lambda: ("called", "REPLICATING") in states_of(scene), 60, "the rename is followed")
        scene.run_at_source("CREATE TABLE hit (id integer PRIMARY KEY, body text);"
                            "INSERT INTO hit VALUES (7, 'another');")
        scene.engine.set_stream(scene.stream, tables=tables("kept", "slow", "called", "hit"))
        wait_for(lambda: ("hit", "REPLICATING") in states_of(scene), 60, "the other one is copied")
        assert errors(scene, "?limit=1")["execution"]["state"] == "RUNNING"
        blocker.execute("ROLLBACK")
    wait_for(lambda: errors(scene, "?limit=1")["execution"]["state"] != "RUNNING", 60, "the execution ends")
    assert scene.at_destination("SELECT body FROM hit") == [("another",)]
    for left in errors(scene)["errors"]:
        assert execute(scene, f"/{left['id']}") == {"state": "DONE"}
    scene.wait_applied()
    scene.assert_same()
