"""The lab on a real demo: its two databases only; each cause is real, and taken back in time, by any collector."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import httpx
import psycopg
import pytest
from sqlalchemy import text, update

from tests.conftest import Sides
from tests.features.test_streams import STREAMS, created
from tests.support.engine_double import EngineDouble
from tests.support.serving import eventually
from tests.test_collector import collector, wait_for  # noqa: F401
from thalweg.composition import close_resources, make_resources
from thalweg.db.models import LabActionRow
from thalweg.features.lab.causes import CAUSES, CauseName
from thalweg.kernel.clock import now
from thalweg.kernel.context import Resources
from thalweg.kernel.settings import Settings
from thalweg.kernel.tasks import stop_task
from thalweg.lab_relay.link import Delay
from thalweg.lab_relay.wish import APPLICATION, follow
from thalweg.workers.collector import Collector

LAB = "/api/v1/lab"
Look = Callable[[str], Any]
TRIGGER = "SELECT tgenabled::text FROM pg_trigger WHERE tgname = 'lab_check_account'"
INDEX = "SELECT count(*) FROM pg_index WHERE indrelid = 'stock'::regclass AND indisvalid"
LOCK = (
    "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'lab: report left open' AND state LIKE 'idle in %%'"
)
NETWORK = "SELECT to_regclass('lab_network.delay') IS NOT NULL"
RATE = "SELECT rate FROM lab.load WHERE until > now()"
# Each cause's state at the destination: while it is on, and before.
ON = {"trigger": (TRIGGER, "A", None), "index": (INDEX, 0, 1), "lock": (LOCK, 1, 0), "network": (NETWORK, True, False)}


def make_tables(sides: Sides) -> None:
    """As the demo has them, small."""
    owner = sides.source["user"]
    sides.on_source(
        "CREATE TABLE pgbench_accounts (aid int PRIMARY KEY, abalance int)",
        "CREATE TABLE pgbench_branches (bid int PRIMARY KEY, bbalance int)",
        "CREATE TABLE stock (article int NOT NULL, amount int)",
        "ALTER TABLE stock REPLICA IDENTITY FULL",
        *(f"ALTER TABLE {table} OWNER TO {owner}" for table in ("pgbench_accounts", "pgbench_branches", "stock")),
        f"CREATE SCHEMA lab AUTHORIZATION {owner}",
        "CREATE TABLE lab.load (one boolean PRIMARY KEY DEFAULT true CHECK (one), rate int, until timestamptz)",
        f"ALTER TABLE lab.load OWNER TO {owner}",
    )
    writer = sides.destination["user"]
    sides.on_destination(
        "CREATE TABLE pgbench_accounts (aid int PRIMARY KEY, abalance int)",
        "CREATE TABLE pgbench_branches (bid int PRIMARY KEY, bbalance int)",
        "CREATE TABLE stock (article int NOT NULL, amount int)",
        "CREATE INDEX stock_by_article ON stock (article)",
        "INSERT INTO pgbench_accounts VALUES (1, 0)", "INSERT INTO pgbench_branches VALUES (1, 0)",
        *(f"ALTER TABLE {table} OWNER TO {writer}" for table in ("pgbench_accounts", "pgbench_branches", "stock")),
    )  # fmt: skip


@asynccontextmanager
async def looking(sides: Sides, dbname: str) -> AsyncGenerator[Look, None]:
    """The first value of a query's first row, or None."""
    url = sides.cluster.url(dbname).replace("+psycopg", "")
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:

        async def look(query: str) -> Any:
            cursor = await connection.execute(query.encode())
            row = await cursor.fetchone() if cursor.description is not None else None
            return row[0] if row else None

        yield look


@pytest.fixture
async def destination(sides: Sides) -> AsyncGenerator[Look, None]:
    async with looking(sides, sides.destination["dbname"]) as look:
        yield look


@pytest.fixture
async def delay(sides: Sides) -> AsyncGenerator[Delay, None]:
    """The relay's delay, which it reads from the destination."""
    place = f"host=127.0.0.1 port={sides.cluster.port} dbname={sides.destination['dbname']} user=postgres"
    delay = Delay()
    following = asyncio.create_task(follow(delay, f"{place} application_name='{APPLICATION}'"))
    yield delay
    await stop_task(following)


