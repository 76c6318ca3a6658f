"""Rules that read the transaction of a change: by which origin it came to the source, and when it committed."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from harness.cluster import wait_for
from harness.compare import user_tables
from harness.engine import SECONDS
from harness.fan_out import FanOut
from harness.scene import Scene
from test_destination_rules import own
from test_rules import ORDERS, assert_rows, change, rule, set_rules

NOT_BACK = {"negative": [rule("not_back", "tag = 'archive'"), rule("old", "commit_time < '2020-01-01 00:00Z'")]}
KEPT = "region = 'kept'"
MANY = 5000  # rows of a transaction that would come in pieces


def prepare(scene: Scene) -> None:
    scene.run_at_source(ORDERS + "INSERT INTO orders VALUES (1, 'kept', 1, 'copied')")
    scene.at_source(f"ALTER DATABASE {scene.database} SET logical_decoding_work_mem = '64kB'",
                    *(f"SELECT pg_replication_origin_create('{name}') WHERE NOT EXISTS (SELECT FROM "
                      f"pg_replication_origin WHERE roname = '{name}')" for name in ("archive", "branch")))


def write(scene: Scene, first: int, region: str, rows: int = 1, origin: str = "", at: str = "") -> None:
    """One transaction; `at`: its commit time where it came from."""
    with scene.source.connect(scene.database) as connection:
        if origin:
            connection.execute("SELECT pg_replication_origin_session_setup(%s)", [origin])
        with connection.transaction():
            if at:
                connection.execute("SELECT pg_replication_origin_xact_setup('0/1', %s)", [at])
            connection.execute("INSERT INTO orders SELECT n, %s, 1, repeat('x', 200) "
                               "FROM generate_series(%s::bigint, %s::bigint) n", [region, first, first + rows - 1])


def write_all(scene: Scene, first: int) -> None:
    for rows in (1, MANY):
        write(scene, first, "kept", rows)
        write(scene, first + MANY, "dropped", rows, origin="archive")
        write(scene, first + 2 * MANY, "kept", rows, origin="branch")
        write(scene, first + 3 * MANY, "dropped", rows, origin="branch", at="2019-12-31 23:59Z")
        first += 4 * MANY


@pytest.mark.parametrize("kind", ["logical", "wal"])
@pytest.mark.parametrize("of_destination", [False, True])
def test_rules_read_the_tag_and_the_commit_time(scene: Scene, kind: str, of_destination: bool) -> None:
    prepare(scene)
    plugin = {"source_plugin": "thalweg" if scene.libraries else "pgoutput"} if kind == "logical" else {}
    scene.engine.define_stream(scene.stream, scene.source_conninfo, scene.destination_conninfo,
                               user_tables(scene.source, scene.database), plugin, capture_kind=kind)
    definition = scene.engine.streams[scene.stream]
    if of_destination:
        definition["destinations"][0]["rules"] = own(NOT_BACK)
    else:
        set_rules(scene, {"orders": NOT_BACK})
    scene.engine.put_desired()
    scene.wait_replicating()
    write_all(scene, 10)
    scene.wait_applied()
    assert assert_rows(scene, KEPT) == 1 + 2 * (MANY + 1)
    scene.engine.kill()
    write_all(scene, 100_000)
    scene.engine.start()
    scene.wait_replicating()
    scene.wait_applied()
    assert assert_rows(scene, KEPT) == 1 + 4 * (MANY + 1)


def test_copied_rows_have_neither(scene: Scene) -> None:
    prepare(scene)
    scene.engine.define_stream(scene.stream, scene.source_conninfo, scene.destination_conninfo,
                               user_tables(scene.source, scene.database), {})
    set_rules(scene, {"orders": {"positive": [rule("new", "commit_time > '2020-01-01 00:00Z' AND tag IS NULL")]}})
    scene.engine.put_desired()
    scene.wait_replicating()
    write(scene, 2, "new")
    write(scene, 3, "branch", origin="branch")
    scene.wait_applied()
    assert assert_rows(scene, "region = 'new'") == 1


def test_they_come_to_a_stream_that_runs(scene: Scene) -> None:
    """Transactions come whole from then on, and in pieces again once nobody asks any more."""
    def streams_pieces() -> Any:
        return next((part["gauges"]["streaming"] for part in scene.engine.components(scene.stream)
                     if "streaming" in part["gauges"]), None)

    prepare(scene)
    scene.start_stream()
    assert streams_pieces() == 1
    change(scene, {"orders": NOT_BACK})
    wait_for(lambda: streams_pieces() == 0, SECONDS, "the rules are in force")
    write_all(scene, 10)
    scene.wait_applied()
    assert assert_rows(scene, KEPT) == 1 + 2 * (MANY + 1)
    change(scene, {})
    wait_for(lambda: streams_pieces() == 1, SECONDS, "nobody asks any more")
    write(scene, 200_000, "dropped", MANY, origin="archive")
    scene.wait_applied()
    assert scene.at_destination("SELECT count(*) FROM orders WHERE region = 'dropped'") == [(MANY,)]


def test_one_of_several_destinations_asks(scene: Scene) -> None:
    fan = FanOut(scene)
    try:
        prepare(scene)
        scene.engine.define_stream(scene.stream, scene.source_conninfo, "", user_tables(scene.source, scene.database),
                                   {"source_plugin": "thalweg" if scene.libraries else "pgoutput"})
        fan.set_destinations([fan.make("all").definition(), fan.make("part").definition() | {"rules": own(NOT_BACK)}])
        for name in ("all", "part"):
            fan.wait_phase(name, "REPLICATING")
        write_all(scene, 10)
        fan.wait_applied()
        assert assert_rows(scene, "true", database=fan.made["all"].database) == 1 + 4 * (MANY + 1)
        assert assert_rows(scene, KEPT, database=fan.made["part"].database) == 1 + 2 * (MANY + 1)
    finally:
        fan.close()


def test_tag_and_commit_time_are_tried(scene: Scene) -> None:
    """Of changes that are written down as those say, and of the next changes of a stream as those were."""
    prepare(scene)
    plugin = {"source_plugin": "thalweg" if scene.libraries else "pgoutput"}
    scene.engine.define_stream(scene.stream, scene.source_conninfo, scene.destination_conninfo,
                               user_tables(scene.source, scene.database), plugin)
    scene.engine.put_desired()
    scene.wait_replicating()
    new = {"id": 1, "region": "kept", "n": 1, "note": "x"}
    in_2019 = 1_577_750_340_000_000
    march = 1_772_352_000_000_000  # 2026-03-01 08:00 UTC
    body = {
        "source": {"conninfo": scene.source_conninfo}, "source_name": "source", "sample": 1,
        "tables": [{"schema": "public", "table": "orders", "rules": NOT_BACK}],
        "changes": [{"operation": "INSERT", "new": new, **facts} for facts in (
            {}, {"tag": "archive"}, {"tag": "branch", "commit_micros": march}, {"commit_micros": in_2019})],
    }
    tried = scene.engine.request("POST", "/v1/rules/test", body)["changes"]
    assert [change["verdict"] for change in tried] == ["PASSED", "DROPPED", "PASSED", "DROPPED", "PASSED"]
    assert [change["tag"] for change in tried] == [None, "archive", "branch", None, None]
    assert [change["commit_time"] for change in tried[:3]] == [None, None, "2026-03-01T08:00:00.000000Z"]
    with ThreadPoolExecutor(1) as pool:
        recent = {"stream": scene.stream, "limit": 2, "wait_ms": 5000}
        asked = pool.submit(scene.engine.request, "POST", "/v1/rules/test",
                            {**body, "changes": [], "sample": 0, "recent": recent})
        time.sleep(0.5)
        write(scene, 50, "dropped", origin="archive")
        write(scene, 60, "kept")
        shown = asked.result(SECONDS)["changes"]
    assert [(change["verdict"], change["tag"]) for change in shown] == [("DROPPED", "archive"), ("PASSED", None)]
    # The session under the origin sets no commit time.
    assert [change["commit_time"] is None for change in shown] == [True, False]
