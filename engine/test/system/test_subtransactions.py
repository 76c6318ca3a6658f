"""Changes that were rolled back to a savepoint are not applied, also where the source's server does not report it.

PostgreSQL sends no abort of a subtransaction of which it had spilled more than 4096 changes, chunks of large values
say, before it streamed them.
"""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from harness.cluster import wait_for
from harness.engine import Engine, destination_path
from harness.fan_out import FanOut
from harness.mining import part, start_mining
from harness.paths import EnginePair
from harness.scene import Scene
from harness.workload import Writers

LARGE = 10_000_000  # bytes: more than 4096 chunks
TABLES = """
CREATE TABLE large (id integer PRIMARY KEY, tag text NOT NULL, body text);
ALTER TABLE large ALTER body SET STORAGE EXTERNAL;
CREATE TABLE plain (id integer PRIMARY KEY, tag text NOT NULL);
INSERT INTO large SELECT n, 'copied', repeat('a', 3000) FROM generate_series(1, 12) n;
INSERT INTO plain SELECT n, 'copied' FROM generate_series(1, 300) n;
"""
# Statements that are rolled back, and the number of their LCRs. The large value comes last.
ROLLED_BACK = [
    (f"UPDATE large SET body = repeat('gone', {LARGE} / 4) WHERE id = 1", 1),
    (f"DELETE FROM plain WHERE id <= 50; INSERT INTO large VALUES (20, 'gone', repeat('gone', {LARGE} / 4))", 51),
    ("UPDATE plain SET tag = 'gone'; SAVEPOINT within; "
     f"UPDATE large SET tag = 'gone', body = repeat('gone', {LARGE} / 4) WHERE id = 3; RELEASE within", 301),
    (f"TRUNCATE plain; INSERT INTO large VALUES (21, 'gone', repeat('gone', {LARGE} / 4))", 2),
]


@pytest.fixture
def eager_scene(scene: Scene) -> Iterator[Scene]:
    """The source spills and streams every transaction above 64 kB."""
    scene.source.sql("postgres", "ALTER ROLE thalweg SET logical_decoding_work_mem = '64kB'")
    scene.run_at_source(TABLES)
    yield scene
    scene.source.wait_ready()
    scene.source.sql("postgres", "ALTER ROLE thalweg RESET logical_decoding_work_mem")


def captured(scene: Scene) -> int:
    return sum(int(component["counters"].get("lcrs", 0)) for component in scene.engine.components(scene.stream)
               if component["type"] == "CAPTURE")


def roll_back_parts(scene: Scene) -> None:
    """A transaction for each way; what is before, between and after the rolled back part stays.

    Each waits until what it will roll back has been sent: afterwards the source would know better.
    """
    for n, (statements, lcrs) in enumerate(ROLLED_BACK):
        sent = captured(scene) + 156 + lcrs
        with scene.source.connect(scene.database, "thalweg") as connection:
            connection.execute(f"BEGIN; UPDATE large SET tag = 'kept {n}' WHERE id > 6; SAVEPOINT kept; UPDATE plain "
                               f"SET tag = 'kept {n}' WHERE id > 150; RELEASE kept; SAVEPOINT gone; {statements}")
            if scene.libraries:
                wait_for(lambda at_least=sent: captured(scene) >= at_least, 60, f"captured: {statements}")
            connection.execute(f"ROLLBACK TO gone; UPDATE plain SET tag = 'after' WHERE id = {n + 1}; COMMIT")


def capture_gauge(engine: Engine, stream: str, name: str) -> Any:
    return next(component["gauges"].get(name) for component in engine.components(stream)
                if component["type"] == "CAPTURE")


@pytest.mark.both_ways
def test_what_was_rolled_back_is_not_applied(eager_scene: Scene) -> None:
    scene = eager_scene
    scene.start_stream(parallelism=3, txn_lcr_spill_threshold=100)
    roll_back_parts(scene)
    scene.wait_applied()
    scene.assert_same()
    assert capture_gauge(scene.engine, scene.stream, "streaming") == (1 if scene.libraries else 0)


