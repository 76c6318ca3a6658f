"""The extension thalweg_datalayer against a real server: what apply_lcrs() writes, refuses and survives."""

import threading
import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from harness import type_catalogue
from harness.cluster import Cluster
from harness.lcr_frames import UNCHANGED, Target, apply, call, int4, int8, table_list, target

MALFORMED, ROW_NOT_FOUND, TABLE_REFUSED = "TW001", "TW002", "TW003"

Connection = psycopg.Connection[Any]


@pytest.fixture(scope="session")
def database(destination_cluster: Cluster) -> str:
    destination_cluster.make_database("data_layer")
    destination_cluster.sql("data_layer", "CREATE EXTENSION thalweg_datalayer")
    return "data_layer"


@pytest.fixture
def connection(destination_cluster: Cluster, database: str) -> Iterator[Connection]:
    with destination_cluster.connect(database) as connection:
        connection.execute("SET session_replication_role = replica")
        yield connection
        connection.execute("RESET ALL; RESET SESSION AUTHORIZATION; DROP SCHEMA public CASCADE; CREATE SCHEMA public")


def rows(connection: Connection, query: str) -> list[tuple[Any, ...]]:
    return connection.execute(query).fetchall()  # type: ignore[call-overload]


def refused(connection: Connection, targets: Target | list[Target], *frames: bytes) -> psycopg.Error:
    with pytest.raises(psycopg.Error) as failure:
        apply(connection, targets, *frames)
    return failure.value


def ledger(connection: Connection) -> Target:
    connection.execute("CREATE TABLE ledger (id integer PRIMARY KEY, amount bigint NOT NULL, note text)")
    return target(connection, "ledger")


def test_each_operation(connection: Connection) -> None:
    t = ledger(connection)
    assert apply(connection, t, *(t.insert(int4(n), int8(n * 10), f"row {n}") for n in range(5))) == 5
    assert apply(connection, t, t.update(int4(1), int8(11), None),
                 t.update(int4(22), int8(22), "moved", key=(int4(2), None, None)),
                 t.remove(int4(3), None, None)) == 3
    assert rows(connection, "SELECT * FROM ledger ORDER BY id") == [
        (0, 0, "row 0"), (1, 11, None), (4, 40, "row 4"), (22, 22, "moved")]
    assert apply(connection, t) == 0
    assert call(connection, table_list(), b"") == 0


def test_one_row_many_times_in_one_call(connection: Connection) -> None:
    t = ledger(connection)
    key = (int4(1), None, None)
    life = [t.insert(int4(1), int8(1), "a"), t.update(int4(1), int8(2), "b"), t.update(int4(1), int8(3), UNCHANGED),
            t.remove(*key), t.insert(int4(1), int8(4), "d")]
    assert apply(connection, t, *life, t.remove(*key), *life, t.update(int4(2), int8(5), "e", key=key),
                 t.insert(int4(1), int8(6), "f")) == 13
    assert rows(connection, "SELECT * FROM ledger ORDER BY id") == [(1, 6, "f"), (2, 5, "e")]


def test_calls_in_one_transaction_see_each_other(connection: Connection) -> None:
    t = ledger(connection)
    with connection.transaction():
        for n in range(20):
            apply(connection, t, t.insert(int4(n), int8(n), None) if n == 0 else
                  t.update(int4(n), int8(n), "x", key=(int4(n - 1), None, None)))
    assert rows(connection, "SELECT * FROM ledger") == [(19, 19, "x")]


def test_keys_that_come_and_go_for_long(connection: Connection) -> None:
    """Index entries of dead rows are marked as such during a search, which the scan remembers from row to row."""
    t = ledger(connection)
    for _ in range(5):
        frames = []
        for n in range(2000):
            key = (int4(n % 50), None, None)
            moved = (int4(1000 + n % 50), None, None)
            frames += [t.insert(int4(n % 50), int8(n), "x" * 100), t.update(moved[0], int8(n), None, key=key),
                       t.update(int4(n % 50), int8(-n), UNCHANGED, key=moved), t.remove(*key)]
        apply(connection, t, *frames, t.insert(int4(1), int8(1), None))
        apply(connection, t, t.remove(int4(1), None, None))
    assert rows(connection, "SELECT count(*) FROM ledger") == [(0,)]


