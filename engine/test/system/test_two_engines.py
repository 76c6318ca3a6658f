"""A path over two engines: capture at one, apply at the other, mutual TLS between them."""

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.cluster import wait_for
from harness.engine import SECONDS, RefusedError
from harness.markers import passed
from harness.paths import Authority, EnginePair
from harness.scene import Scene
from harness.workload import make_pgbench_tables, strike_under_load


@pytest.fixture
def pair(scene: Scene, tmp_path: Path) -> Iterator[EnginePair]:
    pair = EnginePair(scene, tmp_path)
    yield pair
    pair.close()


def types(pair: EnginePair, sends: bool) -> list[str]:
    engine = pair.sender if sends else pair.receiver
    return [component["type"] for component in engine.components(pair.scene.stream)]


@pytest.mark.parametrize("compression", ["none", "lz4", "zstd"])
def test_rows_are_copied_and_changes_flow(pair: EnginePair, compression: str) -> None:
    scene = pair.scene
    scene.run_at_source("CREATE TABLE t (id bigint PRIMARY KEY, v text NOT NULL);"
                        "INSERT INTO t SELECT n, 'copied ' || n FROM generate_series(1, 1000) n;")
    pair.start_stream(propagation_compression=compression)
    scene.at_source("INSERT INTO t SELECT n, repeat('new ', 50) FROM generate_series(1001, 20000) n",
                    "UPDATE t SET v = 'changed' WHERE id % 7 = 0", "DELETE FROM t WHERE id % 11 = 0")
    pair.wait_applied()
    scene.assert_same()
    assert types(pair, sends=True) == ["CAPTURE", "QUEUE", "PROPAGATION SENDER"]
    assert types(pair, sends=False)[:3] == ["PROPAGATION RECEIVER", "QUEUE", "APPLY"]
    assert pair.sender.status(scene.stream)["mode"] == "CAPTURE AND PROPAGATION"
    assert pair.receiver.status(scene.stream)["mode"] == "PROPAGATION AND APPLY"
    pair.drop_stream()
    scene.assert_nothing_left()


def test_an_idle_path_confirms_to_the_source(pair: EnginePair) -> None:
    scene = pair.scene
    scene.run_at_source("CREATE TABLE t (id bigint PRIMARY KEY);")
    pair.start_stream()
    scene.at_source("INSERT INTO t VALUES (1)")
    written = str(scene.source.value(scene.database, "SELECT pg_current_wal_flush_lsn()"))

    def confirmed() -> bool:
        return bool(scene.source.value("postgres", f"SELECT confirmed_flush_lsn >= '{written}' FROM "
                                                   f"pg_replication_slots WHERE slot_name = 'thalweg_{scene.stream}'"))

    wait_for(confirmed, SECONDS, "the source's slot has moved")


def kill_sender(pair: EnginePair) -> None:
    pair.sender.kill()
    pair.sender.start()


def kill_receiver(pair: EnginePair) -> None:
    pair.receiver.kill()
    pair.receiver.start()


def cut_link(pair: EnginePair) -> None:
    pair.relay.cut()


def sever_link_for_a_while(pair: EnginePair) -> None:
    pair.relay.sever()
    time.sleep(1.5)
    pair.relay.mend()


def crash_source(pair: EnginePair) -> None:
    pair.scene.source.restart("immediate")


def restart_destination(pair: EnginePair) -> None:
    pair.scene.destination.restart("fast")


FAULTS: list[Callable[[EnginePair], None]] = [cut_link, kill_sender, cut_link, kill_receiver, sever_link_for_a_while,
                                              crash_source, restart_destination, kill_sender, kill_receiver, cut_link]


def test_random_faults_lose_and_duplicate_nothing(pair: EnginePair, random_: random.Random) -> None:
    scene = pair.scene
    make_pgbench_tables(scene.source, scene.database, scale=1)
    pair.start_stream(parallelism=4)
    strike_under_load(scene, pair, random_.sample(FAULTS, len(FAULTS)), random_)
    assert scene.source.value(scene.database, "SELECT count(*) FROM pgbench_history") > 500
    pair.wait_applied(2 * SECONDS)
    scene.assert_same()


