"""A database whose servers are a primary and a standby, of which the standby is read."""

import asyncio
import shutil
import tempfile
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from packaged_servers import packaged_server

from tests.conftest import Sides, made_sides
from tests.features.test_streams import created
from tests.support.engine_double import EngineDouble
from tests.support.servers import Cluster, postgres_binaries, start_cluster, start_standby
from thalweg.db.models import DatabaseRow
from thalweg.engine_client.desired import source_definition
from thalweg.inspection.connection import connected, read_all
from thalweg.inspection.failure import ConnectionFailure
from thalweg.inspection.removal import remove_stream_objects
from thalweg.inspection.slots import drop_slot_at, read_slots
from thalweg.inspection.target import Target
from thalweg.kernel.context import Resources

PATH = "/api/v1/databases"


@dataclass
class Pair:
    primary: Cluster
    standby: Cluster
    sides: Sides

    @property
    def settings(self) -> dict[str, Any]:
        hosts = f"127.0.0.1:{self.primary.port},127.0.0.1:{self.standby.port}"
        return {**self.sides.source, "host": hosts, "port": 5432, "read_from": "standby"}

    def wait(self) -> None:
        """Until the standby has what the primary has written."""
        written = self.primary.value("SELECT pg_current_wal_flush_lsn()")
        for _ in range(300):
            if self.standby.value(f"SELECT pg_last_wal_replay_lsn() >= '{written}'"):
                return
            time.sleep(0.1)
        raise TimeoutError("the standby does not follow")


@contextmanager
def made_pair(binaries: Path, **settings: str | int) -> Generator[Pair, None, None]:
    primary = start_cluster(binaries)
    try:
        standby = start_standby(primary, **settings)
        try:
            with made_sides(primary) as sides:
                made = Pair(primary, standby, sides)
                made.wait()
                yield made
        finally:
            standby.stop()
    finally:
        primary.stop()


@pytest.fixture(scope="module")
def newer() -> Generator[Path, None, None]:
    workspace = Path(tempfile.mkdtemp(prefix="thalweg-test-newer-"))
    workspace.chmod(0o755)
    yield packaged_server(17, workspace)
    shutil.rmtree(workspace)


@pytest.fixture(scope="module")
def pair(newer: Path) -> Generator[Pair, None, None]:
    with made_pair(newer, hot_standby_feedback="off") as made:
        yield made


def checks_of(answer: httpx.Response) -> dict[str, dict[str, Any]]:
    return {check["id"]: check for check in answer.json()["checks"] if check["side"] == "source"}


async def registered_pair(admin: httpx.AsyncClient, pair: Pair) -> str:
    answer = await admin.post(PATH, json=pair.settings)
    assert answer.status_code == 201, answer.text
    assert answer.json()["read_from"] == "standby"
    return str(answer.json()["id"])