def test_a_long_history_ends_as_in_a_model(connection: Connection, random_: Any) -> None:
    t = ledger(connection)
    model: dict[int, tuple[int, str | None]] = {}
    keys: list[int] = []
    for call_number in range(100):
        frames = []
        for n in range(call_number * 1000, (call_number + 1) * 1000):
            place = random_.randrange(len(keys)) if keys else 0
            choice = random_.random() if keys else 0
            if choice < 0.55:
                keys.append(n)
                model[n] = (n, f"note {n}" if n % 7 else None)
                frames.append(t.insert(int4(n), int8(n), model[n][1]))
            elif choice < 0.85:
                key = keys[place]
                model[key] = (-n, model[key][1] if n % 2 else "changed")
                frames.append(t.update(int4(key), int8(-n), UNCHANGED if n % 2 else "changed"))
            elif choice < 0.9:
                key, keys[place] = keys[place], n
                model[n] = (n, model.pop(key)[1])
                frames.append(t.update(int4(n), int8(n), UNCHANGED, key=(int4(key), None, None)))
            else:
                key, keys[place] = keys[place], keys[-1]
                keys.pop()
                del model[key]
                frames.append(t.remove(int4(key), None, None))
        assert apply(connection, t, *frames) == 1000
    assert rows(connection, "SELECT id, amount, note FROM ledger ORDER BY id") == [
        (key, *model[key]) for key in sorted(model)]


def test_several_tables_and_versions(connection: Connection) -> None:
    connection.execute("CREATE TABLE a (id integer PRIMARY KEY, x text); CREATE TABLE b (x text)")
    a, b = target(connection, "a", relation=1), target(connection, "b", relation=2)
    other = Target(1, 2, a.table, a.identity_index, tuple(reversed(a.attributes)))  # columns changed places
    assert apply(connection, [a, b, other], a.insert(int4(1), "one"), b.insert("bee"), other.update("two", int4(1)),
                 b.insert(None), other.insert("three", int4(3))) == 5
    assert rows(connection, "SELECT * FROM a ORDER BY id") == [(1, "two"), (3, "three")]
    assert rows(connection, "SELECT * FROM b ORDER BY x") == [("bee",), (None,)]


def test_every_type(connection: Connection, destination_cluster: Cluster, database: str) -> None:
    destination_cluster.run_script(database, type_catalogue.USER_TYPES + type_catalogue.table_definition("everything")
                                   + type_catalogue.inserts("everything", 0, 0))
    connection.execute("CREATE TABLE copy (LIKE everything INCLUDING ALL)")
    columns = rows(connection, """
        SELECT attname, t.typsend = 0 OR coalesce(e.typsend = 0, false) FROM pg_attribute
          JOIN pg_type t ON t.oid = atttypid LEFT JOIN pg_type e ON e.oid = t.typelem AND t.typcategory = 'A'
         WHERE attrelid = 'everything'::regclass AND attnum > 0 AND attgenerated = '' ORDER BY attnum""")
    t = target(connection, "copy", [name for name, _ in columns])
    for all_text in (False, True):
        in_text = [all_text or has_no_binary for _, has_no_binary in columns]
        listed = ", ".join(f'"{name}"' + ("::text" if text and not all_text else "")
                           for (name, _), text in zip(columns, in_text, strict=True))
        query = f"SELECT {listed} FROM everything ORDER BY id"
        result = connection.cursor(binary=not all_text).execute(query).pgresult  # type: ignore[call-overload]
        assert result is not None and result.ntuples > 0
        frames = []
        for row in range(result.ntuples):
            values = [result.get_value(row, column) for column in range(result.nfields)]
            frames.append(t.insert(*(value.decode() if value is not None and text else value
                                     for value, text in zip(values, in_text, strict=True))))
        assert apply(connection, t, *frames) == result.ntuples
        assert rows(connection, "SELECT (SELECT array_agg(t::text ORDER BY id) FROM everything t) = "
                                "(SELECT array_agg(t::text ORDER BY id) FROM copy t)") == [(True,)]
        connection.execute("TRUNCATE copy")


