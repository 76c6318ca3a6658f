"""The collector against an engine at the HTTP boundary: reconciles, observes, samples, survives outages."""

import asyncio
from collections.abc import AsyncGenerator
from datetime import timedelta
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from tests.conftest import Sides
from tests.features.test_streams import STREAMS, created
from tests.support.engine_double import TOKEN, EngineDouble, example
from tests.support.servers import RedisServer, free_port
from tests.support.serving import eventually, serve
from thalweg.composition import close_resources, make_resources
from thalweg.db.election import Election
from thalweg.features.health import service
from thalweg.features.streams import live as overviews
from thalweg.kernel.clock import now
from thalweg.kernel.context import Resources
from thalweg.kernel.settings import Settings
from thalweg.kernel.tasks import stop_task
from thalweg.live import latest
from thalweg.live.bus import Bus, Rounds
from thalweg.workers.collector import Collector


@pytest.fixture
async def collector(app: FastAPI, settings: Settings) -> AsyncGenerator[Collector, None]:
    resources = make_resources(settings, "thalweg collector")
    running = Collector(resources)
    task = asyncio.create_task(running.run())
    yield running
    await stop_task(task)
    await close_resources(resources)


async def without_slot_alert(operator: httpx.AsyncClient) -> None:
    """An engine double makes no slot, and a source without one is an alert, once it has been looked at."""
    rule = "/api/v1/alerts/rules/slot_lost"
    answer = await operator.put(rule, json={"enabled": False}, headers={"If-Match": "*"})
    assert answer.is_success, answer.text


async def wait_for(client: httpx.AsyncClient, path: str, seconds: float = 60, **wanted: Any) -> dict[str, Any]:
    async def check() -> dict[str, Any] | None:
        answer = await client.get(path)
        document = dict(answer.json())
        fits = answer.status_code == 200 and all(document[name] == value for name, value in wanted.items())
        return document if fits else None

    return dict(await eventually(check, seconds))


async def test_desired_document_has_the_shape_of_the_contract(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, collector: Collector, sides: Sides
) -> None:
    stream = await created(operator, registered, parameters={"parallelism": 4})
    await wait_for(operator, f"{STREAMS}/{stream['id']}", phase="REPLICATING")
    sent, pattern = engine.documents[-1], example("desired")
    assert set(sent) == set(pattern)
    assert set(sent["streams"][0]) == set(pattern["streams"][0])
    assert set(sent["streams"][0]["source"]) == set(pattern["streams"][0]["source"])
    assert set(sent["streams"][0]["tables"][0]) == set(pattern["streams"][0]["tables"][0])
    assert "password='secret of reader'" in sent["streams"][0]["source"]["conninfo"]
    assert f"dbname={sides.destination['dbname']}" in sent["streams"][0]["destinations"][0]["conninfo"]


async def test_life_of_a_stream(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, collector: Collector
) -> None:
    engine.phase, engine.copy_finished = "INSTANTIATING", False
    answer = (await operator.post(STREAMS, json={
        "name": "s", "source_id": registered["source"], "destinations": [{"database_id": registered["destination"]}],
        "rules": {"include": [{"schema": "public", "table": "*"}]},
    })).json()  # fmt: skip
    path, operation = f"{STREAMS}/{answer['stream_id']}", f"/api/v1/operations/{answer['operation_id']}"
    copying = await wait_for(operator, path, phase="INSTANTIATING")
    assert copying["destinations"][0]["instantiation"]["rows_copied"] == 50000
    assert copying["destinations"][0]["instantiation"]["tables"][0]["rows_per_second"] == pytest.approx(50000 / 1.5)
    assert copying["destinations"][0]["instantiation"]["tables"][0]["seconds_left"] == pytest.approx(1.5)
    assert copying["health"] == {"level": "ok", "reason": "Copying the tables: 50 % of the rows."}
    progress = (await wait_for(operator, operation, state="running"))["progress"]
    assert progress == {"done": 50000, "total": 100000, "unit": "rows"}

    engine.phase, engine.copy_finished = "REPLICATING", True
    await wait_for(operator, operation, state="succeeded")
    running = await wait_for(operator, path, phase="REPLICATING")
    assert running["actions"] == ["stop", "delete", "add_destination"]

    stop = (await operator.post(f"{path}:stop")).json()["operation_id"]
    await wait_for(operator, f"/api/v1/operations/{stop}", state="succeeded")
    assert (await wait_for(operator, path, status="DISABLED"))["actions"] == ["start", "delete", "add_destination"]

    start = (await operator.post(f"{path}:start")).json()["operation_id"]
    await wait_for(operator, f"/api/v1/operations/{start}", state="succeeded")

    delete = (await operator.delete(path)).json()["operation_id"]
    await wait_for(operator, f"/api/v1/operations/{delete}", state="succeeded")
    assert (await operator.get(path)).status_code == 404

    async def forgotten() -> bool:
        return engine.desired["streams"] == []

    await eventually(forgotten)
    assert (await operator.delete(f"/api/v1/databases/{registered['source']}")).status_code == 204


