"""One capture, several destinations: what happens to one of them is never the others', nor the source's, affair."""

import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

from harness.cluster import wait_for
from harness.engine import SECONDS, RefusedError, applied_there, destination_path
from harness.fan_out import FanOut
from harness.paths import EnginePair
from harness.scene import Scene
from harness.workload import PgBench, Writers, make_pgbench_tables

TABLE = "CREATE TABLE t (id bigint PRIMARY KEY, v text NOT NULL);"


@pytest.fixture
def fan(scene: Scene) -> Iterator[FanOut]:
    fan = FanOut(scene)
    yield fan
    fan.close()


def insert(fan: FanOut, first: int, last: int) -> None:
    fan.scene.at_source(f"INSERT INTO t SELECT n, repeat(md5(n::text), 10) FROM generate_series({first}, {last}) n")


def test_each_destination_is_copied_and_kept_up_to_date(fan: FanOut) -> None:
    fan.scene.run_at_source(TABLE)
    insert(fan, 1, 1000)
    fan.start_stream("a", "b")
    insert(fan, 1001, 5000)
    fan.scene.at_source("UPDATE t SET v = 'changed' WHERE id % 7 = 0", "DELETE FROM t WHERE id % 11 = 0")
    fan.wait_applied()
    fan.assert_same()
    assert fan.engine.status(fan.scene.stream)["mode"] == "FAN-OUT"
    types = [component["type"] for component in fan.engine.components(fan.scene.stream)]
    assert types.count("CAPTURE") == 1
    fan.engine.drop_stream(fan.scene.stream)
    assert fan.scene.slots() == fan.scene.publications() == 0
    for destination in fan.made.values():
        assert not fan.scene.destination.value(destination.database,
                                               "SELECT count(*) FROM pg_namespace WHERE nspname = 'thalweg'")


def test_a_dead_destination_holds_up_nobody_and_loses_nothing(fan: FanOut, random_: random.Random) -> None:
    scene = fan.scene
    make_pgbench_tables(scene.source, scene.database, scale=1)
    fan.start_stream("a", "b", "c", queue_size=4096)
    log = scene.engine.directory / "pgbench.log"
    with PgBench(scene.source, scene.database, rate=400, clients=4, log=log, seed=random_.randrange(2**31)) as load:
        time.sleep(1)
        fan.made["b"].relay.sever()
        found = fan.wait("b", lambda destination: destination["phase"] == "RETRYING"
                         and destination["backlog"]["state"] == "ON DISK", "is away, its backlog on disk")
        assert "on the engine's disk" in found["error"]["message"]
        # More than the queue can hold goes by: the others get it, the source may forget it, the disk has it.
        before = fan.source_position()
        fan.wait("b", lambda destination: destination["backlog"]["frames"] > 5000, "has a backlog")
        fan.wait_applied("a", "c")
        fan.wait_slot(before)
        for name in ("a", "c"):
            fan.wait_phase(name, "REPLICATING")
        scene.engine.kill()
        time.sleep(1)
        scene.engine.start()
        fan.wait_applied("a", "c")
        fan.wait_slot(fan.source_position())
        assert fan.status("b")["backlog"]["state"] == "ON DISK"
        fan.mend("b")
        load.slow_down()
        fan.wait_phase("b", "REPLICATING", 2 * SECONDS)
        scene.engine.kill()
        scene.engine.start()
        time.sleep(1)
    fan.wait_applied(seconds=2 * SECONDS)
    fan.assert_same()
    fan.wait("b", lambda destination: destination["backlog"]["bytes"] == 0, "has no backlog left")


