"""Mistakes of users: each with a clear error and its cure, and nothing half-created left behind."""

import json
import os
import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from harness.cluster import PASSWORD, wait_for
from harness.engine import Engine, RefusedError, applied_here, destination_path
from harness.scene import Scene
from harness.workload import Writers
from harness.workspace import free_port, give_to_postgres

STREAM = {"id": "abcdefgh", "name": "n", "status": "DISABLED", "force": False, "parameters": {},
          "tables": [{"schema": "s", "table": "t"}],
          "source": {"name": "s", "conninfo": "port=1"}, "destinations": [applied_here("port=1")]}
TABLE = "CREATE TABLE item (id integer PRIMARY KEY, body text); INSERT INTO item VALUES (1, 'one');"


def assert_clear(error: dict[str, Any], code: str) -> None:
    assert error["code"] == code, error
    assert error["message"] and error["title"] and len(error["cure"]) > 10, error
    assert PASSWORD not in json.dumps(error), "an error shows a password"


def assert_nothing_at_source(scene: Scene) -> None:
    assert scene.slots() == 0, "a slot was left at the source"
    assert scene.publications() == 0, "a publication was left at the source"


def test_wrong_password_then_right(scene: Scene) -> None:
    scene.run_at_source(TABLE)
    wrong = scene.source.conninfo(scene.database, "thalweg", "not-the-password")
    scene.engine.add_stream(scene.stream, wrong, scene.destination_conninfo, [("public", "item")])
    assert_clear(scene.engine.wait_aborted(scene.stream), "authentication_failed")
    assert_nothing_at_source(scene)
    scene.engine.set_stream(scene.stream, source={"name": "source", "conninfo": scene.source_conninfo})
    scene.engine.retry(scene.stream)
    scene.wait_replicating()
    scene.assert_same()


def test_wrong_password_at_destination(scene: Scene) -> None:
    scene.run_at_source(TABLE)
    wrong = scene.destination.conninfo(scene.database, "thalweg", "wrong")
    scene.engine.add_stream(scene.stream, scene.source_conninfo, wrong, [("public", "item")])
    assert_clear(scene.engine.wait_aborted(scene.stream), "authentication_failed")
    assert_nothing_at_source(scene)


def test_unreachable_host_is_tried_again(scene: Scene) -> None:
    scene.run_at_source(TABLE)
    nobody = f"host=127.0.0.1 port={free_port()} dbname=x user=thalweg password={PASSWORD}"
    scene.engine.add_stream(scene.stream, scene.source_conninfo, nobody, [("public", "item")])
    status = scene.engine.wait_phase(scene.stream, "RETRYING")
    assert_clear(status["error"], "database_unreachable")
    assert status["retry_at"]
    assert_nothing_at_source(scene)


def test_no_replication_privilege(scene: Scene) -> None:
    scene.run_at_source(TABLE)
    scene.source.sql("postgres", f"CREATE ROLE plain LOGIN PASSWORD '{PASSWORD}' IN ROLE thalweg")
    try:
        scene.engine.add_stream(scene.stream, scene.source.conninfo(scene.database, "plain"),
                                scene.destination_conninfo, [("public", "item")])
        error = scene.engine.wait_aborted(scene.stream)
        assert_clear(error, "insufficient_privilege")
        assert "REPLICATION" in error["message"].upper()
        assert_nothing_at_source(scene)
    finally:
        scene.engine.stop()
        scene.source.sql("postgres", "DROP ROLE plain")


def test_rows_that_row_level_security_hides_are_not_left_out(scene: Scene) -> None:
    """A policy that is forced on the owner hides rows from the copy: it is refused, and not taken for all rows."""
    scene.run_at_source(TABLE + "INSERT INTO item SELECT i, $$x$$ FROM generate_series(2, 10) i;"
                        "CREATE POLICY few ON item USING (id < 4); ALTER TABLE item ENABLE ROW LEVEL SECURITY, "
                        "FORCE ROW LEVEL SECURITY;")
    scene.engine.add_stream(scene.stream, scene.source_conninfo, scene.destination_conninfo, [("public", "item")])
    error = scene.engine.wait_aborted(scene.stream)
    assert_clear(error, "insufficient_privilege")
    assert "row-level security" in error["message"]
    assert_nothing_at_source(scene)


