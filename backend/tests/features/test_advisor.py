"""The advisor over HTTP, on samples that the collector took from an engine at the HTTP boundary."""

from datetime import timedelta
from typing import Any

import httpx
import psycopg
import pytest

from tests.conftest import Sides
from tests.features.test_streams import STREAMS, created
from tests.support.audit import asked_for
from tests.support.engine_double import EngineDouble
from tests.support.serving import eventually
from tests.test_collector import collector, wait_for, without_slot_alert  # noqa: F401
from thalweg.features.advisor.repository import remove_outdated
from thalweg.kernel.clock import now
from thalweg.kernel.context import Resources

ADVISOR = "/api/v1/advisor"
Running = Any


@pytest.fixture
async def stream(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Running,  # noqa: F811
) -> dict[str, Any]:
    """A stream with a few samples, and no run that an alert has taken."""
    await without_slot_alert(operator)
    made = await created(operator, registered)
    await wait_for(operator, f"{STREAMS}/{made['id']}", phase="REPLICATING")

    async def sampled() -> bool:
        return len((await operator.get(f"{STREAMS}/{made['id']}/samples")).json()["samples"]) >= 4

    await eventually(sampled)
    return made


async def test_run_has_the_six_tables(operator: httpx.AsyncClient, stream: dict[str, Any]) -> None:
    answer = await operator.post(f"{ADVISOR}/runs", json={"stream_id": stream["id"], "name": "first"})
    assert answer.status_code == 201, answer.text
    run = answer.json()
    assert answer.headers["Location"] == f"{ADVISOR}/runs/{run['id']}"
    assert (run["reason"], run["requested_by"], run["name"]) == ("on_demand", "operator", "first")
    analysis = run["analysis"]
    ids = [f"{stream['id']}:{name}" for name in ("capture", "queue", "apply:warehouse")]
    assert [part["component_id"] for part in analysis["components"]] == ids
    assert [part["component_db"] for part in analysis["components"]] == ["shop", "shop", "warehouse"]
    assert [(link["position"], link["source_component_id"], link["destination_component_id"])
            for link in analysis["component_links"]] == [(1, ids[0], ids[1]), (2, ids[1], ids[2])]  # fmt: skip
    statistics = {
        (row["component_type"], row["sub_component_type"], row["statistic_name"]): row
        for row in analysis["component_statistics"]
    }
    applied = statistics["APPLY", None, "MESSAGE APPLY RATE"]
    assert (applied["statistic_value"], applied["statistic_unit"]) == (pytest.approx(1190), "MESSAGES PER SECOND")
    # Of 9 ns of the double's applier 5 execute and 2 are idle.
    assert statistics["APPLY", "APPLY SERVER", "EVENT: EXECUTE"]["statistic_value"] == pytest.approx(55.556, abs=0.001)
    (bottleneck,) = analysis["path_bottlenecks"]
    assert (bottleneck["component_id"], bottleneck["sub_component_type"]) == (ids[2], "APPLY SERVER")
    assert (bottleneck["top_event"], bottleneck["idle_percent"]) == ("EXECUTE", 22.2)
    assert bottleneck["bottleneck_identified"] is True
    assert bottleneck["advisor_run_reason"] is None
    for table, rows in (
        ("components", "components"), ("component-links", "component_links"), ("databases", "databases"),
        ("component-statistics", "component_statistics"), ("path-statistics", "path_statistics"),
        ("path-bottlenecks", "path_bottlenecks"),
    ):  # fmt: skip
        assert (await operator.get(f"{ADVISOR}/runs/{run['id']}/{table}")).json() == analysis[rows]
        assert analysis[rows]


