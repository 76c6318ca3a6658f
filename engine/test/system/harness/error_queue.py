"""The error queue of a stream's only destination, over the control API."""

from typing import Any

from harness.cluster import wait_for
from harness.engine import SECONDS, RefusedError, destination_path
from harness.scene import Scene


def errors(scene: Scene, rest: str = "", method: str = "GET", body: Any = None) -> Any:
    return scene.engine.request(method, destination_path(scene.stream) + f"/errors{rest}", body)


def execute(scene: Scene, what: str = "") -> Any:
    """An execution until its end; `what` is of the queue, as `/12`. The engine answers after three seconds, whether it
    has ended or not. Raises RefusedError either way."""
    answer = errors(scene, f"{what}/execute", "POST")
    if answer["state"] != "RUNNING":
        return answer
    wait_for(lambda: errors(scene)["execution"]["state"] != "RUNNING", SECONDS, "the execution has ended")
    execution = errors(scene)["execution"]
    if execution["state"] == "FAILED":
        raise RefusedError(409, execution["error"])
    return {"state": execution["state"]}