def test_a_streamed_transaction_goes_over_a_restart(fan: FanOut) -> None:
    scene = fan.scene
    scene.run_at_source(TABLE)
    scene.source.sql("postgres", f'ALTER DATABASE "{scene.database}" SET logical_decoding_work_mem = \'64kB\'')
    fan.start_stream("a", "b")
    fan.made["b"].relay.sever()
    fan.wait("b", lambda destination: destination["phase"] == "RETRYING", "is away")
    with scene.source.connect(scene.database) as open_, open_.transaction():
        open_.execute("INSERT INTO t SELECT n, repeat('open', 100) FROM generate_series(1, 3000) n")
        insert(fan, 10_001, 10_500)
        fan.wait_applied("a")
        scene.engine.kill()
        scene.engine.start()
        insert(fan, 20_001, 20_500)
        fan.wait_applied("a")
        open_.execute("UPDATE t SET v = 'and on' WHERE id <= 3000 AND id % 2 = 0")
    fan.wait_applied("a")
    fan.mend("b")
    fan.wait_applied()
    fan.assert_same()


def test_a_full_backlog_says_so_and_goes_on(fan: FanOut) -> None:
    fan.scene.run_at_source(TABLE)
    fan.start_stream("a", "b", queue_memory_mb=1, queue_spill_limit_mb=16)
    fan.made["b"].relay.sever()
    fan.wait("b", lambda destination: destination["phase"] == "RETRYING", "is away")
    # Text that does not compress fills the limit and the queue.
    for part in range(12):
        fan.scene.at_source(
            "INSERT INTO t SELECT n, "
            "(SELECT string_agg(md5(random()::text || n || m), '') FROM generate_series(1, 60) m) "
            f"FROM generate_series({part * 1000 + 1}, {part * 1000 + 1000}) n")
    found = fan.wait("b", lambda destination: destination["backlog"]["state"] == "FULL", "is full")
    assert "queue_spill_limit_mb" in found["error"]["message"], found["error"]
    assert "source keeps its WAL" in found["error"]["message"]
    held = fan.slot_position()
    assert held < fan.source_position()
    fan.set_destinations([{**destination, "parameters": {"queue_spill_limit_mb": 100}}
                          for destination in fan.destinations()])
    fan.wait_applied("a")
    fan.wait_slot(fan.source_position())
    fan.mend("b")
    fan.wait_applied()
    fan.assert_same()


def leave_b_behind(fan: FanOut) -> None:
    """Rows 1 to 5000 are at a; b is cut off and has none of them."""
    fan.scene.run_at_source(TABLE)
    fan.start_stream("a", "b")
    fan.made["b"].relay.sever()
    fan.wait("b", lambda destination: destination["phase"] == "RETRYING", "is away")
    insert(fan, 1, 5000)
    fan.wait_applied("a")


def test_an_operator_drops_a_dead_destination(fan: FanOut) -> None:
    leave_b_behind(fan)
    with pytest.raises(RefusedError) as refused:
        fan.set_destinations([destination for destination in fan.destinations() if destination["id"] != "b"])
    assert refused.value.error["code"] == "desired_state_conflict"
    fan.set_destinations([fan.made[name].definition() for name in ("a", "b")])
    fan.change("b", status="DROPPED", force=True)
    found = fan.wait("b", lambda destination: destination["status"] == "DROPPED", "DROPPED")
    assert "DELETE FROM thalweg.stream" in found["error"]["message"]
    fan.set_destinations([destination for destination in fan.destinations() if destination["id"] != "b"])
    assert not (fan.engine.directory / "state" / "spill" / fan.scene.stream / "b").exists()
    insert(fan, 5001, 6000)
    fan.wait_applied("a")
    fan.assert_same("a")


def test_one_whose_removal_was_taken_back_lacks_what_it_gave_up(fan: FanOut) -> None:
    """The cure is for that destination alone: the others go on."""
    leave_b_behind(fan)
    fan.change("b", status="DROPPED")
    fan.wait("b", lambda destination: destination["phase"] == "DROPPING", "DROPPING")
    insert(fan, 5001, 6000)
    fan.wait_applied("a")
    fan.wait_slot(fan.source_position())
    fan.change("b", status="ENABLED")
    # A removal that reaches the destination before it is taken back has nothing to give up: b would begin anew.
    fan.wait_phase("b", "RETRYING")
    fan.mend("b")
    error = fan.wait("b", lambda destination: destination["status"] == "ABORTED", "ABORTED")["error"]
    assert error["code"] == "position_gap", error
    assert "drop that destination, empty its tables, and add it again" in error["cure"]
    fan.wait_applied("a")