async def test_failed_removal_is_tried_again_by_the_same_request(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, collector: Collector
) -> None:
    stream = await created(operator, registered)
    path = f"{STREAMS}/{stream['id']}"
    await wait_for(operator, path, status="ENABLED")
    engine.status, engine.phase = "ABORTED", "STOPPED"
    engine.error = example("status")["streams"][1]["error"]
    first = (await operator.delete(path)).json()["operation_id"]
    await wait_for(operator, f"/api/v1/operations/{first}", state="failed")
    await wait_for(operator, path, status="ABORTED")
    assert engine.retried == []
    again = await operator.delete(path)
    assert again.status_code == 202
    assert engine.retried == [f"{stream['id']}/warehouse"]
    await wait_for(operator, f"/api/v1/operations/{again.json()['operation_id']}", state="succeeded")


async def test_aborted_stream_shows_its_error_and_cure_and_can_be_retried(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, collector: Collector
) -> None:
    failed = example("status")["streams"][1]
    engine.status, engine.phase, engine.error = "ABORTED", "STOPPED", failed["error"]
    stream = await created(operator, registered)
    path = f"{STREAMS}/{stream['id']}"
    aborted = await wait_for(operator, path, status="ABORTED")
    assert aborted["error"]["code"] == "replica_identity_missing"
    assert "ALTER TABLE" in aborted["error"]["cure"]
    assert aborted["health"]["level"] == "error"
    assert aborted["health"]["reason"].startswith("A table has no replica identity")
    assert "retry" in aborted["actions"]
    operations = (await operator.get("/api/v1/operations", params={"target_id": stream["id"]})).json()["items"]
    assert (operations[0]["state"], operations[0]["error"]["code"]) == ("failed", "replica_identity_missing")

    retry = (await operator.post(f"{path}:retry")).json()["operation_id"]
    await wait_for(operator, f"/api/v1/operations/{retry}", state="succeeded")
    assert engine.retried == [f"{stream['id']}/warehouse"]
    assert (await wait_for(operator, path, status="ENABLED"))["error"] is None


async def test_delete_that_hangs_can_be_forced(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, collector: Collector
) -> None:
    stream = await created(operator, registered)
    path = f"{STREAMS}/{stream['id']}"
    await wait_for(operator, path, status="ENABLED")
    engine.drop_hangs, engine.error = True, example("status")["streams"][1]["error"]
    hanging = (await operator.delete(path)).json()["operation_id"]

    async def shows_why() -> bool:
        shown = (await operator.get(f"/api/v1/operations/{hanging}")).json()
        return shown["state"] == "running" and (shown["error"] or {}).get("code") == "replica_identity_missing"

    await eventually(shows_why)
    forced = (await operator.delete(path, params={"force": True})).json()["operation_id"]
    await wait_for(operator, f"/api/v1/operations/{forced}", state="succeeded")
    assert (await operator.get(path)).status_code == 404


