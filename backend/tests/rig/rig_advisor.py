"""Makes each stage of a path slow by a real cause and asks the advisor for stage and cause. `make advisor-rig` runs it.

Each cause has databases, engines and a control plane of its own. Changes are staged while the stream is stopped, so
that the path has work for as long as it is looked at. THALWEG_RIG_RESULTS names a file for what was said: JSON lines.
"""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from tests.conftest import Users, make_client
from tests.features.test_streams import STREAMS
from tests.rig.bench import Bench, Server, build_slow_disk, slow_spill
from tests.rig.causes import CAUSES, Cause
from tests.rig.narrow_link import NarrowLink
from tests.rig.slow_processor import share_of_processor
from tests.support.real_engine import RealEngine
from tests.support.servers import start_cluster
from tests.support.serving import eventually
from tests.test_collector import wait_for
from thalweg.composition import close_resources, make_resources
from thalweg.kernel.principal import Role
from thalweg.kernel.settings import Settings
from thalweg.kernel.tasks import stop_task
from thalweg.lab_relay.link import Delay
from thalweg.lab_relay.relay import Relay
from thalweg.workers.collector import Collector

ADVISOR = "/api/v1/advisor"
WINDOW_SECONDS = 4
DELAY_LASTS_SECONDS = 120
SAMPLES_KEPT = 4
MEMORY = {"shared_buffers": "256MB", "max_wal_size": "4GB", "autovacuum": "off"}


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[Any, Server], None, None]:
    directory = tmp_path_factory.mktemp("disk")
    for path in [directory, *directory.parents]:
        if path.stat().st_mode & 0o005 == 0o005:
            break  # PostgreSQL's user gets this far; the system's own directories keep their modes
        path.chmod(0o755)
    library, seconds = build_slow_disk(directory), directory / "seconds"
    seconds.write_text("0\n")
    source = start_cluster(**MEMORY)
    destination = Server(start_cluster(fsync="on", **MEMORY), library, seconds)
    destination.stop_server()
    destination.start_server()
    yield source, destination
    source.stop()
    destination.cluster.stop()


@pytest.fixture
def bench(servers: tuple[Any, Server], request: pytest.FixtureRequest) -> Generator[Bench, None, None]:
    name = "rig_" + request.node.callspec.id.replace(" ", "_")
    made = Bench(*servers, name)
    for cluster in (made.source, made.destination.cluster):
        cluster.execute(f"CREATE DATABASE {name} STRATEGY file_copy")
    yield made
    made.execute_source("ALTER SYSTEM RESET ALL", "SELECT pg_reload_conf()")
    made.execute_source(
        "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active_pid IS NOT NULL",
        "SELECT pg_sleep(0.5)", "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots",
    )  # fmt: skip
    for cluster in (made.source, made.destination.cluster):
        cluster.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"poll_interval": 0.5, "engine_timeout": 5})


@pytest.fixture
async def api(app: FastAPI, users: Users, settings: Settings) -> AsyncGenerator[httpx.AsyncClient, None]:
    """The API as an admin, with a collector."""
    resources = make_resources(settings, "thalweg collector")
    task = asyncio.create_task(Collector(resources).run())
    async with make_client(app, {"Authorization": f"Bearer {users.tokens[Role.ADMIN]}"}) as client:
        client.timeout = httpx.Timeout(60)
        yield client
    await stop_task(task)
    await close_resources(resources)