@pytest.fixture
async def demo(
    settings: Settings,
    sides: Sides,
    delay: Delay,
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Collector,  # noqa: F811
) -> dict[str, Any]:
    """The stream between the two databases that the settings name."""
    make_tables(sides)
    place = f"127.0.0.1:{sides.cluster.port}"
    settings.lab_source = f"{place}/{sides.source['dbname']}"
    settings.lab_destination = f"{place}/{sides.destination['dbname']}"
    stream = await created(operator, registered, parameters={"initial_copy": False})
    return await wait_for(operator, f"{STREAMS}/{stream['id']}", phase="REPLICATING")


async def shown(client: httpx.AsyncClient, name: str, state: str) -> dict[str, Any]:
    """The cause, or the load, once it is in this state."""

    async def there() -> dict[str, Any] | None:
        lab = (await client.get(LAB)).json()
        entry = lab["load"] if name == "load" else next(cause for cause in lab["causes"] if cause["name"] == name)
        return entry if entry["state"] == state else None

    return dict(await eventually(there))


async def expire(resources: Resources, action: str) -> None:
    async with resources.sessions() as session:
        past = now() - timedelta(seconds=1)
        await session.execute(update(LabActionRow).where(LabActionRow.action == action).values(until=past))
        await session.commit()


async def audited(admin: httpx.AsyncClient) -> list[tuple[str, str, str]]:
    """Newest first."""
    entries = (await admin.get("/api/v1/audit")).json()["items"]
    return [
        (entry["action"], entry["target_id"], entry["actor_name"]) for entry in entries if entry["target_type"] == "lab"
    ]


async def test_without_a_demo_it_says_so_and_does_nothing(operator: httpx.AsyncClient) -> None:
    lab = (await operator.get(LAB)).json()
    assert (lab["available"], lab["stream"], lab["load"], lab["causes"]) == (False, None, None, [])
    assert "no demo" in lab["why"]
    for request in (
        operator.put(f"{LAB}/load", json={"rate": 500}),
        operator.post(f"{LAB}/causes/lock:start"),
        operator.post(f"{LAB}/causes/lock:stop"),
        operator.post("/api/v1/lab:reset"),
    ):
        answer = await request
        assert (answer.status_code, answer.json()["code"]) == (409, "lab_unavailable")


async def test_other_databases_are_not_the_demo(
    operator: httpx.AsyncClient, settings: Settings, registered: dict[str, str], engine: EngineDouble, sides: Sides
) -> None:
    """A stream of the demo's source into another database is left alone, whatever its databases are called."""
    settings.lab_source = f"127.0.0.1:{sides.cluster.port}/{sides.source['dbname']}"
    settings.lab_destination = f"127.0.0.1:{sides.cluster.port}/demo"
    await created(operator, registered)
    lab = (await operator.get(LAB)).json()
    assert (lab["available"], lab["causes"]) == (False, [])
    assert "There is no stream" in lab["why"]
    assert (await operator.post(f"{LAB}/causes/index:start")).status_code == 409


async def test_viewers_look_only(viewer: httpx.AsyncClient, demo: dict[str, Any]) -> None:
    assert (await viewer.get(LAB)).json()["stream"]["name"] == demo["name"]
    for answer in (
        await viewer.put(f"{LAB}/load", json={"rate": 500}),
        await viewer.post(f"{LAB}/causes/lock:start"),
        await viewer.post(f"{LAB}/causes/lock:stop"),
        await viewer.post("/api/v1/lab:reset"),
    ):
        assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")


@pytest.mark.parametrize("name", ON)
async def test_a_cause_is_real_and_is_taken_back(
    name: str, operator: httpx.AsyncClient, admin: httpx.AsyncClient, demo: dict[str, Any], destination: Look
) -> None:
    query, on, before = ON[name]
    assert await destination(query) == before
    answer = await operator.post(f"{LAB}/causes/{name}:start")
    assert answer.status_code == 200, answer.text
    cause = await shown(operator, name, "on")
    assert await destination(query) == on
    assert (cause["begun_by"], cause["failure"]) == ("operator", None)
    assert (await operator.post(f"{LAB}/causes/{name}:stop")).status_code == 200
    cause = await shown(operator, name, "off")
    assert (cause["begun_by"], cause["until"]) == (None, None)
    await eventually(lambda: _is(destination, query, before))
    assert await audited(admin) == [("lab_end", name, "operator"), ("lab_begin", name, "operator")]


async def _is(look: Look, query: str, value: Any) -> bool:
    return bool(await look(query) == value)


