"""Values survive: every type through the initial copy and through changes, compared byte by byte."""

import pytest

from harness import type_catalogue
from harness.scene import Scene


@pytest.mark.both_ways
def test_every_type_through_copy_and_changes(scene: Scene) -> None:
    # A value of each type before the stream starts, then inserts, updates and deletes of the same.
    scene.run_at_source(type_catalogue.USER_TYPES + type_catalogue.table_definition("everything")
                        + "ALTER TABLE everything ALTER COLUMN c0 SET STORAGE PLAIN;"
                        + type_catalogue.inserts("everything", 0, 0))
    scene.start_stream()
    scene.assert_same()
    scene.run_at_source(type_catalogue.inserts("everything", 100, 1))
    scene.wait_applied()
    scene.assert_same()
    scene.run_at_source("BEGIN;" + type_catalogue.updates("everything", 0, 2)
                        + "DELETE FROM everything WHERE id % 4 = 0; COMMIT;")
    scene.wait_applied()
    scene.assert_same()


def test_every_type_in_a_table_without_key(scene: Scene) -> None:
    """REPLICA IDENTITY FULL: old rows are found by values of every type."""
    scene.run_at_source(type_catalogue.USER_TYPES + type_catalogue.table_definition("everything")
                        + "ALTER TABLE everything DROP CONSTRAINT everything_pkey;"
                        "ALTER TABLE everything REPLICA IDENTITY FULL;"
                        + type_catalogue.inserts("everything", 0, 0))
    scene.start_stream()
    scene.run_at_source(type_catalogue.updates("everything", 0, 3) + "DELETE FROM everything WHERE id % 3 = 0;")
    scene.wait_applied()
    scene.assert_same()


@pytest.mark.parametrize("kind", type_catalogue.NOT_BINARY)
def test_values_without_binary_form(scene: Scene, kind: str) -> None:
    value = type_catalogue.NOT_BINARY[kind]
    scene.run_at_source(f"CREATE TABLE odd (id integer PRIMARY KEY, value {kind});"
                        f"INSERT INTO odd VALUES (1, {value});")
    scene.start_stream()
    scene.run_at_source(f"INSERT INTO odd VALUES (2, {value}), (3, NULL); UPDATE odd SET value = {value} WHERE id = 3;"
                        "UPDATE odd SET value = NULL WHERE id = 1;")
    scene.wait_applied()
    scene.assert_same()


def test_null_elements_whatever_the_destinations_database_makes_of_them(scene: Scene) -> None:
    scene.run_at_source("CREATE TABLE odd (id integer PRIMARY KEY, value text[], o regclass);"
                        "INSERT INTO odd VALUES (1, '{NULL,x}', 'pg_class');")
    scene.destination.sql("postgres", f'ALTER DATABASE "{scene.database}" SET array_nulls = off')
    scene.start_stream()
    scene.run_at_source("INSERT INTO odd VALUES (2, '{NULL,y}', 'pg_class');")
    scene.wait_applied()
    assert scene.at_destination("SELECT id, value FROM odd ORDER BY id") == [(1, [None, "x"]), (2, [None, "y"])]


@pytest.mark.both_ways
def test_toast_unchanged_and_changed(scene: Scene) -> None:
    scene.run_at_source("""
        CREATE TABLE toast (id integer PRIMARY KEY, n integer, a text, b text, c bytea);
        ALTER TABLE toast ALTER a SET STORAGE EXTERNAL, ALTER b SET STORAGE EXTENDED, ALTER c SET STORAGE EXTERNAL;
        INSERT INTO toast SELECT n, 0, repeat(md5(n::text), 2000), repeat(md5(n::text), 9000),
          decode(repeat(md5(n::text), 1000), 'hex') FROM generate_series(1, 20) n;
    """)
    scene.start_stream()
    scene.run_at_source("""
        UPDATE toast SET n = n + 1;                                        -- all values stay where they are
        UPDATE toast SET a = repeat('new' || id, 5000) WHERE id <= 5;      -- one of them changes
        UPDATE toast SET id = id + 100 WHERE id BETWEEN 3 AND 8;           -- the key changes, values stay
        UPDATE toast SET b = NULL, n = -1 WHERE id = 10;
        BEGIN; UPDATE toast SET n = 5; UPDATE toast SET c = '\\x00' WHERE id = 11; UPDATE toast SET n = 6; COMMIT;
        INSERT INTO toast VALUES (500, 1, repeat('é', 40000), '', '');
        DELETE FROM toast WHERE id = 12;
    """)
    scene.wait_applied()
    scene.assert_same()