def test_a_destination_joins_under_load_and_another_pauses(fan: FanOut, random_: random.Random) -> None:
    scene = fan.scene
    make_pgbench_tables(scene.source, scene.database, scale=2)
    # Of a stream with one destination, without a backlog.
    fan.start_stream_without_backlog("a")
    log = scene.engine.directory / "pgbench.log"
    with PgBench(scene.source, scene.database, rate=300, clients=4, log=log, seed=random_.randrange(2**31)) as load:
        fan.set_destinations([fan.made["a"].definition(), fan.make("b").definition(copy_range_rows=20_000)])
        fan.wait("b", lambda found: found["phase"] not in ("INITIALIZING", "INSTANTIATING"), "is copied", 2 * SECONDS)
        load.slow_down()
        fan.wait_phase("b", "REPLICATING", 2 * SECONDS)
        fan.change("a", status="DISABLED")
        fan.wait("a", lambda found: found["status"] == "DISABLED", "DISABLED")
        fan.wait("a", lambda found: found["backlog"]["frames"] > 500, "has a backlog")
        fan.wait_applied("b")
        fan.wait_slot(fan.source_position())
        fan.change("a", status="ENABLED")
        fan.wait_phase("a", "REPLICATING")
    fan.wait_applied()
    fan.assert_same()


def sessions_begun(fan: FanOut) -> int:
    return fan.engine.log.read_text(errors="replace").count("session_begun")


def applies_begun(fan: FanOut, name: str) -> int:
    epoch = fan.scene.destination.value(fan.made[name].database, "SELECT epoch FROM thalweg.stream")
    return int(str(epoch))


def test_one_that_is_resumed_while_it_still_leaves_goes_on(fan: FanOut) -> None:
    """Its consumer has been told to take nothing more: it ends, and another one begins."""
    fan.scene.run_at_source(TABLE)
    fan.start_stream("a", "b")
    before = sessions_begun(fan)
    with fan.scene.destination.connect(fan.made["b"].database) as blocker:
        blocker.execute("BEGIN")
        blocker.execute("LOCK TABLE t")
        insert(fan, 1, 1000)
        fan.wait_applied("a")
        waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        wait_for(lambda: fan.scene.destination.value(fan.made["b"].database, waits), SECONDS, "b has begun the rows")
        fan.change("b", status="DISABLED")
        fan.wait_phase("b", "DRAINING")
        fan.change("b", status="ENABLED")
        blocker.execute("ROLLBACK")
    insert(fan, 1001, 2000)
    fan.wait_applied()
    fan.assert_same()
    assert sessions_begun(fan) == before


def test_pausing_and_dropping_one_leaves_the_session_to_the_others(fan: FanOut, random_: random.Random) -> None:
    fan.scene.run_at_source(TABLE)
    fan.start_stream("a", "b")
    before = (sessions_begun(fan), applies_begun(fan, "a"))

    def write(connection: psycopg.Connection[Any], _: random.Random, __: int) -> None:
        connection.execute("INSERT INTO t SELECT coalesce(max(id), 0) + 1, 'more' FROM t")
        time.sleep(0.01)

    with Writers(fan.scene.source, fan.scene.database, 1, random_, write) as writers:
        for _ in range(2):
            fan.change("b", status="DISABLED")
            fan.wait("b", lambda found: found["status"] == "DISABLED", "DISABLED")
            rounds = writers.rounds[0]
            wait_for(lambda at=rounds: writers.rounds[0] > at + 50, SECONDS, "more rows come")
            fan.wait_applied("a")
            fan.wait_slot(fan.source_position())  # its backlog has the rest
            assert fan.status("b")["backlog"]["state"] == "ON DISK"
            fan.change("b", status="ENABLED")
            fan.wait_phase("b", "REPLICATING")
        fan.wait_applied()
    fan.wait_applied()
    fan.assert_same()
    fan.drop("b")
    wait_for(lambda: [destination["id"]
                      for destination in fan.engine.status(fan.scene.stream)["destinations"]] == ["a"], SECONDS,
             "b is forgotten")
    assert not (fan.engine.directory / "state" / "spill" / fan.scene.stream / "b").exists()
    insert(fan, 1_000_001, 1_001_000)
    fan.wait_applied("a")
    fan.wait_slot(fan.source_position())
    fan.assert_same("a")
    assert (sessions_begun(fan), applies_begun(fan, "a")) == before