def test_no_privilege_at_destination(scene: Scene) -> None:
    scene.run_at_source(TABLE)
    scene.destination.sql("postgres", f"CREATE ROLE guest LOGIN PASSWORD '{PASSWORD}'")
    try:
        scene.engine.add_stream(scene.stream, scene.source_conninfo,
                                scene.destination.conninfo(scene.database, "guest"), [("public", "item")])
        assert_clear(scene.engine.wait_aborted(scene.stream), "insufficient_privilege")
        assert_nothing_at_source(scene)
    finally:
        scene.engine.stop()
        scene.destination.sql("postgres", "DROP ROLE guest")


def test_wal_level_too_low(scene: Scene) -> None:
    """The destination's cluster has wal_level = replica; here it is the source."""
    scene.destination.run_script(scene.database, "SET ROLE thalweg;" + TABLE)
    scene.destination.sql("postgres", "ALTER ROLE thalweg REPLICATION")
    scene.engine.add_stream(scene.stream, scene.destination_conninfo, scene.source.conninfo(scene.database),
                            [("public", "item")])
    error = scene.engine.wait_aborted(scene.stream)
    scene.destination.sql("postgres", "ALTER ROLE thalweg NOREPLICATION")
    assert_clear(error, "wal_level_too_low")
    assert "wal_level" in error["cure"]
    assert scene.source.value(scene.database, "SELECT to_regclass('item') IS NULL"), "a table was created"
    assert scene.destination.value(scene.database, "SELECT count(*) FROM pg_publication") == 0


@pytest.mark.parametrize("definition", [
    "CREATE TABLE item (id integer PRIMARY KEY)",
    "CREATE TABLE item (id integer PRIMARY KEY, body integer)",
    "CREATE TABLE item (id integer PRIMARY KEY, body text, more text NOT NULL)",
], ids=["column missing", "type differs", "column required"])
def test_different_destination_table(scene: Scene, definition: str) -> None:
    scene.run_at_source(TABLE)
    scene.destination.run_script(scene.database, f"SET ROLE thalweg; {definition};")
    scene.start_stream(wait=False)
    error = scene.engine.wait_aborted(scene.stream)
    assert_clear(error, "destination_table_differs")
    assert "item" in error["message"] + error["table"]
    assert_nothing_at_source(scene)


def test_destination_table_not_empty(scene: Scene) -> None:
    scene.run_at_source(TABLE)
    scene.destination.run_script(scene.database, "SET ROLE thalweg;" + TABLE)
    scene.start_stream(wait=False)
    assert_clear(scene.engine.wait_aborted(scene.stream), "destination_table_not_empty")
    assert_nothing_at_source(scene)
    assert scene.at_destination("SELECT count(*) FROM item") == [(1,)]


def test_missing_table(scene: Scene) -> None:
    scene.run_at_source(TABLE)
    scene.start_stream([("public", "item"), ("public", "absent")], wait=False)
    error = scene.engine.wait_aborted(scene.stream)
    assert_clear(error, "missing_table")
    assert "absent" in error["message"]
    assert_nothing_at_source(scene)


def test_table_without_identity(scene: Scene) -> None:
    scene.run_at_source("CREATE TABLE notes (body text); INSERT INTO notes VALUES ('a');")
    scene.start_stream(wait=False)
    error = scene.engine.wait_aborted(scene.stream)
    assert_clear(error, "replica_identity_missing")
    assert "notes" in error["message"] and "REPLICA IDENTITY" in error["cure"]
    assert_nothing_at_source(scene)
    scene.at_source("ALTER TABLE notes REPLICA IDENTITY FULL")
    scene.engine.retry(scene.stream)
    scene.wait_replicating()
    scene.assert_same()


def wait_slot_free(scene: Scene) -> None:
    """The server process that read from it may end a moment after the engine has."""
    wait_for(lambda: not scene.source.value("postgres", "SELECT count(*) FROM pg_replication_slots WHERE active "
                                            f"AND slot_name = 'thalweg_{scene.stream}'"), 30, "the slot is free")


def test_slot_dropped_behind_our_back(scene: Scene) -> None:
    scene.run_at_source(TABLE)
    scene.start_stream()
    scene.engine.set_stream(scene.stream, status="DISABLED")
    scene.engine.wait_phase(scene.stream, "STOPPED")
    wait_slot_free(scene)
    scene.at_source(f"SELECT pg_drop_replication_slot('thalweg_{scene.stream}')",
                    "INSERT INTO item VALUES (2, 'lost to the stream')")
    scene.engine.set_stream(scene.stream, status="ENABLED")
    assert_clear(scene.engine.wait_aborted(scene.stream), "slot_lost")
    assert scene.at_destination("SELECT count(*) FROM item") == [(1,)], "it went on over a gap"
    scene.engine.drop_stream(scene.stream)
    scene.assert_nothing_left()


