"""Transactions that flow before their commit: large, interleaved, with aborts of the whole and of parts."""

import random
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from harness.cluster import wait_for
from harness.scene import Scene
from harness.workload import Writers

TABLES = """
CREATE TABLE big (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, writer integer NOT NULL, body text NOT NULL);
CREATE TABLE note (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, writer integer NOT NULL, body text);
"""


@pytest.fixture
def streaming_scene(scene: Scene) -> Iterator[Scene]:
    """The source streams every transaction above 64 kB."""
    scene.source.sql("postgres", "ALTER ROLE thalweg SET logical_decoding_work_mem = '64kB'")
    yield scene
    scene.source.wait_ready()
    scene.source.sql("postgres", "ALTER ROLE thalweg RESET logical_decoding_work_mem")


def insert(connection: psycopg.Connection[Any], writer: int, rows: int) -> None:
    connection.execute("INSERT INTO big (writer, body) SELECT %s, repeat(md5(n::text), 4) "
                       "FROM generate_series(1, %s) n", (writer, rows))


def write(connection: psycopg.Connection[Any], random_: random.Random, writer: int) -> None:
    """One transaction: nested savepoints, some rolled back, some released; one in four is rolled back whole."""
    connection.execute("BEGIN")
    insert(connection, writer, random_.randrange(10, 1500))
    for level in range(random_.randrange(0, 5)):
        connection.execute(f"SAVEPOINT level_{level}")
        insert(connection, writer, random_.randrange(1, 1200))
        connection.execute("UPDATE big SET body = body || 'x' WHERE id IN (SELECT id FROM big WHERE writer = %s "
                           "ORDER BY id DESC LIMIT %s)", (writer, random_.randrange(1, 300)))
        connection.execute("DELETE FROM big WHERE id IN (SELECT id FROM big WHERE writer = %s ORDER BY id LIMIT %s)",
                           (writer, random_.randrange(0, 200)))
        ending = random_.randrange(3)
        if ending:
            connection.execute(("RELEASE", "ROLLBACK TO")[ending - 1] + f" level_{level}")
    connection.execute("INSERT INTO note (writer, body) VALUES (%s, %s)", (writer, random_.random()))
    connection.execute("ROLLBACK" if random_.random() < 0.25 else "COMMIT")


def reader_counter(scene: Scene, name: str) -> int:
    return next(int(component["counters"][name]) for component in scene.engine.components(scene.stream)
                if component["sub_component"] == "APPLY READER")


def shows_open(scene: Scene, connection: psycopg.Connection[Any]) -> bool:
    """The engine lists the connection's transaction: what it is, how large, and that it waits on disk."""
    xid = connection.execute("SELECT pg_current_xact_id_if_assigned()::text::bigint % (1::bigint << 32)").fetchone()
    shown = [transaction for transaction in scene.engine.transactions(scene.stream)
             if [transaction["xid"]] == list(xid or ())]
    return any(transaction["state"] == "OPEN" and transaction["streamed"] and transaction["spilled_bytes"] > 0
               and transaction["commit_lsn"] is None and transaction["tables"] == ['"public"."big"']
               and transaction["lcrs"] > 1000 for transaction in shown)


@pytest.mark.both_ways
def test_aborts_and_subtransaction_aborts_are_honoured(streaming_scene: Scene, random_: random.Random) -> None:
    scene = streaming_scene
    scene.run_at_source(TABLES)
    scene.start_stream(parallelism=3)
    with Writers(scene.source, scene.database, 3, random_, write) as writers:
        wait_for(lambda: min(writers.rounds) > 8, 120, "the workload is thick enough to show something")
        if scene.libraries:  # pgoutput sends whole transactions, after their commit
            wait_for(lambda: reader_counter(scene, "aborted_transactions") > 0, 60, "a streamed one was aborted")
    scene.wait_applied()
    scene.assert_same()


def test_large_transaction_spills_and_survives_a_kill(streaming_scene: Scene) -> None:
    scene = streaming_scene
    scene.run_at_source(TABLES)
    scene.start_stream(txn_lcr_spill_threshold=1000)
    with scene.source.connect(scene.database, "thalweg") as connection:
        connection.execute("BEGIN")
        insert(connection, 1, 30_000)
        scene.engine.wait_status(scene.stream, lambda _: reader_counter(scene, "spilled_lcrs") > 0, 30, "spilling")
        wait_for(lambda: shows_open(scene, connection), 10, "the open transaction is listed")
        scene.engine.kill()
        scene.engine.start()
        insert(connection, 1, 10_000)
        connection.execute("COMMIT")
    scene.wait_applied()
    scene.assert_same()
