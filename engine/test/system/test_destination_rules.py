"""Rules of a destination: each takes the part that its own rules let pass, and troubles with them are its own."""

import itertools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from harness.cluster import wait_for
from harness.compare import user_tables
from harness.engine import RefusedError, applied_there, destination_path
from harness.fan_out import FanOut
from harness.judged import BEGINNINGS, assert_judged
from harness.paths import EnginePair
from harness.scene import Scene
from harness.workload import Writers
from test_rules import FILLED, NEWEST, SUBSET, SUBSET_AS_WHERE, assert_rows, restart_by_force, rule, set_rules, write

NORTH = {"positive": [rule("north", "region = 'north'", subset=True)]}
EAST_OR_SMALL = {"positive": [rule("east", "region = 'east'", subset=True), rule("small", "n < 2", subset=True)],
                 "negative": [rule("no_a", "note LIKE 'a%'")]}
EAST_OR_SMALL_AS_WHERE = "(region = 'east' OR n < 2) AND (note LIKE 'a%') IS NOT TRUE"


def own(rules: dict[str, Any], table: str = "orders") -> list[dict[str, Any]]:
    """The member `rules` of a destination."""
    return [{"schema": "public", "table": table, **rules}]


@pytest.fixture
def fan(scene: Scene) -> Iterator[FanOut]:
    fan = FanOut(scene)
    yield fan
    fan.close()


def start(fan: FanOut, *destinations: dict[str, Any], rules: dict[str, Any] | None = None, **parameters: Any) -> None:
    scene = fan.scene
    parameters.setdefault("source_plugin", "thalweg" if scene.libraries else "pgoutput")
    scene.engine.define_stream(scene.stream, scene.source_conninfo, "", user_tables(scene.source, scene.database),
                               parameters)
    set_rules(scene, rules or {})
    fan.set_destinations(list(destinations))


def assert_part(fan: FanOut, name: str, where: str, table: str = "orders") -> int:
    return assert_rows(fan.scene, where, table, fan.made[name].database)


def counted(fan: FanOut, name: str) -> dict[str, Any]:
    return dict(fan.status(name)["rule_counts"]["tables"][0])


@pytest.mark.both_ways
def test_each_destination_has_its_part_through_kills(fan: FanOut, random_: random.Random) -> None:
    """Beside one that takes all that the stream's own rules let pass."""
    scene = fan.scene
    scene.run_at_source(FILLED)
    start(fan, fan.make("north").definition() | {"rules": own(NORTH)},
          fan.make("east").definition() | {"rules": own(EAST_OR_SMALL)}, fan.make("all").definition(),
          rules={"orders": SUBSET}, copy_range_rows=1000)
    parts = {"north": f"{SUBSET_AS_WHERE} AND region = 'north'",
             "east": f"{SUBSET_AS_WHERE} AND {EAST_OR_SMALL_AS_WHERE}", "all": SUBSET_AS_WHERE}
    with Writers(scene.source, scene.database, 3, random_, write) as writers:
        restart_by_force(scene)
        for name in parts:
            fan.wait_phase(name, "REPLICATING")
        for _ in range(2):
            before = min(writers.rounds)
            wait_for(lambda before=before: min(writers.rounds) > before + 50, 60, "there is a load")
            restart_by_force(scene)
        # One is away meanwhile, and reads what it lacks from disk.
        fan.made["east"].relay.sever()
        fan.wait("east", lambda found: found["backlog"]["state"] == "ON DISK", "has its backlog on disk")
        before = min(writers.rounds)
        wait_for(lambda: min(writers.rounds) > before + 50, 60, "there is a load")
        restart_by_force(scene)
    fan.mend("east")
    fan.wait_applied()
    for name, where in parts.items():
        assert assert_part(fan, name, where) > 50
    assert fan.status("all")["rule_counts"] is None

    scene.at_source("TRUNCATE orders", "INSERT INTO orders VALUES (1, 'north', 5), (2, 'east', 1), (3, 'east', 5)")
    fan.wait_applied()
    assert [assert_part(fan, name, where) for name, where in parts.items()] == [1, 1, 2]


def test_what_they_decide_is_counted_for_each(fan: FanOut) -> None:
    scene = fan.scene
    scene.run_at_source(FILLED)
    start(fan, fan.make("north").definition() | {"rules": own(NORTH)}, fan.make("all").definition())
    for name in ("north", "all"):
        fan.wait_phase(name, "REPLICATING")
    scene.at_source("INSERT INTO orders VALUES (5001, 'north', 1), (5002, 'north', 1), (5003, 'south', 1)",
                    "UPDATE orders SET region = 'north' WHERE id = 5003",
                    "UPDATE orders SET region = 'east' WHERE id IN (5001, 5002)")
    fan.wait_applied()
    expected = {"passed": 2, "dropped": 1, "became_inserts": 1, "became_deletes": 2}
    assert counted(fan, "north") == {"schema": "public", "table": "orders", **expected, "by_policy": 0,
                                     "at_source": [], "at_engine_because": None}
    assert fan.status("all")["rule_counts"] is None and scene.engine.status(scene.stream)["rule_counts"] is None
    metrics = str(scene.engine.request("GET", "/metrics")).splitlines()
    labels = f'stream="{scene.stream}",destination="north",schema="public",table="orders"'
    assert f'thalweg_rule_changes_total{{{labels},outcome="became_delete"}} 2' in metrics


