"""The error queue over the engine's API: what a parked transaction wanted, a long execution, its parts."""

from typing import Any

import pytest

from harness.cluster import wait_for
from harness.engine import RefusedError, destination_path
from harness.error_queue import errors, execute
from harness.scene import Scene

TABLE = """
    CREATE TYPE mood AS ENUM ('calm', 'rough');
    CREATE TABLE goods (id integer PRIMARY KEY, name text, price numeric(8, 2), at timestamptz, fits boolean,
                        state mood, tags text[], body text);
    ALTER TABLE goods ALTER body SET STORAGE EXTERNAL;
    INSERT INTO goods VALUES (1, 'rope', 12.50, '2026-01-02 03:04:05.678+00', true, 'calm', '{a,"b c",NULL}',
                              repeat('x', 100000)),
                             (2, 'sail', 90.00, NULL, false, 'rough', '{}', '');
    CREATE TABLE log (line text); ALTER TABLE log REPLICA IDENTITY FULL; INSERT INTO log VALUES ('one');
"""


def shown(change: dict[str, Any], which: str) -> dict[str, Any]:
    """Column → text, or what stands for none."""
    return {
        column["name"]: column[which]["text"] if column[which]["text"] is not None else column[which]["state"]
        for column in change["columns"]
    }


def rows_of(scene: Scene, side: str, key: int) -> dict[str, Any]:
    """As the server writes them; long ones cut as the engine does."""
    ask = scene.at_source if side == "source" else scene.at_destination
    ((text,),) = ask(f"SELECT coalesce((SELECT jsonb_object_agg(k, left(v, 1024)) FROM (SELECT format('%s', id) AS id, "
                     "name, format('%s', price) AS price, CASE WHEN at IS NOT NULL THEN format('%s', at) END AS at, "
                     "format('%s', fits) AS fits, format('%s', state) AS state, format('%s', tags) AS tags, body "
                     f"FROM goods WHERE id = {key}) AS g, jsonb_each_text(to_jsonb(g)) AS e (k, v)), '{{}}')")
    assert isinstance(text, dict)
    return {name: "null" if value is None else value for name, value in text.items()}


def test_a_parked_transaction_is_opened(scene: Scene) -> None:
    scene.run_at_source(TABLE)
    scene.start_stream(disable_on_error=False)
    scene.at_destination("UPDATE goods SET price = 13 WHERE id = 1", "DELETE FROM goods WHERE id = 2")
    scene.run_at_source("""
        BEGIN; UPDATE goods SET name = 'long rope', fits = false WHERE id = 1;
        UPDATE goods SET price = 95 WHERE id = 2; DELETE FROM log; COMMIT;
    """)
    scene.wait_applied()
    (parked,) = errors(scene)["errors"]
    opened = errors(scene, f"/{parked['id']}")
    assert (opened["error"], opened["changes_total"]) == (parked, 3)
    rope, sail, line = opened["changes"]
    assert [change["operation"] for change in opened["changes"]] == ["UPDATE", "UPDATE", "DELETE"]
    wanted = shown(rope, "wanted")
    assert wanted.pop("body") == "unchanged"
    assert wanted.items() <= rows_of(scene, "source", 1).items()
    assert shown(rope, "now") == rows_of(scene, "destination", 1)
    assert (rope["found_by"], rope["rows_found"]) == (["id"], 1)
    differing = {column["name"] for column in rope["columns"] if column["wanted_differs"]}
    assert differing == {"name", "price", "fits"}
    body = next(column["now"] for column in rope["columns"] if column["name"] == "body")
    assert (body["bytes"], body["cut"], len(body["text"])) == (100_000, True, 1024)
    assert sail["rows_found"] == 0
    assert shown(sail, "wanted") == rows_of(scene, "source", 2)
    assert (shown(line, "before"), line["rows_found"], line["found_by"]) == ({"line": "one"}, 1, ["line"])
    with pytest.raises(RefusedError) as none:
        errors(scene, "/123456")
    assert none.value.status == 404
    # Nothing of it was changed by looking.
    assert errors(scene)["errors"] == [parked]
    scene.at_destination("INSERT INTO goods VALUES (2, 'sail', 90, NULL, false, 'rough', '{}', '')")
    executed = execute(scene, f"/{parked['id']}")
    assert executed == {"state": "DONE"}
    scene.at_destination("UPDATE goods SET price = 12.5 WHERE id = 1")
    scene.assert_same()


