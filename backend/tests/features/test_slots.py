"""Slots of whole servers: real ones, whose they are, what becomes of them, and the end of orphans."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Generator
from datetime import datetime, timedelta
from typing import Any

import httpx
import psycopg
import pytest
from fastapi import FastAPI

from tests.conftest import Sides, Users
from tests.features.test_streams import created
from tests.support.audit import asked_for
from tests.support.engine_double import EngineDouble
from tests.support.servers import postgres_binaries
from tests.support.serving import eventually
from tests.test_collector import collector, wait_for  # noqa: F401
from tests.test_commands import Shell, shell, with_token  # noqa: F401
from thalweg.composition import close_resources, make_resources
from thalweg.db.models import DatabaseRow, SourceReadingRow
from thalweg.db.readings import forget_slot, readings_of
from thalweg.features.slots.schemas import SlotEngine, SlotOwner
from thalweg.features.slots.service import Owners, by_server, owner_of, why_no_forecast
from thalweg.inspection.slots import SlotState, SourceState
from thalweg.kernel.clock import now
from thalweg.kernel.context import Resources
from thalweg.kernel.principal import Role
from thalweg.kernel.settings import Settings
from thalweg.live import lag as lags
from thalweg.live import steady_growth
from thalweg.live.sources import SourceReading
from thalweg.workers import sources
from thalweg.workers.lags import Lags
from thalweg.workers.repository import keep_reading

ORPHAN, OTHERS = "thalweg_000orphan000", "somebody_elses"


@pytest.fixture(autouse=True)
def quick(app: FastAPI, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.sources_interval = 0.1
    monkeypatch.setattr(sources, "OTHERS_EVERY", timedelta(seconds=0.1))
    monkeypatch.setattr(lags, "GROWTH_SPAN_MIN", lags.GROWTH_WINDOW / 120)
    monkeypatch.setattr(steady_growth, "SPAN_MIN", lags.GROWTH_WINDOW / 120)
    monkeypatch.setattr(steady_growth, "APART_MIN", timedelta(seconds=0.1))


@pytest.fixture
def slots(sides: Sides) -> Generator[Sides, None, None]:
    make = "SELECT pg_create_logical_replication_slot('{}', 'test_decoding')"
    sides.on_source(make.format(ORPHAN), "SELECT pg_create_physical_replication_slot('somebody_elses', true)")
    yield sides
    sides.on_source("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")


async def make_own(sides: Sides, name: str) -> None:
    """In a thread: the server waits for open transactions, and the collector's are of this one."""
    await asyncio.to_thread(sides.on_source, f"SELECT pg_create_logical_replication_slot('{name}', 'pgoutput')")


async def shown(client: httpx.AsyncClient, *names: str) -> dict[str, dict[str, Any]]:
    """The one server's slots by name, once it has these."""

    async def there() -> dict[str, dict[str, Any]] | None:
        (server,) = (await client.get("/api/v1/slots")).json()["servers"]
        found = {slot["name"]: slot for slot in server["slots"]}
        return found if found.keys() >= set(names) else None

    return dict(await eventually(there))


async def test_every_slot_of_a_server_with_whose_it_is(
    operator: httpx.AsyncClient,
    viewer: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    slots: Sides,
    collector: Any,  # noqa: F811
) -> None:
    stream = await created(operator, registered)
    own = f"thalweg_{stream['id']}"
    await make_own(slots, own)
    found = await shown(viewer, own, ORPHAN, OTHERS)
    assert found[own]["owner"] == "stream"
    assert found[own]["stream"] == {"id": stream["id"], "name": stream["name"]}
    assert (found[own]["plugin"], found[own]["database"]) == ("pgoutput", slots.source["dbname"])
    assert found[own]["drop_sql"] is None
    assert (found[ORPHAN]["owner"], found[ORPHAN]["stream"]) == ("orphan", None)
    assert found[ORPHAN]["drop_sql"] == f"SELECT pg_drop_replication_slot('{ORPHAN}')"
    assert (found[OTHERS]["owner"], found[OTHERS]["slot_type"], found[OTHERS]["plugin"]) == ("other", "physical", None)
    assert (found[OTHERS]["wal_status"], found[OTHERS]["active"]) == ("reserved", False)
    assert found[ORPHAN]["catalog_xmin_age"] >= 0
    (server,) = (await viewer.get("/api/v1/slots")).json()["servers"]
    # Both databases are at the one server; that of the stream's source comes first.
    assert [database["id"] for database in server["databases"]] == [registered["source"], registered["destination"]]
    assert (server["failure"], server["keep_bytes"]) == (None, None)
    assert re.fullmatch(r"[0-9]+\.[0-9]+", server["version"])


