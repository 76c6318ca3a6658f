"""Parked transactions opened: where they failed, page by page, by two operators, and what waits behind them."""

import time

import pytest

from harness.cluster import wait_for
from harness.engine import RefusedError
from harness.error_queue import errors, execute
from harness.scene import Scene

TABLES = """CREATE TABLE item (id integer PRIMARY KEY, word text, price numeric);
            CREATE TABLE parent (id integer PRIMARY KEY);
            CREATE TABLE child (id integer PRIMARY KEY, parent integer REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
            INSERT INTO item VALUES (1, 'one', 1), (2, 'two', 2), (3, 'three', 3);
            INSERT INTO parent VALUES (1);"""
ALWAYS = "SELECT format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', tgrelid::regclass, tgname) FROM pg_trigger"


def leave_out(scene: Scene, error_id: int, number: int, version: str = "") -> None:
    query = f"?version={version}" if version else ""
    errors(scene, f"/{error_id}/changes/{number}{query}", "PUT", {"left_out": True, "reason": f"no {number}"})


def test_the_change_at_which_a_transaction_failed_is_known(scene: Scene) -> None:
    scene.run_at_source(TABLES)
    scene.start_stream(disable_on_error=False)
    scene.at_destination(
        "INSERT INTO item VALUES (700, 'in place', 0)",
        "ALTER TABLE item ADD CONSTRAINT cheap CHECK (price < 900)",
        "DELETE FROM parent",
    )
    for (statement,) in scene.at_destination(ALWAYS):
        scene.at_destination(str(statement))
    scene.run_at_source("INSERT INTO item SELECT i, 'word', i FROM generate_series(4, 1000) i")
    scene.wait_applied()  # the two do not depend on each other: either could be parked first
    scene.at_source("INSERT INTO child VALUES (1, 1)")
    scene.wait_applied()
    many, deferred = errors(scene)["errors"]
    assert (many["sqlstate"], many["failed_change"]) == ("23505", 697)
    assert (deferred["sqlstate"], deferred["failed_change"]) == ("23503", None), "it failed at its commit"
    causes = {cause["sqlstate"]: cause for cause in errors(scene)["causes"]}
    assert (causes["23503"]["table"], causes["23503"]["object"]) == ('"public"."child"', "child_parent_fkey")
    assert causes["23505"]["object"] == "item_pkey"

    leave_out(scene, many["id"], 697)
    leave_out(scene, many["id"], 3)
    tried = errors(scene, f"/{many['id']}/dry-run", "POST")
    assert (tried["error"]["sqlstate"], tried["failed_change"], tried["changes"]) == ("23514", 897, 997)
    with pytest.raises(RefusedError):
        execute(scene, f"/{many['id']}")
    # It lies in the destination, with the new error.
    scene.engine.kill()
    scene.engine.start()
    scene.wait_replicating()
    again = errors(scene)["errors"][0]
    assert (again["sqlstate"], again["failed_change"]) == ("23514", 897)
    (change,) = errors(scene, f"/{many['id']}?after=896&limit=1")["changes"]
    assert (change["number"], change["columns"][0]["wanted"]["text"]) == (897, "900")
    scene.at_destination("ALTER TABLE item DROP CONSTRAINT cheap", "INSERT INTO parent VALUES (1)",
                         "DELETE FROM item WHERE id = 700")
    errors(scene, f"/{many['id']}/changes/697", "DELETE")
    errors(scene, f"/{many['id']}/changes/3", "DELETE")
    assert execute(scene) == {"state": "DONE"}
    scene.assert_same()


def test_a_large_transaction_is_opened_page_by_page(scene: Scene) -> None:
    scene.run_at_source(TABLES)
    scene.start_stream(disable_on_error=False)
    scene.at_destination("INSERT INTO item VALUES (39000, 'in place', 0)")
    scene.run_at_source("INSERT INTO item SELECT i, repeat('x', 1000), i FROM generate_series(4, 40003) i")
    scene.wait_applied()
    (parked,) = errors(scene)["errors"]
    assert (parked["lcrs"], parked["failed_change"]) == (40_000, 38_997)
    pieces = scene.at_destination("SELECT count(*), max(first_change) FROM thalweg.error_queue_chunk")
    assert pieces[0][0] > 4
    after, numbers = 0, []
    for _ in range(3):
        page = errors(scene, f"/{parked['id']}?after={after}")
        numbers += [change["number"] for change in page["changes"]]
        after = page["next_after"]
    assert numbers == list(range(1, 301))
    begun = time.monotonic()
    last = errors(scene, f"/{parked['id']}?after=39950")
    assert time.monotonic() - begun < 5
    assert [change["columns"][0]["wanted"]["text"] for change in last["changes"]] == [
        str(number) for number in range(39954, 40004)
    ]
    assert last["next_after"] is None
    leave_out(scene, parked["id"], 38_997)
    page = errors(scene, f"/{parked['id']}?after=38995&limit=3")
    assert [bool(change["edit"]) for change in page["changes"]] == [False, True, False]
    execute(scene, f"/{parked['id']}")
    assert scene.at_destination("SELECT count(*), min(word) FILTER (WHERE id = 39000) FROM item") == [
        (40_003, "in place")
    ]


