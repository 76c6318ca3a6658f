"""Streams with several destinations: described, observed one by one, changed while they run, dropped in order."""

from collections.abc import AsyncGenerator
from typing import Any

import httpx
import pytest

from tests.conftest import Sides, Users
from tests.features.test_streams import STREAMS, body_of, created
from tests.support.audit import asked_for
from tests.support.engine_double import EngineDouble, example
from tests.support.serving import eventually
from tests.test_collector import collector, wait_for  # noqa: F401
from tests.test_commands import shell, with_token  # noqa: F401
from tests.test_propagation import Enrolled, pair  # noqa: F401

Running = Any
AWAY = example("status.fanout")["destinations"][1]


@pytest.fixture
async def reports(admin: httpx.AsyncClient, sides: Sides) -> AsyncGenerator[str, None]:
    """Id of a second destination, a database of the same server."""
    name = f"{sides.destination['dbname']}_reports"
    sides.cluster.execute(f"CREATE DATABASE {name} OWNER {sides.destination['user']} STRATEGY file_copy")
    body = {**sides.destination, "name": "Reports 2.0", "dbname": name}
    yield str((await admin.post("/api/v1/databases", json=body)).json()["id"])
    sides.cluster.execute(f"DROP DATABASE {name} WITH (FORCE)")


def two(ids: dict[str, str], reports: str, **of_reports: Any) -> dict[str, Any]:
    return {"destinations": [{"database_id": ids["destination"]}, {"database_id": reports, **of_reports}]}