async def enrol(api: httpx.AsyncClient, engine: RealEngine, name: str) -> str:
    token = (await api.post("/api/v1/engines/enrolments", json={})).json()["token"]
    body = {"token": token, "name": name, "url": engine.url, "control_token": engine.token}
    answer = await api.post("/api/v1/engines/enrol", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


@pytest.fixture
async def delay_and_port(bench: Bench) -> AsyncGenerator[tuple[Delay, int], None]:
    """Of a relay before the destination."""
    delay = Delay()
    relay = Relay(("127.0.0.1", bench.destination.cluster.port), delay)
    yield delay, await relay.listen("127.0.0.1", 0)
    await relay.close()


async def register(api: httpx.AsyncClient, bench: Bench, destination_port: int) -> dict[str, str]:
    ids = {}
    for side, port in (("source", bench.source.port), ("destination", destination_port)):
        body = {"name": side, "host": "127.0.0.1", "port": port, "dbname": bench.dbname, "user": "postgres",
                "password": "", "sslmode": "disable"}  # fmt: skip
        answer = await api.post("/api/v1/databases", json=body)
        assert answer.status_code == 201, answer.text
        ids[side] = answer.json()["id"]
    return ids


@pytest.fixture
def spill_seconds(tmp_path: Path) -> Path:
    """The file that says how slow the engines' disk is."""
    file = tmp_path / "spill_seconds"
    file.write_text("0\n")
    return file


@pytest.fixture
async def engines(
    tmp_path: Path, servers: tuple[Any, Server], spill_seconds: Path
) -> AsyncGenerator[list[RealEngine], None]:
    environment = slow_spill(servers[1].library, spill_seconds)
    made = [RealEngine(tmp_path / name, environment=environment) for name in ("near", "far")]
    yield made
    for engine in made:
        engine.stop()


async def offers(api: httpx.AsyncClient, engine_id: str) -> bool:
    return bool((await api.get(f"/api/v1/engines/{engine_id}")).json()["wal_archives"])


async def place(api: httpx.AsyncClient, engines: list[RealEngine], cause: Cause) -> tuple[dict[str, str], list[Any]]:
    if cause.archives:
        state = engines[0].directory / "state"
        state.mkdir(mode=0o700)
        (state / "wal-archives.json").write_text(json.dumps(cause.archives))
    engines[0].start()
    near = await enrol(api, engines[0], "near")
    if cause.archives:
        await eventually(lambda: offers(api, near), 30)
    if not cause.two_engines:
        return {"capture": near, "apply": near}, []
    engines[1].start()
    far = await enrol(api, engines[1], "far")

    async def identified() -> bool:
        shown = [(await api.get(f"/api/v1/engines/{name}")).json() for name in (near, far)]
        return all(engine["identity"] for engine in shown)

    await eventually(identified, 30)
    if cause.bytes_per_second is None:
        return {"capture": near, "apply": far}, []
    link = NarrowLink(engines[1].propagation_port, cause.bytes_per_second)
    change = await api.patch(
        f"/api/v1/engines/{far}", json={"propagation_address": f"127.0.0.1:{link.port}"}, headers={"If-Match": "*"}
    )
    assert change.status_code == 200, change.text
    return {"capture": near, "apply": far}, [link]


def row_rules(cause: Cause) -> list[dict[str, Any]]:
    if cause.condition is None:
        return []
    rule = {"name": "costly", "operations": ["INSERT"], "condition": cause.condition}
    return [{"schema": "public", "table": "item", "positive": [rule]}]


async def act(api: httpx.AsyncClient, path: str, action: str, status: str) -> None:
    answer = await api.post(f"{path}:{action}")
    assert answer.status_code == 202, answer.text
    await reach(api, path, 20, status=status)


async def reach(api: httpx.AsyncClient, path: str, seconds: float, **expected: str) -> None:
    """Waits for the stream; says how it is when it does not come there."""
    try:
        await wait_for(api, path, seconds=seconds, **expected)
    except AssertionError as error:
        shown = (await api.get(path)).json()
        raise AssertionError({name: shown[name] for name in ("status", "phase", "health")}) from error


@pytest.mark.parametrize("cause", CAUSES, ids=[cause.name for cause in CAUSES])
async def test_cause(
    cause: Cause, bench: Bench, api: httpx.AsyncClient, engines: list[RealEngine], spill_seconds: Path,
    delay_and_port: tuple[Delay, int],
) -> None:  # fmt: skip
    cause.prepare(bench)
    placed, links = await place(api, engines, cause)
    delay, relayed = delay_and_port
    ids = await register(api, bench, relayed if cause.destination_delay else bench.destination.cluster.port)
    body = {
        "name": cause.name, "source_id": ids["source"], "capture_engine_id": placed["capture"],
        "destinations": [{"database_id": ids["destination"], "engine_id": placed["apply"]}],
        "capture_kind": "wal" if cause.mined else "logical",
        # Even if the server could load thalweg_output: every machine has the same causes.
        "parameters": {**({} if cause.mined else {"source_plugin": "pgoutput"}), **cause.parameters},
        "rules": {"include": [{"schema": "public", "table": "item"}], "row_rules": row_rules(cause)},
    }  # fmt: skip
    answer = await api.post(STREAMS, json=body)
    assert answer.status_code == 202, answer.text
    path = f"{STREAMS}/{answer.json()['stream_id']}"
    await reach(api, path, 30, phase="REPLICATING")
    if cause.staged is not None:
        await act(api, path, "stop", "DISABLED")
        await asyncio.to_thread(cause.staged, bench)
    bench.engine_pids = [engine.process.pid for engine in engines if engine.process is not None]
    with cause.meanwhile(bench), ExitStack() as trouble:
        spill_seconds.write_text(f"{cause.spill_seconds}\n")  # noqa: ASYNC240
        if cause.processor_share is not None:
            applying = engines[-1 if cause.two_engines else 0].process
            assert applying is not None
            trouble.enter_context(share_of_processor(applying.pid, cause.processor_share))
        if cause.staged is not None:
            await act(api, path, "start", "ENABLED")
        # From here on: it would slow down the start more than what comes after it.
        delay.begin(cause.destination_delay, DELAY_LASTS_SECONDS)
        await asyncio.sleep(cause.seconds)
        run = (await api.post(f"{ADVISOR}/runs", json={"window_seconds": WINDOW_SECONDS})).json()
        samples = (await api.get(f"{path}/samples", params={"seconds": WINDOW_SECONDS})).json()["samples"]
    for link in links:
        link.close()
    keep(cause, samples)
    said = verdict_of(run)
    report(cause, run, said)
    assert said == expected(cause, said), json.dumps(excerpt(run), indent=1)


def expected(cause: Cause, said: tuple[str, str | None, str | None]) -> tuple[str, str | None, str | None]:
    stage = cause.also if cause.also is not None and said[1] == cause.also else cause.stage
    return cause.verdict, stage, cause.code


def verdict_of(run: dict[str, Any]) -> tuple[str, str | None, str | None]:
    (row,) = run["analysis"]["path_bottlenecks"]
    first = run["findings_ranked"][0]["code"] if run["findings_ranked"] else None
    return row["verdict"], row["sub_component_type"] or row["component_type"], first


def keep(cause: Cause, samples: list[dict[str, Any]]) -> None:
    """For the tests of the analysis, which run on what was recorded here."""
    directory = os.environ.get("THALWEG_RIG_RECORDINGS")
    if directory:
        text = json.dumps(samples[-SAMPLES_KEPT:], separators=(",", ":"))
        (Path(directory) / f"{cause.name.replace(' ', '_')}.json").write_text(text + "\n")


def excerpt(run: dict[str, Any]) -> dict[str, Any]:
    """The figures that explain the advisor's answer."""
    shares = [
        f"{row['component_type']} {row['sub_component_type'] or ''} {row['statistic_name']} {row['statistic_value']}"
        for row in run["analysis"]["component_statistics"]
        if row["statistic_unit"] == "PERCENT" and row["thread"] is None
    ]
    findings = [(item["code"], item["is_cause"], item["gain_percent"]) for item in run["findings_ranked"]]
    facts = [
        f"{item['side']}: {item['name']} = {item['value']}" for sheet in run["fact_sheets"] for item in sheet["facts"]
    ]
    line = {name: value for name, value in run["paths"][0].items() if name.endswith(("seconds", "second", "bytes"))}
    return {"bottleneck": run["analysis"]["path_bottlenecks"], "shares": shares, "findings": findings, "facts": facts,
            "errors": [sheet["error"] for sheet in run["fact_sheets"]], "path": line}  # fmt: skip


def report(cause: Cause, run: dict[str, Any], said: tuple[str, str | None, str | None]) -> None:
    wanted = expected(cause, said)
    (row,) = run["analysis"]["path_bottlenecks"]
    line = {
        "cause": cause.name, "how_it_is_made": cause.how_it_is_made,
        "expected": wanted, "said": said, "hit": said == wanted,
        "explanation": row["explanation"], "rate": run["paths"][0]["messages_per_second"],
        "title": run["findings_ranked"][0]["title"] if run["findings_ranked"] else None,
    }  # fmt: skip
    print("HIT " if line["hit"] else "MISS", cause.name, said, row["explanation"])
    target = os.environ.get("THALWEG_RIG_RESULTS")
    if target:
        with Path(target).open("a") as file:
            file.write(json.dumps(line) + "\n")
