"""The position from which on a change of a stream is in effect: told by the engine, and kept."""

import random
from pathlib import Path
from typing import Any

import psycopg
import pytest

from harness.cluster import wait_for
from harness.compare import user_tables
from harness.engine import applied_there, parse_lsn
from harness.fan_out import FanOut
from harness.judged import BEGINNINGS, assert_judged
from harness.paths import EnginePair
from harness.scene import Scene
from harness.workload import Writers
from test_rules import ORDERS, change, restart_by_force, rule, set_rules, start


def only(region: str) -> dict[str, Any]:
    return {"positive": [rule("r", f"region = '{region}'")]}


def both(connection: psycopg.Connection[Any], _: random.Random, number: int) -> None:
    connection.execute("INSERT INTO orders (region) VALUES ('north'), ('south')")


def test_the_position_stays_what_was_told(scene: Scene) -> None:
    """Through a kill, a pause, live parameters and documents that change nothing of the stream."""
    scene.run_at_source(ORDERS)
    start(scene, {})
    engine, stream = scene.engine, scene.stream
    first = engine.wait_in_effect(stream)
    scene.at_source("INSERT INTO orders VALUES (1, 'south', 1), (2, 'north', 1)")
    scene.wait_applied()
    engine.put_desired()
    assert engine.destination(stream)["in_effect"] == first | {"revision": engine.revision}, "at once"
    engine.set_stream(stream, parameters={**engine.streams[stream]["parameters"], "group_size": 7})
    assert engine.wait_in_effect(stream) == first | {"revision": engine.revision}

    change(scene, {"orders": only("north")})
    told = engine.wait_in_effect(stream)
    assert parse_lsn(told["from"]) > parse_lsn(first["from"]) and told["since"] > first["since"]
    scene.at_source("INSERT INTO orders VALUES (3, 'south', 1), (4, 'north', 1)")
    scene.wait_applied()
    assert scene.at_destination("SELECT id FROM orders ORDER BY id") == [(1,), (2,), (4,)]
    restart_by_force(scene)
    scene.wait_replicating()
    assert engine.wait_in_effect(stream) == told
    engine.set_stream(stream, status="DISABLED")
    engine.wait_status(stream, lambda found: found["status"] == "DISABLED", 60, "stops")
    stopped = engine.destination(stream)
    assert stopped["in_effect"] == told | {"revision": engine.revision}, "the next start goes on by it"
    place = {name: told[name] for name in ("from", "since")}
    assert stopped["effects"] == [{name: first[name] for name in place}, place]
    engine.set_stream(stream, status="ENABLED")
    assert engine.wait_in_effect(stream) == told | {"revision": engine.revision}


def test_the_engine_that_captures_tells_the_position(scene: Scene, tmp_path: Path, random_: random.Random) -> None:
    pair = EnginePair(scene, tmp_path)
    try:
        scene.run_at_source(BEGINNINGS)
        tables = user_tables(scene.source, scene.database)
        pair.sender.define_stream(scene.stream, scene.source_conninfo, "", tables, {},
                                  destinations=[applied_there("bravo", pair.receiver.place.address, pair.port)])
        pair.receiver.define_stream(scene.stream, scene.source_conninfo, scene.destination_conninfo, tables, {},
                                    receive_from={"engine": "alpha"})

        def set_region(region: str) -> None:
            for engine in (pair.receiver, pair.sender):
                engine.streams[scene.stream]["tables"][0]["rules"] = only(region)
                engine.put_desired()

        set_region("north")
        pair.wait_replicating()
        told = [("0/0", "north")]
        with Writers(scene.source, scene.database, 1, random_, both) as writers:
            for region in ("south", "north"):
                before = writers.rounds[0]
                wait_for(lambda before=before: writers.rounds[0] > before + 100, 60, "there is a load")
                set_region(region)
                told.append((pair.sender.wait_in_effect(scene.stream)["from"], region))
                pair.receiver.wait_in_effect(scene.stream)
        pair.wait_applied()
        assert_judged(scene, told)
        pair.drop_stream()
    finally:
        pair.close()


@pytest.mark.both_ways
def test_changed_rules_of_the_stream_wait_for_what_is_behind(scene: Scene, random_: random.Random) -> None:
    """A destination that is away has on disk what the earlier rules have let pass: they were in effect until there."""
    fan = FanOut(scene)
    try:
        _check_what_is_behind(fan, random_)
    finally:
        fan.close()


def _check_what_is_behind(fan: FanOut, random_: random.Random) -> None:
    scene = fan.scene
    scene.run_at_source(BEGINNINGS)
    plugin = "thalweg" if scene.libraries else "pgoutput"
    scene.engine.define_stream(scene.stream, scene.source_conninfo, "", user_tables(scene.source, scene.database),
                               {"source_plugin": plugin})
    set_rules(scene, {"orders": only("north")})
    fan.set_destinations([fan.make(name).definition() for name in ("one", "away")])
    told = {name: [("0/0", "north")] for name in ("one", "away")}
    for name in told:
        fan.wait_phase(name, "REPLICATING")

    def set_region(region: str) -> None:
        set_rules(scene, {"orders": only(region)})
        scene.engine.put_desired()

    with Writers(scene.source, scene.database, 1, random_, both) as writers:
        def go_on() -> None:
            before = writers.rounds[0]
            wait_for(lambda: writers.rounds[0] > before + 100, 60, "there is a load")

        go_on()
        first = parse_lsn(fan.status("away")["in_effect"]["from"])
        fan.made["away"].relay.sever()
        fan.wait("away", lambda found: found["backlog"]["state"] == "ON DISK", "has its backlog on disk")
        go_on()
        set_region("south")
        told["one"].append((scene.engine.wait_in_effect(scene.stream, "one")["from"], "south"))
        go_on()
        assert fan.status("away")["in_effect"] is None
        # Changed once more, while what the second rules have judged still waits for the destination.
        set_region("north")
        told["one"].append((scene.engine.wait_in_effect(scene.stream, "one")["from"], "north"))
        go_on()
        fan.mend("away")
        scene.engine.wait_in_effect(scene.stream, "away")
        effects = [effect["from"] for effect in fan.status("away")["effects"]]
        later = [position for position in effects if parse_lsn(position) > first]
        # The second rules have judged nothing for it where no frame of theirs was durable when the third ones came.
        told["away"] += list(zip(later, ("south", "north")[-len(later):], strict=True))
        go_on()
    fan.wait_applied()
    for name, positions in told.items():
        assert_judged(scene, positions, fan.made[name].database)
