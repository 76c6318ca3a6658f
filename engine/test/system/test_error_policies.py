"""Transactions that the destination refuses, by error policies, through kills of the engine."""

import json
import random
from typing import Any

from harness.cluster import wait_for
from harness.engine import destination_path
from harness.fan_out import FanOut
from harness.scene import Scene

TABLES = """
    CREATE TABLE item (id integer PRIMARY KEY, amount integer NOT NULL);
    INSERT INTO item SELECT n, 0 FROM generate_series(1, 20) AS n;
    CREATE TABLE other (id integer PRIMARY KEY, amount integer NOT NULL);
"""
REFUSED_FROM = 1000
REFUSES = f"ALTER TABLE item ADD CONSTRAINT small CHECK (amount < {REFUSED_FROM})"


def retry(**changed: Any) -> list[dict[str, Any]]:
    return [{"error": "23514", "action": "retry", "times": 100, "delay_seconds": 1, "after_retries": "stop", **changed}]


def set_policies(scene: Scene, policies: list[dict[str, Any]]) -> None:
    parameters = scene.engine.streams[scene.stream]["parameters"]
    scene.engine.set_stream(scene.stream, parameters={**parameters, "error_policies": policies})


def parked(scene: Scene) -> list[str]:
    answer = scene.engine.request("GET", destination_path(scene.stream) + "/errors")
    return [error["code"] for error in answer["errors"]]


def retries(scene: Scene) -> int:
    return sum(component["counters"].get("retried_transactions", 0) for component in
               scene.engine.components(scene.stream))


def wait_retried(scene: Scene, times: int = 1) -> None:
    wait_for(lambda: retries(scene) >= times, 30, f"{times} retries")


# Each row's changes build on the ones before: one that is lost, or applied twice, shows.
def write(scene: Scene, random_: random.Random, transactions: int) -> None:
    for number in range(transactions):
        key = random_.randint(1, 20)
        scene.at_source(f"UPDATE item SET amount = amount + {random_.choice([1, 1, 1, 200])} WHERE id = {key}",
                        f"INSERT INTO other SELECT coalesce(max(id), 0) + 1, {number} FROM other")


def test_what_is_retried_through_kills_is_applied_once_when_its_cause_is_gone(scene: Scene,
                                                                             random_: random.Random) -> None:
    scene.run_at_source(TABLES)
    scene.start_stream(error_policies=retry())
    scene.at_destination(REFUSES)
    scene.at_source(f"UPDATE item SET amount = {REFUSED_FROM} WHERE id = 1")
    wait_retried(scene, 2)
    for _ in range(3):
        write(scene, random_, 20)
        wait_retried(scene)
        scene.engine.kill()
        scene.engine.start()
    wait_retried(scene)
    wait_for(lambda: any(one["state"] == "WAIT RETRY" for one in scene.engine.transactions(scene.stream)), 30,
             "its state is shown")
    scene.at_destination("ALTER TABLE item DROP CONSTRAINT small")
    scene.wait_applied()
    assert parked(scene) == []
    scene.assert_same()


def test_policies_change_while_the_stream_runs(scene: Scene) -> None:
    scene.run_at_source(TABLES)
    scene.start_stream(error_policies=retry(delay_seconds=3600))
    scene.at_destination(REFUSES)
    scene.at_source(f"UPDATE item SET amount = {REFUSED_FROM} WHERE id = 1", "INSERT INTO other VALUES (1, 1)")
    wait_retried(scene)
    wait_for(lambda: scene.at_destination("SELECT count(*) FROM other")[0][0] == 1, 30, "the others go on")
    set_policies(scene, [{"schema": "public", "table": "item", "error": "23", "action": "park"}])
    scene.wait_applied()
    assert parked(scene) == ["apply_failed"]
    scene.at_destination("DELETE FROM other")
    scene.at_source("DELETE FROM other")
    assert scene.engine.wait_aborted(scene.stream)["code"] == "apply_conflict", "no policy of that table"


def logged(scene: Scene, event: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in scene.engine.log.read_text().splitlines() if line.startswith("{")]
    return [line for line in lines if line["event"] == event]


# One that waits for its retry falls behind the other destination, and has its apply begun again with a backlog on disk.
def test_retries_are_counted_on_when_the_destination_falls_behind(scene: Scene) -> None:
    scene.run_at_source(TABLES)
    fan = FanOut(scene)
    # Twice the time after which it is behind: it is begun again well before its retry.
    fan.start_stream("a", "b", error_policies=retry(times=2, delay_seconds=30))
    sql = scene.destination.sql
    sql(fan.made["a"].database, REFUSES)
    scene.at_source(f"UPDATE item SET amount = {REFUSED_FROM} WHERE id = 1")
    retry_now = fan.wait("a", lambda found: found["next_retry"], "waits for its retry")["next_retry"]
    assert (retry_now["number"], retry_now["times"]) == (1, 2)
    assert retry_now["error"]["sqlstate"] == "23514"
    wait_for(lambda: logged(scene, "destination_behind"), 30, "it is behind")
    again = fan.wait("a", lambda found: found["next_retry"] and found["backlog"]["state"] == "ON DISK", "waits on")
    assert again["next_retry"] == retry_now, "the same retry, at the same time"
    fan.wait("a", lambda found: found["status"] == "ABORTED", "stops after two retries", 120)
    assert [line["retry"] for line in logged(scene, "transaction_retried")] == [1, 2]
    error = fan.status("a")["error"]
    assert error["message"].find("; retried 2 times before") > 0 and error["retries"] == 2
    sql(fan.made["a"].database, "ALTER TABLE item DROP CONSTRAINT small")
    scene.engine.request("POST", destination_path(scene.stream, "a") + "/retry")
    fan.wait_applied()
    assert fan.status("a")["next_retry"] is None
    fan.assert_same()
    fan.close()
