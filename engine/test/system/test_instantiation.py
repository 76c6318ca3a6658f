"""The initial copy: under concurrent writes, killed midway, resumed, handed over without gap or double."""

import random
import time
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from psycopg import errors

from harness.cluster import wait_for
from harness.engine import SECONDS
from harness.scene import Scene
from harness.workload import Writers

ROWS = 120_000

TABLES = f"""
CREATE TABLE account (id bigint PRIMARY KEY, owner text NOT NULL, balance numeric(14,2) NOT NULL, note text);
CREATE TABLE ledger (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, account bigint NOT NULL REFERENCES account
  ON UPDATE CASCADE ON DELETE CASCADE, amount integer NOT NULL);
CREATE INDEX ledger_account ON ledger (account);
CREATE TABLE journal (entry integer NOT NULL, body text);
ALTER TABLE journal REPLICA IDENTITY FULL;
INSERT INTO account SELECT n * 7, 'owner ' || n, n, repeat('x', n % 50) FROM generate_series(1, {ROWS}) n;
INSERT INTO ledger (account, amount) SELECT 7 * (1 + n % {ROWS}), n FROM generate_series(1, 40000) n;
INSERT INTO journal SELECT n % 100, 'the same line' FROM generate_series(1, 3000) n;
"""
LOST_RACES = (errors.UniqueViolation, errors.DeadlockDetected, errors.ForeignKeyViolation)


def write(connection: psycopg.Connection[Any], random_: random.Random, writer: int) -> None:
    account = 7 * random_.randrange(1, ROWS)
    # Two writers may meet at one key; the one that loses has written nothing.
    with suppress(*LOST_RACES), connection.transaction():
        connection.execute("UPDATE account SET balance = balance + 1, note = %s WHERE id = %s",
                           (str(random_.random()), account))
        kind = random_.randrange(6)
        if kind == 0:
            connection.execute("DELETE FROM account WHERE id = %s", (account + 7,))
        elif kind == 1:
            connection.execute("INSERT INTO account VALUES (%s, 'late', 0, NULL) ON CONFLICT DO NOTHING",
                               (random_.randrange(1, 7 * ROWS) * 4 + writer,))
        elif kind == 2:  # a key that moves may be copied twice, once, or never
            connection.execute("UPDATE account SET id = -id WHERE id = %s", (random_.randrange(1, ROWS) * 7,))
        elif kind == 3:
            connection.execute("INSERT INTO journal VALUES (%s, 'the same line')", (random_.randrange(100),))
        elif kind == 4:
            connection.execute("DELETE FROM journal WHERE ctid IN (SELECT ctid FROM journal WHERE entry = %s LIMIT 1 "
                               "FOR UPDATE SKIP LOCKED)", (random_.randrange(100),))
        else:
            connection.execute("INSERT INTO ledger (account, amount) SELECT id, 1 FROM account WHERE id = %s",
                               (account,))


def progress(scene: Scene) -> tuple[int, int, str]:
    status = scene.engine.status(scene.stream)
    tables = (status["destinations"][0]["instantiation"] or {"tables": []})["tables"]
    return (sum(table["ranges_copied"] for table in tables), sum(table["ranges_total"] for table in tables),
            str(status["phase"]))


@pytest.mark.parametrize("kills", [0, 2])
def test_copy_under_writes(scene: Scene, random_: random.Random, kills: int) -> None:
    scene.run_at_source(TABLES)
    caught_midway = 0
    with Writers(scene.source, scene.database, 2, random_, write):
        scene.start_stream(wait=False, copy_range_rows=4000, copy_workers=2)
        for kill in range(kills):
            end = time.monotonic() + 30
            done, total, phase = progress(scene)
            while phase in ("INITIALIZING", "INSTANTIATING") and done < 4 + 8 * kill and time.monotonic() < end:
                time.sleep(0.01)
                done, total, phase = progress(scene)
            caught_midway += phase == "INSTANTIATING" and done < total
            scene.engine.kill()
            scene.engine.start()
        scene.wait_replicating()
        time.sleep(1)
    assert caught_midway or not kills, "no kill met the copy at work"
    scene.wait_applied()
    scene.assert_same()


# Each statement about an index or a constraint takes its time, so that a kill meets some of them done.
SLOW_INDEXES = """
CREATE FUNCTION slow() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.2); END $$;
CREATE EVENT TRIGGER slow ON ddl_command_start WHEN TAG IN ('CREATE INDEX', 'ALTER TABLE') EXECUTE FUNCTION slow();
"""
MORE_INDEXES = """
CREATE INDEX account_owner ON account (owner); CREATE INDEX account_balance ON account (balance) WHERE balance > 5;
CREATE UNIQUE INDEX account_twice ON account ((id * 2)); CREATE INDEX account_note ON account (note);
"""
INDEXES = "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1"
CONSTRAINTS = """SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid), convalidated FROM pg_constraint
  WHERE connamespace = 'public'::regnamespace AND conrelid <> 0 ORDER BY 1, 2"""


