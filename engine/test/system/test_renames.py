"""Tables with other names at the destination: copied and replicated there, whatever dies; wherever a name counts."""

import random
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest

from harness.cluster import wait_for
from harness.compare import SESSION, Table, columns_of, lines_of, user_tables
from harness.engine import SECONDS, Engine, RefusedError, applied_there, destination_path
from harness.paths import EnginePair
from harness.scene import Scene
from harness.troubles import table_of, wait_trouble
from harness.workload import Writers
from test_error_queue_execution import errors, execute_all, wait_executed
from test_rules import define, restart_by_force, rule
from test_table_troubles import EVENTS

SHOP = """
CREATE SCHEMA shop;
CREATE TABLE shop.customer (id bigint PRIMARY KEY, name text NOT NULL, city text);
CREATE TABLE shop.sale (id bigserial PRIMARY KEY, customer bigint REFERENCES shop.customer, body text,
                        amount numeric(10, 2) CHECK (amount > 0));
CREATE INDEX sale_customer ON shop.sale (customer) WHERE amount > 10;
CREATE TABLE kept (id bigint PRIMARY KEY, sale bigint REFERENCES shop.sale (id) DEFERRABLE);
INSERT INTO shop.customer SELECT k, 'name ' || k, 'city ' || k % 9 FROM generate_series(1, 2000) k;
INSERT INTO shop.sale (customer, body, amount) SELECT 1 + k % 2000, repeat('x', k % 50), 1 + k
  FROM generate_series(1, 3000) k;
INSERT INTO kept SELECT k, k FROM generate_series(1, 50) k;
"""
NAMES = {("shop", "customer"): ("archive", "customer"), ("shop", "sale"): ("archive", "Sold goods"),
         ("public", "kept"): ("public", "kept")}
ITEM = """CREATE TABLE item (id integer PRIMARY KEY, n integer NOT NULL); INSERT INTO item SELECT i, 0
          FROM generate_series(1, 20) i;"""
TO_GOODS = {("public", "item"): ("stock", "goods")}


def set_names(scene: Scene, names: dict[Table, Table], engine: Engine | None = None) -> None:
    """In the document that the next put_desired sends."""
    for table in (engine or scene.engine).streams[scene.stream]["tables"]:
        table.pop("destination", None)
        there = names.get((table["schema"], table["table"]))
        if there is not None:
            table["destination"] = {"schema": there[0], "table": there[1]}


def start(scene: Scene, names: dict[Table, Table], rules: dict[str, Any] | None = None, **parameters: Any) -> None:
    define(scene, rules or {}, **parameters)
    set_names(scene, names)
    scene.engine.put_desired()
    scene.wait_replicating()


def change_names(scene: Scene, names: dict[Table, Table]) -> None:
    set_names(scene, names)
    scene.engine.put_desired()


def assert_named(scene: Scene, names: dict[Table, Table]) -> None:
    """Byte by byte the same rows, and no table at the destination but these."""
    with scene.source.connect(scene.database) as here, scene.destination.connect(scene.database) as there:
        here.execute(SESSION)
        there.execute(SESSION)
        for table, named in names.items():
            columns = columns_of(scene.source, scene.database, table)
            wanted, found = list(lines_of(here, table, columns)), list(lines_of(there, named, columns))
            assert found == wanted, f"{table} and {named}: {set(wanted) ^ set(found)}"
    assert set(user_tables(scene.destination, scene.database)) == set(names.values())


def write(connection: psycopg.Connection[Any], random_: random.Random, number: int) -> None:
    """Each writer has keys of its own."""
    key = random_.randrange(200) * 10 + number + 1
    with connection.transaction():
        connection.execute("LOCK TABLE kept, shop.sale IN ROW SHARE MODE")  # in the order of a TRUNCATE of both
        for _ in range(random_.randrange(1, 6)):
            kind = random_.random()
            if kind < 0.5:
                connection.execute("INSERT INTO shop.sale (customer, body, amount) VALUES (%s, 'new', 12)", (key,))
            elif kind < 0.8:
                connection.execute("UPDATE shop.customer SET city = city || '+' WHERE id = %s", (key,))
            else:
                connection.execute("DELETE FROM shop.sale WHERE customer = %s AND NOT EXISTS "
                                   "(SELECT FROM kept WHERE sale = shop.sale.id)", (key,))