async def test_the_trigger_fires_for_apply_and_ends_before_its_locks_are_free(
    demo: dict[str, Any], operator: httpx.AsyncClient, destination: Look
) -> None:
    await operator.post(f"{LAB}/causes/trigger:start")
    await shown(operator, "trigger", "on")
    # As apply's sessions are; the transaction stays open, as that of a large group does.
    for statement in ("SET session_replication_role = replica", "SET track_functions = 'pl'", "BEGIN"):
        await destination(statement)
    await destination("UPDATE pgbench_accounts SET abalance = 1 RETURNING 1")
    assert await destination("SELECT calls FROM pg_stat_xact_user_functions WHERE funcname = 'check_account'") == 1
    sleeps = "SELECT count(*) FROM lab.slow WHERE until > now()"
    assert await destination(sleeps) == 1
    await operator.post(f"{LAB}/causes/trigger:stop")
    await eventually(lambda: _is(destination, sleeps, 0))
    await shown(operator, "trigger", "ending")
    await destination("ROLLBACK")
    await shown(operator, "trigger", "off")


async def test_the_lock_stops_who_changes_the_rows(demo: dict[str, Any], operator: httpx.AsyncClient,
                                                   destination: Look) -> None:  # fmt: skip
    await operator.post(f"{LAB}/causes/lock:start")
    await shown(operator, "lock", "on")
    await destination("SET lock_timeout = '100ms'")
    with pytest.raises(psycopg.errors.LockNotAvailable):
        await destination("SELECT FROM pgbench_branches FOR UPDATE")
    await operator.post("/api/v1/lab:reset")
    await shown(operator, "lock", "off")
    await destination("SELECT FROM pgbench_branches FOR UPDATE")


async def test_one_cause_ends_the_other(demo: dict[str, Any], operator: httpx.AsyncClient, destination: Look) -> None:
    await operator.post(f"{LAB}/causes/index:start")
    await shown(operator, "index", "on")
    await operator.post(f"{LAB}/causes/lock:start")
    await shown(operator, "lock", "on")
    await shown(operator, "index", "off")
    assert await destination(INDEX) == 1


@pytest.mark.parametrize("name", ON)
async def test_what_nobody_ends_ends_by_itself(
    name: str, demo: dict[str, Any], operator: httpx.AsyncClient, admin: httpx.AsyncClient, resources: Resources,
    destination: Look,
) -> None:  # fmt: skip
    await operator.post(f"{LAB}/causes/{name}:start")
    cause = await shown(operator, name, "on")
    left = await destination(f"SELECT '{cause['until']}'::timestamptz - now()")
    assert timedelta(0) < left <= timedelta(seconds=CAUSES[CauseName(name)].seconds)
    await expire(resources, name)
    await shown(operator, name, "off")
    query, _, before = ON[name]
    await eventually(lambda: _is(destination, query, before))
    assert (await audited(admin))[0] == ("lab_end", name, "time")


@pytest.mark.parametrize("name", ON)
async def test_another_collector_ends_it(
    name: str, settings: Settings, sides: Sides, operator: httpx.AsyncClient, registered: dict[str, str],
    engine: EngineDouble, resources: Resources, destination: Look, delay: Delay,
) -> None:  # fmt: skip
    """The first one is gone when its time comes."""
    make_tables(sides)
    place = f"127.0.0.1:{sides.cluster.port}"
    settings.lab_source = f"{place}/{sides.source['dbname']}"
    settings.lab_destination = f"{place}/{sides.destination['dbname']}"
    query, on, before = ON[name]
    async with running(settings):
        stream = await created(operator, registered, parameters={"initial_copy": False})
        await wait_for(operator, f"{STREAMS}/{stream['id']}", phase="REPLICATING")
        await operator.post(f"{LAB}/causes/{name}:start")
        await shown(operator, name, "on")
        assert await destination(query) == on
    await expire(resources, name)
    async with running(settings):
        await shown(operator, name, "off")
    await eventually(lambda: _is(destination, query, before))


@asynccontextmanager
async def running(settings: Settings) -> AsyncGenerator[None, None]:
    resources = make_resources(settings, "thalweg collector")
    task = asyncio.create_task(Collector(resources).run())
    try:
        yield
    finally:
        await stop_task(task)
        await close_resources(resources)


CURES = {
    "trigger": "ALTER TABLE pgbench_accounts ENABLE TRIGGER lab_check_account",
    "index": "CREATE INDEX stock_thalweg_key ON stock (article)",
    "lock": "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'lab: report left open'",
    "network": "DROP SCHEMA lab_network CASCADE",
}