def test_one_that_joins_before_a_rename_is_followed_says_what_may_be_renamed(fan: FanOut) -> None:
    scene = fan.scene
    scene.run_at_source(TABLE)
    insert(fan, 1, 100)
    fan.start_stream("a")
    scene.run_at_source("ALTER TABLE t RENAME TO called")
    fan.set_destinations([*fan.destinations(), fan.make("b").definition()])
    error = fan.wait("b", lambda found: found["status"] == "ABORTED", "ABORTED")["error"]
    assert (error["code"], error["table"]) == ("missing_table", '"public"."t"'), error
    assert 'the stream publishes under another name: "public"."called"' in error["message"]
    assert "follow the rename at a destination that has copied the table" in error["message"]
    fan.engine.set_stream(scene.stream, tables=[{"schema": "public", "table": "called"}])
    fan.wait_phase("b", "REPLICATING")
    scene.at_source("INSERT INTO called VALUES (1000, 'later')")
    fan.wait_applied()
    fan.assert_same()


def test_a_slot_that_was_dropped_is_told_as_lost(fan: FanOut) -> None:
    """Another one is made in its place, from which nobody can go on; also after a restart."""
    scene = fan.scene
    scene.run_at_source(TABLE)
    fan.start_stream("a", "b")
    fan.engine.set_stream(scene.stream, status="DISABLED")
    fan.engine.wait_phase(scene.stream, "STOPPED")
    slot = f"slot_name = 'thalweg_{scene.stream}'"
    wait_for(lambda: not scene.source.value("postgres", f"SELECT active FROM pg_replication_slots WHERE {slot}"),
             SECONDS, "the slot is free")
    scene.at_source(f"SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE {slot}")
    insert(fan, 1, 100)
    fan.engine.set_stream(scene.stream, status="ENABLED")

    def assert_lost(name: str) -> None:
        error = fan.wait(name, lambda found: found["status"] == "ABORTED", "ABORTED")["error"]
        assert error["code"] == "slot_lost", error
        assert "elete the stream and create it again" in error["cure"]
        assert "another one was made" in error["message"]

    for name in fan.made:
        assert_lost(name)
    fan.engine.kill()
    fan.engine.start()
    for name in fan.made:
        assert_lost(name)


def test_an_error_of_one_destination_aborts_that_one_only(fan: FanOut) -> None:
    fan.scene.run_at_source(TABLE)
    fan.start_stream("a", "b")
    fan.scene.destination.sql(fan.made["b"].database, "INSERT INTO t VALUES (7, 'in the way')")
    insert(fan, 1, 100)
    found = fan.wait("b", lambda destination: destination["status"] == "ABORTED", "ABORTED")
    assert found["error"]["cure"]
    insert(fan, 101, 200)
    fan.wait_applied("a")
    fan.wait_slot(fan.source_position())
    fan.scene.destination.sql(fan.made["b"].database, "DELETE FROM t WHERE id = 7")
    fan.engine.request("POST", f"/v1/streams/{fan.scene.stream}/destinations/b/retry")
    fan.wait_applied()
    fan.assert_same()