def test_tables_are_made_copied_and_replicated_under_other_names(scene: Scene) -> None:
    scene.run_at_source(SHOP)
    start(scene, NAMES)
    scene.run_at_source("""UPDATE shop.customer SET city = 'other' WHERE id < 100;
                           INSERT INTO shop.sale (customer, amount) VALUES (7, 99);
                           DELETE FROM kept WHERE id > 40; INSERT INTO kept VALUES (100, 3001);""")
    scene.wait_applied()
    assert_named(scene, NAMES)
    made = scene.at_destination("SELECT conrelid::regclass::text, confrelid::regclass::text FROM pg_constraint "
                                "WHERE contype = 'f' AND connamespace <> 'thalweg'::regnamespace ORDER BY 1")
    assert made == [('archive."Sold goods"', "archive.customer"), ("kept", 'archive."Sold goods"')]
    assert scene.at_destination("SELECT indexdef FROM pg_indexes WHERE indexname = 'sale_customer'") == [
        ('CREATE INDEX sale_customer ON archive."Sold goods" USING btree (customer) WHERE (amount > (10)::numeric)',)]
    # Its sequence came along, and its default draws from it.
    assert scene.at_destination("SELECT pg_get_serial_sequence('archive.\"Sold goods\"', 'id')") == [
        ("archive.sale_id_seq",)]
    assert scene.at_destination("SELECT count(*) FROM pg_namespace WHERE nspname = 'shop'") == [(0,)]
    # The status has the stream's own names.
    table = table_of(scene, "sale")
    assert (table["schema"], table["inserts"], table["state"]) == ("shop", 1, "REPLICATING")


def test_nothing_is_lost_whatever_is_killed(scene: Scene, random_: random.Random) -> None:
    scene.run_at_source(SHOP + "INSERT INTO shop.customer SELECT k, 'n', 'c' FROM generate_series(2001, 60000) k;")
    define(scene, {}, copy_range_rows=10_000)
    set_names(scene, NAMES)
    scene.engine.put_desired()
    with Writers(scene.source, scene.database, 2, random_, write):
        for _ in range(3):  # in the copy, or soon after it
            time.sleep(random_.uniform(0.1, 1.0))
            restart_by_force(scene)
        scene.wait_replicating()
        scene.run_at_source("TRUNCATE kept, shop.sale;")
        for _ in range(3):
            time.sleep(random_.uniform(0.2, 1.5))
            random_.choice((restart_by_force, _restart_destination))(scene)
    scene.wait_replicating()
    scene.wait_applied()
    assert_named(scene, NAMES)


def _restart_destination(scene: Scene) -> None:
    scene.destination.restart("immediate")
    scene.destination.wait_ready()


def test_partitions_go_with_their_table(scene: Scene) -> None:
    scene.run_at_source(EVENTS)
    names = {("public", "event"): ("archive", "happened")}
    start(scene, names)
    scene.run_at_source("UPDATE event SET body = 'new' WHERE id < 10; UPDATE event SET day = 2 WHERE id = 11;")
    scene.wait_applied()
    assert_named(scene, names)
    parts = "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'archive.happened'::regclass ORDER BY 1"
    assert scene.at_destination(parts) == [("archive.event_1",), ("archive.event_2",)]
    # An empty one that comes later, and a TRUNCATE of all.
    scene.run_at_source("CREATE TABLE event_4 PARTITION OF event FOR VALUES FROM (4) TO (5);")
    scene.at_destination('CREATE TABLE archive.other PARTITION OF archive.happened FOR VALUES FROM (4) TO (5)')
    scene.run_at_source("INSERT INTO event VALUES (500, 4, 'four'); TRUNCATE event;"
                        "INSERT INTO event VALUES (1, 4, 'x');")
    restart_by_force(scene)
    scene.wait_replicating()
    scene.wait_applied()
    assert_named(scene, names)


