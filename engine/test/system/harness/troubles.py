"""Troubles of a stream's tables at the source, as the engine reports them, and an operator's resolutions."""

from typing import Any

from harness.cluster import wait_for
from harness.engine import DESTINATION, SECONDS, destination_path
from harness.scene import Scene

NOTICED = 20  # seconds; it looks every two, or five where the stream is stopped


def table_of(scene: Scene, table: str) -> dict[str, Any]:
    tables = scene.engine.destination(scene.stream)["tables"]
    return next(entry for entry in tables if entry["table"] == table)


def states_of(scene: Scene) -> set[tuple[str, str]]:
    """Tables as the engine names them now, each with its state."""
    return {(table["table"], table["state"]) for table in scene.engine.destination(scene.stream)["tables"]}


def wait_trouble(scene: Scene, table: str, kind: str, seconds: float = NOTICED) -> dict[str, Any]:
    def found() -> dict[str, Any] | None:
        trouble = table_of(scene, table)["trouble"]
        return dict(trouble) if trouble and trouble["kind"] == kind else None

    return dict(wait_for(found, seconds, f"{table} is {kind}"))


def wait_state(scene: Scene, table: str, state: str, seconds: float = SECONDS) -> None:
    wait_for(lambda: table_of(scene, table)["state"] == state, seconds, f"{table} is {state}")


def resolve(scene: Scene, table: str, how: str, destination: str = DESTINATION) -> None:
    """`how`: copy or accept."""
    scene.engine.request("POST", f"{destination_path(scene.stream, destination)}/tables/{how}",
                         {"schema": "public", "table": table})


def wait_resumed(scene: Scene, table: str) -> None:
    wait_for(lambda: table_of(scene, table)["trouble"] is None, SECONDS, "its trouble is over")
    wait_for(lambda: scene.engine.status(scene.stream)["status"] != "ABORTED", SECONDS, "the stream starts again")


def copied_at(scene: Scene, table: str) -> str | None:
    found = scene.engine.status(scene.stream)["destinations"][0]["instantiation"] or {"tables": []}
    return next((one["copied_at"] for one in found["tables"] if one["table"] == table), None)


def copy_again(scene: Scene, table: str) -> None:
    """Asks for it and waits until it is there. Its trouble is gone before the copy begins."""
    before = copied_at(scene, table)
    resolve(scene, table, "copy")
    wait_resumed(scene, table)
    wait_for(lambda: copied_at(scene, table) not in (None, before), SECONDS, f"{table} has been copied")
    scene.engine.wait_status(scene.stream, lambda found: found["phase"] == "REPLICATING" and all(
        entry["state"] in ("REPLICATING", "STOPPED") for entry in found["destinations"][0]["tables"]), SECONDS,
        f"{table} is copied again")