def test_a_parked_transaction_that_waits_for_a_lock_holds_up_nobody(fan: FanOut) -> None:
    """An operator executes it, and somebody at that destination has its row: the stream can be stopped all the same."""
    fan.scene.run_at_source(TABLE)
    insert(fan, 1, 1)
    fan.start_stream("a", "b", disable_on_error=False)
    database = fan.made["b"].database
    fan.scene.destination.sql(database, "DELETE FROM t")
    fan.scene.at_source("UPDATE t SET v = 'changed' WHERE id = 1")
    fan.wait_applied()
    errors = destination_path(fan.scene.stream, "b") + "/errors"
    (parked,) = fan.engine.request("GET", errors)["errors"]
    fan.scene.destination.sql(database, "INSERT INTO t VALUES (1, 'here again')")
    waits = "SELECT count(*) FROM pg_locks WHERE NOT granted"
    with ThreadPoolExecutor(1) as operator, fan.scene.destination.connect(database) as blocker:
        blocker.execute("BEGIN")
        blocker.execute("LOCK TABLE t")
        executed = operator.submit(fan.engine.request, "POST", f"{errors}/{parked['id']}/execute")
        wait_for(lambda: fan.scene.destination.value(database, waits), SECONDS, "the parked transaction waits")
        try:
            fan.engine.set_stream(fan.scene.stream, status="DISABLED")
            fan.engine.wait_status(fan.scene.stream, lambda found: found["status"] == "DISABLED", SECONDS, "DISABLED")
            assert [error["id"] for error in fan.engine.request("GET", errors)["errors"]] == [parked["id"]]
        finally:
            blocker.execute("ROLLBACK")
        executed.result()  # done, or under way: it waited longer for the lock than anybody does for an answer
    wait_for(lambda: not fan.engine.request("GET", errors)["errors"], SECONDS, "the parked transaction is executed")
    fan.assert_same()


class Pulse:
    """Rows that keep coming at a destination: the longest time in which none did."""

    def __init__(self, fan: FanOut, name: str) -> None:
        self.stopping = threading.Event()
        self.longest = 0.0
        self.thread = threading.Thread(target=self._watch, args=(fan.scene, fan.made[name].database))

    def __enter__(self) -> "Pulse":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self.thread.join()

    def _watch(self, scene: Scene, database: str) -> None:
        with scene.destination.connect(database) as connection:
            rows, since = -1, time.monotonic()
            while not self.stopping.is_set():
                found = connection.execute("SELECT count(*) FROM t").fetchone()
                now = time.monotonic()
                self.longest = max(self.longest, now - since)
                if found and found[0] != rows:
                    rows, since = found[0], now
                self.stopping.wait(0.05)


def test_pausing_one_that_stands_still_holds_up_nobody(fan: FanOut, random_: random.Random) -> None:
    """Once the others stood still until what the slow one had begun was done, for half a minute."""
    fan.scene.run_at_source(TABLE)
    fan.start_stream("a", "b")

    def write(connection: psycopg.Connection[Any], _: random.Random, __: int) -> None:
        connection.execute("INSERT INTO t SELECT coalesce(max(id), 0) + 1, 'more' FROM t")
        time.sleep(0.02)

    with fan.scene.destination.connect(fan.made["b"].database) as blocker:
        blocker.execute("BEGIN")
        blocker.execute("LOCK TABLE t")
        with Writers(fan.scene.source, fan.scene.database, 1, random_, write) as writers:
            wait_for(lambda: writers.rounds[0] > 20, SECONDS, "rows come")
            with Pulse(fan, "a") as pulse:
                for status in ("DISABLED", "ENABLED"):
                    fan.change("b", status=status)
                    fan.wait("b", lambda found, wanted=status: found["status"] == wanted, status)
                    rounds = writers.rounds[0]
                    wait_for(lambda at=rounds: writers.rounds[0] > at + 50, SECONDS, "more rows come")
                    fan.wait_applied("a")
        blocker.execute("ROLLBACK")
    fan.wait_applied()
    fan.assert_same()
    # A new session takes about a second where the machine is free.
    assert pulse.longest < 10, f"nothing came to a for {pulse.longest:.1f} s"
    print(f"the longest pause of a: {pulse.longest:.2f} s")