def test_toast_in_a_table_without_key(scene: Scene) -> None:
    scene.run_at_source("""
        CREATE TABLE toast (n integer, a text);
        ALTER TABLE toast ALTER a SET STORAGE EXTERNAL;
        ALTER TABLE toast REPLICA IDENTITY FULL;
        INSERT INTO toast SELECT n, repeat(md5(n::text), 2000) FROM generate_series(1, 10) n;
    """)
    scene.start_stream()
    scene.run_at_source("UPDATE toast SET n = n + 100 WHERE n % 2 = 0; DELETE FROM toast WHERE n = 3;"
                        "UPDATE toast SET a = 'short' WHERE n = 5;")
    scene.wait_applied()
    scene.assert_same()


@pytest.mark.both_ways
def test_key_updates_swaps_and_chains(scene: Scene) -> None:
    scene.run_at_source("""
        CREATE TABLE item (id integer PRIMARY KEY, code text UNIQUE, n integer);
        INSERT INTO item SELECT n, 'c' || n, n FROM generate_series(1, 200) n;
    """)
    scene.start_stream()
    scene.run_at_source("""
        BEGIN;                                             -- two rows change places
        UPDATE item SET id = -1 WHERE id = 1; UPDATE item SET id = 1 WHERE id = 2; UPDATE item SET id = 2 WHERE id = -1;
        COMMIT;
        BEGIN; UPDATE item SET code = 'x' WHERE id = 3; UPDATE item SET code = 'c3' WHERE id = 4;
        UPDATE item SET code = 'c4' WHERE id = 3; COMMIT;
        UPDATE item SET id = id + 1000 WHERE id > 100;     -- many keys at once
        DELETE FROM item WHERE id = 50; INSERT INTO item VALUES (50, 'c50', -50);
        BEGIN; DELETE FROM item WHERE id = 51; INSERT INTO item VALUES (51, 'again', 1);
        UPDATE item SET id = 5100 WHERE id = 51; DELETE FROM item WHERE id = 5100; COMMIT;
        UPDATE item SET code = NULL WHERE id BETWEEN 60 AND 70;
    """)
    scene.wait_applied()
    scene.assert_same()


def test_keyless_tables(scene: Scene) -> None:
    """Duplicate rows lose and change one at a time; a unique index does as identity; NULLs are found."""
    scene.run_at_source("""
        CREATE TABLE heap (a integer, b text);
        ALTER TABLE heap REPLICA IDENTITY FULL;
        INSERT INTO heap SELECT n % 5, CASE WHEN n % 3 = 0 THEN NULL ELSE 'b' END FROM generate_series(1, 100) n;
        CREATE TABLE indexed (a integer NOT NULL, b text NOT NULL, c integer);
        CREATE UNIQUE INDEX indexed_key ON indexed (b, a);
        ALTER TABLE indexed REPLICA IDENTITY USING INDEX indexed_key;
        INSERT INTO indexed SELECT n, 'b' || n, n FROM generate_series(1, 50) n;
    """)
    scene.start_stream()
    scene.run_at_source("""
        DELETE FROM heap WHERE ctid IN (SELECT ctid FROM heap WHERE a = 1 LIMIT 7);
        UPDATE heap SET b = 'changed' WHERE ctid IN (SELECT ctid FROM heap WHERE a = 2 AND b IS NULL LIMIT 2);
        UPDATE heap SET a = NULL WHERE ctid IN (SELECT ctid FROM heap WHERE a = 3 LIMIT 3);
        DELETE FROM heap WHERE ctid IN (SELECT ctid FROM heap WHERE a IS NULL LIMIT 1);
        INSERT INTO heap VALUES (NULL, NULL), (NULL, NULL);
        UPDATE indexed SET a = a + 1000, c = NULL WHERE a % 5 = 0;
        DELETE FROM indexed WHERE a % 7 = 0;
    """)
    scene.wait_applied()
    scene.assert_same()


def test_partitioned_tables(scene: Scene) -> None:
    scene.run_at_source("""
        CREATE TABLE measure (at date NOT NULL, sensor integer NOT NULL, value numeric, PRIMARY KEY (at, sensor))
          PARTITION BY RANGE (at);
        CREATE TABLE measure_2023 PARTITION OF measure FOR VALUES FROM ('2023-01-01') TO ('2024-01-01');
        CREATE TABLE measure_2024 PARTITION OF measure FOR VALUES FROM ('2024-01-01') TO ('2025-01-01')
          PARTITION BY HASH (sensor);
        CREATE TABLE measure_2024_0 PARTITION OF measure_2024 FOR VALUES WITH (MODULUS 2, REMAINDER 0);
        CREATE TABLE measure_2024_1 PARTITION OF measure_2024 FOR VALUES WITH (MODULUS 2, REMAINDER 1);
        CREATE TABLE measure_rest PARTITION OF measure DEFAULT;
        INSERT INTO measure SELECT '2023-06-01'::date + n, n % 10, n FROM generate_series(1, 900) n;
    """)
    scene.start_stream()
    scene.run_at_source("""
        INSERT INTO measure VALUES ('2024-02-29', 500, 1), ('1999-01-01', 1, 2);
        UPDATE measure SET value = value + 1 WHERE sensor = 3;
        UPDATE measure SET at = '2030-12-31' WHERE at = '2023-06-10';     -- moves between partitions
        DELETE FROM measure WHERE sensor = 4;
    """)
    scene.wait_applied()
    scene.assert_same()