async def test_runs_are_listed_named_and_deleted(
    operator: httpx.AsyncClient, viewer: httpx.AsyncClient, stream: dict[str, Any]
) -> None:
    first = (await operator.post(f"{ADVISOR}/runs", json={})).json()
    second = (await operator.post(f"{ADVISOR}/runs", json={"component_id": f"{stream['id']}:apply:warehouse"})).json()
    listed = (await viewer.get(f"{ADVISOR}/runs", params={"stream_id": stream["id"]})).json()["items"]
    assert [run["id"] for run in listed] == [second["id"], first["id"]]
    assert listed[0]["paths"][0]["component_id"] == f"{stream['id']}:apply:warehouse"
    assert (await viewer.post(f"{ADVISOR}/runs", json={})).status_code == 403

    path = f"{ADVISOR}/runs/{first['id']}"
    change = {"name": "before the index", "note": "pgbench at 500 tps\nnightly load", "kept": True}
    named = (await operator.patch(path, json=change, headers={"If-Match": first["etag"]})).json()
    assert {name: named[name] for name in change} == change
    stale = await operator.patch(path, json={"kept": False}, headers={"If-Match": first["etag"]})
    assert (stale.status_code, stale.json()["code"]) == (412, "stale_resource")
    assert (await operator.delete(path)).status_code == 204
    assert (await viewer.get(path)).status_code == 404
    unknown = await operator.post(f"{ADVISOR}/runs", json={"stream_id": "nosuchstream"})
    assert unknown.json()["errors"][0]["pointer"] == "/stream_id"


async def test_analysis_of_the_present_and_of_the_past(viewer: httpx.AsyncClient, stream: dict[str, Any]) -> None:
    live = (await viewer.get(f"{ADVISOR}/analysis", params={"stream_id": stream["id"], "window_seconds": 60})).json()
    assert live["live"] is True
    assert live["paths"][0]["verdict"] == "BOTTLENECK"
    assert None not in {database["last_queried"] for database in live["analysis"]["databases"]}
    times = [sample["at"] for sample in (await viewer.get(f"{STREAMS}/{stream['id']}/samples")).json()["samples"]]
    span = {"begin_at": "2020-01-01T00:00:00Z", "end_at": times[-1]}

    async def past() -> dict[str, Any] | None:
        """Of history, which is written a little later."""
        found = (await viewer.get(f"{ADVISOR}/analysis", params=span)).json()
        return dict(found) if found["analysis"]["samples"] else None

    assert (await eventually(past))["paths"][0]["verdict"] == "BOTTLENECK"
    # Unknown is null, never zero.
    nothing = {"begin_at": "2020-01-01T00:00:00Z", "end_at": "2020-01-02T00:00:00Z"}
    unknown = (await viewer.get(f"{ADVISOR}/analysis", params=nothing)).json()
    assert unknown["paths"][0]["verdict"] == "UNKNOWN"
    assert unknown["paths"][0]["messages_per_second"] is None


async def test_the_page_and_a_snapshot_give_one_verdict(
    operator: httpx.AsyncClient, viewer: httpx.AsyncClient, stream: dict[str, Any]
) -> None:
    """Of databases that were read once: for a viewer's page too."""
    scope = {"stream_id": stream["id"]}
    run = (await operator.post(f"{ADVISOR}/runs", json=scope)).json()
    live = (await viewer.get(f"{ADVISOR}/analysis", params=scope)).json()
    codes = [[finding["code"] for finding in answer["findings_ranked"]] for answer in (run, live)]
    assert codes[0] == codes[1] != []
    read = [{base["last_queried"] for base in answer["analysis"]["databases"]} for answer in (run, live)]
    assert read[0] == read[1]
    assert None not in read[0]
    again = (await operator.post(f"{ADVISOR}/runs", json=scope)).json()
    assert read[0].isdisjoint(base["last_queried"] for base in again["analysis"]["databases"])