@pytest.mark.parametrize("name", CURES)
async def test_what_the_advisors_cure_has_cured_is_not_made_again(
    name: str, demo: dict[str, Any], operator: httpx.AsyncClient, sides: Sides, destination: Look
) -> None:
    await operator.post(f"{LAB}/causes/{name}:start")
    await shown(operator, name, "on")
    sides.on_destination(CURES[name])
    await shown(operator, name, "gone")
    query, on, _ = ON[name]
    assert await destination(query) != on
    await operator.post("/api/v1/lab:reset")
    await shown(operator, name, "off")


async def test_the_load_is_what_is_wanted_until_its_time(
    demo: dict[str, Any], operator: httpx.AsyncClient, resources: Resources, sides: Sides
) -> None:
    lab = (await operator.put(f"{LAB}/load", json={"rate": 500})).json()
    assert (lab["load"]["rate"], lab["load"]["usual_rate"]) == (500, 100)
    async with looking(sides, sides.source["dbname"]) as source:
        await shown(operator, "load", "on")
        assert await source(RATE) == 500
        await operator.put(f"{LAB}/load", json={"rate": 0})
        await eventually(lambda: _is(source, RATE, 0))
        await expire(resources, "load")
        assert (await shown(operator, "load", "off"))["rate"] == 100
        assert await source(RATE) is None
        await operator.put(f"{LAB}/load", json={"rate": 500})
        await shown(operator, "load", "on")
        await operator.put(f"{LAB}/load", json={"rate": 100})  # the usual one
        await shown(operator, "load", "off")
        assert await source(RATE) is None


async def test_rates_have_bounds(demo: dict[str, Any], operator: httpx.AsyncClient) -> None:
    for rate in (-1, 2001, "5", None):
        assert (await operator.put(f"{LAB}/load", json={"rate": rate})).status_code == 422


async def test_the_network_is_as_slow_as_is_wanted(
    demo: dict[str, Any], operator: httpx.AsyncClient, admin: httpx.AsyncClient, resources: Resources, delay: Delay
) -> None:
    def is_late_by(seconds: float) -> Callable[[], Awaitable[bool]]:
        async def is_it() -> bool:
            return delay.seconds == seconds

        return is_it

    cause = await shown(operator, "network", "off")
    assert cause["delay"] == {"ms": 50, "usual_ms": 50, "ms_max": 100}
    assert (await operator.post(f"{LAB}/causes/network:start")).status_code == 200
    await eventually(is_late_by(0.05))
    assert (await operator.post(f"{LAB}/causes/network:start", json={"delay_ms": 80})).status_code == 200
    await eventually(is_late_by(0.08))
    cause = await shown(operator, "network", "on")
    assert cause["delay"]["ms"] == 80
    assert "(80, " in cause["sql"]
    entries = (await admin.get("/api/v1/audit")).json()["items"]
    assert [entry["after"]["delay_ms"] for entry in entries if entry["target_id"] == "network"] == [80, 50]
    await operator.post("/api/v1/lab:reset")
    await shown(operator, "network", "off")
    await eventually(is_late_by(0.0))


async def test_delays_have_bounds_and_no_other_cause_has_one(demo: dict[str, Any], operator: httpx.AsyncClient) -> None:
    for delay_ms in (0, 101, "5"):
        answer = await operator.post(f"{LAB}/causes/network:start", json={"delay_ms": delay_ms})
        assert answer.status_code == 422
    answer = await operator.post(f"{LAB}/causes/trigger:start", json={"delay_ms": 5})
    assert (answer.status_code, answer.json()["code"]) == (409, "lab_unavailable")
    assert (await operator.get(LAB)).json()["causes"][0]["state"] == "off"


async def test_a_network_without_its_relay_is_not_called_slow(
    settings: Settings, sides: Sides, operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble,
    destination: Look,
) -> None:  # fmt: skip
    make_tables(sides)
    place = f"127.0.0.1:{sides.cluster.port}"
    settings.lab_source = f"{place}/{sides.source['dbname']}"
    settings.lab_destination = f"{place}/{sides.destination['dbname']}"
    async with running(settings):
        stream = await created(operator, registered, parameters={"initial_copy": False})
        await wait_for(operator, f"{STREAMS}/{stream['id']}", phase="REPLICATING")
        await operator.post(f"{LAB}/causes/network:start")

        async def failed() -> str | None:
            return (await shown(operator, "network", "starting"))["failure"]

        assert "relay" in await eventually(failed)
        assert await destination(NETWORK) is False