def test_rules_and_transformations_go_by_the_sources_names(scene: Scene) -> None:
    scene.run_at_source(SHOP)
    scene.at_destination("CREATE SCHEMA crm AUTHORIZATION thalweg",
                         "CREATE TABLE crm.person (id bigint PRIMARY KEY, who text, city text)",
                         "ALTER TABLE crm.person OWNER TO thalweg")
    define(scene, {"customer": {"positive": [rule("some", "id % 2 = 0")]}})
    for table in scene.engine.streams[scene.stream]["tables"]:
        if table["table"] == "customer":
            table["transformations"] = [{"type": "rename_column", "column": "name", "to": "who"}]
    set_names(scene, {("shop", "customer"): ("crm", "person")})
    scene.engine.put_desired()
    scene.wait_replicating()
    scene.run_at_source("INSERT INTO shop.customer VALUES (9000, 'even', 'x'), (9001, 'odd', 'y');")
    scene.wait_applied()
    assert scene.at_destination("SELECT id, who, city FROM crm.person ORDER BY 1") == scene.at_source(
        "SELECT id, name, city FROM shop.customer WHERE id % 2 = 0 ORDER BY 1")
    # Copied again, it is compared as it is sent. The row goes first: once the copy is there, nothing brings it back.
    scene.at_destination("DELETE FROM crm.person WHERE id = 2")
    scene.engine.request("POST", f"{destination_path(scene.stream)}/tables/copy",
                         {"schema": "shop", "table": "customer"})
    restart_by_force(scene)
    wait_for(lambda: scene.at_destination("SELECT count(*) FROM crm.person WHERE id = 2") == [(1,)], SECONDS, "copied")
    scene.wait_replicating()


def test_a_table_of_other_columns_is_refused_by_its_name_there(scene: Scene) -> None:
    scene.run_at_source(ITEM)
    scene.at_destination("CREATE SCHEMA stock AUTHORIZATION thalweg",
                         "CREATE TABLE stock.goods (id integer PRIMARY KEY)",
                         "ALTER TABLE stock.goods OWNER TO thalweg")
    define(scene, {})
    set_names(scene, TO_GOODS)
    scene.engine.put_desired()
    error = scene.engine.wait_aborted(scene.stream)
    assert (error["code"], error["table"]) == ("destination_table_differs", '"stock"."goods"')
    assert '"stock"."goods"' in error["message"] and '"n"' in error["message"]


@pytest.mark.parametrize("there", [("public", "other"), ("pg_catalog", "item"), ("thalweg", "item"),
                                   ("stock", "g" * 64), ("stock", "goods")])
def test_names_that_no_table_can_have_are_refused(scene: Scene, there: Table) -> None:
    scene.run_at_source(ITEM + "CREATE TABLE other (id integer PRIMARY KEY);"
                        "CREATE TABLE more (id integer PRIMARY KEY);")
    define(scene, {})
    set_names(scene, {("public", "item"): there, ("public", "more"): ("stock", "goods")})
    with pytest.raises(RefusedError) as refused:
        scene.engine.put_desired()
    assert refused.value.error["code"] == "invalid_request"
    assert "/destination" in refused.value.error["message"]


