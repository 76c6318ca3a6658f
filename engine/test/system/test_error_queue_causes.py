"""The error queue by cause: groups, executions of one group, what fails again, and dry runs that leave nothing."""

from typing import Any

import pytest

from harness.cluster import wait_for
from harness.engine import RefusedError
from harness.error_queue import errors, execute
from harness.scene import Scene

TABLES = """CREATE TABLE item (id integer PRIMARY KEY, n integer);
            CREATE TABLE word (id integer PRIMARY KEY, word varchar(20));
            CREATE TABLE guarded (id integer PRIMARY KEY, body text);"""
AT_DESTINATION = (
    "INSERT INTO item VALUES (1, -1), (2, -2)",
    "ALTER TABLE item ADD CONSTRAINT few CHECK (n < 100)",
    "ALTER TABLE word ALTER word TYPE varchar(5)",
    "CREATE FUNCTION guard() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''closed today''; END'",
    "CREATE TRIGGER guard BEFORE INSERT ON guarded FOR EACH ROW EXECUTE FUNCTION guard()",
    "ALTER TABLE guarded ENABLE ALWAYS TRIGGER guard",
)
PARKED = (
    "INSERT INTO item VALUES (1, 1)", "INSERT INTO item VALUES (2, 2)", "INSERT INTO item VALUES (3, 300)",
    "UPDATE item SET n = 30 WHERE id = 3", "INSERT INTO item VALUES (4, 400)",
    "INSERT INTO word VALUES (1, 'too long')",
    "INSERT INTO guarded VALUES (1, 'body')",
)
FITS = "INSERT INTO item VALUES (5, 5)"


def park(scene: Scene) -> None:
    scene.run_at_source(TABLES)
    scene.start_stream(disable_on_error=False)
    scene.at_destination(*AT_DESTINATION)
    for change in (*PARKED, FITS):
        scene.at_source(change)
        scene.wait_applied()  # several would be parked beside each other, and their ids tell the order
    assert errors(scene)["total"] == len(PARKED)


def group_of(scene: Scene, which: str, value: str) -> dict[str, Any]:
    return next(cause for cause in errors(scene)["causes"] if cause[which] == value)


def id_of(scene: Scene, group: dict[str, Any], which: int = 0) -> int:
    return int(errors(scene, f"?cause={group['id']}")["errors"][which]["id"])


def everything(scene: Scene) -> list[tuple[object, ...]]:
    """Rows and bookkeeping, byte for byte."""
    return [
        scene.at_destination(f"SELECT coalesce(jsonb_agg(to_jsonb(t) ORDER BY to_jsonb(t)::text), '[]') FROM {table} t")
        for table in ("item", "word", "guarded", "thalweg.error_queue", "thalweg.error_queue_chunk",
                      "thalweg.stream_table")
    ]


def test_the_queue_is_grouped_by_cause(scene: Scene) -> None:
    park(scene)
    causes = {
        (cause["sqlstate"], cause["table"], cause["object"]): (cause["code"], cause["transactions"])
        for cause in errors(scene)["causes"]
    }
    assert causes == {
        ("23505", '"public"."item"', "item_pkey"): ("apply_conflict", 2),
        ("23514", '"public"."item"', "few"): ("apply_failed", 2),
        ("22001", '"public"."word"', "character varying(5)"): ("apply_failed", 1),
        ("P0001", '"public"."guarded"', ""): ("apply_failed", 1),
        ("", "", ""): ("parked_behind", 1),
    }
    checks = group_of(scene, "object", "few")
    listed = errors(scene, f"?cause={checks['id']}")
    assert (len(listed["errors"]), listed["total"]) == (2, len(PARKED))
    assert checks["oldest"] == listed["errors"][0]["parked_at"]


def test_a_row_that_is_there_is_another_cause_than_a_missing_one(scene: Scene) -> None:
    for name in ("item", "kept", "twice"):
        scene.run_at_source(f"CREATE TABLE {name} (id integer PRIMARY KEY, n integer); INSERT INTO {name} VALUES "
                            "(1, 1), (2, 2)")
    scene.run_at_source("ALTER TABLE item REPLICA IDENTITY FULL; ALTER TABLE kept REPLICA IDENTITY FULL")
    compared = [{"schema": "public", "table": name} for name in ("item", "kept")]
    scene.start_stream(disable_on_error=False, conflict_detection=compared)
    scene.at_destination(
        "UPDATE item SET n = -1 WHERE id = 1", "DELETE FROM item WHERE id = 2",
        "CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
        "CREATE TRIGGER keep BEFORE UPDATE ON kept FOR EACH ROW EXECUTE FUNCTION keep()",
        "ALTER TABLE kept ENABLE ALWAYS TRIGGER keep",
        "ALTER TABLE twice DROP CONSTRAINT twice_pkey", "INSERT INTO twice VALUES (1, 1)",
    )
    changes = ("item SET n = 11 WHERE id = 1", "item SET n = 22 WHERE id = 2", "kept SET n = 11 WHERE id = 1",
               "twice SET n = 11 WHERE id = 1")
    for change in changes:
        scene.at_source(f"UPDATE {change}")
    scene.wait_applied()
    causes = {(cause["code"], cause["sqlstate"], cause["table"], cause["object"]) for cause in errors(scene)["causes"]}
    assert causes == {
        ("apply_conflict", "", '"public"."item"', "the destination's row is not as the source's was before"),
        ("apply_conflict", "", '"public"."item"', ""),
        ("apply_conflict", "", '"public"."kept"', "the row is there, but was not written"),
        ("apply_conflict", "", '"public"."twice"', "the destination has more than one such row"),
    }
    scene.at_destination("DELETE FROM twice WHERE ctid = (SELECT max(ctid) FROM twice WHERE id = 1)",
                         "ALTER TABLE twice ADD PRIMARY KEY (id)")
    several = group_of(scene, "table", '"public"."twice"')
    execute(scene, f"/causes/{several['id']}")
    assert scene.at_destination("SELECT id, n FROM twice ORDER BY id") == [(1, 11), (2, 2)]


