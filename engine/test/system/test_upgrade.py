"""The state of an engine of version 0.1.0, in which a stream had one destination beside the list: it goes on."""

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.engine import DESTINATION, Engine
from harness.fan_out import FanOut
from harness.paths import EnginePair
from harness.scene import Scene
from harness.workload import PgBench, make_pgbench_tables
from test_fan_out import leave_b_behind


def as_version_0_1_0(stream: dict[str, Any]) -> dict[str, Any]:
    """A stream with one destination, as that engine stored it."""
    old = dict(stream)
    (only,) = old.pop("destinations")
    if "send_to" in only:
        return old | {"send_to": only["send_to"]}
    return old | {"destination": {"name": only["name"], "conninfo": only["conninfo"]}}


def store(engine: Engine, streams: list[dict[str, Any]]) -> None:
    """On the disk of an engine that does not run; it was not encrypted always."""
    (engine.directory / "state" / "desired.json").write_text(
        json.dumps({"format": 1, "revision": engine.revision, "streams": streams}))


def downgrade(engine: Engine) -> None:
    store(engine, [as_version_0_1_0(stream) for stream in engine.streams.values()])


def rename(engine: Engine, stream: str, destination: str, **changed: Any) -> None:
    (only,) = engine.streams[stream]["destinations"]
    engine.set_stream(stream, destinations=[{**only, "id": destination, **changed}])


def mark(scene: Scene) -> None:
    """A row at the destination only, which a copy would not leave there."""
    scene.at_destination("INSERT INTO pgbench_history (tid, bid, aid, delta) VALUES (-1, -1, -1, -1)")


def assert_not_copied(scene: Scene) -> None:
    assert scene.destination.value(scene.database, "SELECT count(*) FROM pgbench_history WHERE tid = -1") == 1
    scene.at_destination("DELETE FROM pgbench_history WHERE tid = -1")


@pytest.fixture
def load(scene: Scene, random_: random.Random) -> Iterator[PgBench]:
    make_pgbench_tables(scene.source, scene.database, scale=1)
    log = scene.engine.directory / "pgbench.log"
    yield PgBench(scene.source, scene.database, rate=200, clients=2, log=log, seed=random_.randrange(2**31))


def test_one_destination_goes_on_and_takes_a_name_and_a_backlog(scene: Scene, load: PgBench) -> None:
    scene.start_stream()
    with load:
        mark(scene)
        scene.engine.kill()
        downgrade(scene.engine)
        time.sleep(1)
        scene.engine.start()
        scene.wait_replicating()
        assert scene.engine.destination(scene.stream)["id"] == "default"
        since = scene.engine.destination(scene.stream)["counted_since"]
        rename(scene.engine, scene.stream, "other")
        found = scene.engine.destination(scene.stream)
        assert (found["id"], found["phase"], found["counted_since"]) == ("other", "REPLICATING", since)
        (only,) = scene.engine.streams[scene.stream]["destinations"]
        scene.engine.set_stream(scene.stream, destinations=[{**only, "backlog": True}])
        scene.engine.wait_status(scene.stream, lambda status: status["destinations"][0]["backlog"]["state"] != "NONE",
                                 60, "it has a backlog")
        load.slow_down()
        scene.wait_replicating()
    scene.wait_applied()
    assert_not_copied(scene)
    scene.assert_same()
    scene.engine.drop_stream(scene.stream)
    scene.assert_nothing_left()


def test_a_stream_over_two_engines_goes_on(scene: Scene, load: PgBench, tmp_path: Path) -> None:
    pair = EnginePair(scene, tmp_path)
    try:
        pair.start_stream()
        with load:
            mark(scene)
            for engine in (pair.sender, pair.receiver):
                engine.kill()
                downgrade(engine)
            time.sleep(1)
            for engine in (pair.receiver, pair.sender):
                engine.start()
            pair.wait_replicating()
            for engine in (pair.sender, pair.receiver):
                assert engine.destination(scene.stream)["id"] == "default"
                rename(engine, scene.stream, DESTINATION)
                assert engine.destination(scene.stream)["id"] == DESTINATION
                assert engine.destination(scene.stream)["phase"] == "REPLICATING"
        pair.wait_applied()
        assert_not_copied(scene)
        scene.assert_same()
        pair.drop_stream()
        scene.assert_nothing_left()
    finally:
        pair.close()


def test_a_list_that_had_the_reserved_id_keeps_that_destinations_backlog(scene: Scene) -> None:
    fan = FanOut(scene)
    try:
        leave_b_behind(fan)
        fan.wait_slot(fan.source_position())
        scene.engine.kill()
        spill = scene.engine.directory / "state" / "spill" / scene.stream
        (spill / "b").rename(spill / "default")
        listed = [{**destination, "id": {"b": "default"}.get(destination["id"], destination["id"])}
                  for destination in fan.destinations()]
        for destination in listed:
            del destination["backlog"]
        store(scene.engine, [{**scene.engine.streams[scene.stream], "destinations": listed}])
        scene.engine.start()
        fan.set_destinations([{**destination, "id": {"b": "default2"}.get(destination["id"], destination["id"])}
                              for destination in fan.destinations()])
        fan.made["default2"] = fan.made.pop("b")
        fan.wait("default2", lambda destination: destination["backlog"]["state"] == "ON DISK", "has it")
        scene.engine.kill()
        scene.engine.start()
        fan.mend("default2")
        fan.wait_applied()
        fan.assert_same()
        assert {path.name for path in spill.iterdir() if path.is_dir()} == {"a", "default2"}
    finally:
        fan.close()