async def test_the_test_tells_which_server_is_what(admin: httpx.AsyncClient, pair: Pair) -> None:
    result = (await admin.post(f"{PATH}/{await registered_pair(admin, pair)}/test")).json()
    assert (result["code"], result["version_number"] // 10000) == (None, 17), result
    assert [(server["address"].rpartition(":")[2], server["role"]) for server in result["servers"]] == [
        (str(pair.primary.port), "primary"), (str(pair.standby.port), "standby"),
    ]  # fmt: skip
    assert len({server["system_identifier"] for server in result["servers"]}) == 1


async def test_servers_that_do_not_fit(admin: httpx.AsyncClient, pair: Pair) -> None:
    async def tried(*ports: int) -> dict[str, Any]:
        body = {**pair.settings, "host": ",".join(f"127.0.0.1:{port}" for port in ports)}
        body = {name: value for name, value in body.items() if name != "name"}
        return (await admin.post(f"{PATH}:test", json=body)).json()

    no_standby = await tried(pair.primary.port, 1)
    assert (no_standby["code"], no_standby["reachable"]) == ("source_standby_missing", True)
    assert "127.0.0.1:1" in no_standby["message"]
    assert [server["role"] for server in no_standby["servers"]] == ["primary", None]
    assert (await tried(pair.standby.port, 1))["code"] == "source_read_only"
    twice = await tried(pair.primary.port, pair.standby.port, pair.standby.port)
    assert twice["code"] == "source_changed"
    assert "several standbys" in twice["message"]


async def test_preflight_looks_at_both_servers(admin: httpx.AsyncClient, pair: Pair) -> None:
    path = f"{PATH}/{await registered_pair(admin, pair)}/preflight?role=source"
    before = checks_of(await admin.get(path))
    assert before["standby"]["status"] == "ok", before
    assert f":{pair.standby.port} is read" in before["standby"]["detail"]
    assert before["primary_wal_level"]["status"] == "ok"
    assert (before["standby_feedback"]["status"], before["standby_feedback"]["sql"]) == (
        "failed", "ALTER SYSTEM SET hot_standby_feedback = on",
    )  # fmt: skip
    assert before["standby_slot"]["status"] == "warning"
    assert before["standby_snapshot"]["status"] == "warning"
    assert "primary" not in before
    # Each cure is what it says.
    pair.standby.execute(before["standby_feedback"]["sql"], "ALTER SYSTEM SET primary_slot_name = 'standby'",
                         "SELECT pg_reload_conf()")  # fmt: skip
    pair.sides.on_source(before["standby_snapshot"]["sql"])
    pair.wait()
    after = checks_of(await admin.get(path))
    assert {after[name]["status"] for name in ("standby_feedback", "standby_slot", "standby_snapshot")} == {"ok"}, after
    assert (await admin.get(path)).json()["ready"]


async def test_a_primary_with_less_wal_is_named(admin: httpx.AsyncClient, newer: Path) -> None:
    with made_pair(newer, hot_standby_feedback="on") as pair:
        pair.primary.control("-m", "fast", "stop")
        pair.primary.set(wal_level="replica")
        pair.primary.start()
        pair.wait()
        path = f"{PATH}/{await registered_pair(admin, pair)}/preflight?role=source"
        checks = checks_of(await admin.get(path))
    assert checks["wal_level"]["status"] == "ok"
    assert checks["primary_wal_level"]["status"] == "failed"
    assert f":{pair.primary.port}" in checks["primary_wal_level"]["detail"]


async def test_a_standby_before_16_is_refused(admin: httpx.AsyncClient) -> None:
    with made_pair(postgres_binaries(), hot_standby_feedback="on") as pair:
        database = await registered_pair(admin, pair)
        tried = (await admin.post(f"{PATH}/{database}/test")).json()
        checks = checks_of(await admin.get(f"{PATH}/{database}/preflight?role=source"))
    assert tried["code"] == "unsupported_version"
    assert "needs 16 or later" in tried["message"]
    assert checks["standby"]["status"] == "failed"
    assert "Read from the primary" in checks["standby"]["cure"]


async def test_settings_that_contradict(admin: httpx.AsyncClient, sides: Sides) -> None:
    alone = await admin.post(PATH, json={**sides.source, "read_from": "standby"})
    assert alone.status_code == 422
    assert "name both servers" in alone.text
    two = {**sides.source, "host": "127.0.0.1,127.0.0.2", "read_from": "standby"}
    chosen = await admin.post(PATH, json={**two, "options": {"target_session_attrs": "any"}})
    assert chosen.status_code == 422
    made = (await admin.post(PATH, json={**two, "name": "pair"})).json()
    refused = await admin.patch(
        f"{PATH}/{made['id']}", json={"host": "127.0.0.1", "password": sides.source["password"]},
        headers={"If-Match": made["etag"]},
    )  # fmt: skip
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"] == "/read_from"


async def test_streams_hold_the_server_that_they_read(
    operator: httpx.AsyncClient, registered: dict[str, str], sides: Sides, engine: EngineDouble
) -> None:
    await created(operator, registered)
    path = f"{PATH}/{registered['source']}"
    etag = (await operator.get(path)).json()["etag"]
    change = {"host": "127.0.0.1,127.0.0.2", "read_from": "standby", "password": sides.source["password"]}
    refused = await operator.patch(path, json=change, headers={"If-Match": etag})
    assert (refused.status_code, refused.json()["code"]) == (409, "database_in_use")


def test_the_engine_is_told(resources: Resources) -> None:
    row = DatabaseRow(
        name="shop", host="one,two:5433", port=5432, dbname="shop", username="me", password_sealed=None,
        sslmode="prefer", options={}, pem={}, read_from="standby",
    )  # fmt: skip
    source = source_definition(row, resources.secrets)
    assert source["read_from"] == "standby"
    assert "target_session_attrs=primary" in source["conninfo"]
    assert "host=one,two port=5432,5433" in source["conninfo"]
    row.read_from = "primary"
    assert "read_from" not in source_definition(row, resources.secrets)


async def test_what_a_lost_engine_left_is_removed_at_both_servers(pair: Pair) -> None:
    name, dbname = "thalweg_lost", pair.sides.source["dbname"]
    make = f"SELECT pg_create_logical_replication_slot('{name}', 'pgoutput')"
    with ThreadPoolExecutor() as beside:
        made = beside.submit(pair.standby.execute, make, dbname=dbname)
        while not made.done():
            pair.primary.execute("SELECT pg_log_standby_snapshot()")
            await asyncio.sleep(0.1)
        made.result()
    pair.sides.on_source(f"CREATE PUBLICATION {name}")
    pair.sides.on_source(f"ALTER PUBLICATION {name} OWNER TO {pair.settings['user']}")
    pair.wait()
    fields = {field: pair.settings[field] for field in ("host", "port", "dbname", "user", "password", "sslmode")}
    target = Target(**fields, reads_standby=True)
    assert (await read_slots(target, 10)).slots[name].wal_status == "reserved"
    assert await remove_stream_objects("lost", target, [], 10) == []
    slots = "SELECT count(*) FROM pg_replication_slots WHERE slot_type = 'logical'"
    assert pair.standby.value(slots) == 0
    async with connected(target.for_writing, 10) as connection:
        assert await read_all(connection, "SELECT pubname FROM pg_publication") == []
    assert not await drop_slot_at(target, name, 10)
    # While the standby is away nothing is known of its slots, and nothing that it has is called removed.
    away = Target(**{**fields, "host": f"127.0.0.1:{pair.primary.port},127.0.0.1:1"}, reads_standby=True)
    with pytest.raises(ConnectionFailure) as unknown:
        await read_slots(away, 10)
    assert unknown.value.code == "source_standby_missing"
    with pytest.raises(ConnectionFailure):
        await drop_slot_at(away, name, 10)
    assert len(await remove_stream_objects("lost", away, [], 10)) == 1