async def test_a_slot_that_grows_without_a_limit_says_why_nobody_knows_when_the_disk_is_full(
    viewer: httpx.AsyncClient,
    registered: dict[str, str],
    slots: Sides,
    collector: Any,  # noqa: F811
) -> None:
    async def grows() -> str | None:
        slots.on_source("SELECT pg_logical_emit_message(false, 'a test', repeat('x', 100000))")
        slot = (await shown(viewer, OTHERS))[OTHERS]
        return slot["why_no_forecast"] if (slot["growth_bytes_per_second"] or 0) > 0 else None

    assert "max_slot_wal_keep_size sets no limit" in await eventually(grows)
    slots.cluster.execute("ALTER SYSTEM SET max_slot_wal_keep_size = '1GB'", "SELECT pg_reload_conf()")
    try:

        async def ends() -> dict[str, Any] | None:
            slots.on_source("SELECT pg_logical_emit_message(false, 'a test', repeat('x', 100000))")
            slot = (await shown(viewer, OTHERS))[OTHERS]
            return slot if slot["seconds_to_full"] is not None else None

        slot = await eventually(ends)
        assert slot["why_no_forecast"] is None
        assert slot["seconds_to_full"] == pytest.approx(slot["safe_bytes"] / slot["growth_bytes_per_second"])
    finally:
        slots.cluster.execute("ALTER SYSTEM RESET max_slot_wal_keep_size", "SELECT pg_reload_conf()")


async def test_an_orphan_is_dropped_and_the_audit_has_what_it_was(
    operator: httpx.AsyncClient,
    admin: httpx.AsyncClient,
    viewer: httpx.AsyncClient,
    registered: dict[str, str],
    slots: Sides,
    collector: Any,  # noqa: F811
) -> None:
    await shown(viewer, ORPHAN)
    path = f"/api/v1/databases/{registered['source']}/slots/{ORPHAN}"
    assert (await viewer.delete(path)).status_code == 403
    assert (await operator.delete(path)).status_code == 204
    left = await asyncio.to_thread(_names, slots)
    assert left == {OTHERS}
    entry = (await asked_for(admin))[0]
    assert (entry["action"], entry["target_name"], entry["after"]) == ("slots_drop", "shop", {"slot": ORPHAN})
    assert (entry["before"]["name"], entry["before"]["plugin"]) == (ORPHAN, "test_decoding")
    again = await operator.delete(path)
    assert (again.status_code, again.json()["code"]) == (404, "not_found")