# An index may be dropped by the schema's owner, too.
TABLES = {"trigger": "pgbench_accounts", "lock": "pgbench_branches"}


@pytest.mark.parametrize("name", TABLES)
async def test_a_failure_is_told_and_tried_again(
    name: str, demo: dict[str, Any], operator: httpx.AsyncClient, sides: Sides, destination: Look
) -> None:
    sides.on_destination(f"ALTER TABLE {TABLES[name]} OWNER TO postgres")
    await operator.post(f"{LAB}/causes/{name}:start")

    async def failed() -> str | None:
        return (await shown(operator, name, "starting"))["failure"]

    assert "permission denied" in await eventually(failed)
    sides.on_destination(f"ALTER TABLE {TABLES[name]} OWNER TO {sides.destination['user']}")
    assert (await shown(operator, name, "on"))["failure"] is None
    query, on, _ = ON[name]
    assert await destination(query) == on


async def test_a_lock_of_an_earlier_collector_s_is_taken_again(
    settings: Settings, sides: Sides, operator: httpx.AsyncClient, registered: dict[str, str],
    engine: EngineDouble, destination: Look,
) -> None:  # fmt: skip
    make_tables(sides)
    place = f"{sides.source['host']}:{sides.source['port']}"
    settings.lab_source = f"{place}/{sides.source['dbname']}"
    settings.lab_destination = f"{place}/{sides.destination['dbname']}"
    async with running(settings):
        stream = await created(operator, registered, parameters={"initial_copy": False})
        await wait_for(operator, f"{STREAMS}/{stream['id']}", phase="REPLICATING")
        await operator.post(f"{LAB}/causes/lock:start")
        await shown(operator, "lock", "on")
    await eventually(lambda: _is(destination, LOCK, 0))
    async with running(settings):
        await eventually(lambda: _is(destination, LOCK, 1))
        assert (await shown(operator, "lock", "on"))["failure"] is None


async def test_requests_and_the_collector_do_not_wait_for_each_other(
    demo: dict[str, Any], operator: httpx.AsyncClient
) -> None:
    for _ in range(5):
        answers = await asyncio.gather(
            *(operator.post(f"{LAB}/causes/{name}:{verb}") for verb in ("start", "stop") for name in CauseName)
        )
        assert {answer.status_code for answer in answers} == {200}


async def test_a_stream_that_is_gone_takes_its_causes_with_it(
    demo: dict[str, Any], operator: httpx.AsyncClient, resources: Resources, destination: Look
) -> None:
    await operator.post(f"{LAB}/causes/lock:start")
    await shown(operator, "lock", "on")
    await operator.delete(f"{STREAMS}/{demo['id']}")
    await eventually(lambda: _is(destination, LOCK, 0))
    await expire(resources, "lock")

    async def forgotten() -> bool:
        async with resources.sessions() as session:
            return await session.scalar(text("SELECT count(*) FROM lab_actions")) == 0

    await eventually(forgotten)


async def test_somebody_elses_schema_of_its_name_is_left_alone(
    demo: dict[str, Any], operator: httpx.AsyncClient, sides: Sides, destination: Look
) -> None:
    sides.on_destination(
        "CREATE SCHEMA lab", "CREATE TABLE lab.slow AS SELECT 'a result' AS until",
        f"ALTER SCHEMA lab OWNER TO {sides.destination['user']}",
        f"ALTER TABLE lab.slow OWNER TO {sides.destination['user']}",
    )  # fmt: skip
    kept = "SELECT until FROM lab.slow"
    await operator.post(f"{LAB}/causes/trigger:start")

    async def refused() -> str | None:
        return str((await shown(operator, "trigger", "starting"))["failure"] or "") or None

    assert "ALTER SCHEMA lab RENAME TO" in str(await eventually(refused))
    assert await destination(kept) == "a result"
    await operator.post(f"{LAB}/causes/trigger:stop")
    await shown(operator, "trigger", "off")
    assert await destination(kept) == "a result"
    # Out of the way it begins; what is then put into the lab's own schema stays.
    sides.on_destination("ALTER SCHEMA lab RENAME TO results")
    await operator.post(f"{LAB}/causes/trigger:start")
    await shown(operator, "trigger", "on")
    sides.on_destination("CREATE TABLE lab.notes AS SELECT 'kept' AS note")
    await operator.post(f"{LAB}/causes/trigger:stop")
    await shown(operator, "trigger", "off")
    assert await destination(TRIGGER) is None
    assert await destination("SELECT note FROM lab.notes") == "kept"