async def test_requests_and_collector_do_not_deadlock(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, collector: Collector
) -> None:
    path = f"{STREAMS}/{(await created(operator, registered))['id']}"
    database = f"/api/v1/databases/{registered['source']}"

    async def change(number: int) -> int:
        if number % 3 == 0:
            options = {"options": {"connect_timeout": str(1 + number)}}
            answer = await operator.patch(database, json=options, headers={"If-Match": "*"})
        else:
            parameters = {"parameters": {"parallelism": number + 1}}
            answer = await operator.patch(path, json=parameters, headers={"If-Match": "*"})
        return answer.status_code

    for _ in range(3):
        assert await asyncio.gather(*(change(number) for number in range(12))) == [200] * 12


async def test_samples_begin_with_unknown_rates(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, collector: Collector
) -> None:
    stream = await created(operator, registered)

    async def three() -> list[dict[str, Any]] | None:
        samples = (await operator.get(f"{STREAMS}/{stream['id']}/samples")).json()["samples"]
        return list(samples) if len(samples) >= 3 else None

    samples = await eventually(three)
    assert samples[0]["interval_seconds"] is None
    assert samples[0]["lcrs_per_second"] is None
    assert samples[0]["latency"]["p50_ms"] is None
    assert all(part["time_percent"] is None for part in samples[0]["components"])
    assert samples[1]["lcrs_per_second"] == pytest.approx(1190)
    figures = {"p50_ms": 2.048, "p99_ms": 4.096}
    assert samples[1]["latency"] == {
        **figures, "at_least": False, "transactions": 118, "last": {**figures, "at": samples[1]["at"]},
    }  # fmt: skip
    identifiers = [part["id"] for part in samples[1]["components"]]
    assert identifiers == [
        "capture", "queue", "warehouse:reader", "warehouse:coordinator", "warehouse:server-1",
    ]  # fmt: skip
    server = samples[1]["components"][-1]
    assert sum(server["time_percent"].values()) == pytest.approx(100, abs=0.1)
    (rates,) = (await operator.get("/api/v1/overview/rates")).json()["streams"]
    assert rates["stream_id"] == stream["id"]
    assert rates["lcrs_per_second"][:3] == [sample["lcrs_per_second"] for sample in samples[:3]]
    assert rates["times"] == sorted(rates["times"])
    assert server["time_percent"]["execute"] == pytest.approx(100 * 5 / 9, abs=0.01)
    overview = await wait_for(operator, "/api/v1/overview", live=True)
    assert overview["engines_online"] == 1