def test_a_broken_link_is_said_and_mends(pair: EnginePair) -> None:
    scene = pair.scene
    scene.run_at_source("CREATE TABLE t (id bigint PRIMARY KEY);")
    pair.start_stream()
    pair.relay.sever()
    for engine in (pair.sender, pair.receiver):
        status = engine.wait_phase(scene.stream, "RETRYING")
        assert status["error"]["code"] in ("link_lost", "engine_unreachable"), status["error"]
    scene.at_source("INSERT INTO t SELECT generate_series(1, 5000)")
    pair.relay.mend()
    pair.wait_replicating()
    pair.wait_applied()
    scene.assert_same()


def test_a_table_comes_in_while_the_capturing_engine_does_not_know_it(pair: EnginePair) -> None:
    """The receiving engine hears of it first: what is written until the other one publishes it must not be lost."""
    scene = pair.scene
    scene.run_at_source("CREATE TABLE t (id bigint PRIMARY KEY);")
    pair.start_stream()
    scene.run_at_source("CREATE TABLE late (id bigint PRIMARY KEY); INSERT INTO late SELECT generate_series(1, 1000)")
    both = [{"schema": "public", "table": name} for name in ("t", "late")]
    pair.receiver.set_stream(scene.stream, tables=both)
    # That the link ends with the receiver's session may be its first word.
    pair.receiver.wait_status(
        scene.stream, lambda found: found["phase"] == "RETRYING" and found["error"]
        and found["error"]["code"] == "link_refused", SECONDS, "the sender refuses the table")
    scene.at_source("INSERT INTO late SELECT generate_series(1001, 2000)", "DELETE FROM late WHERE id <= 100")
    pair.sender.set_stream(scene.stream, tables=both)
    scene.at_source("INSERT INTO late SELECT generate_series(2001, 3000)", "DELETE FROM late WHERE id > 2900")
    pair.wait_replicating()
    pair.wait_applied()
    scene.assert_same()


def test_without_an_identity_the_stream_says_what_to_do(scene: Scene) -> None:
    scene.run_at_source("CREATE TABLE t (id bigint PRIMARY KEY);")
    scene.engine.put_stream(scene.stream, scene.source_conninfo, scene.destination_conninfo, [("public", "t")], {},
                            receive_from={"engine": "alpha"})
    error = scene.engine.wait_aborted(scene.stream)
    assert error["code"] == "identity_missing"
    assert error["cure"]


def test_a_strangers_certificate_is_refused_until_it_is_replaced(pair: EnginePair, tmp_path: Path) -> None:
    scene = pair.scene
    scene.run_at_source("CREATE TABLE t (id bigint PRIMARY KEY); INSERT INTO t VALUES (1);")
    Authority(tmp_path / "stranger").enrol(pair.sender, "alpha")
    pair.start_stream(wait=False)
    status = pair.sender.wait_status(
        scene.stream, lambda found: found["error"] and found["error"]["code"] == "certificate_rejected", SECONDS,
        "the stranger's certificate is refused")
    assert status["phase"] == "RETRYING"
    pair.authority.enrol(pair.sender, "alpha")
    pair.wait_replicating()
    scene.at_source("INSERT INTO t VALUES (2)")
    pair.wait_applied()
    scene.assert_same()


def test_another_engines_name_is_refused(pair: EnginePair) -> None:
    scene = pair.scene
    scene.run_at_source("CREATE TABLE t (id bigint PRIMARY KEY);")
    pair.authority.enrol(pair.sender, "charlie")
    pair.start_stream(wait=False)
    # Before the receiver listens the link is just not there.
    told = ("certificate_rejected", "link_refused")
    pair.sender.wait_status(scene.stream, lambda found: found["error"] and found["error"]["code"] in told, SECONDS,
                            "the wrong name is refused")


def test_marker_passes_two_engines(pair: EnginePair) -> None:
    scene = pair.scene
    scene.run_at_source("CREATE TABLE item (id integer PRIMARY KEY)")
    pair.start_stream(heartbeat_interval=1)
    engines = [pair.sender, pair.receiver]
    pair.sender.request("POST", f"/v1/streams/{scene.stream}/markers", {"id": "m", "label": ""})
    stages = ["CAPTURE", "ENQUEUE", "SEND", "RECEIVE", "DEQUEUE", "DISPATCH", "COMMIT"]
    wait_for(lambda: passed(engines, scene.stream, "m", stages), 20, "the marker has passed both engines")
    with pytest.raises(RefusedError):
        pair.receiver.request("POST", f"/v1/streams/{scene.stream}/markers", {"id": "n", "label": ""})
    pair.drop_stream()
