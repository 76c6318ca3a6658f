"""Rules that are tried on the next changes of a stream: what is shown is what was committed, as the source sent it."""

import json
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from harness.engine import RefusedError
from harness.scene import Scene
from harness.workload import Writers
from test_rules import define, rule
from test_transformations import set_steps

# Each change of an order gets a stamp, and the ledger has every committed one, in the order of its transaction.
ORDERS = """
CREATE TABLE orders (id bigint PRIMARY KEY, stamp bigint NOT NULL, region text, note text);
ALTER TABLE orders REPLICA IDENTITY FULL;
CREATE TABLE ledger (number bigint PRIMARY KEY, xid xid8, operation text, old jsonb, new jsonb);
CREATE SEQUENCE stamps;
CREATE SEQUENCE numbers;
CREATE FUNCTION note_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO ledger VALUES (nextval('numbers'), pg_current_xact_id(), TG_OP,
                             CASE WHEN TG_OP <> 'INSERT' THEN to_jsonb(OLD) END,
                             CASE WHEN TG_OP <> 'DELETE' THEN to_jsonb(NEW) END);
  RETURN NULL;
END $$;
CREATE TRIGGER noted AFTER INSERT OR UPDATE OR DELETE ON orders FOR EACH ROW EXECUTE FUNCTION note_change();
"""
NORTH = {"positive": [{"name": "north", "condition": "region = 'north'", "subset": True}],
         "negative": [{"name": "no_deletes", "operations": ["DELETE"], "condition": "old.id % 2 = 0"}]}
# The engine evaluates it: what the source drops, it does not send, and nobody is shown.
NOTHING = {"positive": [{"name": "nowhere", "condition": "region LIKE '%nowhere'"}]}
SHOWN_BYTES_MAX = 200


@pytest.fixture
def streaming_scene(scene: Scene) -> Iterator[Scene]:
    """The source streams every transaction above 64 kB."""
    scene.source.sql("postgres", "ALTER ROLE thalweg SET logical_decoding_work_mem = '64kB'")
    yield scene
    scene.source.sql("postgres", "ALTER ROLE thalweg RESET logical_decoding_work_mem")


def ask(scene: Scene, rules: dict[str, Any], table: str = "orders", limit: int = 100, wait_ms: int = 5000,
        stream: str | None = None) -> dict[str, Any]:
    return dict(scene.engine.request("POST", "/v1/rules/test", {
        "source": {"conninfo": scene.source_conninfo}, "source_name": "source", "sample": 0,
        "tables": [{"schema": "public", "table": table, "rules": rules}],
        "recent": {"stream": stream or scene.stream, "limit": limit, "wait_ms": wait_ms}}))


def asking(scene: Scene, *arguments: Any, **named: Any) -> "Future[dict[str, Any]]":
    """While it waits, the caller can change rows."""
    pool = ThreadPoolExecutor(1)
    try:
        return pool.submit(ask, scene, *arguments, **named)
    finally:
        pool.shutdown(wait=False)


def write(connection: psycopg.Connection[Any], random_: random.Random, number: int) -> None:
    """Small and large transactions with values that are stored apart; some are rolled back, some in part."""
    def change() -> None:
        key = random_.randrange(300) * 10 + number
        kind = random_.randrange(4)
        region = random_.choice(("north", "south", None))
        if kind == 0:
            note = random_.choice((None, "a", random_.randbytes(3000).hex()))
            connection.execute("INSERT INTO orders VALUES (%s, nextval('stamps'), %s, %s) ON CONFLICT DO NOTHING",
                               (key, region, note))
        elif kind < 3:
            connection.execute("UPDATE orders SET stamp = nextval('stamps'), region = %s WHERE id = %s", (region, key))
        else:
            connection.execute("DELETE FROM orders WHERE id = %s", (key,))

    connection.execute("BEGIN")
    for _ in range(random_.choice((1, 3, 150))):
        change()
    if random_.random() < 0.4:
        connection.execute("SAVEPOINT part")
        for _ in range(30):
            change()
        connection.execute(random_.choice(("RELEASE part", "ROLLBACK TO part")))
        change()
    connection.execute("ROLLBACK" if random_.random() < 0.25 else "COMMIT")


def shown(value: Any) -> str | None:
    """As the answer has it."""
    text = None if value is None else str(value)
    return text if text is None or len(text) <= SHOWN_BYTES_MAX else text[:SHOWN_BYTES_MAX] + "…"


def verdict_of(old: dict[str, Any] | None, new: dict[str, Any] | None) -> str:
    if new is None and old is not None and old["id"] % 2 == 0:
        return "DROPPED"
    before, after = (row is not None and row["region"] == "north" for row in (old, new))
    if old is None or new is None:
        return "PASSED" if before or after else "DROPPED"
    if before and after:
        return "PASSED"
    return "BECOMES INSERT" if after else "BECOMES DELETE" if before else "DROPPED"