async def test_without_a_collector_nothing_is_known(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Collector,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = await created(operator, registered)
    await wait_for(operator, f"{STREAMS}/{stream['id']}", phase="REPLICATING")
    for module in (latest, overviews):
        monkeypatch.setattr(module, "now", lambda: now() + timedelta(seconds=20))
    overview = (await operator.get("/api/v1/overview")).json()
    (shown,) = overview["streams"]
    assert (overview["engines_online"], overview["engines_total"]) == (None, 1)
    assert (shown["sampled_at"], shown["status"], shown["health"]["level"]) == (None, "UNKNOWN", "unknown")
    assert (shown["lag"]["bytes"], shown["destinations"][0]["lag"]["bytes"]) == (None, None)


async def test_lost_engine_is_shown_and_recovers(
    admin: httpx.AsyncClient, registered: dict[str, str], app: FastAPI, settings: Settings
) -> None:
    port, double = free_port(), EngineDouble()
    resources = make_resources(settings, "thalweg collector")
    async with serve(double.app(), port) as url:
        token = (await admin.post("/api/v1/engines/enrolments", json={})).json()["token"]
        body = {"token": token, "name": "local", "url": url, "control_token": TOKEN}
        path = f"/api/v1/engines/{(await admin.post('/api/v1/engines/enrol', json=body)).json()['id']}"
        stream = await created(admin, registered)
        task = asyncio.create_task(Collector(resources).run())
        await wait_for(admin, f"{STREAMS}/{stream['id']}", status="ENABLED")
    try:
        lost = await wait_for(admin, path, state="UNREACHABLE")
        assert "thalwegd" in lost["message"]
        shown = (await admin.get(f"{STREAMS}/{stream['id']}")).json()
        assert shown["health"]["level"] == "unknown"
        (outage,) = (await admin.get(f"{STREAMS}/{stream['id']}/history")).json()["outages"]
        assert (outage["of"], outage["name"], outage["state"]) == ("engine", "local", "UNREACHABLE")
        assert (outage["until"], "thalwegd" in outage["reason"]) == (None, True)
        double.desired = {"revision": 0, "streams": []}
        async with serve(double.app(), port):
            back = await wait_for(admin, path, state="ONLINE", message=None)
            assert back["acknowledged_revision"] == back["desired_revision"]
            assert [sent["id"] for sent in double.desired["streams"]] == [stream["id"]]
            (over,) = (await admin.get(f"{STREAMS}/{stream['id']}/history")).json()["outages"]
            assert over["since"] == outage["since"] < over["until"]
    finally:
        await stop_task(task)
        await close_resources(resources)


async def test_engine_with_a_higher_revision_is_overtaken(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, collector: Collector
) -> None:
    stream = await created(operator, registered)
    await wait_for(operator, f"{STREAMS}/{stream['id']}", status="ENABLED")
    engine.desired["revision"] = 1000
    await operator.post(f"{STREAMS}/{stream['id']}:stop")
    await wait_for(operator, f"{STREAMS}/{stream['id']}", status="DISABLED")
    assert engine.desired["revision"] > 1000


async def test_streams_that_a_restored_store_does_not_know_go_on_and_hold_up_nobody(
    admin: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, collector: Collector
) -> None:
    stream = await created(admin, registered)
    await wait_for(admin, f"{STREAMS}/{stream['id']}", status="ENABLED")
    late = {**engine.desired["streams"][0], "id": "madelater", "name": "made after the backup"}
    engine.desired = {**engine.desired, "revision": 1000, "streams": [*engine.desired["streams"], late]}
    await admin.post(f"{STREAMS}/{stream['id']}:stop")
    await wait_for(admin, f"{STREAMS}/{stream['id']}", status="DISABLED")
    (shown,) = (await admin.get("/api/v1/engines")).json()["items"]
    (unknown,) = shown["unknown_streams"]
    assert (unknown["id"], unknown["status"], unknown["being_dropped"]) == ("madelater", "ENABLED", False)
    assert shown["message"] is None
    path = f"/api/v1/engines/{shown['id']}"
    refused = await admin.post(f"{path}:drop-stream", json={"stream_id": stream["id"]})
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    dropped = await admin.post(f"{path}:drop-stream", json={"stream_id": "madelater"})
    assert dropped.json()["unknown_streams"][0]["being_dropped"] is True
    await wait_for(admin, path, unknown_streams=[])
    assert all(desired["status"] == "DROPPED" for desired in engine.desired["streams"] if desired["id"] == "madelater")


async def test_wrong_control_token_is_refused_at_enrolment(
    admin: httpx.AsyncClient, double: tuple[EngineDouble, str]
) -> None:
    token = (await admin.post("/api/v1/engines/enrolments", json={})).json()["token"]
    body = {"token": token, "name": "local", "url": double[1], "control_token": "not the engine's token"}
    answer = await admin.post("/api/v1/engines/enrol", json=body)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/control_token"
    good = {**body, "control_token": TOKEN}
    assert (await admin.post("/api/v1/engines/enrol", json=good)).status_code == 201
    again = await admin.post("/api/v1/engines/enrol", json={**good, "name": "another"})
    assert (again.status_code, again.json()["code"]) == (403, "enrolment_refused")


async def test_one_collector_leads(settings: Settings) -> None:
    first, second = Election(settings.store_url), Election(settings.store_url)
    try:
        assert await first.leads() is True
        assert await second.leads() is False
        assert await first.leads() is True
        await first.resign()
        assert await second.leads() is True
    finally:
        await first.resign()
        await second.resign()


async def test_leader_that_loses_its_connection_leads_no_more(settings: Settings, sides: Sides) -> None:
    first, second = Election(settings.store_url), Election(settings.store_url)
    try:
        assert await first.leads() is True
        sides.cluster.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
            "WHERE application_name = 'thalweg collector election'"
        )
        assert await second.leads() is True
        with pytest.raises(Exception, match=r"terminating connection|closed"):
            await first.leads()
        assert await first.leads() is False
    finally:
        await first.resign()
        await second.resign()