def test_another_name_renames_the_destinations_table(scene: Scene, random_: random.Random) -> None:
    scene.run_at_source(SHOP)
    start(scene, {})
    moved = NAMES | {("shop", "customer"): ("public", "client")}
    with Writers(scene.source, scene.database, 2, random_, write):
        change_names(scene, moved)
        time.sleep(random_.uniform(0, 0.5))
        restart_by_force(scene)
        scene.wait_replicating()
    scene.wait_applied()
    assert_named(scene, moved)
    # Somebody else's table is not written, and the stream says so.
    scene.at_destination("CREATE TABLE taken (id bigint PRIMARY KEY, name text NOT NULL, city text)")
    change_names(scene, moved | {("shop", "customer"): ("public", "taken")})
    error = scene.engine.wait_aborted(scene.stream)
    assert (error["code"], error["table"]) == ("destination_table_differs", '"public"."taken"')
    scene.at_source("UPDATE shop.customer SET name = 'meanwhile' WHERE id = 5")
    scene.at_destination("DROP TABLE taken")
    change_names(scene, {})
    restart_by_force(scene)
    scene.wait_replicating()
    scene.wait_applied()
    assert_named(scene, {table: table for table in moved})


def test_no_table_gets_the_name_that_another_one_had(scene: Scene) -> None:
    """Renamed one by one, the second would find the first under its own name, and take its rows."""
    one, two = ("public", "one"), ("public", "two")
    scene.run_at_source("CREATE TABLE one (id integer PRIMARY KEY); CREATE TABLE two (id integer PRIMARY KEY);"
                        "INSERT INTO one VALUES (1); INSERT INTO two VALUES (2);")
    start(scene, {one: ("public", "x"), two: ("public", "y")})
    set_names(scene, {one: ("public", "y"), two: ("public", "z")})
    scene.engine.put_desired()
    wait_for(lambda: "a third name" in ((scene.engine.status(scene.stream)["error"] or {}).get("message", "")), SECONDS,
             "it is refused")
    assert scene.at_destination("SELECT x.id, y.id FROM x, y") == [(1, 2)]
    change_names(scene, {one: ("public", "x"), two: ("moved", "x")})  # by the way of public.x, were it not careful
    change_names(scene, {one: ("moved", "y"), two: ("moved", "x")})
    wait_for(lambda: scene.at_destination("SELECT to_regclass('moved.y') IS NOT NULL") == [(True,)], SECONDS, "renamed")
    scene.at_source("INSERT INTO one VALUES (10)", "INSERT INTO two VALUES (20)")
    scene.wait_applied()
    assert scene.at_destination("SELECT id FROM moved.y ORDER BY id") == [(1,), (10,)]
    assert scene.at_destination("SELECT id FROM moved.x ORDER BY id") == [(2,), (20,)]


def test_a_rename_at_the_source_leaves_the_destinations_name(scene: Scene) -> None:
    scene.run_at_source(ITEM)
    start(scene, TO_GOODS)
    scene.run_at_source("ALTER TABLE item RENAME TO article; UPDATE article SET n = 1 WHERE id < 5;")
    trouble = wait_trouble(scene, "item", "RENAMED")
    assert trouble["renamed_to"] == {"schema": "public", "table": "article"}
    scene.wait_applied()
    article = {("public", "article"): ("stock", "goods")}
    assert_named(scene, article)
    restart_by_force(scene)
    scene.wait_replicating()
    scene.run_at_source("UPDATE article SET n = 2 WHERE id < 3;")
    scene.wait_applied()
    assert_named(scene, article)
    scene.engine.set_stream(scene.stream, tables=[
        {"schema": "public", "table": "article", "destination": {"schema": "stock", "table": "goods"}}])
    wait_for(lambda: scene.engine.destination(scene.stream)["tables"][0]["table"] == "article", SECONDS, "followed")
    scene.wait_replicating()
    scene.run_at_source("UPDATE article SET n = 3 WHERE id = 1;")
    scene.wait_applied()
    assert_named(scene, article)
    assert table_of(scene, "article")["trouble"] is None


