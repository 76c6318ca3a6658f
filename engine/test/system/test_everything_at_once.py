"""One stream with row rules, transformations, conflict handlers and statement handlers, through kills of the engine and
crashes of both databases. The model is the source's server, with the same conditions and expressions."""

import random
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg
import pytest

from harness.crashes import crash_destination, crash_source, kill_engine
from harness.engine import SECONDS
from harness.scene import Scene
from harness.workload import Writers
from test_computed_columns import added
from test_rules import REGIONS, define, rule
from test_transformations import assert_sent, set_steps

SOURCE = """
CREATE TABLE people (id bigint PRIMARY KEY, region text, amount integer NOT NULL, mail text);
ALTER TABLE people REPLICA IDENTITY FULL;
CREATE TABLE payments (number bigint PRIMARY KEY, amount integer NOT NULL);
INSERT INTO people SELECT k, (ARRAY['north', 'south', 'east', NULL])[1 + k % 4], k % 100, 'anna' || k || '@example.org'
  FROM generate_series(1, 3000) k;
"""
DESTINATION = """
SET ROLE thalweg;
CREATE TABLE people (id bigint PRIMARY KEY, total integer NOT NULL, mail text, doubled integer, label text);
CREATE TABLE payments (number bigint PRIMARY KEY, amount integer NOT NULL);
CREATE TABLE sums (id integer PRIMARY KEY, payments bigint NOT NULL, amount bigint NOT NULL);
INSERT INTO sums VALUES (1, 0, 0);
CREATE TABLE transactions (xid bigint PRIMARY KEY);
"""
RULES = {"positive": [rule("north", "region = 'north'", subset=True), rule("small", "amount < 30", subset=True)],
         "negative": [rule("tests", "mail LIKE 'test%'")]}
SUBSET = "(region = 'north' OR amount < 30) AND (mail LIKE 'test%') IS NOT TRUE"
STEPS = [added("doubled", "integer", "amount * 2"),
         added("label", "text", "coalesce(region, 'none') || '/' || (id % 3)::text"),
         {"type": "drop_column", "column": "region"},
         {"type": "rename_column", "column": "amount", "to": "total"},
         {"type": "mask_column", "column": "mail", "with": "partial", "keep_first": 1, "keep_last": 4}]
MODEL = """SELECT id, amount, CASE WHEN char_length(mail) > 5 THEN left(mail, 1) || repeat('*', char_length(mail) - 5)
                                || right(mail, 4) ELSE repeat('*', char_length(mail)) END,
                  amount * 2, coalesce(region, 'none') || '/' || (id % 3)::text FROM people"""
SENT = "SELECT id, total, mail, doubled, label FROM people"
CONFLICTS = [{"kind": "insert_exists", "action": "overwrite"},
             {"kind": "update_missing", "action": "overwrite"},
             {"kind": "delete_missing", "action": "discard"}]
STATEMENTS = [{"when": "after", "schema": "public", "table": "payments", "statement":
               "UPDATE public.sums SET payments = payments + 1, amount = amount + :new.amount WHERE id = 1"},
              {"when": "precommit", "statement": "INSERT INTO public.transactions VALUES (:xid)"}]


class Load:
    """Rows of each writer's own come into the subset and leave it; some transactions are rolled back."""

    def __init__(self, scene: Scene, random_: random.Random) -> None:
        self.has_payments = False  # which come when the copy is over: it executes no statements
        self.writers = Writers(scene.source, scene.database, 3, random_, self.write, goes_on=True)

    def write(self, connection: psycopg.Connection[Any], random_: random.Random, number: int) -> None:
        connection.execute("BEGIN")
        for _ in range(random_.randrange(1, 8)):
            self.change(connection, random_, random_.randrange(200) * 3 + number)
        connection.execute("ROLLBACK" if random_.randrange(10) == 0 else "COMMIT")

    def change(self, connection: psycopg.Connection[Any], random_: random.Random, key: int) -> None:
        amount, region = random_.randrange(100), random_.choice(REGIONS)
        mail = random_.choice((None, "ä", "test it", f"anna{key}@example.org"))
        kind = random_.random()
        if kind < 0.4:
            connection.execute("INSERT INTO people VALUES (%s, %s, %s, %s) ON CONFLICT (id) DO UPDATE SET "
                               "amount = excluded.amount, region = excluded.region", (key, region, amount, mail))
        elif kind < 0.7:
            connection.execute("UPDATE people SET amount = %s, mail = %s WHERE id = %s", (amount, mail, key))
        elif kind < 0.8:
            connection.execute("DELETE FROM people WHERE id = %s", (key,))
        elif self.has_payments:
            connection.execute("INSERT INTO payments VALUES (%s, %s)", (random_.getrandbits(62), amount))


def meddle(scene: Scene, random_: random.Random) -> None:
    """Somebody else's writes: rows that go, and rows in the way of the source's. Apply may win a deadlock with them."""
    for statement in (f"DELETE FROM people WHERE id % 5 = {random_.randrange(5)}",
                      "INSERT INTO people SELECT k, -1, 'theirs', -1, 'theirs' FROM generate_series(1, 600) k "
                      f"WHERE k % 7 = {random_.randrange(7)} ON CONFLICT DO NOTHING"):
        with suppress(psycopg.errors.DeadlockDetected):
            scene.at_destination(statement)


FAULTS: list[Callable[[Scene], None]] = [kill_engine, crash_source, kill_engine, crash_destination, kill_engine]


@pytest.mark.parametrize("kind", ["logical", "wal"])
def test_all_of_them_through_kills(scene: Scene, random_: random.Random, kind: str) -> None:
    scene.run_at_source(SOURCE)
    scene.destination.run_script(scene.database, DESTINATION)
    parameters = {} if kind == "logical" else {"source_plugin": "pgoutput"}
    define(scene, {"people": RULES}, conflict_handlers=CONFLICTS, statement_handlers=STATEMENTS, group_size=50,
           copy_range_rows=1000, **parameters)
    set_steps(scene, STEPS)
    load = Load(scene, random_)
    with load.writers as writers:
        scene.engine.set_stream(scene.stream, capture_kind=kind)
        time.sleep(random_.uniform(0, 0.5))
        kill_engine(scene)
        scene.wait_replicating()
        load.has_payments = True
        for fault in random_.sample(FAULTS, len(FAULTS)):
            meddle(scene, random_)
            writers.wait_for_more(random_.randint(30, 150))
            print(f"fault: {fault.__name__}")
            fault(scene)
        writers.wait_for_more(5)
    # Rows that the others removed or put in the way become the source's with the next change.
    scene.at_source("UPDATE people SET amount = amount")
    scene.wait_applied(2 * SECONDS)
    scene.at_destination("DELETE FROM people WHERE label = 'theirs'")
    assert assert_sent(scene, MODEL, SENT, SUBSET) > 100
    scene.assert_same([("public", "payments")])
    sums = scene.at_source("SELECT count(*), coalesce(sum(amount), 0) FROM payments")
    assert scene.at_destination("SELECT payments, amount FROM sums") == sums, "a statement ran twice, or never"
    conflicts = dict(scene.at_destination("SELECT kind, count(*) FROM thalweg.conflict_log GROUP BY kind"))
    assert conflicts.keys() >= {"insert_exists", "update_missing"}, conflicts
    assert int(str(scene.at_destination("SELECT count(*) FROM transactions")[0][0])) > 50