async def test_compare_tells_every_statistic_before_and_after(
    operator: httpx.AsyncClient, stream: dict[str, Any]
) -> None:
    first, second = [(await operator.post(f"{ADVISOR}/runs", json={"facts": False})).json()["id"] for _ in range(2)]
    compared = (await operator.get(f"{ADVISOR}/comparison", params={"before": first, "after": second})).json()
    assert (compared["before"]["id"], compared["after"]["id"]) == (first, second)
    assert compared["bottlenecks"] == [
        {
            "path_id": f"{stream['id']}:warehouse",
            "path_name": "shop to warehouse → warehouse",
            "before": "APPLY SERVER: EXECUTE",
            "after": "APPLY SERVER: EXECUTE",
            "changed": False,
        }
    ]
    rate = next(row for row in compared["statistics"] if row["statistic_name"] == "MESSAGE RATE")
    assert (rate["path_id"], rate["change"], rate["change_percent"]) == (f"{stream['id']}:warehouse", 0, 0)
    assert rate["before"] == pytest.approx(1190)
    missing = await operator.get(f"{ADVISOR}/comparison", params={"before": first, "after": 10**6})
    assert missing.status_code == 404


async def test_collector_takes_scheduled_runs_and_removes_old_ones(
    admin: httpx.AsyncClient, operator: httpx.AsyncClient, stream: dict[str, Any], resources: Resources
) -> None:
    body = {"name": "every 5 minutes", "stream_id": stream["id"], "window_seconds": 30}
    schedule = (await operator.post(f"{ADVISOR}/schedules", json=body)).json()
    assert (schedule["interval_seconds"], schedule["enabled"]) == (300, True)

    async def taken() -> dict[str, Any] | None:
        shown = (await operator.get(f"{ADVISOR}/schedules/{schedule['id']}")).json()
        return dict(shown) if shown["last_run_id"] else None

    done = await eventually(taken)
    run = (await operator.get(f"{ADVISOR}/runs/{done['last_run_id']}")).json()
    assert (run["reason"], run["detail"], run["requested_by"]) == ("schedule", "every 5 minutes", "schedule")
    assert done["next_at"] > done["last_at"]
    assert (await operator.post(f"{ADVISOR}/schedules", json=body)).json()["code"] == "name_taken"
    path = f"{ADVISOR}/schedules/{schedule['id']}"
    changed = await operator.patch(path, json={"enabled": False}, headers={"If-Match": done["etag"]})
    assert changed.json()["next_at"] is None

    policy = (await admin.get(f"{ADVISOR}/policy")).json()
    assert policy["thresholds"] == {"idle": 50, "flow_control": 50, "event": 15}
    change = await admin.patch(f"{ADVISOR}/policy", json={"idle_threshold": 10}, headers={"If-Match": policy["etag"]})
    assert change.json()["thresholds"]["idle"] == 10
    # The double's applier is idle for 22 %: no bottleneck by this threshold.
    calm = (await operator.post(f"{ADVISOR}/runs", json={})).json()
    assert calm["paths"][0]["verdict"] == "NO BOTTLENECK"
    kept = (await operator.patch(f"{ADVISOR}/runs/{run['id']}", json={"kept": True}, headers={"If-Match": "*"})).json()
    async with resources.sessions() as session:
        assert await remove_outdated(session, now() + timedelta(days=1), 100) == 1
        await session.commit()
    assert [item["id"] for item in (await operator.get(f"{ADVISOR}/runs")).json()["items"]] == [kept["id"]]


