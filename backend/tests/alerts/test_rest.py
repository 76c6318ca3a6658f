"""Alerts over REST and the command line: rules, silences, acknowledgements; the collector with an engine double."""

from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from tests.alerts.receivers import http_receiver
from tests.conftest import Users
from tests.features.test_streams import STREAMS, created
from tests.support.audit import asked_for
from tests.support.engine_double import EngineDouble, example
from tests.support.serving import eventually
from tests.test_collector import collector, wait_for, without_slot_alert  # noqa: F401
from tests.test_commands import shell, with_token  # noqa: F401
from thalweg.kernel.principal import Role
from thalweg.kernel.settings import Settings

ALERTS = "/api/v1/alerts"


@pytest.fixture(autouse=True)
def quick(app: FastAPI, settings: Settings) -> None:
    settings.alerts_interval = 0.05


async def alert_of(client: httpx.AsyncClient, rule: str, state: str = "firing", seconds: float = 60) -> dict[str, Any]:
    async def found() -> dict[str, Any] | None:
        items = (await client.get(ALERTS, params={"state": state, "rule": rule})).json()["items"]
        return dict(items[0]) if items else None

    return dict(await eventually(found, seconds))


@pytest.fixture
async def aborted(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Any,  # noqa: F811
) -> dict[str, Any]:
    await without_slot_alert(operator)
    engine.status, engine.phase, engine.error = "ABORTED", "STOPPED", example("status")["streams"][1]["error"]
    stream = await created(operator, registered)
    return await wait_for(operator, f"{STREAMS}/{stream['id']}", status="ABORTED")


async def test_a_destination_that_is_away_is_named(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble,
    collector: Any,  # noqa: F811
) -> None:  # fmt: skip
    await without_slot_alert(operator)
    rule = f"{ALERTS}/rules/database_unreachable"
    await operator.put(rule, json={"hold_seconds": 0}, headers={"If-Match": "*"})
    engine.status, engine.phase = "ENABLED", "RETRYING"
    engine.error = {
        "code": "database_unreachable", "class": "transient", "title": "The database cannot be reached",
        "message": "port 5432 failed: Connection refused", "cure": "Start it.", "side": "destination",
    }  # fmt: skip
    stream = await created(operator, registered)
    alert = await alert_of(operator, "database_unreachable")
    name = stream["destinations"][0]["database"]["name"]
    assert (alert["severity"], alert["message"]) == (
        "critical",
        f"{name}, a destination of {stream['name']}, cannot be reached. port 5432 failed: Connection refused",
    )
    engine.error, engine.phase = None, "REPLICATING"
    assert (await alert_of(operator, "database_unreachable", "resolved"))["id"] == alert["id"]


async def test_life_of_an_alert(
    admin: httpx.AsyncClient, operator: httpx.AsyncClient, viewer: httpx.AsyncClient, aborted: dict[str, Any],
    engine: EngineDouble,
) -> None:  # fmt: skip
    alert = await alert_of(viewer, "component_aborted")
    assert (alert["severity"], alert["subject"]["name"], alert["stream_id"]) == (
        "critical",
        "shop to warehouse",
        aborted["id"],
    )
    assert "has neither a primary key" in alert["message"]
    assert alert["meaning"] and alert["action"] and alert["page"] == f"/streams/{aborted['id']}"
    metrics = (await viewer.get("/metrics")).text
    assert 'thalweg_alerts{rule="component_aborted",severity="critical",state="firing"} 1.0' in metrics
    path = f"{ALERTS}/{alert['id']}"

    async def run() -> int | None:
        run_id: int | None = (await viewer.get(path)).json()["run_id"]
        return run_id

    taken_run = (await viewer.get(f"/api/v1/advisor/runs/{await eventually(run)}")).json()
    assert (taken_run["reason"], taken_run["detail"]) == ("alert", alert["title"])
    assert (await viewer.post(f"{path}/acknowledge", json={})).status_code == 403
    taken = (await operator.post(f"{path}/acknowledge", json={"note": "adding a key"})).json()
    assert (taken["acknowledged_by"], taken["note"]) == ("operator", "adding a key")
    assert (await viewer.get(f"{ALERTS}/counts")).json()["unacknowledged"] == 0
    undone = (await operator.post(f"{path}/unacknowledge")).json()
    assert undone["acknowledged_at"] is None
    audit = await asked_for(admin)
    assert [entry["action"] for entry in audit[:2]] == ["alerts_unacknowledge", "alerts_acknowledge"]

    await operator.put(f"{ALERTS}/rules/component_aborted", json={"enabled": False}, headers={"If-Match": '"0"'})
    over = await alert_of(viewer, "component_aborted", "resolved")
    assert (over["id"], over["resolution"]) == (alert["id"], "not_applicable")
    late = await operator.post(f"{path}/acknowledge", json={})
    assert (late.status_code, late.json()["code"]) == (409, "invalid_transition")
    assert (await viewer.get(f"{ALERTS}/999999")).status_code == 404