def parts(told: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {destination["id"]: destination for destination in told["destinations"]}


async def test_destinations_are_told_in_the_contract_s_shape_and_shown_each_by_itself(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    reports: str,
    engine: EngineDouble,
    collector: Running,  # noqa: F811
) -> None:
    engine.destinations["reports20"] = {
        name: AWAY[name] for name in ("phase", "error", "retry_at", "backlog", "positions")
    }
    stream = await created(operator, registered, **two(registered, reports, parameters={"queue_spill_limit_mb": 51200}))
    path = f"{STREAMS}/{stream['id']}"
    running = await wait_for(operator, path, phase="REPLICATING")
    pattern, told = example("desired.fanout")["streams"][0], engine.desired["streams"][0]
    assert set(told) == set(pattern)
    assert set(told["destinations"][0]) == set(pattern["destinations"][0])
    assert parts(told)["reports20"]["parameters"] == {"queue_spill_limit_mb": 51200}
    assert running["mode"] == "fan-out"
    warehouse, away = running["destinations"]
    assert (warehouse["id"], warehouse["phase"], warehouse["backlog"]["state"]) == (
        "warehouse", "REPLICATING", "IN MEMORY",
    )  # fmt: skip
    assert (away["database"]["name"], away["phase"], away["backlog"]["bytes"]) == ("Reports 2.0", "RETRYING", 12582912)
    assert (away["error"]["code"], away["effective_parameters"]["queue_spill_limit_mb"]) == (
        "database_unreachable", 51200,
    )  # fmt: skip
    assert running["health"]["level"] == "warning"
    assert running["health"]["reason"].startswith("The engine is retrying Reports 2.0; warehouse continues. ")
    assert (warehouse["actions"], away["actions"]) == (["stop", "drop"], ["stop", "retry", "drop"])

    async def rates() -> dict[str, Any] | None:
        samples = (await operator.get(f"{path}/samples")).json()["samples"]
        return dict(samples[-1]) if samples and samples[-1]["lcrs_per_second"] is not None else None

    sample = await eventually(rates)
    owners = {part["id"]: part["destination_id"] for part in sample["components"]}
    assert (owners["capture"], owners["queue"], owners["warehouse:reader"], owners["reports20:backlog"]) == (
        None, None, "warehouse", "reports20",
    )  # fmt: skip
    assert [destination["lcrs_per_second"] for destination in sample["destinations"]] == [pytest.approx(1190)] * 2
    assert sample["lcrs_per_second"] == pytest.approx(1200), "captured once, not applied twice"
    assert sample["destinations"][1]["lag"]["bytes"] > sample["destinations"][0]["lag"]["bytes"]
    topology = (await operator.get("/api/v1/topology")).json()
    applies = {edge["target"]: edge for edge in topology["edges"] if edge["source"] == f"{stream['id']}:queue"}
    assert set(applies) == {f"{stream['id']}:warehouse:apply", f"{stream['id']}:reports20:apply"}
    assert len(topology["edges"]) == 2 + 2 * 2
    states = {node["id"]: node["state"] for node in topology["nodes"]}
    assert states[f"{stream['id']}:reports20:apply"] == "RETRYING"
    assert states[f"{stream['id']}:warehouse:apply"] == "APPLYING"
    (outage,) = (await operator.get(f"{path}/history")).json()["outages"]
    assert (outage["of"], outage["id"], outage["name"], outage["state"], outage["until"]) == (
        "destination", "reports20", "Reports 2.0", "RETRYING", None,
    )  # fmt: skip
    assert "connection refused" in outage["reason"]
    retry = (await operator.post(f"{path}/destinations/reports20:retry")).json()["operation_id"]
    done = await wait_for(operator, f"/api/v1/operations/{retry}", state="succeeded")
    assert (done["target"]["destination_id"], done["target"]["destination"]) == ("reports20", "Reports 2.0")
    of_one = {"target_id": stream["id"], "destination_id": "reports20"}
    (listed,) = (await operator.get("/api/v1/operations", params=of_one)).json()["items"]
    assert listed["id"] == retry
    assert engine.retried == [f"{stream['id']}/reports20"]
    (over,) = (await operator.get(f"{path}/history")).json()["outages"]
    assert over["since"] == outage["since"] < over["until"]


async def test_a_cure_of_one_path_changes_that_destination_only(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    reports: str,
    engine: EngineDouble,
    collector: Running,  # noqa: F811
) -> None:
    own = {"group_size": 100, "queue_spill_limit_mb": 51200}
    stream = await created(operator, registered, **two(registered, reports, parameters=own))
    path = f"{STREAMS}/{stream['id']}"
    await wait_for(operator, path, phase="REPLICATING")

    async def found() -> dict[str, Any] | None:
        run = (await operator.post("/api/v1/advisor/runs", json={"facts": False})).json()
        findings = [item for item in run["findings_ranked"] if item["code"] == "apply_small_groups"]
        return {"run_id": run["id"], "finding_id": findings[0]["id"]} if findings else None

    body = await eventually(found)
    assert body["finding_id"].startswith(f"{stream['id']}:reports20:")
    cure = (await operator.post("/api/v1/advisor/cures", json=body)).json()
    assert (cure["destination_id"], cure["parameters_before"]) == ("reports20", {"group_size": 100})

    async def parameters() -> tuple[Any, Any]:
        shown = (await operator.get(path)).json()
        return shown["parameters"], {
            destination["id"]: destination["parameters"] for destination in shown["destinations"]
        }

    # As the stream has it: no value of its own is needed.
    assert await parameters() == ({}, {"warehouse": {}, "reports20": {"queue_spill_limit_mb": 51200}})
    undone = (await operator.post(f"/api/v1/advisor/cures/{cure['id']}:undo")).json()
    assert undone["state"] == "undone"
    assert await parameters() == ({}, {"warehouse": {}, "reports20": own})


async def test_a_destination_joins_and_is_dropped(
    operator: httpx.AsyncClient,
    admin: httpx.AsyncClient,
    registered: dict[str, str],
    reports: str,
    engine: EngineDouble,
    collector: Running,  # noqa: F811
) -> None:
    stream = await created(operator, registered)
    path = f"{STREAMS}/{stream['id']}"
    alone = await wait_for(operator, path, phase="REPLICATING")
    (only,) = alone["destinations"]
    assert (alone["mode"], only["actions"], only["backlog"]) == ("combined", ["stop"], None)
    assert parts(engine.desired["streams"][0])["warehouse"]["backlog"] is False
    refused = await operator.delete(f"{path}/destinations/warehouse")
    assert (refused.status_code, refused.json()["code"]) == (409, "invalid_transition")
    again = await operator.post(f"{path}/destinations", json={"database_id": registered["destination"]})
    assert (again.status_code, again.json()["errors"][0]["pointer"]) == (422, "/database_id")
    source = await operator.post(f"{path}/destinations", json={"database_id": registered["source"]})
    assert (source.status_code, source.json()["errors"][0]["pointer"]) == (409, "/database_id")
    added = await operator.post(f"{path}/destinations", json={"database_id": reports})
    await wait_for(operator, f"/api/v1/operations/{added.json()['operation_id']}", state="succeeded")
    told_now = parts(engine.desired["streams"][0])
    assert {name: destination["backlog"] for name, destination in told_now.items()} == {
        "warehouse": True,
        "reports20": True,
    }

    stopped = await operator.post(f"{path}/destinations/reports20:stop")
    await wait_for(operator, f"/api/v1/operations/{stopped.json()['operation_id']}", state="succeeded")
    shared = {"parameters": {"queue_size": 64}}
    wrong = await operator.patch(f"{path}/destinations/reports20", json=shared, headers={"If-Match": "*"})
    assert wrong.json()["errors"][0]["pointer"] == "/parameters/queue_size"
    for own, restart in (({"group_size": 10}, False), ({"memory_budget_mb": 64}, True)):
        set_anew = await operator.patch(
            f"{path}/destinations/reports20", json={"parameters": own}, headers={"If-Match": "*"}
        )
        assert set_anew.json()["restart_needed"] is restart
        assert parts(set_anew.json())["reports20"]["parameters"] == own

    dropped = await operator.delete(f"{path}/destinations/reports20", params={"force": True})
    await wait_for(operator, f"/api/v1/operations/{dropped.json()['operation_id']}", state="succeeded")
    told = [parts(item).get("reports20") for document in engine.documents for item in document["streams"]]
    assert [destination["status"] for destination in told if destination and destination["force"]] == ["DROPPED"]

    async def left_out() -> bool:
        return set(parts(engine.desired["streams"][0])) == {"warehouse"}

    await eventually(left_out)
    left = (await operator.get(path)).json()
    assert (left["mode"], [destination["id"] for destination in left["destinations"]]) == ("combined", ["warehouse"])
    last = await operator.delete(f"{path}/destinations/warehouse")
    assert "last destination" in last.json()["detail"]
    entries = await asked_for(admin, stream["id"])
    assert [entry["action"] for entry in entries] == [
        "destinations_drop", "destinations_update", "destinations_update", "destinations_stop", "destinations_add",
        "streams_create",
    ]  # fmt: skip
    assert entries[0]["after"]["desired_status"] == "DROPPED"


async def test_a_failed_removal_of_a_destination_is_tried_again_by_the_same_request(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    reports: str,
    engine: EngineDouble,
    collector: Running,  # noqa: F811
) -> None:
    stream = await created(operator, registered, **two(registered, reports))
    path = f"{STREAMS}/{stream['id']}"
    await wait_for(operator, path, phase="REPLICATING")
    error = example("status")["streams"][1]["error"]
    engine.destinations["reports20"] = {"status": "ABORTED", "phase": "STOPPED", "error": error}
    await operator.delete(f"{path}/destinations/reports20")

    async def gave_up() -> bool:
        return bool(parts((await operator.get(path)).json())["reports20"]["status"] == "ABORTED")

    await eventually(gave_up)
    assert engine.retried == []
    again = await operator.delete(f"{path}/destinations/reports20")
    assert engine.retried == [f"{stream['id']}/reports20"]
    await wait_for(operator, f"/api/v1/operations/{again.json()['operation_id']}", state="succeeded")


async def test_an_engine_that_cannot_apply_is_refused_before_the_databases_are_looked_at(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    pair: tuple[Enrolled, Enrolled],  # noqa: F811
) -> None:
    alpha, bravo = pair
    stream = await created(operator, registered, capture_engine_id=bravo.id, applies=bravo.id)
    path = f"{STREAMS}/{stream['id']}/destinations"
    not_ready = await operator.post(path, json={"database_id": registered["source"]})
    assert not_ready.json()["code"] == "preflight_failed"
    refused = (await operator.post(path, json={"database_id": registered["source"], "engine_id": alpha.id})).json()
    assert (refused["code"], [(error["pointer"], error["code"]) for error in refused["errors"]]) == (
        "invalid_request", [("/engine_id", "propagation_address_missing")],
    )  # fmt: skip


async def test_a_destination_of_another_engine_is_told_and_dropped_in_order(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    reports: str,
    pair: tuple[Enrolled, Enrolled],  # noqa: F811
    collector: Running,  # noqa: F811
) -> None:
    alpha, bravo = pair
    body = {"capture_engine_id": alpha.id, **two(registered, reports, engine_id=bravo.id)}
    both = [{"database_id": destination["database_id"], "engine_id": bravo.id} for destination in body["destinations"]]
    refused = await operator.post(STREAMS, json=body_of(registered, **{**body, "destinations": both}))
    assert (refused.json()["errors"][0]["pointer"], refused.json()["errors"][0]["code"]) == (
        "/destinations/1/engine_id", "engine_in_use",
    )  # fmt: skip
    stream = await created(operator, registered, **body)
    path = f"{STREAMS}/{stream['id']}"

    async def received() -> dict[str, Any] | None:
        shown = (await operator.get(path)).json()
        return dict(shown) if [report["phase"] for report in shown["reports"]] == ["REPLICATING"] * 2 else None

    shown = await eventually(received)
    assert [report["destination_id"] for report in shown["reports"]] == [None, "reports20"]
    assert shown["destinations"][1]["instantiation"] is not None
    first = next(document for document in bravo.double.documents if document["streams"])
    assert first["streams"][0]["receive_from"] == {"engine": f"engine-{alpha.id}"}
    assert "send_to" in parts(alpha.told(stream["id"]))["reports20"]
    dropped = await operator.delete(f"{path}/destinations/reports20")
    await wait_for(operator, f"/api/v1/operations/{dropped.json()['operation_id']}", state="succeeded")

    async def forgotten() -> bool:
        return bravo.double.desired["streams"] == [] and len(alpha.told(stream["id"])["destinations"]) == 1

    await eventually(forgotten)
    statuses = [item["status"] for document in bravo.double.documents for item in document["streams"]]
    assert list(dict.fromkeys(statuses)) == ["ENABLED", "DISABLED", "DROPPED"]
    # Alpha's present report counts, not the one from when bravo received.
    error = example("status")["streams"][1]["error"]
    alpha.double.destinations["warehouse"] = {"status": "ABORTED", "phase": "STOPPED", "error": error}
    await wait_for(operator, path, status="ABORTED")
    retry = (await operator.post(f"{path}:retry")).json()["operation_id"]
    await wait_for(operator, f"/api/v1/operations/{retry}", state="succeeded")
    assert f"{stream['id']}/warehouse" in alpha.double.retried
    deleted = (await operator.delete(path)).json()["operation_id"]
    await wait_for(operator, f"/api/v1/operations/{deleted}", state="succeeded")
    assert (await operator.get(path)).status_code == 404


async def test_command_line(
    operator: httpx.AsyncClient,
    users: Users,
    registered: dict[str, str],
    reports: str,
    engine: EngineDouble,
    collector: Running,  # noqa: F811
    shell: Any,  # noqa: F811
) -> None:
    run = with_token(shell, users)
    to = ["--to", "warehouse", "--to", "Reports 2.0"]
    checked = (await run("preflight", "--source", "shop", *to, "--include", "public.*")).out
    assert "warehouse: Connection: " in checked and "Reports 2.0: Connection: " in checked
    made = await run("streams", "create", "s", "--source", "shop", *to, "--include", "public.*", "--wait")
    assert made.code == 0, made.err
    listed = (await run("destinations", "list", "s")).out
    assert "Replicating" in listed and "10.0 GiB" in listed
    which = await run("errors", "s")
    assert (which.code, "--destination" in which.err) == (1, True)
    assert "apply_failed" not in (await run("errors", "s", "--destination", "warehouse")).err
    kept = await run.at_terminal("destinations", "drop", "s", "warehouse", typed="n\n")
    assert kept.code != 0
    gone = await run("destinations", "drop", "s", "warehouse", "--yes", "--wait")
    assert gone.code == 0, gone.err