async def test_cure_is_applied_measured_and_undone(
    admin: httpx.AsyncClient, operator: httpx.AsyncClient, stream: dict[str, Any]
) -> None:
    path = f"{STREAMS}/{stream['id']}"
    small = await operator.patch(path, json={"parameters": {"group_size": 100}}, headers={"If-Match": "*"})
    assert small.status_code == 200, small.text
    run = (await operator.post(f"{ADVISOR}/runs", json={"stream_id": stream["id"]})).json()
    # The databases answered: their facts are with the run.
    assert {sheet["side"]: sheet["error"] for sheet in run["fact_sheets"]} == {"source": None, "destination": None}
    finding = next(item for item in run["findings_ranked"] if item["code"] == "apply_small_groups")
    (change,) = finding["cures"][0]["parameters"]
    assert change == {"name": "group_size", "current": 100, "proposed": 20000}
    # It comes with a bottleneck, and is not why there is one.
    assert run["paths"][0]["top_finding_code"] != finding["code"]

    body = {"run_id": run["id"], "finding_id": finding["id"], "measure_after_seconds": 2}
    answer = await operator.post(f"{ADVISOR}/cures", json=body)
    assert answer.status_code == 201, answer.text
    cure = answer.json()
    assert (cure["state"], cure["parameters_before"]) == ("measuring", {"group_size": 100})
    assert (await operator.get(path)).json()["destinations"][0]["effective_parameters"]["group_size"] == 20000

    async def measured() -> dict[str, Any] | None:
        shown = (await operator.get(f"{ADVISOR}/cures/{cure['id']}")).json()
        return dict(shown) if shown["state"] != "measuring" else None

    done = await eventually(measured)
    # The double is as fast as before, but the finding is gone.
    assert (done["state"], done["outcome"].endswith("The finding is gone.")) == ("helped", True)
    reasons = {(await operator.get(f"{ADVISOR}/runs/{done[name]}")).json()["reason"]
               for name in ("before_run_id", "after_run_id")}  # fmt: skip
    assert reasons == {"before_cure", "after_cure"}

    undone = (await operator.post(f"{ADVISOR}/cures/{cure['id']}:undo")).json()
    (destination,) = (await operator.get(path)).json()["destinations"]
    assert (undone["state"], destination["effective_parameters"]["group_size"]) == ("undone", 100)
    assert (await operator.post(f"{ADVISOR}/cures/{cure['id']}:undo")).status_code == 409
    audit = await asked_for(admin)
    assert [entry["action"] for entry in audit[:4]] == [
        "advisor_cures_undo", "destinations_update", "advisor_cures_apply", "destinations_update",
    ]  # fmt: skip
    assert [listed["id"] for listed in (await operator.get(f"{ADVISOR}/cures")).json()["items"]] == [cure["id"]]


async def missing_index(operator: httpx.AsyncClient, stream_id: str, sides: Sides, given: str) -> dict[str, Any]:
    """The finding, with its `run_id`, of a destination's table that has no index and whose rows have been looked for.
    `given`: a statement by which Thalweg's user gets rights to the table."""
    sides.on_destination(
        "CREATE TABLE orders (id bigint NOT NULL, item text, amount numeric(12,2))",
        "INSERT INTO orders SELECT n, 'item', n FROM generate_series(1, 2000) n", "UPDATE orders SET amount = 0", given,
    )  # fmt: skip

    async def found() -> dict[str, Any] | None:
        run = (await operator.post(f"{ADVISOR}/runs", json={"stream_id": stream_id})).json()
        codes = {item["code"]: item for item in run["findings_ranked"]}
        return {**codes["apply_missing_index"], "run_id": run["id"]} if "apply_missing_index" in codes else None

    return dict(await eventually(found))