def test_unchanged_toast_stays_where_it_is(connection: Connection) -> None:
    connection.execute("CREATE TABLE big (id integer PRIMARY KEY, n integer, body text);"
                       "ALTER TABLE big ALTER body SET STORAGE EXTERNAL;"
                       "INSERT INTO big SELECT n, 0, repeat(md5(n::text), 1000) FROM generate_series(1, 3) n")
    toast = rows(connection, "SELECT reltoastrelid::regclass FROM pg_class WHERE relname = 'big'")[0][0]
    before = rows(connection, f"SELECT chunk_id, count(*) FROM {toast} GROUP BY 1 ORDER BY 1")
    t = target(connection, "big")
    apply(connection, t, *(t.update(int4(n), int4(7), UNCHANGED) for n in (1, 2, 3)),
          t.update(int4(9), int4(8), UNCHANGED, key=(int4(1), None, None)))
    assert rows(connection, "SELECT id, n, body = repeat(md5(CASE id WHEN 9 THEN '1' ELSE id::text END), 1000) FROM big"
                            " ORDER BY id") == [(2, 7, True), (3, 7, True), (9, 8, True)]
    assert rows(connection, f"SELECT chunk_id, count(*) FROM {toast} GROUP BY 1 ORDER BY 1") == before
    assert refused(connection, t, t.insert(int4(4), int4(1), UNCHANGED)).sqlstate == MALFORMED


def test_generated_identity_default_and_dropped_columns(connection: Connection) -> None:
    connection.execute("""
        CREATE TABLE made (gone integer, id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n integer,
          twice integer GENERATED ALWAYS AS (n * 2) STORED, here text DEFAULT 'of ' || current_database(),
          numbered bigint GENERATED BY DEFAULT AS IDENTITY, free date);
        ALTER TABLE made DROP COLUMN gone""")
    t = target(connection, "made", ["id", "n", "twice"])
    assert t.attributes[2] == 0
    apply(connection, t, t.insert(int4(40), int4(1), int4(99)), t.insert(int4(50), None, None),
          t.update(int4(40), int4(5), int4(99)), t.update(int4(51), int4(6), None, key=(int4(50), None, None)))
    assert rows(connection, "SELECT * FROM made ORDER BY id") == [
        (40, 5, 10, "of data_layer", 1, None), (51, 6, 12, "of data_layer", 2, None)]


def test_constraints_hold_and_a_failed_call_writes_nothing(connection: Connection) -> None:
    connection.execute("CREATE DOMAIN positive AS integer NOT NULL CHECK (VALUE > 0);"
                       "CREATE TABLE strict (id integer PRIMARY KEY, a integer UNIQUE,"
                       " b integer NOT NULL CHECK (b < 9), c positive, d varchar(3))")
    t = target(connection, "strict")
    good = t.insert(int4(1), int4(1), int4(1), int4(1), "abc")
    for state, bad in [
        ("23505", t.insert(int4(1), int4(2), int4(1), int4(1), None)),
        ("23505", t.insert(int4(2), int4(1), int4(1), int4(1), None)),
        ("23502", t.insert(int4(2), int4(2), None, int4(1), None)),
        ("23514", t.insert(int4(2), int4(2), int4(9), int4(1), None)),
        ("23514", t.insert(int4(2), int4(2), int4(1), int4(0), None)),
        ("23502", t.insert(int4(2), int4(2), int4(1), None, None)),
        ("22001", t.insert(int4(2), int4(2), int4(1), int4(1), "abcd")),
        ("22001", t.insert(int4(2), int4(2), int4(1), int4(1), b"abcd")),
        ("22P03", t.insert(int4(2), int4(2), int4(1) + b"\0", int4(1), None)),
        ("08P01", t.insert(int4(2), int4(2), b"\0", int4(1), None)),
        ("22P02", t.insert(int4(2), int4(2), "one", int4(1), None)),
        ("22021", t.insert(int4(2), int4(2), int4(1), int4(1), b"\xff")),
        ("22021", t.insert(int4(2), int4(2), int4(1), int4(1), "\0")),
        ("23514", t.update(int4(1), int4(1), int4(9), int4(1), None)),
    ]:
        error = refused(connection, t, good, bad)
        assert error.sqlstate == state
        assert "frame 2 of the call" in str(error.diag.context)
    assert rows(connection, "SELECT count(*) FROM strict") == [(0,)]


