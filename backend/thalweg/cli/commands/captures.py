"""streams capture."""

from typing import Annotated

import typer

from thalweg.cli.captures import KINDS
from thalweg.cli.client import connect
from thalweg.cli.commands.streams import Accept, Name
from thalweg.cli.following import TIMEOUT, Timeout, WaitForEffect, follow_change
from thalweg.cli.output import CHECKING, Yes, confirm, told_if_long
from thalweg.kernel.capture_kinds import CaptureKind


def change(
    name: Name,
    kind: Annotated[CaptureKind, typer.Argument(help="logical: decoded at the source. wal: mined by the engine.")],
    accept: Accept = None,
    yes: Yes = False,
    wait: WaitForEffect = False,
    timeout: Timeout = TIMEOUT,
) -> None:
    """Change how a stream's changes are captured, at a position and without a new copy. Asks for confirmation on a
    terminal."""
    api = connect()
    stream = api.find("/streams", "stream", name)
    confirm(
        f"Capture {stream['name']} by {KINDS[kind]} from a position on? Until then its source keeps WAL for both kinds",
        yes,
    )
    with told_if_long(CHECKING):
        changed = api.patch(
            f"/streams/{stream['id']}", {"capture_kind": kind.value, "accept": accept or []}, stream["etag"]
        )
    follow_change(api, changed, wait, f"{stream['name']} changes to {KINDS[kind]}.", timeout)