def test_slot_moved_on_is_a_gap(scene: Scene) -> None:
    scene.run_at_source(TABLE)
    scene.start_stream()
    scene.engine.terminate()
    wait_slot_free(scene)
    scene.at_source("INSERT INTO item VALUES (2, 'passed over')",
                    f"SELECT pg_replication_slot_advance('thalweg_{scene.stream}', pg_current_wal_lsn())")
    scene.engine.start()
    error = scene.engine.wait_aborted(scene.stream)
    assert_clear(error, "position_gap")
    assert any(character.isdigit() for character in error["message"]), "it does not say how big the gap is"


def test_no_free_slot(scene: Scene) -> None:
    scene.run_at_source(TABLE)
    free = "current_setting('max_replication_slots')::integer - (SELECT count(*) FROM pg_replication_slots)"
    scene.source.sql("postgres", "SELECT pg_create_physical_replication_slot('filler_' || n) "
                                 f"FROM generate_series(1, {free}) n")
    try:
        scene.start_stream(wait=False)
        assert_clear(scene.engine.wait_aborted(scene.stream), "slot_limit_reached")
        assert scene.publications() == 0
    finally:
        scene.source.sql("postgres", "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "
                                     "WHERE slot_name LIKE 'filler%'")
    scene.engine.retry(scene.stream)
    scene.wait_replicating()


def test_second_engine_on_the_same_stream(scene: Scene, workspace: Path) -> None:
    scene.run_at_source(TABLE)
    scene.start_stream()
    second = Engine(workspace / f"second-{scene.database}")
    second.start()
    try:
        second.add_stream(scene.stream, scene.source_conninfo, scene.destination_conninfo, [("public", "item")])
        status = wait_for(lambda: (found := second.status(scene.stream))["error"] and found, 30, "an error shows")
        assert status["error"]["code"] in ("stream_in_use", "slot_in_use"), status
        assert status["error"]["cure"]
        assert status["phase"] != "REPLICATING"
        scene.at_source("INSERT INTO item VALUES (2, 'two')")
        scene.wait_applied()
        scene.assert_same()
    finally:
        second.stop()


@pytest.mark.parametrize(("change", "pointer"), [
    ({"colour": "blue"}, "colour"),
    ({"streams": [STREAM | {"surprise": 1}]}, "surprise"),
    ({"streams": [{"id": "abcdefgh"}]}, "missing"),
    ({"format": 99}, "format"),
    ({"streams": "none"}, "streams"),
], ids=["unknown field", "unknown field within", "field missing", "unknown format", "wrong type"])
def test_desired_state_that_does_not_fit(scene: Scene, change: dict[str, Any], pointer: str) -> None:
    with pytest.raises(RefusedError) as refused:
        scene.engine.put_desired(**change)
    assert refused.value.status == 400
    assert refused.value.error["code"] == "invalid_request"
    assert pointer in refused.value.error["message"]
    assert scene.engine.request("GET", "/v1/status")["streams"] == []


@pytest.mark.parametrize("parameters", [
    {"parallelism": 0}, {"parallelism": "four"}, {"commit_serialization": "sometimes"}, {"no_such": 1},
    {"group_size": 10**12}, {"error_policies": [{"action": "ignore"}]}])
def test_parameters_out_of_range(scene: Scene, parameters: dict[str, Any]) -> None:
    scene.run_at_source(TABLE)
    with pytest.raises(RefusedError) as refused:
        scene.start_stream(wait=False, **parameters)
    assert refused.value.status == 400
    assert next(iter(parameters)) in refused.value.error["message"]
    assert_nothing_at_source(scene)