async def test_a_dropped_slot_is_shown_by_no_database_of_its_server(
    app: FastAPI,
    settings: Settings,
    operator: httpx.AsyncClient,
    viewer: httpx.AsyncClient,
    registered: dict[str, str],
    slots: Sides,
) -> None:
    """Source and destination are databases of one server: each has a reading with the slot, and nobody reads again."""
    resources = make_resources(settings, "thalweg collector")
    reader = sources.SourceWatch(resources, sources.Seen())

    async def both_are_read() -> bool:
        async with resources.sessions() as session:
            readings = await readings_of(session, list(registered.values()))
        return len([row for row in readings if row.document is not None]) == 2

    try:
        await reader.turn()
        await eventually(both_are_read)
        await shown(viewer, ORPHAN)
        assert (await operator.delete(f"/api/v1/databases/{registered['source']}/slots/{ORPHAN}")).status_code == 204
        (server,) = (await viewer.get("/api/v1/slots")).json()["servers"]
        assert {slot["name"] for slot in server["slots"]} == {OTHERS}
        # An attempt that fails brings nothing back of the collector's memory, which is older.
        await reader._keep(registered["source"], now(), "no answer")
        (server,) = (await viewer.get("/api/v1/slots")).json()["servers"]
        assert {slot["name"] for slot in server["slots"]} == {OTHERS}
    finally:
        await reader.stop()
        await close_resources(resources)


def bare_slot(name: str) -> SlotState:
    return SlotState(name=name, active=False, wal_status="reserved", retained_bytes=1, safe_bytes=None)


async def keep(resources: Resources, database_id: str, *slots: str, failure: str | None = None) -> None:
    """A reading of the one server; none where it failed."""
    state = SourceState(
        system_identifier="7711", current_lsn=100,
        slots={name: bare_slot(name) for name in slots},
    )  # fmt: skip
    document = SourceReading(read_at=now(), state=state).model_dump(mode="json") if failure is None else None
    async with resources.sessions() as session:
        row = SourceReadingRow(database_id=database_id, asked_at=now(), failure=failure, document=document)
        await keep_reading(session, row)
        await session.commit()


async def test_a_server_answers_if_any_of_its_databases_does(
    resources: Resources, viewer: httpx.AsyncClient, registered: dict[str, str]
) -> None:
    """The one asked last has a wrong sslmode: its failure is its own."""
    await keep(resources, registered["source"], ORPHAN)
    await keep(resources, registered["destination"], failure="SSL was refused")
    (server,) = (await viewer.get("/api/v1/slots")).json()["servers"]
    assert (server["failure"], server["read_at"] is not None) == (None, True)
    assert [base["failure"] for base in server["databases"]] == [None, "SSL was refused"]
    await keep(resources, registered["source"], failure="no route")
    (server,) = (await viewer.get("/api/v1/slots")).json()["servers"]
    assert (server["failure"], [slot["name"] for slot in server["slots"]]) == ("no route", [ORPHAN])


async def test_a_dropped_slot_is_forgotten_under_every_spelling_of_its_server(
    resources: Resources, admin: httpx.AsyncClient, viewer: httpx.AsyncClient, registered: dict[str, str], sides: Sides
) -> None:  # fmt: skip
    body = {**sides.source, "name": "spelled", "host": f"127.0.0.1:{sides.cluster.port},127.0.0.1:1"}
    other = (await admin.post("/api/v1/databases", json=body)).json()["id"]
    for database_id in (registered["source"], other):
        await keep(resources, database_id, ORPHAN, OTHERS)
    async with resources.sessions() as session:
        await forget_slot(session, registered["source"], ORPHAN)
        await session.commit()
    servers = (await viewer.get("/api/v1/slots")).json()["servers"]
    assert len(servers) == 2
    assert {slot["name"] for server in servers for slot in server["slots"]} == {OTHERS}


async def test_two_spellings_of_one_server_are_one_server(
    admin: httpx.AsyncClient,
    viewer: httpx.AsyncClient,
    registered: dict[str, str],
    slots: Sides,
    collector: Any,  # noqa: F811
) -> None:
    body = {**slots.source, "name": "spelled", "host": "localhost"}
    other = (await admin.post("/api/v1/databases", json=body)).json()["id"]

    async def all_are_read() -> list[dict[str, Any]] | None:
        servers: list[dict[str, Any]] = (await viewer.get("/api/v1/slots")).json()["servers"]
        names = [database["id"] for server in servers for database in server["databases"] if server["read_at"]]
        return servers if len(names) == 3 and len(servers) == 1 else None

    (server,) = await eventually(all_are_read)
    port = slots.cluster.port
    assert [server["address"], *server["other_addresses"]] == [f"127.0.0.1:{port}", f"localhost:{port}"]
    assert {database["id"] for database in server["databases"]} == {*registered.values(), other}
    assert sorted(slot["name"] for slot in server["slots"]) == [OTHERS, ORPHAN]


