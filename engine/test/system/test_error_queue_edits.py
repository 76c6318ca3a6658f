"""Single changes of parked transactions left out or given other values: what is then applied, row by row."""

from typing import Any

import pytest

from harness.cluster import wait_for
from harness.engine import RefusedError
from harness.error_queue import errors, execute
from harness.scene import Scene

TABLES = """CREATE TABLE customer (id integer PRIMARY KEY, name text NOT NULL, born date);
            CREATE TABLE item (id integer PRIMARY KEY, customer integer, word varchar(20), price numeric, tags text[]);
            CREATE TABLE log (at integer, note text); ALTER TABLE log REPLICA IDENTITY FULL;
            INSERT INTO customer VALUES (1, 'Ann', '1980-01-01'), (2, 'Ben', NULL);
            INSERT INTO item VALUES (1, 1, 'one', 1, '{a}'), (2, 2, 'two', 2, NULL);
            INSERT INTO log VALUES (1, 'begun');"""
AT_DESTINATION = ("INSERT INTO item VALUES (3, 9, 'in place', 9, NULL)",
                  "ALTER TABLE item ALTER word TYPE varchar(8)",
                  "ALTER TABLE item ADD CONSTRAINT cheap CHECK (price < 100)")
# Changes 1 to 7. The second collides with the destination's row; the third is too long, and too dear.
PARKED = """BEGIN;
            INSERT INTO customer VALUES (3, 'Cleo', NULL);
            INSERT INTO item VALUES (3, 3, 'three', 3, NULL);
            INSERT INTO item VALUES (4, 3, 'much too long', 400, '{b,c}');
            UPDATE item SET price = 20 WHERE id = 2;
            UPDATE customer SET born = '1990-02-03' WHERE id = 2;
            DELETE FROM item WHERE id = 1;
            UPDATE log SET note = 'ended';
            COMMIT;"""
SUCCEEDS = {"succeeds": True, "error": None, "changes": 7, "edited": 0, "left_out": 0, "settled": 0,
            "failed_change": None}
BEHIND = "UPDATE customer SET name = name || '!' WHERE id = 3"


def leave_out(scene: Scene, error_id: int, *numbers: int) -> None:
    for number in numbers:
        errors(scene, f"/{error_id}/changes/{number}", "PUT", {"left_out": True, "reason": f"no {number}"})


def edit(scene: Scene, error_id: int, number: int, **values: str | None) -> None:
    errors(scene, f"/{error_id}/changes/{number}", "PUT", {"values": values, "reason": f"better {number}"})


def park(scene: Scene) -> int:
    """The id of the transaction; another one waits behind it."""
    scene.run_at_source(TABLES)
    scene.start_stream(disable_on_error=False)
    scene.at_destination(*AT_DESTINATION)
    scene.run_at_source(PARKED)
    scene.at_source(BEHIND)
    scene.wait_applied()
    first, second = errors(scene)["errors"]
    assert (first["lcrs"], first["sqlstate"], second["code"]) == (7, "23505", "parked_behind")
    return int(first["id"])


def rows(scene: Scene) -> dict[str, list[tuple[object, ...]]]:
    return {
        table: scene.at_destination(f"SELECT t::text FROM {table} t ORDER BY 1")
        for table in ("customer", "item", "log")
    }


def frames(scene: Scene) -> list[tuple[object, ...]]:
    return scene.at_destination("SELECT error_id, chunk, md5(frames) FROM thalweg.error_queue_chunk ORDER BY 1, 2")


def test_rows_are_left_out_and_the_others_applied(scene: Scene) -> None:
    parked = park(scene)
    before, original = rows(scene), frames(scene)
    leave_out(scene, parked, 2, 3, 6)
    tried = errors(scene, f"/{parked}/dry-run", "POST")
    assert tried == SUCCEEDS | {"left_out": 3}
    assert (rows(scene), frames(scene)) == (before, original)
    opened = errors(scene, f"/{parked}")
    assert [change["number"] for change in opened["changes"]] == list(range(1, 8))
    assert [change["edit"] and change["edit"]["reason"] for change in opened["changes"]] == [
        None, "no 2", "no 3", None, None, "no 6", None,
    ]
    assert (opened["error"]["left_out"], errors(scene)["errors"][0]["left_out"]) == (3, 3)
    # The decisions lie in the destination: an engine that dies has not forgotten them.
    scene.engine.kill()
    scene.engine.start()
    scene.wait_replicating()
    assert execute(scene, f"/{parked}") == {"state": "DONE"}
    assert rows(scene) == {
        "customer": [("(1,Ann,1980-01-01)",), ("(2,Ben,1990-02-03)",), ("(3,Cleo!,)",)],
        "item": [("(1,1,one,1,{a})",), ("(2,2,two,20,)",), ('(3,9,"in place",9,)',)],
        "log": [("(1,ended)",)],
    }
    assert errors(scene)["total"] == 0
    assert frames(scene) == []
    scene.at_source("UPDATE customer SET name = 'Cleo again' WHERE id = 3")
    scene.wait_applied()
    assert scene.at_destination("SELECT name FROM customer WHERE id = 3") == [("Cleo again",)]


