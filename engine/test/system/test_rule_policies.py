"""Policies of row rules: a change that a condition cannot be evaluated for counts as the rule's on_error says, is
counted and logged. Each destination is compared with a condition that says the same in SQL."""

import json
import random
import time
from collections import Counter
from typing import Any

import psycopg
import pytest

from harness.cluster import wait_for
from harness.scene import Scene
from harness.workload import Writers
from test_rules import assert_rows, change, check, restart_by_force, rule, start

TABLES = ("dividing", "kept", "moving")
MADE = """
CREATE TABLE dividing (id bigint PRIMARY KEY, n integer NOT NULL, note text);
ALTER TABLE dividing REPLICA IDENTITY FULL;
CREATE TABLE kept (id bigint PRIMARY KEY, region text, note text);
CREATE TABLE moving (id bigint PRIMARY KEY, region text, note text);
CREATE SCHEMA model;
CREATE TABLE model.deleted (LIKE kept);
CREATE FUNCTION model.note() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN INSERT INTO model.deleted SELECT OLD.*; RETURN OLD; END';
CREATE TRIGGER noted AFTER DELETE ON kept FOR EACH ROW EXECUTE FUNCTION model.note();
INSERT INTO dividing SELECT k, (ARRAY[1, 5, 9, 12])[1 + k % 4], 'old' FROM generate_series(1, 500) k;
INSERT INTO kept SELECT k, (ARRAY['north', 'south'])[1 + k % 2], 'old' FROM generate_series(1, 500) k;
INSERT INTO moving SELECT k, (ARRAY['north', 'south'])[1 + k % 2], 'old' FROM generate_series(1, 500) k;
"""
RULES: dict[str, dict[str, Any]] = {
    "dividing": {"positive": [rule("ratio", "100 / n > 10", on_error="as_true")],
                 "negative": [rule("odd", "10 / (n - 7) = 5", on_error="as_false"),
                              rule("bad", "1 / (n - 3) = 99", on_error="as_true")]},
    # Deletes come with the key alone: these are dropped, and those of moving pass.
    "kept": {"positive": [rule("here", "region = 'north'", on_error="as_false")]},
    "moving": {"positive": [rule("moves", "region = 'north'", subset=True, on_error="as_true")]},
}
DIVIDING = "n BETWEEN 0 AND 8 AND n <> 3"
KEPT = "SELECT * FROM kept WHERE region = 'north' UNION ALL SELECT * FROM model.deleted WHERE region = 'north'"


def write(connection: psycopg.Connection[Any], random_: random.Random, number: int) -> None:
    """Each writer has keys of its own. A row of kept has its key for ever; one of moving that went south stays so."""
    def key() -> int:
        return random_.randrange(300) * 10 + number

    statements = (
        ("INSERT INTO dividing VALUES (%(key)s, %(n)s, %(note)s) ON CONFLICT DO NOTHING", 3),
        ("UPDATE dividing SET note = %(note)s WHERE id = %(key)s", 2),
        ("DELETE FROM dividing WHERE id = %(key)s", 2),
        ("INSERT INTO kept SELECT %(key)s, %(region)s, %(note)s WHERE NOT EXISTS (SELECT FROM model.deleted "
         "WHERE id = %(key)s) ON CONFLICT DO NOTHING", 3),
        ("UPDATE kept SET note = %(note)s WHERE id = %(key)s", 2), ("DELETE FROM kept WHERE id = %(key)s", 1),
        ("INSERT INTO moving VALUES (%(key)s, %(region)s, %(note)s) ON CONFLICT DO NOTHING", 3),
        ("UPDATE moving SET note = %(note)s WHERE id = %(key)s AND region = 'north'", 2),
        ("UPDATE moving SET region = 'south' WHERE id = %(key)s AND region = 'north'", 1),
        ("DELETE FROM moving WHERE id = %(key)s AND region = 'north'", 1))
    texts, weights = zip(*statements, strict=True)
    with connection.transaction():
        for text in random_.choices(texts, weights, k=random_.randrange(1, 12)):
            connection.execute(text, {"key": key(), "n": random_.randrange(21), "note": f"note {random_.random()}",
                                      "region": random_.choice(("north", "south"))})