def test_a_missing_row_has_its_own_state_and_number(connection: Connection) -> None:
    t = ledger(connection)
    first = t.insert(int4(1), int8(1), None)
    for bad in (t.update(int4(2), int8(1), None), t.remove(int4(2), None, None), t.remove(None, None, None)):
        error = refused(connection, t, first, t.insert(int4(3), int8(1), None), bad)
        assert error.sqlstate == ROW_NOT_FOUND
        assert "frame 3 of the call" in str(error.diag.context)
    assert rows(connection, "SELECT count(*) FROM ledger") == [(0,)]


def test_triggers_and_foreign_keys_as_the_role_says(connection: Connection) -> None:
    connection.execute("""
        CREATE TABLE parent (id integer PRIMARY KEY);
        CREATE TABLE child (id integer PRIMARY KEY, parent integer REFERENCES parent, note text);
        CREATE TABLE seen (n serial, what text, rows bigint);
        CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
          INSERT INTO seen (what, rows) SELECT TG_ARGV[0] || ' ' || TG_OP || ' ' || coalesce(OLD.note, '-'), count(*)
            FROM child;
          IF TG_WHEN = 'BEFORE' AND TG_OP <> 'DELETE' THEN NEW.note = NEW.note || '!'; RETURN NEW; END IF;
          RETURN OLD; END $$;
        CREATE TRIGGER origin_only BEFORE INSERT ON child FOR EACH ROW EXECUTE FUNCTION see('origin');
        CREATE TRIGGER always BEFORE INSERT OR UPDATE OR DELETE ON child FOR EACH ROW EXECUTE FUNCTION see('always');
        CREATE TRIGGER replica AFTER INSERT OR UPDATE OR DELETE ON child FOR EACH ROW EXECUTE FUNCTION see('replica');
        ALTER TABLE child ENABLE ALWAYS TRIGGER always, ENABLE REPLICA TRIGGER replica""")
    t = target(connection, "child")
    frames = [t.insert(int4(1), int4(99), "a"), t.insert(int4(2), int4(99), "b"), t.update(int4(1), int4(99), "c"),
              t.remove(int4(2), None, None)]
    apply(connection, t, *frames)
    assert rows(connection, "SELECT * FROM child") == [(1, 99, "c!")]
    assert rows(connection, "SELECT what, rows FROM seen ORDER BY n") == [
        ("always INSERT -", 0), ("replica INSERT -", 1), ("always INSERT -", 1), ("replica INSERT -", 2),
        ("always UPDATE a!", 2), ("replica UPDATE a!", 2), ("always DELETE b!", 2), ("replica DELETE b!", 1)]
    connection.execute("SET session_replication_role = origin")
    assert refused(connection, t, frames[1]).sqlstate == "23503"
    connection.execute("INSERT INTO parent VALUES (99)")
    apply(connection, t, frames[1])
    assert rows(connection, "SELECT count(*) FROM seen WHERE what LIKE 'origin%'") == [(1,)]


def test_inserts_that_wait_are_there_when_somebody_looks(connection: Connection) -> None:
    connection.execute("""
        CREATE TABLE quiet (id integer PRIMARY KEY, twice integer GENERATED ALWAYS AS (id * 2) STORED);
        CREATE TABLE loud (id integer PRIMARY KEY, seen bigint);
        CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
          NEW.seen = (SELECT sum(twice) FROM quiet); RETURN NEW; END $$;
        CREATE TRIGGER look BEFORE INSERT ON loud FOR EACH ROW EXECUTE FUNCTION look();
        ALTER TABLE loud ENABLE ALWAYS TRIGGER look""")
    quiet, loud = target(connection, "quiet", ["id"], relation=1), target(connection, "loud", relation=2)
    apply(connection, [quiet, loud], *(quiet.insert(int4(n)) for n in range(4)), loud.insert(int4(1), None),
          quiet.insert(int4(4)), loud.insert(int4(2), None))
    assert rows(connection, "SELECT id, seen FROM loud ORDER BY id") == [(1, 12), (2, 20)]
    # More than are held at a time; the one that fails is named, not the one before which they were written.
    frames = [quiet.insert(int4(n)) for n in range(10, 1300)]
    error = refused(connection, quiet, *frames, quiet.insert(int4(1200)), quiet.insert(int4(2000)))
    assert error.sqlstate == "23505"
    assert "frame 1291 of the call, insert into" in str(error.diag.context)
    assert apply(connection, quiet, *frames) == 1290
    assert rows(connection, "SELECT count(*), sum(id) FROM quiet") == [(1295, sum(range(10, 1300)) + 10)]