def database_at(name: str, host: str) -> DatabaseRow:
    return DatabaseRow(id=name, name=name, host=host, port=5432, dbname="app", read_from="primary")


def read_from(database_id: str, system: str | None, started_at: datetime | None) -> SourceReadingRow:
    state = SourceState(system_identifier=system, started_at=started_at, current_lsn=100, slots={})
    document = SourceReading(read_at=now(), state=state).model_dump(mode="json")
    return SourceReadingRow(database_id=database_id, asked_at=now(), failure=None, document=document)


def test_what_makes_two_databases_those_of_one_server() -> None:
    """A standby, or a copy of the files, has the same system identifier and was started at another moment."""
    start = now()
    databases = [
        database_at("primary", "10.0.0.1"), database_at("standby", "10.0.0.2"), database_at("by name", "db1.local"),
        database_at("never read", "db2.local"), database_at("may not ask", "db3.local"),
        database_at("after it was read", "10.0.0.1"),
    ]  # fmt: skip
    readings = {
        row.database_id: row
        for row in (
            read_from("primary", "7711", start), read_from("standby", "7711", start + timedelta(seconds=1)),
            read_from("by name", "7711", start), read_from("may not ask", None, start),
        )
    }  # fmt: skip
    servers = [{row.name for row in rows} for rows in by_server(databases, readings)]
    assert sorted(servers, key=len) == [
        {"standby"}, {"never read"}, {"may not ask"}, {"primary", "by name", "after it was read"},
    ]  # fmt: skip


def test_the_collectors_memory_forgets_it_too() -> None:
    states = {
        name: SourceState(system_identifier=system, current_lsn=100, slots={ORPHAN: bare_slot(ORPHAN)})
        for name, system in (("a", "1"), ("b", "1"), ("c", "2"))
    }
    seen = sources.Seen({name: SourceReading(read_at=now(), state=state) for name, state in states.items()})
    Lags(seen).forget_slot("a", ORPHAN)
    assert [name for name, reading in seen.readings.items() if reading.state.slots] == ["c"]


def _names(sides: Sides) -> set[str]:
    with psycopg.connect(host="127.0.0.1", port=sides.cluster.port, user="postgres", dbname="postgres") as session:
        return {str(row[0]) for row in session.execute("SELECT slot_name FROM pg_replication_slots").fetchall()}


