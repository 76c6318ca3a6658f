"""Long work, followed until it has finished."""

import time
from typing import Annotated

import typer

from thalweg.cli.client import Api, CommandError, Json
from thalweg.cli.output import done, err
from thalweg.kernel.lifecycle import OperationState

FINISHED = (OperationState.SUCCEEDED, OperationState.FAILED)
Wait = Annotated[bool, typer.Option(help="Wait until it is done.")]
Timeout = Annotated[float, typer.Option(min=1, help="With --wait: stop waiting after this many seconds.")]
TIMEOUT = 600.0


def follow(api: Api, accepted: Json, wait: bool, what: str, timeout: float = TIMEOUT, otherwise: str = "") -> None:
    """With `wait`, until the operation has finished; fails when that did, or when it takes longer than `timeout`.
    `otherwise`: a further cure then, in a sentence."""
    path = f"/operations/{accepted['operation_id']}"
    if not wait:
        done(f"{what}: operation {accepted['operation_id']} is {accepted['state']}.", accepted)
        return
    end, waiting_for = time.monotonic() + timeout, None
    while (operation := api.get(path))["state"] not in FINISHED:
        if operation["waiting_for"] != waiting_for:
            waiting_for = operation["waiting_for"]
            err.print(f"{what}: waiting for: {waiting_for}")
        if time.monotonic() >= end:
            raise CommandError(
                f"{what} has not finished within {timeout:.0f} s. It waits for: {waiting_for}",
                f"It continues; `thalweg operations` shows it as {operation['id']}. Wait longer with --timeout. "
                f"{otherwise}".rstrip(),
            )
        time.sleep(0.5)
    error = operation["error"]
    if operation["state"] == OperationState.FAILED:
        raise CommandError(
            f"{what} failed: {error['title']}. {error['message']}", error["cure"] or "",
            tuple((error.get("detail") or "").splitlines()),
        )  # fmt: skip
    done(f"{what}: done." + (f" {error['message']}" if error else ""), operation)