def test_an_index_that_is_no_primary_key(connection: Connection) -> None:
    connection.execute("CREATE TABLE t (a text NOT NULL, b numeric NOT NULL, n integer);"
                       "CREATE UNIQUE INDEX by_both ON t (b, a) INCLUDE (n); CREATE INDEX loose ON t (a);"
                       "CREATE UNIQUE INDEX partial ON t (a) WHERE n > 0; CREATE UNIQUE INDEX lower ON t (lower(a))")
    t = target(connection, "t", index="by_both")
    apply(connection, t, t.insert("x", "1.0", int4(1)), t.insert("y", "1.0", int4(1)), t.update("y", "1.00", int4(5)),
          t.remove("x", "1", None))
    assert rows(connection, "SELECT a, n FROM t") == [("y", 5)]
    connection.execute("CREATE TABLE other (a text PRIMARY KEY)")
    for index in ("loose", "partial", "lower", "other_pkey", "t"):
        assert refused(connection, target(connection, "t", index=index)).sqlstate == TABLE_REFUSED
    no_index = Target(t.relation, t.version, t.table, 0, t.attributes)
    assert apply(connection, no_index, t.insert("z", "7", None)) == 1
    assert refused(connection, no_index, t.update("z", "7", int4(1))).sqlstate == TABLE_REFUSED


def test_what_is_not_an_ordinary_table_is_refused(connection: Connection) -> None:
    connection.execute("CREATE TABLE parts (id integer PRIMARY KEY) PARTITION BY RANGE (id);"
                       "CREATE VIEW shown AS SELECT 1 AS id; CREATE SEQUENCE numbers;"
                       "CREATE TABLE plain (id integer PRIMARY KEY, g integer GENERATED ALWAYS AS (1) STORED)")
    for name in ("parts", "shown", "numbers", "pg_class"):
        oid = rows(connection, f"SELECT '{name}'::regclass::oid")[0][0]
        assert refused(connection, Target(1, 1, oid, 0, (1,))).sqlstate in (TABLE_REFUSED, "42809")
    plain = target(connection, "plain")
    for attributes in ((1, 1), (3,), (-1,), (2,)):
        assert refused(connection, Target(1, 1, plain.table, 0, attributes)).sqlstate == TABLE_REFUSED
    assert refused(connection, Target(1, 1, 4_000_000_000, 0, ())).sqlstate == "XX000"


def test_privileges_and_row_security_of_the_caller(connection: Connection) -> None:
    t = ledger(connection)
    insert, update = t.insert(int4(1), int8(1), None), t.update(int4(1), int8(2), None)
    connection.execute("DROP ROLE IF EXISTS writer; CREATE ROLE writer; GRANT USAGE ON SCHEMA public TO writer;"
                       "SET SESSION AUTHORIZATION writer")
    assert refused(connection, t, insert).sqlstate == "42501"
    assert refused(connection, t).sqlstate == "42501"  # no lock for nothing
    as_owner(connection, "GRANT INSERT, UPDATE ON ledger TO writer")
    assert apply(connection, t, insert) == 1
    assert refused(connection, t, update).sqlstate == "42501"  # looks at the key
    as_owner(connection, "GRANT SELECT ON ledger TO writer")
    assert apply(connection, t, update) == 1
    assert refused(connection, t, t.remove(int4(1), None, None)).sqlstate == "42501"
    as_owner(connection, "ALTER TABLE ledger ENABLE ROW LEVEL SECURITY")
    assert refused(connection, t, update).sqlstate == TABLE_REFUSED
    as_owner(connection, "ALTER ROLE writer BYPASSRLS")
    assert apply(connection, t, update) == 1
    connection.execute("BEGIN READ ONLY")
    assert refused(connection, t, update).sqlstate == "25006"
    connection.execute("ROLLBACK; RESET SESSION AUTHORIZATION; DROP OWNED BY writer; DROP ROLE writer")


def as_owner(connection: Connection, statement: str) -> None:
    connection.execute("RESET SESSION AUTHORIZATION")
    connection.execute(statement)  # type: ignore[call-overload]
    connection.execute("SET SESSION AUTHORIZATION writer")