@pytest.fixture
async def reader(slots: Sides) -> AsyncGenerator[None, None]:
    """Somebody who reads from the orphan."""
    given = slots.source
    process = await asyncio.create_subprocess_exec(
        str(postgres_binaries() / "pg_recvlogical"), "--start", "--slot", ORPHAN, "--file", "-", "--no-loop",
        "--dbname", f"host={given['host']} port={given['port']} dbname={given['dbname']} user=postgres",
        stdout=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    yield
    process.terminate()
    await process.wait()


async def test_what_is_read_or_owned_or_not_ours_stays(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    slots: Sides,
    collector: Any,  # noqa: F811
    reader: None,
) -> None:
    stream = await created(operator, registered)
    own = f"thalweg_{stream['id']}"
    await make_own(slots, own)

    async def refused(name: str, side: str = "source") -> dict[str, Any]:
        answer = await operator.delete(f"/api/v1/databases/{registered[side]}/slots/{name}")
        assert not answer.is_success
        return dict(answer.json())

    async def is_read() -> bool:
        return bool((await shown(operator, ORPHAN))[ORPHAN]["active"])

    await eventually(is_read)
    in_use = await refused(ORPHAN)
    assert (in_use["status"], in_use["code"]) == (409, "slot_in_use")
    owned = await refused(own)
    assert (owned["status"], owned["code"]) == (409, "slot_owned")
    assert stream["name"] in owned["detail"]
    foreign = await refused(OTHERS)
    assert (foreign["status"], foreign["code"]) == (409, "slot_not_ours")
    assert OTHERS in foreign["sql"]
    # The destination's user lacks REPLICATION.
    denied = await refused(ORPHAN, "destination")
    assert (denied["status"], denied["code"]) == (422, "insufficient_privilege")
    assert f"pg_drop_replication_slot('{ORPHAN}')" in denied["sql"]
    assert {own, ORPHAN, OTHERS} <= await asyncio.to_thread(_names, slots)


async def test_list_and_drop_on_the_command_line(
    shell: Shell,  # noqa: F811
    users: Users,
    viewer: httpx.AsyncClient,
    registered: dict[str, str],
    slots: Sides,
    collector: Any,  # noqa: F811
) -> None:
    run = with_token(shell, users, Role.OPERATOR)
    await shown(viewer, ORPHAN, OTHERS)
    listed = await run("slots", "list")
    assert listed.code == 0, listed.err
    assert ORPHAN in listed.out and "orphan" in listed.out and OTHERS in listed.out
    assert "No stream here owns 1 of them" in listed.out
    (server,) = json.loads((await run("slots", "list", "--json")).out)
    assert {slot["name"] for slot in server["slots"]} == {ORPHAN, OTHERS}
    nowhere = await run("slots", "drop", "thalweg_nowhere")
    assert nowhere.code == 1 and "--database" in nowhere.err
    dropped = await run("slots", "drop", ORPHAN)
    assert (dropped.code, dropped.out.strip()) == (0, f"Dropped {ORPHAN}.")
    assert ORPHAN not in (await run("slots", "list")).out


def test_whose_a_slot_is_by_its_name() -> None:
    engine = SlotEngine(id="0eng", name="left")
    owners = Owners(streams={"0abc0abc": "shop"}, unknown={"0abc0abe": engine})
    assert owner_of("thalweg_0abc0abc", owners)[0] is SlotOwner.STREAM
    assert owner_of("thalweg_0abc0abc_d1_copy", owners)[0] is SlotOwner.STREAM
    assert owner_of("thalweg_0abc0abd", owners)[0] is SlotOwner.ORPHAN
    assert owner_of("thalweg_0abc0abe", owners) == (SlotOwner.UNKNOWN_STREAM, None, engine)
    assert owner_of("thalwegs", owners)[0] is SlotOwner.OTHER


async def test_the_slot_of_an_unknown_stream_is_no_orphan(
    operator: httpx.AsyncClient,
    viewer: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    shell: Shell,  # noqa: F811
    users: Users,
    slots: Sides,
    collector: Any,  # noqa: F811
) -> None:
    """As after the store was restored from a backup: the engine still runs the stream and reads its slot."""
    stranger = ORPHAN.removeprefix("thalweg_")
    stream = await created(operator, registered)
    await wait_for(operator, f"/api/v1/streams/{stream['id']}", status="ENABLED")
    late = {**engine.desired["streams"][0], "id": stranger, "name": "made after the backup"}
    engine.desired = {**engine.desired, "revision": 1000, "streams": [*engine.desired["streams"], late]}

    async def known() -> dict[str, Any] | None:
        slot = (await shown(viewer, ORPHAN))[ORPHAN]
        return slot if slot["owner"] != "orphan" else None

    slot = dict(await eventually(known))
    (listed_engine,) = (await viewer.get("/api/v1/engines")).json()["items"]
    assert (slot["owner"], slot["stream"], slot["drop_sql"]) == ("unknown_stream", None, None)
    assert slot["engine"] == {"id": listed_engine["id"], "name": listed_engine["name"]}
    answer = await operator.delete(f"/api/v1/databases/{registered['source']}/slots/{ORPHAN}")
    refused = answer.json()
    assert (refused["status"], refused["code"]) == (409, "slot_owned")
    assert f"thalweg engines drop-stream {listed_engine['name']} {stranger}" in refused["cure"]
    listed = (await with_token(shell, users, Role.OPERATOR)("slots", "list")).out
    assert f"unknown stream of engine {listed_engine['name']}" in " ".join(listed.split())
    assert "No stream here owns" not in listed and "drop-stream" in listed
    assert ORPHAN in await asyncio.to_thread(_names, slots)


@pytest.mark.parametrize(
    ("slot", "growth", "why"),
    [
        ({"wal_status": "lost"}, 5.0, "lost"),
        ({"restart_lsn": None}, None, "keeps no WAL"),
        ({"wal_status": "lost", "invalidation_reason": "idle_timeout"}, 5.0, "idle_replication_slot_timeout"),
        ({"wal_status": "lost", "invalidation_reason": "wal_removed"}, 5.0, "max_slot_wal_keep_size"),
        ({}, None, "not been observed long enough"),
        ({}, 0.0, "does not grow"),
        ({"safe_bytes": None}, 5.0, "sets no limit"),
        ({}, 5.0, None),
        ({"safe_bytes": 0}, 5.0, "limit is reached"),
        ({"safe_bytes": 1 << 30}, 5.0, "more than 30 days"),
    ],
)
def test_why_there_is_no_forecast(slot: dict[str, Any], growth: float | None, why: str | None) -> None:
    known = {"name": "s", "active": False, "wal_status": "reserved", "restart_lsn": 1, "retained_bytes": 1}
    state = SlotState.model_validate({**known, "safe_bytes": 100, **slot})
    if state.wal_status == "lost":
        state.safe_bytes = None
    reading = SourceReading(
        read_at=now(), state=SourceState(current_lsn=1, slots={"s": state}),
        growth={"s": growth} if growth is not None else {},
    )  # fmt: skip
    said = why_no_forecast(reading, state)
    assert said is None if why is None else said is not None and why in said


def test_growth_that_is_not_steady_is_no_forecast() -> None:
    state = SlotState.model_validate(
        {
            "name": "s", "active": False, "wal_status": "reserved", "restart_lsn": 1, "retained_bytes": 1,
            "safe_bytes": 100,
        }
    )  # fmt: skip
    reading = SourceReading(read_at=now(), state=SourceState(current_lsn=1, slots={"s": state}), growth={"s": 5.0})
    assert (reading.seconds_to_full(state), why_no_forecast(reading, state)) == (20.0, None)
    reading.unsteady.append("s")
    assert reading.seconds_to_full(state) is None
    assert "not steady" in str(why_no_forecast(reading, state))


@pytest.mark.parametrize(
    ("slot", "timeout", "left"),
    [
        ({"idle_seconds": 600.0}, 3600.0, 3000.0),
        ({"idle_seconds": 4000.0}, 3600.0, 0.0),  # it is taken at the next checkpoint
        ({"idle_seconds": 600.0}, None, None),
        ({"idle_seconds": None}, 3600.0, None),
        ({"idle_seconds": 600.0, "active": True}, 3600.0, None),
        ({"idle_seconds": 600.0, "wal_status": "lost"}, 3600.0, None),
    ],
)
def test_when_an_idle_slot_is_given_up(slot: dict[str, Any], timeout: float | None, left: float | None) -> None:
    """As PostgreSQL 18 tells it."""
    known = {"name": "s", "active": False, "wal_status": "reserved", "restart_lsn": 1, "retained_bytes": 1}
    state = SlotState.model_validate({**known, "safe_bytes": 100, **slot})
    server = SourceState(current_lsn=1, slots={"s": state}, idle_timeout_seconds=timeout)
    assert SourceReading(read_at=now(), state=server).seconds_to_idle(state) == left