def assert_model(scene: Scene) -> None:
    assert assert_rows(scene, DIVIDING, "dividing") > 100
    wanted = Counter(scene.at_source(KEPT))
    found = Counter(scene.at_destination("SELECT * FROM kept"))
    assert found == wanted, f"missing {list(wanted - found)[:5]}, too many {list(found - wanted)[:5]}"
    assert assert_rows(scene, "region = 'north'", "moving") > 50


def logged(scene: Scene) -> list[dict[str, Any]]:
    lines = scene.engine.log.read_text(errors="replace").splitlines()
    return [json.loads(line) for line in lines if '"rule_policy_decided"' in line]


@pytest.mark.both_ways
@pytest.mark.parametrize("owner", ["stream", "destination"])
def test_policies_decide_under_a_load_and_kills(scene: Scene, random_: random.Random, owner: str) -> None:
    scene.run_at_source(MADE)
    parameters = {"source_plugin": "thalweg" if scene.libraries else "pgoutput"}
    scene.engine.define_stream(scene.stream, scene.source_conninfo, scene.destination_conninfo,
                               [("public", table) for table in TABLES], parameters)
    stream = scene.engine.streams[scene.stream]
    if owner == "stream":
        for table in stream["tables"]:
            table["rules"] = RULES[table["table"]]
    else:
        stream["destinations"][0]["rules"] = [{"schema": "public", "table": table, **RULES[table]} for table in TABLES]
    scene.engine.put_desired()
    scene.wait_replicating()
    sessions = 1
    with Writers(scene.source, scene.database, 3, random_, write) as writers:
        for _ in range(3):
            writers.wait_for_more(50)
            time.sleep(random_.uniform(0, 0.5))
            restart_by_force(scene)
            sessions += 1
        writers.wait_for_more(50)
    scene.wait_replicating()
    scene.wait_applied()
    assert_model(scene)

    def counts() -> dict[str, Counter[str]]:
        found = scene.engine.status(scene.stream)
        told = (found if owner == "stream" else found["destinations"][0])["rule_counts"]
        return {table["table"]: Counter({name: table[name] for name in ("passed", "became_deletes", "by_policy")})
                for table in told["tables"]}

    scene.at_source("INSERT INTO kept VALUES (9000, 'north', 'a'), (9001, 'north', 'b')",
                    "INSERT INTO moving VALUES (9000, 'north', 'a')")
    scene.wait_applied()
    before = counts()
    # Of n: 0 and 7 pass and 3 does not, by policy; 5 and 20 are decided.
    scene.at_source("INSERT INTO dividing SELECT 9000 + n, n, 'new' FROM unnest(ARRAY[0, 7, 3, 5, 20]) n",
                    "DELETE FROM kept WHERE id = 9000", "UPDATE moving SET region = 'south' WHERE id = 9000")
    scene.wait_applied()
    assert_model(scene)
    after = counts()
    assert {table: dict(after[table] - before[table]) for table in TABLES} == {
        "dividing": {"passed": 3, "by_policy": 3}, "kept": {"by_policy": 1},
        "moving": {"became_deletes": 1, "by_policy": 1}}
    metric = (f'thalweg_rule_policy_changes_total{{stream="{scene.stream}",destination='
              f'"{"" if owner == "stream" else stream["destinations"][0]["id"]}",schema="public",table="dividing"}} '
              f'{after["dividing"]["by_policy"]}')
    assert metric in str(scene.engine.request("GET", "/metrics")).splitlines()

    lines = logged(scene)
    assert {(line["rule"], line["counted_as"]) for line in lines} == {
        ("ratio", "true"), ("odd", "not true"), ("bad", "true"), ("here", "not true"), ("moves", "true")}
    assert {line["because"] for line in lines if line["table"] == '"public"."dividing"'} == {"division by zero"}
    assert len(lines) <= 5 * (sessions + 2), "of each rule one a minute and session"