async def test_readiness_says_who_is_missing(
    anonymous: httpx.AsyncClient, settings: Settings, resources: Resources
) -> None:
    before = (await anonymous.get("/readyz")).json()
    assert (before["status"], before["collector"]) == ("degraded", "absent")
    assert before["reasons"] == ["No collector runs: nothing is observed, and no alert fires."]
    election = Election(settings.store_url)
    await election.leads()
    try:
        assert (await anonymous.get("/readyz")).json() == {
            "status": "ready", "store": "ok", "redis": "ok", "collector": "ok", "collector_round_age_seconds": None,
            "history": "unknown", "reasons": [],
        }  # fmt: skip
        at = now()
        rounds = Rounds(
            reported_at=at, round_at=at - timedelta(seconds=180), failure="the store refuses", history_failure="x"
        )
        await Bus(resources.redis).tell_rounds(rounds)
        late = (await anonymous.get("/readyz")).json()
        assert (late["status"], late["collector"], late["history"]) == ("degraded", "late", "failing")
        assert late["collector_round_age_seconds"] >= 180
        assert late["reasons"] == [
            "The collector has recorded nothing of an engine for 3 min: the store refuses.", "No history is written: x."
        ]  # fmt: skip
    finally:
        await election.resign()


async def test_a_loop_that_records_nothing_is_told_with_its_reason(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Collector,
    anonymous: httpx.AsyncClient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await created(operator, registered)
    well = await wait_for(anonymous, "/readyz", collector="ok", history="ok", reasons=[])
    assert well["collector_round_age_seconds"] is not None

    async def refused(*_: Any) -> bool:
        raise OSError("10.0.0.7 does not answer")

    monkeypatch.setattr(service, "LATE_SECONDS", 0)
    monkeypatch.setattr(collector, "_turn", refused)

    async def told() -> bool:
        readiness = (await anonymous.get("/readyz")).json()
        return any(reason.endswith(": the store cannot be reached.") for reason in readiness["reasons"])

    await eventually(told)


async def test_losing_redis_loses_pictures_only(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Collector,
    redis_server: RedisServer,
    anonymous: httpx.AsyncClient,
) -> None:
    stream = await created(operator, registered)
    path = f"{STREAMS}/{stream['id']}"
    await wait_for(operator, path, phase="REPLICATING")
    redis_server.stop()
    try:
        assert (await anonymous.get("/readyz")).json()["status"] == "degraded"
        overview = (await operator.get("/api/v1/overview")).json()
        assert (overview["live"], overview["streams"][0]["phase"]) == (False, "REPLICATING")
        assert overview["streams"][0]["lag"]["bytes"] is None, "not 0: no sample tells how far it is"
        assert (await operator.get(f"{path}/samples")).json()["live"] is False
        assert (await operator.post(f"{path}:stop")).status_code == 202
        await wait_for(operator, path, status="DISABLED")
    finally:
        redis_server.start()
    assert (await operator.post(f"{path}:start")).status_code == 202

    async def live_again() -> bool:
        return bool((await operator.get(f"{path}/samples", params={"seconds": 5})).json()["samples"])

    await eventually(live_again)