def test_those_with_one_cause_are_executed_and_the_others_stay(scene: Scene) -> None:
    park(scene)
    checks = group_of(scene, "object", "few")
    # One of them has another obstacle by now, and one that is not of this cause waits behind the other.
    scene.at_destination("ALTER TABLE item DROP CONSTRAINT few", "INSERT INTO item VALUES (4, -4)")
    with pytest.raises(RefusedError) as refused:
        execute(scene, f"/causes/{checks['id']}")
    assert "2 transactions were executed; 1 stay" in refused.value.error["message"]
    execution = errors(scene)["execution"]
    assert (execution["state"], execution["cause"], execution["error_id"]) == ("FAILED", checks["id"], None)
    assert (execution["executed"], execution["total"], execution["failed_again"]) == (2, 3, 1)
    (failure,) = execution["failures"]
    assert (failure["error"]["sqlstate"], '("id" = 4)' in failure["error"]["message"]) == ("23505", True)
    assert scene.at_destination("SELECT id, n FROM item ORDER BY id") == [(1, -1), (2, -2), (3, 30), (4, -4), (5, 5)]
    assert (errors(scene)["total"], group_of(scene, "object", "item_pkey")["transactions"]) == (5, 3)
    with pytest.raises(RefusedError) as none:
        execute(scene, f"/causes/{checks['id']}")
    assert none.value.status == 404

    # The whole queue, in commit order: what still fails is told, the rest has gone through.
    scene.at_destination("DELETE FROM item WHERE id IN (1, 4)", "ALTER TABLE word ALTER word TYPE varchar(20)")
    with pytest.raises(RefusedError):
        execute(scene)
    execution = errors(scene)["execution"]
    assert (execution["executed"], execution["total"], execution["failed_again"]) == (3, 5, 2)
    assert {failure["error"]["sqlstate"] for failure in execution["failures"]} == {"23505", "P0001"}
    scene.at_destination("DELETE FROM item WHERE id = 2", "DROP TRIGGER guard ON guarded")
    assert execute(scene) == {"state": "DONE"}
    execution = errors(scene)["execution"]
    assert (execution["executed"], execution["failed_again"], execution["failures"]) == (2, 0, [])
    assert errors(scene)["causes"] == []
    scene.assert_same()


def test_a_dry_run_tells_the_outcome_and_leaves_nothing(scene: Scene) -> None:
    park(scene)
    key, length, trigger = (
        id_of(scene, group_of(scene, which, value))
        for which, value in (("object", "item_pkey"), ("object", "character varying(5)"), ("sqlstate", "P0001"))
    )
    before = everything(scene)
    tried = errors(scene, f"/{key}/dry-run", "POST")
    assert (tried["succeeds"], tried["error"]["sqlstate"]) == (False, "23505")
    assert '("id" = 1)' in tried["error"]["message"]
    assert errors(scene, f"/{length}/dry-run", "POST")["error"]["sqlstate"] == "22001"
    raised = errors(scene, f"/{trigger}/dry-run", "POST")["error"]
    assert (raised["sqlstate"], "closed today" in raised["message"]) == ("P0001", True)
    waits = id_of(scene, group_of(scene, "code", "parked_behind"))
    with pytest.raises(RefusedError) as behind:
        errors(scene, f"/{waits}/dry-run", "POST")
    assert (behind.value.status, behind.value.error["code"]) == (409, "parked_behind")
    assert everything(scene) == before

    # Checks that a commit would make are made, too.
    scene.at_destination("DROP TRIGGER guard ON guarded",
                         "CREATE CONSTRAINT TRIGGER guard AFTER INSERT ON guarded DEFERRABLE INITIALLY DEFERRED "
                         "FOR EACH ROW EXECUTE FUNCTION guard()", "ALTER TABLE guarded ENABLE ALWAYS TRIGGER guard")
    deferred = errors(scene, f"/{trigger}/dry-run", "POST")["error"]
    assert (deferred["sqlstate"], "closed today" in deferred["message"]) == ("P0001", True)
    assert everything(scene) == before

    scene.at_destination("DELETE FROM item WHERE id = 1", "ALTER TABLE word ALTER word TYPE varchar(20)",
                         "DROP TRIGGER guard ON guarded")
    before = everything(scene)
    for error_id in (key, length, trigger):
        assert errors(scene, f"/{error_id}/dry-run", "POST") == {
            "succeeds": True, "error": None, "changes": 1, "edited": 0, "left_out": 0, "settled": 0,
            "failed_change": None,
        }
    assert everything(scene) == before
    assert errors(scene)["execution"] is None
    # It holds nothing any more: the stream goes on with the same rows, and the execution does what was told.
    for error_id in (key, length, trigger):
        assert execute(scene, f"/{error_id}") == {"state": "DONE"}
    scene.at_source("UPDATE item SET n = 11 WHERE id = 1")
    scene.wait_applied()
    assert scene.at_destination("SELECT n FROM item WHERE id = 1") == [(11,)]
    scene.at_destination("DELETE FROM item WHERE id = 2", "ALTER TABLE item DROP CONSTRAINT few")
    assert execute(scene) == {"state": "DONE"}
    wait_for(lambda: errors(scene)["total"] == 0, 60, "the queue is empty")
    scene.assert_same()
