"""Statements of users, executed for changes and transactions: exactly once and in order, through kills of the engine
under load. The source notes by triggers what it has done; the destination's notes come from handlers alone. Statements
in the place of changes that fail are compared with a model."""

import random
import time
from collections import Counter
from typing import Any

import psycopg
import pytest

from harness.scene import Scene
from harness.workload import Writers

TABLES = """
    CREATE TABLE orders (id integer PRIMARY KEY, amount bigint, note text NOT NULL);
    ALTER TABLE orders ALTER note SET STORAGE EXTERNAL, REPLICA IDENTITY FULL;
    CREATE TABLE plain (id integer PRIMARY KEY, amount bigint);
    CREATE SCHEMA audit;
    CREATE TABLE audit.orders (number bigserial, operation text, id integer, was bigint, amount bigint, note text,
                               xid bigint);
    CREATE TABLE audit.transactions (number bigserial, xid bigint PRIMARY KEY);
    CREATE TABLE audit.total (one integer PRIMARY KEY, amount bigint NOT NULL);
    INSERT INTO audit.total VALUES (1, 0);
    CREATE FUNCTION audit.note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO audit.orders (operation, id, was, amount, note, xid) VALUES (TG_OP, coalesce(new.id, old.id),
            old.amount, new.amount, md5(coalesce(new.note, old.note)), txid_current() % (2 ^ 32)::bigint);
        UPDATE audit.total SET amount = total.amount + coalesce(new.amount, 0) - coalesce(old.amount, 0);
        RETURN NULL;
    END $$;
    CREATE FUNCTION audit.end() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO audit.transactions (xid) VALUES (txid_current() % (2 ^ 32)::bigint) ON CONFLICT DO NOTHING;
        RETURN NULL;
    END $$;
"""
TRIGGERS = """
    CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON orders FOR EACH ROW EXECUTE FUNCTION audit.note();
    CREATE TRIGGER ends AFTER INSERT OR UPDATE OR DELETE ON orders FOR EACH STATEMENT EXECUTE FUNCTION audit.end();
    CREATE TRIGGER ends AFTER INSERT OR UPDATE OR DELETE ON plain FOR EACH STATEMENT EXECUTE FUNCTION audit.end();
"""
OF_ORDERS = {"schema": "public", "table": "orders"}
AUDIT = {"when": "after", **OF_ORDERS, "statement": """
    INSERT INTO audit.orders (operation, id, was, amount, note, xid) VALUES (:operation, coalesce(:new.id, :old.id),
        :old.amount, :new.amount, md5(coalesce(:new.note, :old.note)), :xid)"""}
TOTAL = {"when": "after", **OF_ORDERS, "statement":
         "UPDATE audit.total SET amount = amount + coalesce(:new.amount, 0) - coalesce(:old.amount, 0) WHERE one = 1"}
COUNT = {"when": "precommit", "statement": "INSERT INTO audit.transactions (xid) VALUES (:xid)"}
NOTES = "SELECT operation, id, was, amount, note, xid FROM audit.orders ORDER BY number"
NAMES: list[Any] = [("public", "orders"), ("public", "plain")]


class Load:
    """Transactions of one writer, one after the other, so that their order is known."""

    def __init__(self, scene: Scene, random_: random.Random) -> None:
        self.random = random_
        self.present: set[int] = set()
        self.writers = Writers(scene.source, scene.database, 1, random_, self.work)

    def work(self, connection: psycopg.Connection[Any], _: random.Random, __: int) -> None:
        with connection.transaction():
            for statement in self.transaction():
                connection.execute(statement)

    def transaction(self) -> list[str]:
        statements = [self.change(key) for key in self.random.sample(range(200), self.random.choice([0, 1, 2, 8]))]
        if not statements or self.random.random() < 0.5:
            amount = self.random.randrange(100)
            statements.append(f"INSERT INTO plain VALUES ({self.random.randrange(50)}, {amount}) "
                              f"ON CONFLICT (id) DO UPDATE SET amount = {amount}")
        return statements

    def change(self, key: int) -> str:
        amount = self.random.choice(["NULL", str(self.random.randrange(1000))])
        if key not in self.present:
            self.present.add(key)
            size = self.random.choice([1, 3000])
            return f"INSERT INTO orders VALUES ({key}, {amount}, repeat('{self.random.choice('abc')}', {size}))"
        if self.random.random() < 0.3:
            self.present.remove(key)
            return f"DELETE FROM orders WHERE id = {key}"
        return f"UPDATE orders SET amount = {amount} WHERE id = {key}"


