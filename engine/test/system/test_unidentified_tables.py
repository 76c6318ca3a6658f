"""Tables that come into a running stream before they have a replica identity, behind a backlog.

Published, they could not be updated at the source any more; copied unpublished, they would miss what happens since."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.fan_out import FanOut
from harness.paths import EnginePair, applied_there
from harness.scene import Scene

TABLES = """
CREATE TABLE late (id bigint NOT NULL, v text NOT NULL);
CREATE TABLE parted (id bigint NOT NULL, v text NOT NULL) PARTITION BY RANGE (id);
CREATE TABLE parted_low PARTITION OF parted FOR VALUES FROM (0) TO (1000);
CREATE TABLE parted_high PARTITION OF parted FOR VALUES FROM (1000) TO (1000000);
ALTER TABLE parted_low REPLICA IDENTITY FULL;
"""
IDENTITIES = "ALTER TABLE late ADD PRIMARY KEY (id); ALTER TABLE parted ADD PRIMARY KEY (id);"
COMING_IN = [("public", name) for name in ("t", "late", "parted")]


@pytest.fixture
def fan(scene: Scene) -> Iterator[FanOut]:
    fan = FanOut(scene)
    yield fan
    fan.close()


def write(scene: Scene, first: int) -> None:
    """A thousand rows of each, then an update and a delete of some."""
    last = first + 999
    for table in ("late", "parted"):
        scene.at_source(f"INSERT INTO {table} SELECT n, 'new' FROM generate_series({first}, {last}) n",
                        f"UPDATE {table} SET v = 'changed' WHERE id % 7 = 0 AND id >= {first}",
                        f"DELETE FROM {table} WHERE id % 11 = 0 AND id >= {first}")


def add(fan: FanOut) -> None:
    fan.scene.run_at_source(TABLES)
    fan.engine.set_stream(fan.scene.stream, tables=[{"schema": schema, "table": name} for schema, name in COMING_IN])


def test_they_stay_unpublished_until_they_have_one(fan: FanOut) -> None:
    fan.scene.run_at_source("CREATE TABLE t (id bigint PRIMARY KEY)")
    fan.start_stream("a", "b")
    add(fan)
    for name in ("a", "b"):
        refused = fan.wait(name, lambda found: found["status"] == "ABORTED", "is refused")
        assert refused["error"]["code"] == "replica_identity_missing", refused
    write(fan.scene, 1)
    fan.scene.run_at_source(IDENTITIES)
    write(fan.scene, 1001)
    for name in ("a", "b"):
        fan.mend(name)
    write(fan.scene, 2001)
    for name in ("a", "b"):
        fan.wait_phase(name, "REPLICATING")
    write(fan.scene, 3001)
    fan.wait_applied()
    fan.assert_same(tables=COMING_IN)


def test_nor_are_they_for_a_destination_of_another_engine(fan: FanOut, scene: Scene, tmp_path: Path) -> None:
    """The capturing engine publishes what has become fit by itself, when the other one waits for it."""
    pair = EnginePair(scene, tmp_path)
    try:
        scene.run_at_source("CREATE TABLE t (id bigint PRIMARY KEY)")
        fan.start_stream("a")
        remote = applied_there("bravo", "127.0.0.1", pair.relay.port, id="bravo", backlog=True)
        fan.set_destinations([*fan.destinations(), remote])
        pair.receiver.put_stream(scene.stream, scene.source_conninfo, scene.destination_conninfo, [("public", "t")], {},
                                 receive_from={"engine": "alpha"})
        fan.wait_phase("bravo", "REPLICATING")
        fan.drop("a")
        add(fan)
        pair.receiver.set_stream(scene.stream, tables=[{"schema": schema, "table": name} for schema, name in COMING_IN])
        assert pair.receiver.wait_aborted(scene.stream)["code"] == "replica_identity_missing"
        write(scene, 1)
        scene.run_at_source(IDENTITIES)
        pair.receiver.retry(scene.stream)
        write(scene, 1001)
        fan.wait_phase("bravo", "REPLICATING")
        pair.receiver.wait_phase(scene.stream, "REPLICATING")
        write(scene, 2001)
        pair.wait_applied()
        scene.assert_same()
    finally:
        pair.close()