def built(scene: Scene) -> tuple[int, bool]:
    status = scene.engine.status(scene.stream)
    tables = (status["destinations"][0]["instantiation"] or {"tables": []})["tables"]
    return sum(table["indexes_built"] for table in tables), any(table["state"] == "INDEXING" for table in tables)


def test_killed_while_indexes_are_built(scene: Scene, random_: random.Random) -> None:
    scene.run_at_source(TABLES + MORE_INDEXES)
    scene.destination.run_script(scene.database, SLOW_INDEXES)
    with Writers(scene.source, scene.database, 2, random_, write):
        scene.start_stream(wait=False, copy_range_rows=20000, copy_workers=2)
        for before_kill in (1, 3, 5):
            def so_many(wanted: int = before_kill) -> bool:
                count, indexing = built(scene)
                return indexing and count >= wanted
            wait_for(so_many, SECONDS, f"{before_kill} indexes are built")
            scene.engine.kill()
            scene.engine.start()
        scene.wait_replicating()
    scene.wait_applied()
    scene.assert_same()
    for query in (INDEXES, CONSTRAINTS):
        assert scene.at_destination(query) == scene.at_source(query)
    assert scene.engine.destination(scene.stream)["instantiation"]["warnings"] == []


def test_what_a_killed_engine_left_at_work_ends(scene: Scene) -> None:
    scene.run_at_source("CREATE TABLE item (id integer PRIMARY KEY, code text);"
                        "CREATE UNIQUE INDEX item_code ON item (code); INSERT INTO item VALUES (1, 'a');")
    scene.destination.run_script(scene.database, SLOW_INDEXES.replace("0.2", "4"))
    scene.start_stream(wait=False)
    at_work = ("SELECT count(*) FROM pg_stat_activity WHERE state = 'active' "
               "AND application_name LIKE 'thalweg copy %' AND query LIKE '%INDEX%'")
    wait_for(lambda: scene.at_destination(at_work) == [(1,)], SECONDS, "an index is being built")
    scene.engine.kill()
    scene.destination.run_script(scene.database, "DROP EVENT TRIGGER slow")
    scene.engine.start()
    scene.wait_replicating()
    assert scene.at_destination(INDEXES) == scene.at_source(INDEXES)
    assert scene.engine.destination(scene.stream)["instantiation"]["warnings"] == []


def test_missing_destination_tables_are_created_as_at_the_source(scene: Scene) -> None:
    scene.run_at_source("""
        CREATE SCHEMA "Lager";
        CREATE TYPE "Lager".grade AS ENUM ('low', 'mid', 'high');
        CREATE TABLE "Lager"."Artikel" (
          nr integer GENERATED BY DEFAULT AS IDENTITY (START WITH 100) PRIMARY KEY,
          name varchar(40) NOT NULL DEFAULT 'unnamed' UNIQUE, grade "Lager".grade DEFAULT 'mid',
          price numeric(8,2) CHECK (price >= 0), gross numeric GENERATED ALWAYS AS (price * 1.19) STORED);
        CREATE INDEX artikel_lower ON "Lager"."Artikel" (lower(name)) WHERE price > 1;
        INSERT INTO "Lager"."Artikel" (name, price) VALUES ('Öl', 3.5), ('Äpfel', 1);
    """)
    scene.start_stream()
    scene.run_at_source("""INSERT INTO "Lager"."Artikel" (name, price) VALUES ('später', 7);""")
    scene.wait_applied()
    scene.assert_same()
    described = """
        SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity, a.attgenerated,
               pg_get_expr(d.adbin, d.adrelid) FROM pg_attribute a
          LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
         WHERE a.attrelid = '"Lager"."Artikel"'::regclass AND a.attnum > 0 ORDER BY a.attnum"""
    indexes = "SELECT indexdef FROM pg_indexes WHERE schemaname = 'Lager' ORDER BY 1"
    checks = ("SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = '\"Lager\".\"Artikel\"'::regclass "
              "ORDER BY 1")
    for query in (described, indexes, checks):
        assert scene.at_destination(query) == scene.at_source(query)


def test_without_initial_copy_only_changes_come(scene: Scene) -> None:
    table = "CREATE TABLE item (id integer PRIMARY KEY, body text);"
    scene.run_at_source(table + "INSERT INTO item VALUES (1, 'old');")
    scene.destination.run_script(scene.database, "SET ROLE thalweg;" + table)
    scene.start_stream(initial_copy=False)
    scene.at_source("INSERT INTO item VALUES (2, 'new')")
    scene.wait_applied()
    assert scene.at_destination("SELECT * FROM item ORDER BY id") == [(2, "new")]