def test_a_long_execution_goes_on_and_tells_how_far_it_is(scene: Scene) -> None:
    scene.run_at_source("CREATE TABLE item (id integer PRIMARY KEY, n integer); INSERT INTO item VALUES (1, 0);")
    scene.start_stream(disable_on_error=False)
    scene.at_destination("DELETE FROM item")
    for number in range(1, 13):
        scene.at_source(f"UPDATE item SET n = {number} WHERE id = 1")
    scene.wait_applied()
    queue = errors(scene)
    assert (queue["total"], queue["roots"], len(queue["errors"])) == (12, 1, 12)
    part = errors(scene, "?limit=5")
    assert [error["id"] for error in part["errors"]] == [error["id"] for error in queue["errors"][:5]]
    rest = errors(scene, f"?limit=100&after={part['next_after']}")
    assert [error["id"] for error in rest["errors"]] == [error["id"] for error in queue["errors"][5:]]
    assert rest["next_after"] is None
    first = queue["errors"][0]["id"]
    assert [error["id"] for error in errors(scene, "?roots=1")["errors"]] == [first]

    # Half a second each: it takes longer than anybody waits for an answer.
    scene.at_destination(
        "INSERT INTO item VALUES (1, 0)",
        "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.5); RETURN NEW; END'",
        "CREATE TRIGGER slow BEFORE UPDATE ON item FOR EACH ROW EXECUTE FUNCTION slow()",
        "ALTER TABLE item ENABLE ALWAYS TRIGGER slow",
    )
    execute = destination_path(scene.stream) + f"/errors/{first}/execute"
    assert scene.engine.request("POST", execute) == {"state": "RUNNING"}
    with pytest.raises(RefusedError) as busy:
        scene.engine.request("POST", execute)
    assert busy.value.status == 503
    running = errors(scene)["execution"]
    assert (running["state"], running["total"], running["error_id"]) == ("RUNNING", 12, first)
    wait_for(lambda: errors(scene)["execution"]["state"] == "DONE", 60, "the execution ends")
    ended = errors(scene)
    assert (ended["total"], ended["execution"]["executed"]) == (0, 12)
    scene.assert_same()


def test_what_the_destination_refuses_at_the_commit_is_parked(scene: Scene) -> None:
    scene.run_at_source("CREATE TABLE item (id integer PRIMARY KEY, n integer);")
    scene.start_stream(disable_on_error=False)
    scene.at_destination(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN IF NEW.n < 0 THEN RAISE ''not below zero''; END IF; RETURN NULL; END'",
        "CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON item DEFERRABLE INITIALLY DEFERRED FOR EACH ROW "
        "EXECUTE FUNCTION refuse()",
        "ALTER TABLE item ENABLE ALWAYS TRIGGER refuse",
    )
    for n in (1, -2, 3):
        scene.at_source(f"INSERT INTO item VALUES ({abs(n)}, {n})")
    scene.wait_applied()
    (parked,) = errors(scene)["errors"]
    assert (parked["code"], parked["sqlstate"], parked["message"]) == ("apply_failed", "P0001", "not below zero")
    assert scene.at_destination("SELECT id FROM item ORDER BY id") == [(1,), (3,)]
    scene.at_destination("DROP TRIGGER refuse ON item")
    execute(scene, f"/{parked['id']}")
    wait_for(lambda: errors(scene)["total"] == 0, 60, "it is executed")  # which goes on behind a late answer
    scene.assert_same()