def test_not_json_huge_body_and_wrong_token(scene: Scene) -> None:
    for body in (b"{", b"\xff\xfe", b"[" * 100_000, b""):
        with pytest.raises(RefusedError) as refused:
            scene.engine.request("PUT", "/v1/desired", body)
        assert refused.value.status == 400, body[:10]
    try:
        scene.engine.request("PUT", "/v1/desired", b" " * (17 * 2**20))
        pytest.fail("a body above 16 MiB was taken")
    except RefusedError as refused_body:
        assert refused_body.status == 413
    except (BrokenPipeError, ConnectionResetError):
        pass  # it hung up before we had sent it all, as it may
    with pytest.raises(RefusedError) as refused:
        scene.engine.request("GET", "/v1/status", token="wrong" * 8)
    assert refused.value.status == 401
    with pytest.raises(RefusedError) as refused:
        scene.engine.request("GET", destination_path("abcdefgh") + "/errors")
    assert refused.value.error["code"] == "unknown_stream"
    assert scene.engine.request("GET", "/healthz")["status"] == "ok"


def test_leaving_a_stream_out_is_refused(scene: Scene) -> None:
    scene.run_at_source(TABLE)
    scene.start_stream()
    with pytest.raises(RefusedError) as refused:
        scene.engine.put_desired(streams=[])
    assert refused.value.status == 409
    assert scene.engine.status(scene.stream)["phase"] == "REPLICATING"


def test_conflicting_row_stops_and_says_which(scene: Scene) -> None:
    scene.run_at_source(TABLE)
    scene.start_stream()
    scene.at_destination("INSERT INTO item VALUES (2, 'in the way')")
    scene.at_source("INSERT INTO item VALUES (2, 'two')")
    error = scene.engine.wait_aborted(scene.stream)
    assert error["code"] in ("apply_failed", "apply_conflict"), error
    assert error["sqlstate"] == "23505"
    assert "item" in error["table"]
    scene.at_destination("DELETE FROM item WHERE id = 2")
    scene.engine.retry(scene.stream)
    scene.wait_replicating()
    scene.wait_applied()
    scene.assert_same()


@pytest.fixture
def small_disk(scene: Scene, workspace: Path) -> Iterator[Path]:
    """A file system of 32 MB; the destination's database puts its tables there."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    path = workspace / f"disk-{scene.database}"
    path.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m", "thalweg-test", str(path)], check=False)
    if mounted.returncode != 0:
        pytest.skip("this machine does not let us mount")
    give_to_postgres(path)
    try:
        scene.destination.sql("postgres", f"CREATE TABLESPACE small LOCATION '{path}'",
                              "GRANT CREATE ON TABLESPACE small TO thalweg",
                              f'ALTER DATABASE "{scene.database}" SET default_tablespace = small')
        yield path
    finally:
        scene.engine.stop()
        scene.destination.sql("postgres", f'DROP DATABASE "{scene.database}" WITH (FORCE)', "DROP TABLESPACE small")
        subprocess.run(["umount", "--lazy", str(path)], check=True)


def test_full_disk_at_destination(scene: Scene, small_disk: Path, random_: random.Random) -> None:
    """Under load the stream waits, tells the cure, and goes on by itself once there is space. Nothing is lost."""
    scene.run_at_source(TABLE + "CREATE TABLE other (id bigint PRIMARY KEY, body text);")
    scene.start_stream()
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 8 * 2**20)  # what an operator would find and remove

    def write(connection: psycopg.Connection[Any], random_: random.Random, number: int) -> None:
        first = random_.randrange(10, 10**9)
        table = ("item", "other")[number]
        connection.execute(f"INSERT INTO {table} SELECT n, repeat(md5(n::text), 30) FROM generate_series({first}, "
                           f"{first + 200}) n ON CONFLICT (id) DO UPDATE SET body = 'again'")
        connection.execute(f"DELETE FROM {table} WHERE id = {first + random_.randrange(200)}")
        time.sleep(0.02)

    with Writers(scene.source, scene.database, 2, random_, write):
        status = wait_for(lambda: (found := scene.engine.status(scene.stream))["error"] and found, 60, "an error shows")
        assert_clear(status["error"], "disk_full")
        assert "space" in status["error"]["cure"]
        assert status["phase"] == "RETRYING"
        assert status["retry_at"]
        for _ in range(20):  # it waits and tries again: it neither gives up nor goes on
            assert scene.engine.status(scene.stream)["status"] == "ENABLED"
            time.sleep(0.1)
        behind = scene.at_destination("SELECT count(*) FROM item")
        assert behind[0][0] < scene.at_source("SELECT count(*) FROM item")[0][0], "there was space after all"
        ballast.unlink()
        subprocess.run(["mount", "-o", "remount,size=2g", str(small_disk)], check=True)
        scene.wait_replicating(90)
    scene.wait_applied(90)
    scene.assert_same()
    assert scene.engine.status(scene.stream)["error"] is None