def test_a_decision_of_an_older_version_is_refused(scene: Scene) -> None:
    scene.run_at_source(TABLES)
    scene.start_stream(disable_on_error=False)
    scene.at_destination("INSERT INTO item VALUES (4, 'in place', 0)")
    scene.at_source("INSERT INTO item VALUES (4, 'four', 4)")
    scene.wait_applied()
    (parked,) = errors(scene)["errors"]
    seen = parked["edits_version"]
    leave_out(scene, parked["id"], 1, seen)
    with pytest.raises(RefusedError) as stale:
        leave_out(scene, parked["id"], 1, seen)
    assert (stale.value.status, stale.value.error["code"]) == (400, "invalid_request")
    with pytest.raises(RefusedError):
        errors(scene, f"/{parked['id']}/changes/1?version={seen}", "DELETE")
    now = errors(scene, f"/{parked['id']}")["error"]["edits_version"]
    assert now != seen
    errors(scene, f"/{parked['id']}/changes/1?version={now}", "DELETE")

    # An execution says that nothing of it was applied.
    leave_out(scene, parked["id"], 1)
    assert execute(scene, f"/{parked['id']}") == {"state": "DONE"}
    execution = errors(scene)["execution"]
    assert (execution["executed"], execution["left_out"], execution["left_out_ids"]) == (1, 1, [parked["id"]])
    assert scene.at_destination("SELECT word FROM item WHERE id = 4") == [("in place",)]


def test_what_waits_behind_a_transaction_is_a_tree(scene: Scene) -> None:
    scene.run_at_source(TABLES)
    scene.start_stream(disable_on_error=False)
    scene.at_destination("DELETE FROM item WHERE id IN (1, 2)")
    for price, where in ((10, "id = 1"), (20, "id = 2"), (30, "id IN (1, 2, 3)"), (40, "id = 3"), (50, "id = 2")):
        scene.at_source(f"UPDATE item SET price = {price} WHERE {where}")
        scene.wait_applied()  # not all depend on each other: they would be parked in any order
    first, second, both, third, last = (error["id"] for error in errors(scene)["errors"])
    tree = errors(scene, f"/{second}/dependants")
    assert [(one["id"], one["parent"], one["behind"]) for one in tree["dependants"]] == [
        (both, second, [first, second]), (third, both, [both]), (last, second, [second]),
    ]
    assert (tree["total"], tree["behind"], tree["next_after"]) == (3, [], None)
    part = errors(scene, f"/{second}/dependants?limit=2")
    rest = errors(scene, f"/{second}/dependants?limit=2&after={part['next_after']}")
    assert part["dependants"] + rest["dependants"] == tree["dependants"]
    assert errors(scene, f"/{third}/dependants") == {
        "dependants": [], "total": 0, "behind": [both], "behind_total": 1, "next_after": None,
    }
    with pytest.raises(RefusedError) as none:
        errors(scene, "/999/dependants")
    assert none.value.status == 404
    scene.at_destination("INSERT INTO item VALUES (1, 'one', 1), (2, 'two', 2)")
    assert execute(scene) == {"state": "DONE"}
    scene.assert_same()


def test_an_edit_is_refused_soon_while_an_execution_waits(scene: Scene) -> None:
    scene.run_at_source(TABLES)
    scene.start_stream(disable_on_error=False)
    scene.at_destination("DELETE FROM item WHERE id = 2")
    scene.at_source("UPDATE item SET price = 20 WHERE id IN (1, 2)")
    scene.wait_applied()
    (parked,) = errors(scene)["errors"]
    scene.at_destination("INSERT INTO item VALUES (2, 'two', 2)")
    with scene.destination.connect(scene.database) as session, session.transaction():
        session.execute("LOCK TABLE item IN ACCESS EXCLUSIVE MODE")
        assert errors(scene, f"/{parked['id']}/execute", "POST") == {"state": "RUNNING"}
        begun = time.monotonic()
        errors(scene, f"/{parked['id']}/changes/1")
        with pytest.raises(RefusedError) as busy:
            leave_out(scene, parked["id"], 1)
        assert (busy.value.status, busy.value.error["code"]) == (503, "database_busy")
        assert time.monotonic() - begun < 8
    wait_for(lambda: errors(scene)["execution"]["state"] == "DONE", 60, "the execution ends")
    scene.assert_same()