def test_waits_for_another_session_that_holds_the_row(connection: Connection, destination_cluster: Cluster,
                                                      database: str) -> None:
    t = ledger(connection)
    apply(connection, t, t.insert(int4(1), int8(1), "old"), t.insert(int4(2), int8(1), "old"))
    for outcome, expected in (("COMMIT", "theirs"), ("ROLLBACK", "old")):
        connection.execute("UPDATE ledger SET note = 'old'")
        with destination_cluster.connect(database) as other:
            other.execute("BEGIN; UPDATE ledger SET note = 'theirs' WHERE id = 1")
            other.execute("SELECT FROM ledger WHERE id = 2 FOR UPDATE")
            done = threading.Thread(target=apply, args=(connection, t, t.update(int4(1), int8(7), UNCHANGED),
                                                        t.update(int4(2), int8(7), UNCHANGED)))
            done.start()
            waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = 'data_layer'"
            while rows(other, waiting) == [(0,)]:
                time.sleep(0.01)
            other.execute(outcome)
            done.join()
        assert rows(connection, "SELECT amount, note FROM ledger ORDER BY id") == [(7, expected), (7, "old")]


def test_wrong_bytes_never_crash_the_server(connection: Connection, random_: Any, destination_cluster: Cluster) -> None:
    connection.execute("CREATE TYPE pair AS (a integer, b text);"
                       "CREATE TABLE odd (id integer PRIMARY KEY, a text, b numeric, c integer[], d jsonb, e pair)")
    connection.execute("INSERT INTO odd VALUES (1, 'a', 1.5, '{1,2}', '{\"a\": 1}', '(1,x)')")
    t = target(connection, "odd")
    result = connection.cursor(binary=True).execute("SELECT * FROM odd").pgresult
    assert result is not None
    values = [result.get_value(0, column) for column in range(result.nfields)]
    tables = table_list(t)
    frames = b"".join([t.update(*values), t.insert(int4(2), "b", "2", "{3}", "{}", "(2,y)"), t.remove(*values),
                       t.insert(*values), t.update(int4(5), UNCHANGED, *values[2:], key=values)])
    server = destination_cluster.postmaster()
    pid = connection.info.backend_pid
    states: dict[str, int] = {}

    def attempt(tables: bytes, frames: bytes) -> None:
        connection.execute("BEGIN")
        try:
            call(connection, tables, frames)
            state = "00000"
        except psycopg.Error as error:
            state = str(error.sqlstate)
        connection.execute("ROLLBACK")
        states[state] = states.get(state, 0) + 1

    attempt(tables, frames)
    assert states == {"00000": 1}
    for length in range(len(frames)):
        attempt(tables, frames[:length])
    for length in range(len(tables)):
        attempt(tables[:length], frames)
    for _ in range(4000):
        mutated = [bytearray(tables), bytearray(frames)]
        chosen = mutated[random_.random() < 0.85]
        for _ in range(random_.choice((1, 1, 2, 5))):
            at = random_.randrange(len(chosen))
            chosen[at] = random_.choice((0, 1, 0x7F, 0x80, 0xFF, chosen[at] ^ 1 << random_.randrange(8)))
        attempt(bytes(mutated[0]), bytes(mutated[1]))
    assert states[MALFORMED] > 500
    assert None not in states and "None" not in states  # the connection never broke
    assert connection.info.backend_pid == pid and destination_cluster.postmaster() == server
    assert rows(connection, "SELECT count(*) FROM odd") == [(1,)]


def test_a_long_call_can_be_cancelled(connection: Connection, destination_cluster: Cluster, database: str) -> None:
    """It waits for another session's row at first, so that it is at work, and far from its end, when that happens."""
    t = ledger(connection)
    frames = b"".join(t.insert(int4(n), int8(n), "x") for n in range(200_000))
    pid = connection.info.backend_pid
    waits = f"SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND pid = {pid}"

    def cancel_once_it_works(other: Connection) -> None:
        while rows(other, waits) == [(0,)]:
            time.sleep(0.005)
        other.execute(f"ROLLBACK; SELECT pg_cancel_backend({pid})")

    with destination_cluster.connect(database) as other:
        other.execute("BEGIN; INSERT INTO ledger VALUES (0, 0, 'in the way')")
        canceller = threading.Thread(target=cancel_once_it_works, args=(other,), daemon=True)
        canceller.start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            call(connection, table_list(t), frames)
        canceller.join()
    assert rows(connection, "SELECT count(*) FROM ledger") == [(0,)]