def test_a_policy_alone_changes_like_a_rule(scene: Scene) -> None:
    """At one position: the change that waits is judged by the changed rule."""
    scene.run_at_source("CREATE TABLE orders (id bigint PRIMARY KEY, region text);"
                        "INSERT INTO orders SELECT k, 'north' FROM generate_series(1, 9) k;")

    def rules(policy: str) -> dict[str, Any]:
        return {"orders": {"positive": [rule("north", "region = 'north'", on_error=policy)]}}

    start(scene, rules("stop"))
    scene.at_source("DELETE FROM orders WHERE id = 1")
    error = scene.engine.wait_aborted(scene.stream)
    assert error["code"] == "rule_undecidable" and "on_error" in error["message"]
    change(scene, rules("as_true"))
    scene.wait_replicating()
    scene.wait_applied()
    assert_rows(scene, "true")
    assert scene.engine.status(scene.stream)["rule_counts"]["tables"][0]["by_policy"] == 1

    change(scene, rules("as_false"))
    scene.engine.wait_in_effect(scene.stream)
    scene.at_source("DELETE FROM orders WHERE id = 2")
    scene.wait_applied()
    assert scene.at_destination("SELECT id FROM orders ORDER BY id") == [(k,) for k in range(2, 10)]
    change(scene, rules("stop"))
    scene.engine.wait_in_effect(scene.stream)
    scene.at_source("DELETE FROM orders WHERE id = 3")
    assert scene.engine.wait_aborted(scene.stream)["code"] == "rule_undecidable"


def test_no_policy_makes_up_values(scene: Scene) -> None:
    """An update that would become an INSERT needs its whole row."""
    scene.run_at_source("""
        CREATE TABLE orders (id bigint PRIMARY KEY, region text, note text);
        ALTER TABLE orders ALTER note SET STORAGE EXTERNAL;
        INSERT INTO orders VALUES (1, 'south', repeat('long', 2000)), (2, 'north', repeat('long', 2000));""")

    def rules(policy: str) -> dict[str, Any]:
        return {"orders": {"positive": [rule("north", "region = 'north'", subset=True, on_error=policy)]}}

    (foreseen,) = check(scene, rules("as_false")["orders"])
    assert (foreseen["rule"], foreseen["code"], foreseen["certain"]) == ("north", "rule_undecidable", False)
    start(scene, rules("as_false"))
    assert scene.at_destination("SELECT id FROM orders") == [(2,)]
    scene.at_source("UPDATE orders SET region = 'north' WHERE id = 1")
    error = scene.engine.wait_aborted(scene.stream)
    assert error["code"] == "rule_undecidable" and "into the subset" in error["message"]
    # By this policy the row was inside, and it is there.
    scene.at_destination("INSERT INTO orders SELECT 1, 'south', repeat('long', 2000)")
    change(scene, rules("as_true"))
    scene.wait_replicating()
    scene.wait_applied()
    assert_rows(scene, "region = 'north'")
    scene.at_source("UPDATE orders SET region = 'south' WHERE id = 2")
    scene.wait_applied()
    assert assert_rows(scene, "region = 'north'") == 1


def test_the_copy_knows_no_policy(scene: Scene) -> None:
    scene.run_at_source("CREATE TABLE orders (id bigint PRIMARY KEY, n integer);"
                        "INSERT INTO orders VALUES (1, 0), (2, 5), (3, 20);")
    rules = {"positive": [rule("ratio", "100 / n > 10", on_error="as_true")]}
    answer = scene.engine.request("POST", "/v1/rules/test", {
        "source": {"conninfo": scene.source_conninfo}, "source_name": "source", "sample": 3,
        "tables": [{"schema": "public", "table": "orders", "rules": rules}], "changes": []})
    assert [(tried["rules"][0]["outcome"], tried["verdict"], tried["error"]) for tried in answer["changes"]] == [
        ("FAILED", "PASSED", None), ("TRUE", "PASSED", None), ("FALSE", "DROPPED", None)]
    scene.engine.define_stream(scene.stream, scene.source_conninfo, scene.destination_conninfo,
                               [("public", "orders")], {})
    scene.engine.streams[scene.stream]["tables"][0]["rules"] = rules
    scene.engine.put_desired()
    error = scene.engine.wait_aborted(scene.stream)
    assert (error["code"], error["sqlstate"]) == ("rule_failed", "22012")
    scene.at_source("UPDATE orders SET n = 4 WHERE id = 1")
    scene.engine.retry(scene.stream)
    scene.wait_replicating()
    scene.at_source("INSERT INTO orders VALUES (4, 0)")
    scene.wait_applied()
    wait_for(lambda: scene.at_destination("SELECT id FROM orders ORDER BY id") == [(1,), (2,), (4,)], 30,
             "the change passes by policy")