def test_nor_with_log_mining(scene: Scene) -> None:
    """The WAL has every abort; here a transaction comes in pieces because the capture has no memory for it."""
    scene.run_at_source(TABLES)
    start_mining(scene, capture_memory_mb=1)
    roll_back_parts(scene)
    scene.wait_applied()
    scene.assert_same()
    assert part(scene, "LOGMINER BUILDER")["counters"]["streamed_transactions"] == len(ROLLED_BACK)


@pytest.mark.parametrize("serialization", ["full", "none"])
def test_nor_in_another_order(eager_scene: Scene, serialization: str) -> None:
    eager_scene.start_stream(commit_serialization=serialization)
    roll_back_parts(eager_scene)
    eager_scene.wait_applied()
    eager_scene.assert_same()


def test_nor_over_two_engines(eager_scene: Scene, tmp_path: Path) -> None:
    pair = EnginePair(eager_scene, tmp_path)
    try:
        pair.start_stream()
        roll_back_parts(eager_scene)
        pair.wait_applied()
        eager_scene.assert_same()
    finally:
        pair.close()


def test_nor_from_a_backlog(eager_scene: Scene) -> None:
    fan = FanOut(eager_scene)
    try:
        fan.start_stream("a", "b")
        fan.made["b"].relay.sever()
        fan.wait("b", lambda destination: destination["phase"] == "RETRYING", "is away")
        roll_back_parts(eager_scene)
        fan.wait_applied("a")
        fan.mend("b")
        fan.wait_applied()
        fan.assert_same()
    finally:
        fan.close()


def test_nor_from_the_error_queue(eager_scene: Scene) -> None:
    scene = eager_scene
    scene.start_stream(disable_on_error=False)
    scene.at_destination("ALTER TABLE large ADD CONSTRAINT refused CHECK (tag NOT LIKE 'kept%')")
    roll_back_parts(scene)
    scene.wait_applied()
    scene.at_destination("ALTER TABLE large DROP CONSTRAINT refused")
    queue = destination_path(scene.stream) + "/errors"

    def waiting() -> list[int]:
        return [int(error["id"]) for error in scene.engine.request("GET", queue)["errors"]]

    assert len(waiting()) == len(ROLLED_BACK)
    while left := waiting():  # one takes along those that depend on it
        scene.engine.request("POST", f"{queue}/{left[0]}/execute")
        wait_for(lambda: scene.engine.request("GET", queue)["execution"]["state"] == "DONE", 60, "the execution ends")
        assert left[0] not in waiting()
    scene.assert_same()


def write(connection: psycopg.Connection[Any], random_: random.Random, writer: int) -> None:
    """Nested savepoints with large and small values at every level, each rolled back, released or left."""
    connection.execute("BEGIN")
    for level in range(random_.randrange(1, 6)):
        connection.execute(f"SAVEPOINT level_{level}")
        connection.execute("UPDATE plain SET tag = %s WHERE id %% 3 = %s AND id < 50",
                           (f"{writer} {random_.random()}", writer))
        connection.execute("UPDATE large SET tag = %s, body = repeat(%s, %s) WHERE id = %s",
                           (str(random_.random()), random_.choice("xyz"), random_.choice((10, 3000, 200_000, LARGE)),
                            writer + 3 * random_.randrange(1, 4)))
        ending = random_.randrange(4)
        if ending:
            connection.execute(("RELEASE", "ROLLBACK TO", "ROLLBACK TO")[ending - 1] + f" level_{level}")
    connection.execute("ROLLBACK" if random_.random() < 0.2 else "COMMIT")


def test_nor_of_many_at_once(eager_scene: Scene, random_: random.Random) -> None:
    scene = eager_scene
    scene.start_stream(parallelism=3)
    with Writers(scene.source, scene.database, 3, random_, write) as writers:
        wait_for(lambda: min(writers.rounds) > 4, 120, "the workload is thick enough to show something")
    scene.wait_applied(180)
    scene.assert_same()
