"""Columns that are added with an expression, or cast: what is copied and what is replicated is what the source computes
with the same expressions, and what cannot be computed stops the stream in front of the change."""

import random
import time
from typing import Any

import psycopg
import pytest

from harness.cluster import wait_for
from harness.scene import Scene
from harness.workload import Writers
from test_rules import define, restart_by_force
from test_transformations import assert_sent, set_steps

ORDERS = """
CREATE TABLE orders (id bigint PRIMARY KEY, price numeric(10, 2), amount integer, kind text, note text,
                     placed timestamp, code varchar(20), secret text);
"""
FILLED = ORDERS + """
INSERT INTO orders SELECT k, k * 1.37, CASE WHEN k % 4 > 0 THEN k % 17 END, CASE WHEN k % 5 > 0 THEN 'ä' || k % 9 END,
                          repeat('nöte ', (k % 5)::int), timestamp '2026-01-31 10:00' + k * interval '1 hour',
                          k::text, 'TOP-SECRET'
  FROM generate_series(1, 3000) k;
"""


def added(column: str, data_type: str, expression: str) -> dict[str, Any]:
    return {"type": "add_column", "column": column, "data_type": data_type, "expression": expression}


def cast(column: str, data_type: str) -> dict[str, Any]:
    return {"type": "cast_column", "column": column, "data_type": data_type}


STEPS = [{"type": "rename_column", "column": "kind", "to": "sort"},
         added("total", "numeric", "price * amount"),
         added("unit", "double precision", "price / nullif(amount, 0)"),
         added("label", "text", "coalesce(sort, 'none') || '/' || schema || '.' || table || ' ' || (id % 3)::text"),
         added("size", "integer", "length(note)"),
         added("year", "integer", "extract(year from placed)"),
         added("is_late", "boolean", "placed > timestamp '2026-03-01 00:00' and sort is null"),
         {"type": "rename_column", "column": "size", "to": "note_size"},
         {"type": "mask_column", "column": "secret", "with": "null"},
         cast("price", "double precision"), cast("amount", "text"), cast("code", "integer"),
         {"type": "drop_column", "column": "placed"}]
TARGET = """
CREATE TABLE orders (id bigint PRIMARY KEY, price double precision, amount text, sort text, note text, code integer,
                     secret text, total numeric, unit double precision, label text, note_size integer, year integer,
                     is_late boolean)
"""
MODEL = """SELECT id, price::double precision, amount::text, kind, note, code::integer, NULL::text, price * amount,
                  (price / nullif(amount, 0))::double precision,
                  coalesce(kind, 'none') || '/public.orders ' || (id % 3)::text, length(note),
                  extract(year from placed)::integer, placed > '2026-03-01 00:00' AND kind IS NULL FROM orders"""
SENT = "TABLE orders"


def make_target(scene: Scene, definition: str = TARGET) -> None:
    scene.at_destination(definition, "ALTER TABLE orders OWNER TO thalweg")


def write(connection: psycopg.Connection[Any], random_: random.Random, number: int) -> None:
    """Each writer has keys of its own; long notes are stored outside the row and mostly stay as they are."""
    key = random_.randrange(400) * 10 + number
    with connection.transaction():
        for _ in range(random_.randrange(1, 8)):
            kind = random_.random()
            if kind < 0.4:
                note = random_.choice((None, "short", "löng " * 3000))
                connection.execute(
                    "INSERT INTO orders VALUES (%s, %s, %s, %s, %s, '2026-02-03', '7', 'TOP-SECRET') "
                    "ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, price = orders.price + 1",
                    (key, random_.randrange(10_000) / 100, random_.choice((None, 0, 3, -7)),
                     random_.choice((None, "", "ü")), note))
            elif kind < 0.7:
                connection.execute("UPDATE orders SET amount = amount + 1, placed = placed + interval '1 month' "
                                   "WHERE id = %s", (key,))
            elif kind < 0.8:
                connection.execute("UPDATE orders SET id = id + 100000 WHERE id = %s AND NOT EXISTS "
                                   "(SELECT FROM orders WHERE id = %s)", (key, key + 100_000))
            elif kind < 0.9:
                connection.execute("UPDATE orders SET note = %s WHERE id = %s", ("änother " * 2000, key))
            else:
                connection.execute("DELETE FROM orders WHERE id IN (%s, %s)", (key, key + 100_000))


def start(scene: Scene, steps: list[dict[str, Any]], **parameters: Any) -> None:
    define(scene, {}, **parameters)
    set_steps(scene, steps, "orders")
    scene.engine.put_desired()
    scene.wait_replicating()


@pytest.mark.parametrize("identity", ["DEFAULT", "FULL"])
def test_copied_and_replicated_rows_agree_with_the_source(scene: Scene, identity: str) -> None:
    """With whole old rows an expression may read a long value beside others."""
    scene.run_at_source(FILLED + f"ALTER TABLE orders REPLICA IDENTITY {identity};")
    make_target(scene)
    steps, model = STEPS, MODEL
    if identity == "FULL":
        scene.at_destination("ALTER TABLE orders ADD joined text")
        steps = [added("joined", "text", "note || amount::text"), *STEPS]
        model = MODEL.replace(" FROM orders", ", note || amount::text FROM orders")
    start(scene, steps, copy_range_rows=1000)
    assert assert_sent(scene, model, SENT) == 3000
    with Writers(scene.source, scene.database, 3, random.Random(71), write):
        time.sleep(4)
    scene.wait_applied()
    assert assert_sent(scene, model, SENT) > 2500