def make_both_sides(scene: Scene) -> None:
    scene.run_at_source(TABLES + TRIGGERS)
    scene.destination.run_script(scene.database, "SET ROLE thalweg;\n" + TABLES)


@pytest.mark.parametrize("group_size", [1, 20_000])
def test_notes_of_changes_and_transactions_are_the_sources_through_kills(scene: Scene, random_: random.Random,
                                                                         group_size: int) -> None:
    make_both_sides(scene)
    scene.start_stream(NAMES, statement_handlers=[AUDIT, TOTAL, COUNT], group_size=group_size)
    with Load(scene, random_).writers:
        for _ in range(5):
            time.sleep(random_.uniform(0.3, 0.8))
            scene.engine.kill()
            time.sleep(random_.uniform(0, 0.3))
            scene.engine.start()
        time.sleep(0.5)
    scene.wait_applied()
    scene.assert_same(NAMES)
    notes = scene.at_destination(NOTES)
    assert notes == scene.at_source(NOTES)
    transactions = "SELECT xid FROM audit.transactions ORDER BY number"
    assert scene.at_destination(transactions) == scene.at_source(transactions)
    total = "SELECT amount FROM audit.total"
    assert scene.at_destination(total) == scene.at_source(total)
    assert len(notes) > 200, "the load has changes of which this test tells something"


def test_a_table_that_only_handlers_write(scene: Scene, random_: random.Random) -> None:
    make_both_sides(scene)
    upsert = {"when": "instead", **OF_ORDERS, "operations": ["INSERT", "UPDATE"], "statement": """
        INSERT INTO public.orders VALUES (:new.id, -:new.amount, :new.note)
        ON CONFLICT (id) DO UPDATE SET amount = excluded.amount"""}
    scene.start_stream(NAMES, statement_handlers=[upsert])
    with Load(scene, random_).writers:
        time.sleep(1)
        scene.engine.kill()
        scene.engine.start()
        time.sleep(1)
    scene.wait_applied()
    read = "SELECT id, {}amount, md5(note) FROM orders ORDER BY id"
    assert scene.at_destination(read.format("-")) == scene.at_source(read.format(""))


def test_a_statement_that_fails_stops_the_stream_until_it_is_mended(scene: Scene) -> None:
    make_both_sides(scene)
    scene.at_destination("ALTER TABLE audit.orders ADD CONSTRAINT few CHECK (amount < 100)")
    scene.start_stream(NAMES, statement_handlers=[AUDIT])
    scene.at_source("INSERT INTO orders VALUES (1, 10, 'a')")
    scene.wait_applied()
    scene.at_source("INSERT INTO orders VALUES (2, 200, 'b')")
    error = scene.engine.wait_aborted(scene.stream)
    assert (error["code"], error["sqlstate"]) == ("apply_failed", "23514")
    assert 'INSERT into "public"."orders" ("id" = 2)' in error["message"] and "statement handler 1:" in error["message"]
    assert scene.at_destination("SELECT id FROM orders") == [(1,)]
    scene.at_destination("ALTER TABLE audit.orders DROP CONSTRAINT few")
    scene.engine.retry(scene.stream)
    scene.wait_applied()
    assert scene.at_destination(NOTES) == scene.at_source(NOTES)


STOCK = "CREATE TABLE stock (id integer PRIMARY KEY, amount bigint NOT NULL, note text NOT NULL);"
REFUSED = """
    CREATE SCHEMA audit;
    CREATE TABLE audit.refused (operation text, id integer, amount bigint, sqlstate text, constraint_name text,
                                kind text);
"""
LIMIT = 900
OF_STOCK = {"when": "error", "schema": "public", "table": "stock"}
NOTE_REFUSED = ("INSERT INTO audit.refused VALUES (:operation, coalesce(:new.id, :old.id), :new.amount, :sqlstate, "
                ":constraint, :kind)")
ERROR_HANDLERS = [
    {**OF_STOCK, "operations": ["INSERT"], "errors": ["23505"], "statement":
     f"UPDATE public.stock SET amount = least(amount + :new.amount, {LIMIT - 1}), note = :kind WHERE id = :new.id"},
    {**OF_STOCK, "errors": ["23514"], "statement": NOTE_REFUSED},
    {**OF_STOCK, "operations": ["UPDATE", "DELETE"], "errors": ["apply_conflict"], "statement": NOTE_REFUSED},
]