def park(scene: Scene, **parameters: Any) -> None:
    scene.run_at_source(ITEM)
    start(scene, TO_GOODS, disable_on_error=False, **parameters)
    scene.at_destination("DELETE FROM stock.goods WHERE id <= 2")
    for rows in ("= 1", "IN (2, 3)"):
        scene.run_at_source(f"UPDATE item SET n = n + 1 WHERE id {rows};")
        scene.wait_applied()  # they do not depend on each other: either could be parked first
    scene.at_destination("INSERT INTO stock.goods VALUES (1, 0), (2, 0)")


def test_parked_transactions_name_the_destinations_table_and_are_executed_there(scene: Scene) -> None:
    park(scene)
    first, second = errors(scene)["errors"]
    assert first["tables"] == second["tables"] == ['"stock"."goods"']
    (change,) = errors(scene, f"/{first['id']}")["changes"]
    assert (change["schema"], change["table"], change["rows_found"]) == ("stock", "goods", 1)
    tried = scene.engine.request("POST", destination_path(scene.stream) + f"/errors/{second['id']}/dry-run")
    assert (tried["error"], tried["changes"]) == (None, 2), tried
    assert errors(scene)["total"] == 2
    # Another name, and the queue goes with the table.
    change_names(scene, {("public", "item"): ("stock", "ware")})
    wait_for(lambda: errors(scene)["errors"][0]["tables"] == ['"stock"."ware"'], SECONDS, "it is renamed")
    scene.wait_replicating()
    execute_all(scene)
    assert wait_executed(scene)["state"] == "DONE"
    assert errors(scene)["total"] == 0
    assert_named(scene, {("public", "item"): ("stock", "ware")})


def test_a_copy_again_makes_parked_transactions_of_the_table_obsolete(scene: Scene) -> None:
    park(scene)
    scene.engine.request("POST", f"{destination_path(scene.stream)}/tables/copy", {"schema": "public", "table": "item"})
    wait_for(lambda: errors(scene)["total"] == 0, 60, "they are discarded")
    scene.wait_replicating()
    assert_named(scene, TO_GOODS)


def test_policies_and_handlers_go_by_the_streams_names(scene: Scene) -> None:
    park(scene, conflict_handlers=[{"kind": "update_missing", "schema": "public", "table": "item",
                                    "action": "discard"}])
    assert errors(scene)["total"] == 0
    log = scene.engine.request("POST", destination_path(scene.stream) + "/conflicts/search", {"limit": 9})["conflicts"]
    assert {(one["schema"], one["table"], one["action"]) for one in log} == {("stock", "goods", "discard")}
    assert scene.at_destination("SELECT n FROM stock.goods WHERE id = 3") == [(1,)]


def test_two_engines_need_not_learn_of_a_name_at_once(scene: Scene, tmp_path: Path, random_: random.Random) -> None:
    scene.run_at_source(SHOP)
    pair = EnginePair(scene, tmp_path)
    try:
        tables = user_tables(scene.source, scene.database)
        pair.sender.define_stream(scene.stream, scene.source_conninfo, "", tables, {})
        pair.sender.streams[scene.stream]["destinations"] = [
            applied_there("bravo", pair.receiver.place.address, pair.port)]
        pair.receiver.define_stream(scene.stream, scene.source_conninfo, scene.destination_conninfo, tables, {},
                                    receive_from={"engine": "alpha"})
        for engine in (pair.receiver, pair.sender):
            set_names(scene, NAMES, engine)
            engine.put_desired()
        pair.wait_replicating()
        moved = NAMES | {("shop", "customer"): ("crm", "person")}
        with Writers(scene.source, scene.database, 2, random_, write):
            set_names(scene, moved, pair.receiver)
            pair.receiver.put_desired()
            time.sleep(1)
            set_names(scene, moved, pair.sender)
            pair.sender.put_desired()
            time.sleep(1)
        pair.wait_replicating()
        pair.wait_applied()
        assert_named(scene, moved)
    finally:
        pair.close()