def test_one_destination_is_another_engines(fan: FanOut, scene: Scene, tmp_path: Path) -> None:
    pair = EnginePair(scene, tmp_path)
    try:
        scene.run_at_source(TABLE)
        insert(fan, 1, 1000)
        fan.start_stream("a", wait=False)
        remote = applied_there("bravo", "127.0.0.1", pair.relay.port, id="bravo", backlog=True)
        fan.set_destinations([*fan.destinations(), remote])
        fan.wait("bravo", lambda found: found["phase"] == "RETRYING", "waits for the other engine")
        pair.receiver.put_stream(scene.stream, scene.source_conninfo, scene.destination_conninfo, [("public", "t")], {},
                                 receive_from={"engine": "alpha"})
        fan.wait_phase("bravo", "REPLICATING")
        insert(fan, 1001, 2000)
        pair.relay.sever()
        insert(fan, 2001, 9000)
        fan.wait_applied("a")
        fan.wait_slot(fan.source_position())
        pair.relay.mend()
        fan.wait_applied("a", "bravo")
        scene.assert_same()
        fan.assert_same("a")
        fan.drop("bravo")
        pair.receiver.drop_stream(scene.stream)
        assert scene.slots() == 1
        wait_for(lambda: not scene.has_destination_schema(), SECONDS, "the receiving engine's rows are gone")
    finally:
        pair.close()


def test_a_destination_that_stands_still_is_cut_off(fan: FanOut) -> None:
    """Its connections live and wait for a lock: after 15 s its changes go to disk, and the source may forget them."""
    fan.scene.run_at_source(TABLE)
    fan.start_stream("a", "b")
    with fan.scene.destination.connect(fan.made["b"].database) as blocker:
        blocker.execute("BEGIN")
        blocker.execute("LOCK TABLE t IN ACCESS EXCLUSIVE MODE")
        insert(fan, 1, 1000)
        fan.wait_applied("a")
        due = fan.source_position()
        assert fan.slot_position() < due
        fan.wait_slot(due)
        fan.wait("b", lambda destination: destination["backlog"]["state"] == "ON DISK", "has its backlog on disk")
        insert(fan, 1001, 2000)
        fan.wait_applied("a")
        fan.wait_slot(fan.source_position())
        blocker.execute("ROLLBACK")
    fan.wait_applied()
    fan.assert_same()


def test_a_damaged_backlog_stops_its_destination_only(fan: FanOut) -> None:
    """A file that has gone, then one with a wrong byte: nothing is passed over, and with the file back it goes on."""
    leave_b_behind(fan)
    fan.wait_slot(fan.source_position())
    fan.engine.kill()
    log = fan.engine.directory / "state" / "spill" / fan.scene.stream / "b" / "backlog"
    segment = max(log.glob("*/0*"), key=lambda path: path.stat().st_size)

    def assert_stopped() -> None:
        found = fan.wait("b", lambda destination: destination["status"] == "ABORTED", "ABORTED")
        assert found["error"]["code"] == "backlog_damaged", found["error"]
        assert str(segment) in found["error"]["message"]
        assert "drop the destination" in found["error"]["cure"]
        insert(fan, *more)
        fan.wait_applied("a")
        fan.assert_same("a")
        assert fan.scene.destination.value(fan.made["b"].database, "SELECT count(*) FROM t") == 0

    aside = segment.with_name("aside")
    segment.rename(aside)
    fan.engine.start()
    more = (5001, 6000)
    assert_stopped()
    whole = aside.read_bytes()
    damaged = bytearray(whole)
    damaged[200] ^= 1
    segment.write_bytes(damaged)
    more = (6001, 7000)
    fan.mend("b")
    fan.wait("b", lambda destination: destination["error"] and "missing" not in destination["error"]["message"],
             "has tried again")
    assert_stopped()
    segment.write_bytes(whole)
    aside.unlink()
    fan.mend("b")
    fan.wait_applied()
    fan.assert_same()