@pytest.mark.both_ways
def test_what_is_shown_was_committed(streaming_scene: Scene, random_: random.Random) -> None:
    """Under load, with rollbacks and streamed transactions, of a stream that drops all of it."""
    scene = streaming_scene
    scene.run_at_source(ORDERS)
    define(scene, {"orders": NOTHING})
    scene.engine.put_desired()
    scene.wait_replicating()
    answers = []
    with Writers(scene.source, scene.database, 4, random_, write):
        time.sleep(1)
        threads = [threading.Thread(target=lambda limit=limit: answers.extend(
            ask(scene, NORTH, limit=limit) for _ in range(8))) for limit in (100, 40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert scene.at_destination("SELECT count(*) FROM orders") == [(0,)]
    ledger = {}
    for number, xid, operation, old, new in scene.at_source(
            "SELECT number, xid::text, operation, old, new FROM ledger ORDER BY number"):
        stamps = tuple(row and row["stamp"] for row in (old, new))
        ledger[(operation, *stamps)] = (number, xid, old, new)
    assert [len(answer["changes"]) for answer in answers if answer["recent_end"] == "LIMIT"].count(100) >= 4
    verdicts, kept = set(), 0
    for answer in answers:
        found = []
        for change in answer["changes"]:
            rows = [change["old"], change["new"]]
            stamps = tuple(row and int(row["stamp"]) for row in rows)
            number, xid, *wanted = ledger[(change["operation"], *stamps)]
            found.append((number, xid))
            for row, of_ledger, not_sent in zip(rows, wanted, (change["old_not_sent"], change["new_not_sent"]),
                                                strict=True):
                if of_ledger is None:
                    assert row is None
                    continue
                assert row == {name: shown(value) for name, value in of_ledger.items() if name not in not_sent}
                assert set(not_sent) <= {"note"}
                kept += len(not_sent)
            assert change["verdict"] == verdict_of(*wanted), change
            assert (change["origin"], change["hidden"], change["error"]) == ("STREAM", [], None)
            verdicts.add(change["verdict"])
        # Transaction by transaction, each in its order.
        xids = list(dict.fromkeys(xid for _, xid in found))
        assert [xid for at, (_, xid) in enumerate(found) if at == 0 or found[at - 1][1] != xid] == xids
        for xid in xids:
            numbers = [number for number, its in found if its == xid]
            assert numbers == sorted(numbers)
    assert verdicts == {"PASSED", "DROPPED", "BECOMES INSERT", "BECOMES DELETE"} and kept > 0


def test_what_does_not_come_and_what_is_masked_is_said(scene: Scene) -> None:
    values = "12.50, '2026-11-29', '{a,\"b c\"}', '{\"a\": 1}', true, '\\x00ff', '2026-11-29 10:00:00.5+00'"
    mood = "CREATE TYPE mood AS ENUM ('sad', 'glad')"
    scene.run_at_source(f"""
        {mood};
        CREATE TABLE people (id bigint PRIMARY KEY, price numeric(9, 2), born date, tags text[], extra jsonb, good bool,
                             raw bytea, at timestamptz, mood mood, card text, secret text, note text);
        ALTER TABLE people ALTER note SET STORAGE EXTERNAL;
        INSERT INTO people VALUES (1, {values}, 'glad', 'CARD-1', 'SECRET-1', repeat('n', 5000));""")
    scene.at_destination(
        "SET ROLE thalweg", mood,
        "CREATE TABLE people (id bigint PRIMARY KEY, price numeric(9, 2), born date, tags text[], extra jsonb, "
        "good bool, raw bytea, at timestamptz, mood mood, number text, note text)")
    define(scene, {})
    set_steps(scene, [{"type": "rename_column", "column": "card", "to": "number"},
                      {"type": "mask_column", "column": "number", "with": "null"},
                      {"type": "drop_column", "column": "secret"}])
    scene.engine.put_desired()
    scene.wait_replicating()
    rules = {"positive": [rule("cards", "card LIKE 'CARD-%' AND mood = 'glad'"), rule("old_price", "old.price > 1",
                                                                                      operations=["UPDATE"])]}
    answer = asking(scene, rules, "people", limit=4)
    time.sleep(1)
    scene.at_source("UPDATE people SET good = false", "UPDATE people SET id = 2, note = 'short'",
                    f"INSERT INTO people VALUES (3, {values}, 'sad', 'CARD-3', 'SECRET-3', NULL)",
                    "DELETE FROM people WHERE id = 2")
    told = answer.result()
    assert told["recent_end"] == "LIMIT"
    assert "CARD" not in json.dumps(told["changes"]) and "SECRET" not in json.dumps(told["changes"])
    update, moved, insert, delete = told["changes"]
    columns = ["id", "price", "born", "tags", "extra", "good", "raw", "at", "mood", "card", "secret", "note"]
    assert all(change["hidden"] == ["card", "secret"] for change in told["changes"])
    wanted = {"id": "1", "price": "12.50", "born": "2026-11-29", "tags": '{a,"b c"}', "extra": '{"a": 1}', "good": "f",
              "raw": "\\x00ff", "mood": "glad"}
    assert update["new"].pop("at").startswith("2026-11-29 ") and update["new"] == wanted
    assert (update["old"], update["old_not_sent"], update["new_not_sent"]) == (None, columns, ["note"])
    assert [outcome["outcome"] for outcome in update["rules"]] == ["TRUE", "UNDECIDABLE"]
    assert moved["old"] == {"id": "1"} and moved["old_not_sent"] == columns[1:]
    assert (moved["new"]["note"], moved["new_not_sent"]) == ("short", [])
    assert (insert["new"]["note"], insert["new"]["mood"], insert["old_not_sent"]) == (None, "sad", [])
    assert (insert["verdict"], insert["rules"][0]["outcome"]) == ("DROPPED", "FALSE")
    assert (delete["old"], delete["new"], delete["new_not_sent"]) == ({"id": "2"}, None, [])
    assert (delete["verdict"], delete["error"]["code"]) == ("STOPS THE STREAM", "rule_undecidable")


def test_each_change_is_judged_with_its_version_of_the_table(scene: Scene) -> None:
    scene.run_at_source("CREATE TABLE orders (id bigint PRIMARY KEY, a text);")
    define(scene, {})
    scene.engine.put_desired()
    scene.wait_replicating()
    scene.at_destination("ALTER TABLE orders ADD b integer, ADD c integer")
    rules = {"positive": [rule("small", "id < 2")]}
    answer = asking(scene, rules, limit=3)
    time.sleep(1)
    scene.at_source("INSERT INTO orders VALUES (1, 'x')", "ALTER TABLE orders DROP COLUMN a",
                    "ALTER TABLE orders ADD b integer", "INSERT INTO orders VALUES (2, 7)")
    changes = answer.result()["changes"]
    assert [(change["new"], change["verdict"]) for change in changes] == [
        ({"id": "1", "a": "x"}, "PASSED"), ({"id": "2", "b": "7"}, "DROPPED")]
    answer = asking(scene, {"positive": [rule("seven", "b = 7")]}, limit=1)
    time.sleep(1)
    scene.at_source("ALTER TABLE orders RENAME b TO c", "INSERT INTO orders VALUES (3, 7)")
    with pytest.raises(RefusedError) as refused:
        answer.result()
    assert refused.value.error["code"] == "rule_refused" and '"seven"' in refused.value.error["message"]


def test_nobody_waits_in_vain(scene: Scene) -> None:
    """Clear answers where no change can come, or none comes; and the stream does not notice."""
    scene.run_at_source("CREATE TABLE orders (id bigint PRIMARY KEY); CREATE TABLE other (id bigint PRIMARY KEY);")
    define(scene, {})
    streams = scene.engine.streams[scene.stream]
    streams["tables"] = [table for table in streams["tables"] if table["table"] == "orders"]
    scene.engine.put_desired()
    scene.wait_replicating()
    rules = {"positive": [rule("all", "id > 0")]}
    began = time.monotonic()
    told = ask(scene, rules, wait_ms=1000)
    assert (told["changes"], told["recent_end"]) == ([], "TIME") and 1 <= time.monotonic() - began < 4
    refused = ask(scene, {"positive": [rule("typo", "idd > 0")]})
    assert (refused["changes"], refused["recent_end"], len(refused["problems"])) == ([], None, 1)

    def code(**named: Any) -> str:
        with pytest.raises(RefusedError) as error:
            ask(scene, rules, **named)
        return str(error.value.error["code"])

    assert code(table="other") == "changes_not_captured"
    assert code(stream="nobodyknows1") == "unknown_stream"
    waiting = [asking(scene, rules) for _ in range(2)]
    time.sleep(1)
    assert code() == "database_busy"
    scene.at_source("INSERT INTO orders SELECT generate_series(1, 100)")
    assert [len(answer.result()["changes"]) for answer in waiting] == [100, 100]
    waiting = [asking(scene, rules)]
    time.sleep(1)
    assert scene.engine.terminate() == 0
    with pytest.raises((OSError, RefusedError)):
        waiting[0].result()
    scene.engine.start()
    streams["status"] = "DISABLED"
    scene.engine.put_desired()
    scene.engine.wait_status(scene.stream, lambda status: status["status"] == "DISABLED", 30, "stopped")
    assert code() == "changes_not_captured"