async def test_silence_keeps_notices_back_until_it_ends(
    admin: httpx.AsyncClient, operator: httpx.AsyncClient, aborted: dict[str, Any]
) -> None:
    await alert_of(operator, "component_aborted")
    async with http_receiver() as receiver:
        body = {"rule": "error_queue", "stream_id": aborted["id"], "seconds": 600, "reason": "a migration"}
        silence = (await operator.post(f"{ALERTS}/silences", json=body)).json()
        assert silence["stream_name"] == aborted["name"]
        await admin.post(f"{ALERTS}/channels", json={
            "name": "hook", "kind": "webhook", "settings": {"url": receiver.url}
        })  # fmt: skip
        quiet = {"rule": "component_aborted", "seconds": 600}
        await operator.put(f"{ALERTS}/rules/component_aborted", json={"enabled": False}, headers={"If-Match": "*"})
        await alert_of(operator, "component_aborted", "resolved")
        other = (await operator.post(f"{ALERTS}/silences", json=quiet)).json()
        await operator.put(f"{ALERTS}/rules/component_aborted", json={}, headers={"If-Match": "*"})
        again = await alert_of(operator, "component_aborted")
        assert again["silenced"] is True
        assert (await operator.get(f"{ALERTS}/counts")).json()["unacknowledged"] == 0
        told = (await operator.get(f"{ALERTS}/deliveries", params={"alert_id": again["id"]})).json()["items"]
        assert told == []
        assert (await operator.delete(f"{ALERTS}/silences/{other['id']}")).status_code == 204

        async def arrived() -> bool:
            return len(receiver.taken) == 1

        await eventually(arrived)
    left = (await operator.get(f"{ALERTS}/silences")).json()["items"]
    assert [item["id"] for item in left] == [silence["id"]]
    assert (await operator.delete(f"{ALERTS}/silences/{other['id']}")).status_code == 404


async def test_rules_are_set_everywhere_and_for_a_stream(
    operator: httpx.AsyncClient, viewer: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    stream = await created(operator, registered)
    path = f"{ALERTS}/rules/latency"

    async def shown() -> dict[str, Any]:
        rules = (await viewer.get(f"{ALERTS}/rules")).json()["rules"]
        return next(dict(rule) for rule in rules if rule["id"] == "latency")

    before = await shown()
    assert before["effective"] == before["default"]
    assert (await viewer.put(path, json={})).status_code == 403
    assert (await operator.put(path, json={})).status_code == 428
    wide = {"thresholds": {"latency_seconds": 5}, "hold_seconds": 1}
    after = (await operator.put(path, json=wide, headers={"If-Match": before["etag"]})).json()
    assert (after["effective"]["thresholds"], after["effective"]["hold_seconds"]) == ({"latency_seconds": 5.0}, 1.0)
    stale = await operator.put(path, json={}, headers={"If-Match": before["etag"]})
    assert stale.status_code == 412
    own = (await operator.put(f"{path}/streams/{stream['id']}", json={"enabled": False})).json()["streams"][0]
    assert (own["stream_name"], own["effective"]["enabled"], own["effective"]["hold_seconds"]) == (
        stream["name"],
        False,
        1.0,
    )
    for wrong in ({"thresholds": {"nonsense": 1}}, {"thresholds": {"latency_seconds": -1}}):
        refused = await operator.put(path, json=wrong, headers={"If-Match": "*"})
        assert (refused.status_code, refused.json()["errors"][0]["code"]) == (422, "invalid_threshold")
    not_of_streams = await operator.put(f"{ALERTS}/rules/engine_silent/streams/{stream['id']}", json={})
    assert not_of_streams.status_code == 409
    assert (await operator.delete(f"{path}/streams/{stream['id']}")).status_code == 204
    assert (await operator.delete(f"{path}/streams/{stream['id']}")).status_code == 404
    assert (await shown())["streams"] == []


async def test_command_line(
    shell: Any,  # noqa: F811
    users: Users,
    admin: httpx.AsyncClient,
    aborted: dict[str, Any],
) -> None:
    run, stream = with_token(shell, users, Role.ADMIN), aborted["name"]
    alert = await alert_of(admin, "component_aborted")
    listed = await run("alerts", "list")
    assert (listed.code, stream in listed.out, "firing" in listed.out) == (1, True, True)
    assert (await run("alerts", "ack", alert["id"], "--note", "on it")).code == 0
    assert (await run("alerts", "list")).code == 0
    shown = await run("alerts", "show", alert["id"])
    assert "to do:" in shown.out and "on it" in shown.out
    assert "Silent until" in (await run("alerts", "silence", "2h", "--stream", stream)).out
    assert f"every rule, {stream}" in (await run("alerts", "silence")).out
    wrong = await run("alerts", "silence", "soon")
    assert (wrong.code, "is not a duration" in wrong.err) == (1, True)
    set_rule = await run("alerts", "rules", "latency", "--set", "latency_seconds=7", "--off", "--stream", stream)
    assert f"{stream}: off, latency_seconds 7 s" in set_rule.out
    assert (await run("alerts", "rules", "latency", "--reset", "--stream", stream)).code == 0
    assert (await run("alerts", "rules", "nonsense", "--off")).code == 1
    async with http_receiver() as receiver:
        added = await run("alerts", "channels", "add-webhook", "hook", receiver.url, "--secret-stdin", stdin="key\n")
        assert added.code == 0, added.err
        assert "Delivered to hook" in (await run("alerts", "channels", "test", "hook")).out
        assert receiver.url in (await run("alerts", "channels")).out
    failed = await run("alerts", "channels", "test", "hook")
    assert (failed.code, "cure:" in failed.err) == (1, True)
