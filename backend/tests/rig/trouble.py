"""The troubles themselves, all real: SQL at the source and the destination, a server that is down, a slow disk."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg

from tests.rig.bench import Bench

TABLE = "CREATE TABLE item (id bigint PRIMARY KEY, n bigint NOT NULL DEFAULT 0, filler text)"


def rows(count: int) -> Callable[[Bench], None]:
    """A table with so many rows at the source."""

    def prepare(bench: Bench) -> None:
        fill = f"INSERT INTO item SELECT i, 0, repeat('x', 60) FROM generate_series(1, {count}) i"
        bench.at_source(TABLE, fill, "ANALYZE item")

    return prepare


def rows_without_key(count: int) -> Callable[[Bench], None]:
    """Replica identity FULL: the source's own statements have an index, which is not a key."""

    def prepare(bench: Bench) -> None:
        rows(count)(bench)
        bench.at_source(
            "ALTER TABLE item DROP CONSTRAINT item_pkey", "ALTER TABLE item ALTER id SET NOT NULL",
            "CREATE INDEX ON item (id)", "ALTER TABLE item REPLICA IDENTITY FULL",
        )  # fmt: skip

    return prepare


def updates(rows: int, per_transaction: int) -> Callable[[Bench], None]:
    """So many updates, one after the other over the table's rows."""

    def write(bench: Bench) -> None:
        bench.at_source(f"""
            DO $$ DECLARE size bigint; BEGIN
              SELECT count(*) INTO size FROM item;
              FOR i IN 0..{rows // per_transaction - 1} LOOP
                UPDATE item SET n = n + 1 WHERE id BETWEEN (i::bigint * {per_transaction}) % size + 1
                                                       AND (i::bigint * {per_transaction}) % size + {per_transaction};
                COMMIT;
              END LOOP; END $$""")

    return write


def hot_row(count: int) -> Callable[[Bench], None]:
    def write(bench: Bench) -> None:
        bench.at_source(
            f"DO $$ BEGIN FOR i IN 1..{count} LOOP UPDATE item SET n = n + 1 WHERE id = 1; COMMIT; END LOOP; END $$"
        )

    return write


def large_transactions(count: int, size: int) -> Callable[[Bench], None]:
    def write(bench: Bench) -> None:
        for number in range(count):
            first = 1_000_000 + number * size
            bench.at_source(
                f"INSERT INTO item SELECT i, i, md5(i::text) || md5((i * 7)::text) "
                f"FROM generate_series({first}, {first + size - 1}) i"
            )

    return write


def wide_rows(count: int) -> Callable[[Bench], None]:
    """So many inserts of 1.7 kB that compress to half, 100 to a transaction."""

    def write(bench: Bench) -> None:
        bench.at_source(
            "CREATE TABLE noise AS SELECT decode(string_agg(md5(i::text), ''), 'hex') AS bytes "
            "FROM generate_series(1, 250000) i",
            f"""DO $$ DECLARE noise bytea; BEGIN
              SELECT bytes INTO noise FROM noise;
              FOR part IN 1..{count // 100} LOOP
                INSERT INTO item SELECT i, i, encode(substring(noise FROM 1 + (i * 853 % 3900000)::int FOR 850), 'hex')
                  FROM generate_series(1000000 + part * 100, 1000099 + part * 100) i;
                COMMIT;
              END LOOP; END $$""",
        )  # fmt: skip

    return write


def unwanted_table(bench: Bench) -> None:
    rows(1000)(bench)
    bench.at_source("CREATE TABLE unwanted (id bigint PRIMARY KEY, n bigint)")
    bench.execute_source("ALTER SYSTEM SET logical_decoding_work_mem = '64kB'", "SELECT pg_reload_conf()")


def unwanted_changes(count: int) -> Callable[[Bench], None]:
    def write(bench: Bench) -> None:
        bench.at_source(f"INSERT INTO unwanted SELECT i, i FROM generate_series(1, {count}) i")

    return write


PAGES, ROWS_ON_A_PAGE = 20_000, 30