class Model:
    """Both sides of a load of one writer, whose changes the destination refuses now and then: its rows have a limit,
    some that the source inserts are there already, and what was refused is missed later."""

    def __init__(self, scene: Scene, random_: random.Random, only_inserts: bool) -> None:
        self.random, self.only_inserts = random_, only_inserts
        self.source: dict[int, tuple[int, str]] = {}
        self.destination = dict.fromkeys(range(0, 40_000 if only_inserts else 200, 9), (7, "theirs"))
        self.refused: Counter[tuple[Any, ...]] = Counter()
        self.log: Counter[tuple[Any, ...]] = Counter()
        self.keys = 0
        self.writers = Writers(scene.source, scene.database, 1, random_, self.work)

    def work(self, connection: psycopg.Connection[Any], _: random.Random, __: int) -> None:
        with connection.transaction():
            for key in self.chosen():
                connection.execute(self.change(key))

    def chosen(self) -> list[int]:
        count = self.random.choice([1, 1, 2, 8])
        if not self.only_inserts:
            return self.random.sample(range(200), count)
        self.keys += count
        return list(range(self.keys - count, self.keys))

    def change(self, key: int) -> str:
        amount, note = self.random.randrange(1000), self.random.choice("abc")
        if key not in self.source:
            self.source[key] = amount, note
            self.insert(key, amount, note)
            return f"INSERT INTO stock VALUES ({key}, {amount}, '{note}')"
        if self.random.random() < 0.3:
            del self.source[key]
            if key not in self.destination:
                self.refuse("DELETE", key, None, None, None, "delete_missing")
            self.destination.pop(key, None)
            return f"DELETE FROM stock WHERE id = {key}"
        self.source[key] = amount, note
        if key not in self.destination:
            self.refuse("UPDATE", key, amount, None, None, "update_missing")
        elif amount >= LIMIT:
            self.refuse("UPDATE", key, amount, "23514", "few", None)
        else:
            self.destination[key] = amount, note
        return f"UPDATE stock SET amount = {amount}, note = '{note}' WHERE id = {key}"

    def insert(self, key: int, amount: int, note: str) -> None:
        if amount >= LIMIT:
            self.refuse("INSERT", key, amount, "23514", "few", None)
        elif key in self.destination:
            there, _ = self.destination[key]
            self.destination[key] = min(there + amount, LIMIT - 1), "insert_exists"
            self.log["INSERT", "insert_exists", "23505", "statement", key, amount] += 1
        else:
            self.destination[key] = amount, note

    def refuse(self, operation: str, key: int, amount: int | None, sqlstate: str | None, constraint: str | None,
               kind: str | None) -> None:
        self.refused[operation, key, amount, sqlstate, constraint, kind] += 1
        self.log[operation, kind or "", sqlstate or "", "statement", key, amount] += 1


# Where several transactions make a group, changes of one row are merged, and what is merged away meets no error: such a
# load inserts each row once.
@pytest.mark.parametrize(("only_inserts", "group_size"), [(False, 1), (True, 20_000)])
def test_changes_that_fail_are_settled_exactly_once_through_kills(scene: Scene, random_: random.Random,
                                                                  only_inserts: bool, group_size: int) -> None:
    scene.run_at_source(STOCK)
    scene.destination.run_script(scene.database, "SET ROLE thalweg;\n" + STOCK + REFUSED)
    scene.start_stream([("public", "stock")], statement_handlers=ERROR_HANDLERS, group_size=group_size)
    model = Model(scene, random_, only_inserts)
    scene.at_destination(
        f"ALTER TABLE stock ADD CONSTRAINT few CHECK (amount < {LIMIT})",
        f"INSERT INTO stock SELECT n, 7, 'theirs' FROM generate_series(0, {max(model.destination)}, 9) AS n")
    with model.writers:
        for fault in random_.sample(["engine", "engine", "engine", "destination", "destination"], 5):
            time.sleep(random_.uniform(0.3, 0.8))
            if fault == "destination":
                scene.destination.restart("immediate")
            else:
                scene.engine.kill()
                time.sleep(random_.uniform(0, 0.3))
                scene.engine.start()
        time.sleep(0.5)
    scene.wait_applied()
    read = "SELECT id, amount, note FROM stock"
    assert {key: (amount, note) for key, amount, note in scene.at_source(read)} == model.source
    assert {key: (amount, note) for key, amount, note in scene.at_destination(read)} == model.destination
    assert Counter(scene.at_destination("SELECT * FROM audit.refused")) == model.refused
    assert Counter(scene.at_destination(
        "SELECT operation, kind, sqlstate, action, (coalesce(new_row, old_row)->>'id')::integer, "
        "(new_row->>'amount')::bigint FROM thalweg.conflict_log")) == model.log
    assert scene.at_destination("SELECT commit_lsn, change FROM thalweg.conflict_log GROUP BY 1, 2 "
                                "HAVING count(*) > 1") == []
    assert sum(model.log.values()) > 100, "the load has failures of which this test tells something"
