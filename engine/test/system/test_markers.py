"""Message tracking: a marker's way through the path, and heartbeats that show the latency of an idle stream."""

from typing import Any

import pytest

from harness.cluster import wait_for
from harness.engine import RefusedError
from harness.markers import passed, way
from harness.scene import Scene

ONE_ENGINE = ["CAPTURE", "ENQUEUE", "DEQUEUE", "DISPATCH", "COMMIT"]
TABLE = "CREATE TABLE item (id integer PRIMARY KEY, body text)"


@pytest.mark.both_ways
def test_marker_passes_behind_what_committed_before_it(scene: Scene) -> None:
    scene.run_at_source(TABLE)
    scene.start_stream(heartbeat_interval=1)
    scene.at_source("INSERT INTO item SELECT n, 'x' FROM generate_series(1, 1000) n")
    scene.engine.request("POST", f"/v1/streams/{scene.stream}/markers", {"id": "first", "label": "after the rows"})
    wait_for(lambda: passed([scene.engine], scene.stream, "first", ONE_ENGINE), 20, "the marker has passed")
    assert scene.at_destination("SELECT count(*) FROM item") == [(1000,)]
    with pytest.raises(RefusedError) as refused:
        scene.engine.request("POST", f"/v1/streams/{scene.stream}/markers", {"id": "first", "label": ""})
    assert refused.value.error["code"] == "marker_refused"

    # Nothing commits any more: heartbeats alone say what a commit would take.
    def between_heartbeats() -> dict[str, Any] | None:
        """Statistics that are of one heartbeat at every stage: none was on its way."""
        before = way([scene.engine], scene.stream, None)
        stats = scene.engine.request("GET", "/v1/stats")["streams"][0]
        is_whole = passed([scene.engine], scene.stream, None, ONE_ENGINE)
        return dict(stats) if is_whole and way([scene.engine], scene.stream, None) == before else None

    stats = wait_for(between_heartbeats, 20, "a heartbeat has passed")
    assert sum(count for _, count in stats["latency"]["buckets"]) >= 3
    ages = {component["sub_component"] or component["type"]: component["gauges"]["marker_latency_us"]
            for component in stats["components"] if "marker_latency_us" in component["gauges"]}
    assert ages.keys() == {"CAPTURE", "APPLY READER", "APPLY COORDINATOR"}
    assert ages["CAPTURE"] <= ages["APPLY READER"] <= ages["APPLY COORDINATOR"] < 10_000_000