def test_what_cannot_be_decided_stops_that_destination_alone(fan: FanOut) -> None:
    scene = fan.scene
    scene.run_at_source(FILLED + "ALTER TABLE orders REPLICA IDENTITY DEFAULT;")
    start(fan, fan.make("north").definition() | {"rules": own({"positive": [rule("north", "region = 'north'")]})},
          fan.make("all").definition())
    for name in ("north", "all"):
        fan.wait_phase(name, "REPLICATING")
    session = fan.status("all")["counted_since"]
    scene.at_source("INSERT INTO orders VALUES (5001, 'north', 1, 'before')", "DELETE FROM orders WHERE id = 4",
                    "INSERT INTO orders VALUES (5002, 'north', 1, 'after'), (5003, 'south', 1, 'after')")
    error = fan.wait("north", lambda found: found["status"] == "ABORTED", "stops")["error"]
    assert (error["code"], error["table"]) == ("rule_undecidable", '"public"."orders"')
    assert '"north"' in error["message"] and "DELETE" in error["message"]
    fan.wait_applied("all")
    assert assert_part(fan, "all", "true") == 5002
    assert scene.engine.status(scene.stream)["status"] == "ENABLED"
    # A retry meets the same change.
    scene.engine.request("POST", destination_path(scene.stream, "north") + "/retry")
    fan.wait("north", lambda found: found["status"] == "ABORTED" and found["error"]["at"] > error["at"], "stops again")
    # Other rules take effect without one.
    by_key = {"positive": [rule("north", "region = 'north'", operations=["INSERT", "UPDATE"]),
                           rule("deleted", "id % 4 = 0", operations=["DELETE"])]}
    fan.change("north", rules=own(by_key))
    fan.wait_applied("north")
    assert_part(fan, "north", "region = 'north'")
    # Rules that do not fit are refused before anything flows.
    fan.change("north", rules=own({"positive": [rule("r", "regoin = 'north'")]}))
    error = fan.wait("north", lambda found: found["status"] == "ABORTED", "stops")["error"]
    assert error["code"] == "rule_refused" and 'no column "regoin"' in error["message"]
    scene.at_source("INSERT INTO orders VALUES (5004, 'north', 1)")
    fan.wait_applied("all")
    fan.change("north", rules=[])
    fan.wait_applied("north")
    assert assert_part(fan, "north", "region = 'north'") == 1252
    assert fan.status("all")["counted_since"] >= session
    with pytest.raises(RefusedError) as refused:
        fan.change("north", rules=own(NORTH, "elsewhere"))
    assert "/streams/0/destinations/0/rules" in refused.value.error["message"]


@pytest.mark.both_ways
def test_a_changed_collation_is_seen(fan: FanOut) -> None:
    """Though no session begins, and the table's description reads the same."""
    scene = fan.scene
    scene.run_at_source('CREATE TABLE orders (id bigint PRIMARY KEY, region text COLLATE "C");')
    start(fan, fan.make("early").definition() | {"rules": own({"positive": [rule("early", "region < 'm'")]})},
          fan.make("all").definition())
    for name in ("early", "all"):
        fan.wait_phase(name, "REPLICATING")
    scene.at_source("INSERT INTO orders VALUES (1, 'Z'), (2, 'a'), (3, 'z')")
    fan.wait_applied()
    assert assert_part(fan, "early", "region < 'm'") == 2
    scene.at_source('ALTER TABLE orders ALTER region TYPE text COLLATE "en-x-icu"',
                    "INSERT INTO orders VALUES (4, 'Z'), (5, 'a')")
    error = fan.wait("early", lambda found: found["status"] == "ABORTED", "stops")["error"]
    assert (error["code"], error["table"]) == ("rule_refused", '"public"."orders"')
    fan.wait_applied("all")
    fan.change("early", rules=own({"positive": [rule("early", "region COLLATE \"C\" < 'm'")]}))
    fan.wait_applied("early")
    assert assert_part(fan, "early", "region COLLATE \"C\" < 'm'") == 4