def test_other_values_are_applied_and_an_engine_that_dies_keeps_them(scene: Scene) -> None:
    parked = park(scene)
    before, original = rows(scene), frames(scene)
    edit(scene, parked, 2, id="5", customer=None)
    edit(scene, parked, 3, word="four", price="much")
    tried = errors(scene, f"/{parked}/dry-run", "POST")
    assert (tried["succeeds"], tried["error"]["sqlstate"]) == (False, "22P02"), "the destination's type reads it"
    edit(scene, parked, 3, word="four", price="400")
    assert errors(scene, f"/{parked}/dry-run", "POST")["error"]["sqlstate"] == "23514"
    edit(scene, parked, 3, word="four", price="40.50", tags='{d,"e f",NULL}')
    # The key of an UPDATE: it still changes the row that it changed at the source. So does one of a whole old row.
    edit(scene, parked, 5, id="7", born="1991-01-01")
    edit(scene, parked, 7, note=None)
    tried = errors(scene, f"/{parked}/dry-run", "POST")
    assert tried == SUCCEEDS | {"edited": 4}
    assert (rows(scene), frames(scene)) == (before, original)
    third = errors(scene, f"/{parked}/changes/3")["changes"][0]
    assert {column["name"]: column["wanted"]["text"] for column in third["columns"]}["word"] == "much too long"
    assert third["edit"]["values"] == {"word": "four", "price": "40.50", "tags": '{d,"e f",NULL}'}

    scene.engine.kill()
    scene.engine.start()
    scene.wait_replicating()
    executed = execute(scene, f"/{parked}")
    assert executed == {"state": "DONE"}
    assert rows(scene) == {
        "customer": [("(1,Ann,1980-01-01)",), ("(3,Cleo!,)",), ("(7,Ben,1991-01-01)",)],
        "item": [("(2,2,two,20,)",), ('(3,9,"in place",9,)',), ('(4,3,four,40.50,"{d,""e f"",NULL}")',),
                 ("(5,,three,3,)",)],
        "log": [("(1,)",)],
    }
    assert errors(scene)["total"] == 0


def test_edits_that_fit_nothing_are_refused_and_taken_back(scene: Scene) -> None:
    parked = park(scene)

    def refusal(error_id: int, number: int, body: dict[str, Any]) -> tuple[int, str]:
        with pytest.raises(RefusedError) as refused:
            errors(scene, f"/{error_id}/changes/{number}", "PUT", body)
        return refused.value.status, str(refused.value.error["message"])

    status, message = refusal(parked, 3, {"values": {"word": "x", "wrd": "x"}, "reason": "typed wrong"})
    assert (status, message.split(":")[0]) == (400, "/values/wrd")
    status, message = refusal(parked, 6, {"values": {"word": "x"}, "reason": "a DELETE"})
    assert (status, message.split(":")[0]) == (400, "/values")
    assert refusal(parked, 8, {"left_out": True, "reason": "there are seven"})[0] == 404
    assert refusal(999, 1, {"left_out": True, "reason": "no such transaction"})[0] == 404
    assert errors(scene)["errors"][0]["edited"] == 0

    leave_out(scene, parked, 2, 3)
    errors(scene, f"/{parked}/changes/2", "DELETE")
    assert errors(scene, f"/{parked}/dry-run", "POST")["error"]["sqlstate"] == "23505"
    with pytest.raises(RefusedError) as none:
        errors(scene, f"/{parked}/changes/2", "DELETE")
    assert none.value.status == 404
    scene.at_destination("DELETE FROM item WHERE id = 3")
    errors(scene, f"/{parked}/changes/3", "DELETE")
    scene.at_destination("ALTER TABLE item ALTER word TYPE varchar(20)", "ALTER TABLE item DROP CONSTRAINT cheap")
    assert execute(scene, f"/{parked}") == {"state": "DONE"}
    scene.assert_same()


def test_nothing_is_edited_while_it_is_executed(scene: Scene) -> None:
    parked = park(scene)
    leave_out(scene, parked, 2, 3)
    scene.at_destination(
        "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(9); RETURN NEW; END'",
        "CREATE TRIGGER slow BEFORE UPDATE ON log FOR EACH ROW EXECUTE FUNCTION slow()",
        "ALTER TABLE log ENABLE ALWAYS TRIGGER slow",
    )
    assert errors(scene, f"/{parked}/execute", "POST") == {"state": "RUNNING"}
    with pytest.raises(RefusedError) as busy:
        errors(scene, f"/{parked}/changes/4", "PUT", {"left_out": True, "reason": "too late"})
    assert (busy.value.status, busy.value.error["code"]) == (503, "database_busy")
    wait_for(lambda: errors(scene)["execution"]["state"] == "DONE", 60, "the execution ends")
    assert scene.at_destination("SELECT price FROM item WHERE id = 2") == [(20,)]