def test_kills_change_nothing(scene: Scene) -> None:
    """During the copy, whose ranges then go on from another snapshot, and while changes come."""
    scene.run_at_source(FILLED)
    make_target(scene)
    random_ = random.Random(73)
    with Writers(scene.source, scene.database, 3, random_, write):
        define(scene, {}, copy_range_rows=1000, copy_workers=1)
        set_steps(scene, STEPS, "orders")
        scene.engine.put_desired()
        for _ in range(4):
            time.sleep(random_.uniform(0.2, 1.2))
            restart_by_force(scene)
        scene.wait_replicating()
        time.sleep(1)
        restart_by_force(scene)
    scene.wait_replicating()
    scene.wait_applied()
    assert assert_sent(scene, MODEL, SENT) > 1000


def answer(scene: Scene, steps: list[dict[str, Any]]) -> None:
    """Returns when the steps are in force."""
    def sessions() -> int:
        return scene.engine.log.read_text(errors="replace").count("session_begun")

    before = sessions()
    set_steps(scene, steps, "orders")
    scene.engine.put_desired()
    wait_for(lambda: sessions() > before, 60, "a session with the other steps begins")
    scene.wait_replicating()


def test_a_row_that_cannot_be_computed_stops_the_stream_and_is_not_lost(scene: Scene) -> None:
    scene.run_at_source(ORDERS + "INSERT INTO orders VALUES (1, 10, 0);")
    make_target(scene, "CREATE TABLE orders (id bigint PRIMARY KEY, code integer, unit numeric)")
    keep = {"type": "keep_columns", "columns": ["id", "code", "unit"]}
    define(scene, {})
    set_steps(scene, [added("unit", "numeric", "price / amount"), cast("code", "integer"), keep], "orders")
    scene.engine.put_desired()
    error = scene.engine.wait_aborted(scene.stream)
    assert (error["code"], error["sqlstate"], error["table"]) == (
        "transformation_refused", "22012", '"public"."orders"'), error
    answer(scene, [added("unit", "numeric", "price / nullif(amount, 0)"), cast("code", "integer"), keep])
    scene.at_source("INSERT INTO orders (id, price, amount, code) VALUES (2, 10, 4, '7')",
                    "INSERT INTO orders (id, code, secret) VALUES (3, 'no number', 'TOP-SECRET')",
                    "INSERT INTO orders (id, code) VALUES (4, '8')")
    error = scene.engine.wait_aborted(scene.stream)
    assert (error["code"], error["sqlstate"]) == ("transformation_refused", "22P02"), error
    assert '"code"' in error["message"] and "no number" not in error["message"]
    steps = [added("unit", "numeric", "price / nullif(amount, 0)"), cast("code", "text"), keep]
    scene.at_destination("ALTER TABLE orders ALTER code TYPE text")
    answer(scene, steps)
    scene.wait_applied()
    assert scene.at_destination("SELECT id, code, round(unit, 2) FROM orders ORDER BY id") == [
        (1, None, None), (2, "7", 2.5), (3, "no number", None), (4, "8", None)]


def test_a_value_that_does_not_come_stops_the_stream_in_front_of_the_update(scene: Scene) -> None:
    scene.run_at_source(ORDERS)
    make_target(scene, "CREATE TABLE orders (id bigint PRIMARY KEY, amount integer, joined text)")
    keep = {"type": "keep_columns", "columns": ["id", "amount", "joined"]}
    start(scene, [added("joined", "text", "right(note, 3) || amount::text"), keep])
    long = "md5(random()::text) || (SELECT string_agg(md5(k::text), '') FROM generate_series(1, 500) k)"
    scene.at_source(f"INSERT INTO orders (id, amount, note) VALUES (1, 1, {long} || 'end')")
    scene.wait_applied()
    scene.at_source("UPDATE orders SET amount = 2 WHERE id = 1", "INSERT INTO orders (id, note) VALUES (2, 'x')")
    error = scene.engine.wait_aborted(scene.stream)
    assert error["code"] == "transformation_refused" and "REPLICA IDENTITY FULL" in error["message"], error
    assert scene.at_destination("TABLE orders") == [(1, 1, "end1")]
    # Later changes bring the whole row; the one that waits is passed with an expression that does without.
    scene.at_source("ALTER TABLE orders REPLICA IDENTITY FULL")
    answer(scene, [added("joined", "text", "right(note, 3)"), keep])
    scene.wait_applied()
    assert scene.at_destination("TABLE orders ORDER BY id") == [(1, 2, "end1"), (2, None, "x")]
    answer(scene, [added("joined", "text", "right(note, 3) || amount::text"), keep])
    scene.at_source("UPDATE orders SET amount = 3 WHERE id = 1")
    scene.wait_applied()
    assert scene.at_destination("SELECT joined FROM orders WHERE id = 1") == [("end3",)]