@pytest.mark.both_ways
def test_changed_rules_take_effect_at_one_position(fan: FanOut, random_: random.Random) -> None:
    """Each transaction writes a row of either region: before the position, which the engine tells, one kind comes,
    behind it the other. The other destination goes on as if nothing had happened."""
    scene = fan.scene
    scene.run_at_source(BEGINNINGS)

    def only(region: str) -> list[dict[str, Any]]:
        return own({"positive": [rule("r", f"region = '{region}'")]})

    start(fan, fan.make("one").definition() | {"rules": only("north")}, fan.make("all").definition())
    for name in ("one", "all"):
        fan.wait_phase(name, "REPLICATING")
    begun, of_other = fan.status("all")["counted_since"], fan.status("all")["in_effect"]
    told = [("0/0", "north")]

    def both(connection: psycopg.Connection[Any], _: random.Random, number: int) -> None:
        connection.execute("INSERT INTO orders (region) VALUES ('north'), ('south')")

    def newest() -> Any:
        return scene.destination.sql(fan.made["one"].database, NEWEST)

    with Writers(scene.source, scene.database, 1, random_, both) as writers:
        for region in ("south", "north", "south"):
            before = writers.rounds[0]
            wait_for(lambda before=before: writers.rounds[0] > before + 100, 60, "there is a load")
            fan.change("one", rules=only(region))
            told.append((scene.engine.wait_in_effect(scene.stream, "one")["from"], region))
            wait_for(lambda region=region: newest() == [(region,)], 60, "the rule takes effect")
    fan.wait_applied()
    assert fan.status("all")["counted_since"] == begun, "its apply has run all the time"
    assert fan.status("all")["in_effect"] == of_other | {"revision": scene.engine.revision}
    assert_judged(scene, told, fan.made["one"].database)
    assert_part(fan, "all", "true")
    regions = scene.destination.sql(fan.made["one"].database, "SELECT region FROM orders ORDER BY id")
    assert sum(before != after for before, after in itertools.pairwise(regions)) == 3


def test_the_only_destination_of_a_stream(scene: Scene) -> None:
    """Without a backlog, it reads the queue itself, and the capture begins with it."""
    scene.run_at_source(FILLED)
    scene.engine.define_stream(scene.stream, scene.source_conninfo, scene.destination_conninfo,
                               user_tables(scene.source, scene.database), {})
    (destination,) = scene.engine.streams[scene.stream]["destinations"]
    destination["rules"] = own(NORTH)
    scene.engine.put_desired()
    scene.wait_replicating()
    scene.at_source("UPDATE orders SET region = CASE region WHEN 'north' THEN 'south' ELSE 'north' END WHERE n < 5",
                    "DELETE FROM orders WHERE n = 7")
    scene.wait_applied()
    assert assert_rows(scene, "region = 'north'") > 1000
    # While it is stopped: the former rules would let the row pass.
    scene.engine.set_stream(scene.stream, status="DISABLED")
    scene.engine.wait_phase(scene.stream, "STOPPED")
    destination["rules"] = own({"positive": [rule("none", "1 / (n - n) > 0")]})
    scene.at_source("INSERT INTO orders VALUES (6001, 'north', 1)")
    scene.engine.set_stream(scene.stream, status="ENABLED")
    assert scene.engine.wait_aborted(scene.stream)["code"] == "rule_failed"
    destination["rules"] = own(NORTH)
    scene.engine.put_desired()
    scene.wait_replicating()
    scene.wait_applied()
    assert_rows(scene, "region = 'north'")


def test_what_the_sender_drops_does_not_cross_the_link(scene: Scene, tmp_path: Path, random_: random.Random) -> None:
    pair, fan = EnginePair(scene, tmp_path), FanOut(scene)
    try:
        scene.run_at_source(FILLED)
        tables = user_tables(scene.source, scene.database)
        scene.engine.define_stream(scene.stream, scene.source_conninfo, "", tables, {})
        fan.set_destinations([fan.make("a").definition() | {"rules": own(EAST_OR_SMALL)},
                              applied_there("bravo", "127.0.0.1", pair.relay.port, id="bravo", backlog=True,
                                            rules=own(NORTH))])
        fan.wait("bravo", lambda found: found["phase"] == "RETRYING", "waits for the other engine")
        pair.receiver.define_stream(scene.stream, scene.source_conninfo, scene.destination_conninfo, tables, {},
                                    receive_from={"engine": "alpha"})
        # It filters the copy.
        pair.receiver.streams[scene.stream]["destinations"][0]["rules"] = own(NORTH)
        pair.receiver.put_desired()
        for name in ("a", "bravo"):
            fan.wait_phase(name, "REPLICATING")
        assert assert_rows(scene, "region = 'north'") == 1250

        def received() -> int:
            (stream,) = pair.receiver.request("GET", "/v1/stats")["streams"]
            return int(next(component["counters"]["lcrs"] for component in stream["components"]
                            if component["type"] == "PROPAGATION RECEIVER"))

        before = received()
        scene.at_source("INSERT INTO orders SELECT k, 'south', 5 FROM generate_series(6001, 8000) k",
                        "INSERT INTO orders VALUES (8001, 'north', 5)")
        fan.wait_applied("a", "bravo")
        assert received() - before == 1
        assert counted(fan, "bravo")["dropped"] == 2000
        with Writers(scene.source, scene.database, 3, random_, write) as writers:
            for strike in (lambda: restart_by_force(scene), pair.relay.cut):
                begun = min(writers.rounds)
                wait_for(lambda begun=begun: min(writers.rounds) > begun + 50, 60, "there is a load")
                strike()
        fan.wait_applied("a", "bravo")
        assert assert_rows(scene, "region = 'north'") > 500
        assert assert_part(fan, "a", EAST_OR_SMALL_AS_WHERE) > 100
    finally:
        pair.close()
        fan.close()