@pytest.mark.parametrize("name", ['Mixed "Case"', "größe 漢字", "select", "semi;colon--", "back\\slash", "dot.ted"])
def test_names_of_any_kind(scene: Scene, name: str) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    scene.run_at_source(f"""
        CREATE SCHEMA {quoted};
        CREATE TABLE {quoted}.{quoted} ({quoted} integer PRIMARY KEY, "other{name.replace('"', '""')}" text);
        INSERT INTO {quoted}.{quoted} VALUES (1, 'copied');
    """)
    scene.start_stream()
    scene.run_at_source(f"""
        INSERT INTO {quoted}.{quoted} VALUES (2, 'changed'), (3, 'deleted');
        UPDATE {quoted}.{quoted} SET {quoted} = 20 WHERE {quoted} = 2;
        DELETE FROM {quoted}.{quoted} WHERE {quoted} = 3;
    """)
    scene.wait_applied()
    scene.assert_same()


@pytest.mark.both_ways
def test_generated_and_identity_columns(scene: Scene) -> None:
    scene.run_at_source("""
        CREATE TABLE made (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, net numeric NOT NULL,
          gross numeric GENERATED ALWAYS AS (net * 1.19) STORED, serial_ bigserial, dropped text, last_ text);
        ALTER TABLE made DROP COLUMN dropped;
        INSERT INTO made (net, last_) SELECT n, 'x' FROM generate_series(1, 20) n;
        CREATE TABLE keyless (id integer GENERATED ALWAYS AS IDENTITY, note text);
        ALTER TABLE keyless REPLICA IDENTITY FULL;
        INSERT INTO keyless (note) SELECT 'n' || n FROM generate_series(1, 5) n;
    """)
    scene.start_stream()
    scene.run_at_source("INSERT INTO made (net) VALUES (100); UPDATE made SET net = net * 2 WHERE id < 5;"
                        "DELETE FROM made WHERE id = 7; UPDATE made SET id = DEFAULT WHERE id = 8;"
                        "UPDATE keyless SET id = DEFAULT, note = 'moved' WHERE id = 3;"
                        "UPDATE keyless SET note = 'x' WHERE id = 4;")
    scene.wait_applied()
    scene.assert_same()
    # A generated column stays generated, and no default of the destination overrode a value that came.
    assert scene.at_destination("SELECT count(*) FROM made WHERE gross <> net * 1.19") == [(0,)]


def test_wide_and_large_values(scene: Scene) -> None:
    columns = ", ".join(f"c{number} integer" for number in range(1500))
    scene.run_at_source(f"CREATE TABLE wide (id integer PRIMARY KEY, {columns});"
                        "CREATE TABLE large (id integer PRIMARY KEY, body text);"
                        "INSERT INTO wide (id, c0, c1499) VALUES (1, 1, 1);"
                        "INSERT INTO large VALUES (1, repeat('0123456789abcdef', 1000000));")
    scene.start_stream(queue_memory_mb=64)
    scene.run_at_source("UPDATE wide SET c700 = 7; INSERT INTO wide (id) VALUES (2);"
                        "INSERT INTO large VALUES (2, repeat('fedcba9876543210', 1000000)); "
                        "UPDATE large SET id = 3 WHERE id = 1;")
    scene.wait_applied()
    scene.assert_same()


@pytest.mark.parametrize("serialization", ["none", "dependent_transactions"])
def test_equal_keys_of_other_bytes_keep_their_order(scene: Scene, serialization: str) -> None:
    """One key by its index, several by its bytes: a row that goes makes way for the next one."""
    kinds = {"interval": ("30 days", "1 mon", "720:00:00"), "numeric": ("1.0", "1.00", "1"),
             "float8": ("-0", "0", "0.0"), "character(4)": ("a", "a ", "a"),
             "interval[]": ("{30 days}", "{1 mon}", "{}")}
    tables = [f"t{number}" for number in range(len(kinds))]
    scene.run_at_source("".join(f"CREATE TABLE {table} (k {kind} PRIMARY KEY, n integer NOT NULL);"
                                for table, kind in zip(tables, kinds, strict=True)))
    scene.start_stream(commit_serialization=serialization, parallelism=4, group_size=1)
    with scene.source.connect(scene.database, "thalweg") as connection:
        for n in range(60):
            for table, values in zip(tables, kinds.values(), strict=True):
                connection.execute(f"INSERT INTO {table} VALUES ('{values[n % 3]}', {n})")
                connection.execute(f"UPDATE {table} SET n = n + 1000")
                if n < 59:
                    connection.execute(f"DELETE FROM {table}")
    scene.wait_applied()
    scene.assert_same()
