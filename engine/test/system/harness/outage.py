"""Assertions of every fault test while the fault lasts: the state is true, and the error says what to do."""

import json
import os
import signal
from typing import Any

from harness.cluster import PASSWORD, Cluster, wait_for
from harness.engine import Engine

SECONDS = 45


def assert_says_what_to_do(error: dict[str, Any], *codes: str) -> None:
    assert error["code"] in codes, error
    assert error["message"] and error["title"] and len(error["cure"]) > 10, error
    assert PASSWORD not in json.dumps(error), "an error shows a password"


def wait_retrying(engine: Engine, stream: str, *codes: str, naming: str = "") -> dict[str, Any]:
    """Waits until the stream says that it tries again because of one of these errors; its message holds `naming`."""

    def holds(status: dict[str, Any]) -> bool:
        error = status["error"]
        return bool(status["phase"] == "RETRYING" and error and error["code"] in codes and naming in error["message"])

    status = engine.wait_status(stream, holds, SECONDS, f"RETRYING with {codes}, naming '{naming}'")
    assert_says_what_to_do(status["error"], *codes)
    return status


def assert_recovered(engine: Engine, stream: str) -> None:
    engine.wait_status(
        stream, lambda found: (found["status"], found["phase"], found["error"]) == ("ENABLED", "REPLICATING", None),
        SECONDS, "recovered")


def kill_postmaster(cluster: Cluster) -> None:
    """kill -9 of the server's first process; the others end when they notice."""
    os.kill(cluster.postmaster(), signal.SIGKILL)
    wait_for(lambda: not cluster.is_running(), 30, "the postmaster is gone")


def start_again(cluster: Cluster) -> None:
    """The dead server's processes may hold its shared memory for a moment longer."""

    def started() -> bool:
        try:
            cluster.start()
        except RuntimeError as error:
            if "shared memory" not in str(error):
                raise
            return False
        return True

    wait_for(started, 30, "the server starts again", pause=0.2)