def many_pages(bench: Bench) -> None:
    """A table that nobody wants: what is mined of it is WAL, and nothing is applied."""
    rows(1000)(bench)
    bench.at_source(
        "CREATE TABLE unwanted (id bigint PRIMARY KEY, n bigint, filler text) WITH (fillfactor = 90)",
        f"INSERT INTO unwanted SELECT i, 0, repeat('x', 200) FROM generate_series(1, {PAGES * ROWS_ON_A_PAGE}) i",
    )


def updates_after_checkpoints(rounds: int) -> Callable[[Bench], None]:
    """In each round, the first change of each page after a checkpoint."""

    def write(bench: Bench) -> None:
        for number in range(rounds):
            bench.at_source("CHECKPOINT", f"UPDATE unwanted SET n = n + 1 WHERE id % {ROWS_ON_A_PAGE} = {number}")

    return write


@contextmanager
def without_index(bench: Bench) -> Iterator[None]:
    bench.at_destination("DROP INDEX IF EXISTS item_id_idx", "ANALYZE item")
    yield


def _trigger(bench: Bench, condition: str, loops: int) -> None:
    bench.at_destination(
        f"""CREATE OR REPLACE FUNCTION check_item() RETURNS trigger LANGUAGE plpgsql AS $$
            DECLARE sum bigint := 0; BEGIN
              IF {condition} THEN FOR i IN 1..{loops} LOOP sum := sum + i; END LOOP; END IF;
              RETURN NULL; END $$""",
        "CREATE TRIGGER check_item AFTER UPDATE ON item FOR EACH ROW EXECUTE FUNCTION check_item()",
        "ALTER TABLE item ENABLE ALWAYS TRIGGER check_item",
    )


@contextmanager
def with_trigger(bench: Bench) -> Iterator[None]:
    _trigger(bench, "true", 10_000)
    yield


@contextmanager
def with_uneven_trigger(bench: Bench) -> Iterator[None]:
    """Only some transactions are slow: the others wait for them."""
    bench.at_destination(
        """CREATE FUNCTION nap() RETURNS trigger LANGUAGE plpgsql AS $$
           BEGIN IF NEW.id % 3 = 0 THEN PERFORM pg_sleep(0.002); END IF; RETURN NULL; END $$""",
        "CREATE TRIGGER nap AFTER UPDATE ON item FOR EACH ROW EXECUTE FUNCTION nap()",
        "ALTER TABLE item ENABLE ALWAYS TRIGGER nap",
    )
    yield


@contextmanager
def with_open_transaction(bench: Bench) -> Iterator[None]:
    with psycopg.connect(bench.destination_conninfo, application_name="month end report") as connection:
        connection.execute("UPDATE item SET filler = 'in work' WHERE id = 500")
        yield
        connection.rollback()


@contextmanager
def with_open_transaction_at_source(bench: Bench) -> Iterator[None]:
    with psycopg.connect(bench.source_conninfo, application_name="month end report") as connection:
        connection.execute("INSERT INTO item VALUES (1000000, 0, 'in work')")
        for _ in range(20):
            bench.at_source("SELECT pg_logical_emit_message(false, 'rig', repeat('x', 10000000))")
        yield
        connection.rollback()


@contextmanager
def with_forgotten_wal(bench: Bench) -> Iterator[None]:
    """While the engine is stopped, its slot is dropped and the WAL that it needs next is removed."""
    bench.at_source("INSERT INTO item VALUES (1000000, 0, 'the last that comes')")
    for pid in bench.engine_pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        bench.execute_source(
            "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active_pid IS NOT NULL",
            "SELECT pg_sleep(0.5)", "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots",
        )  # fmt: skip
        for number in range(3):
            bench.at_source(f"INSERT INTO item VALUES ({1_000_001 + number}, 0, 'lost')", "SELECT pg_switch_wal()")
            bench.at_source("CHECKPOINT")
    finally:
        for pid in bench.engine_pids:
            os.kill(pid, signal.SIGCONT)
    yield


@contextmanager
def with_slow_fsync(bench: Bench) -> Iterator[None]:
    bench.slow_disk(0.2)
    try:
        yield
    finally:
        bench.slow_disk(0)


@contextmanager
def with_destination_down(bench: Bench) -> Iterator[None]:
    bench.destination.stop_server()
    time.sleep(1)
    try:
        yield
    finally:
        bench.destination.start_server()