async def test_index_is_created_at_the_destination_measured_and_dropped_again(
    admin: httpx.AsyncClient,
    operator: httpx.AsyncClient,
    viewer: httpx.AsyncClient,
    stream: dict[str, Any],
    sides: Sides,
) -> None:
    user = sides.destination["user"]
    finding = await missing_index(operator, stream["id"], sides, f"GRANT SELECT ON orders TO {user}")
    sql = finding["cures"][0]["sql"]
    assert sql == 'CREATE UNIQUE INDEX CONCURRENTLY "orders_thalweg_key" ON "public"."orders" ("id");'
    body = {"run_id": finding["run_id"], "finding_id": finding["id"], "measure_after_seconds": 2}
    refused = (await operator.post(f"{ADVISOR}/cures", json=body)).json()
    assert (refused["code"], refused["sql"]) == ("insufficient_privilege", sql)
    assert "as postgres" in refused["cure"]
    # A user with the right creates it by hand, and learns whether it has helped.
    sides.on_destination(sql)
    answer = await operator.post(f"{ADVISOR}/cures", json={**body, "by_hand": True})
    assert (answer.status_code, answer.json()["state"], answer.json()["by_hand"]) == (201, "measuring", True)
    by_hand = await over(operator, answer.json()["id"])
    assert (by_hand["state"], by_hand["before_run_id"], by_hand["sql"]) == ("helped", finding["run_id"], sql)
    assert by_hand["outcome"].endswith("The finding is gone.")
    assert (await operator.post(f"{ADVISOR}/cures/{by_hand['id']}:undo")).json()["code"] == "conflict"
    assert (await asked_for(admin))[0]["after"]["sql"] == sql
    sides.on_destination("DROP INDEX orders_thalweg_key")

    sides.on_destination(f"ALTER TABLE orders OWNER TO {user}", "INSERT INTO orders VALUES (1, 'again', 1)")

    async def applied() -> dict[str, Any]:
        answer = await operator.post(f"{ADVISOR}/cures", json=body)
        assert (answer.status_code, answer.json()["state"]) == (201, "applying"), answer.text
        return await over(operator, answer.json()["id"])

    twice = await applied()
    assert twice["state"] == "failed"
    # Anybody may read why, but the values of rows are for operators.
    assert ("23505" in twice["outcome"], "(1)" in twice["outcome"]) == (True, False)
    path = f"/api/v1/operations/{twice['operation_id']}"
    assert "(id)=(1) is duplicated" in (await operator.get(path)).json()["error"]["detail"]
    seen = (await viewer.get(path)).json()["error"]
    assert (seen["code"], seen["detail"], "(1)" in str(seen)) == ("database_error", None, False)
    assert "(1) is duplicated" not in (await viewer.get("/api/v1/operations")).text
    assert indexes(sides) == []
    sides.on_destination("DELETE FROM orders WHERE item = 'again'")
    done = await applied()
    assert done["state"] in ("helped", "no_difference", "worse")
    assert indexes(sides) == [("orders_thalweg_key", True)]
    operation = (await operator.get(f"/api/v1/operations/{done['operation_id']}")).json()
    assert (operation["kind"], operation["state"], operation["target"]["type"]) == (
        "index.create", "succeeded", "database",
    )  # fmt: skip
    assert (await operator.post(f"{ADVISOR}/cures", json=body)).json()["code"] == "conflict"

    undoing = (await operator.post(f"{ADVISOR}/cures/{done['id']}:undo")).json()
    assert undoing["state"] == "undoing"
    assert (await over(operator, done["id"]))["state"] == "undone"
    assert indexes(sides) == []
    audit = await asked_for(admin)
    assert [entry["action"] for entry in audit[:2]] == ["advisor_cures_undo", "advisor_cures_apply"]
    assert audit[1]["after"]["sql"] == sql


async def over(operator: httpx.AsyncClient, cure_id: int) -> dict[str, Any]:
    async def ended() -> dict[str, Any] | None:
        shown = (await operator.get(f"{ADVISOR}/cures/{cure_id}")).json()
        return dict(shown) if shown["state"] not in ("applying", "measuring", "undoing") else None

    return dict(await eventually(ended))


def indexes(sides: Sides) -> list[tuple[str, bool]]:
    """(name, valid) of those at the destination."""
    with psycopg.connect(sides.cluster.url(sides.destination["dbname"]).replace("+psycopg", "")) as connection:
        return connection.execute(
            "SELECT indexrelid::regclass::text, indisvalid FROM pg_index WHERE indrelid = 'orders'::regclass"
        ).fetchall()


async def test_thresholds_are_numbers_and_nothing_that_could_be_taken_for_one(admin: httpx.AsyncClient) -> None:
    policy, any_version = f"{ADVISOR}/policy", {"If-Match": "*"}
    for value in (False, "5"):
        refused = await admin.patch(policy, json={"event_threshold": value}, headers=any_version)
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/event_threshold")
    assert (await admin.patch(policy, json={"event_threshold": 5}, headers=any_version)).status_code == 200
