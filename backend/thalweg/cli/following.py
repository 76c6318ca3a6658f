"""Long work, followed until it has finished, and changes until they are in effect."""

import time
from contextlib import suppress
from typing import Annotated

import typer

from thalweg.cli.client import Api, CommandError, Json
from thalweg.cli.output import done, err
from thalweg.kernel.lifecycle import DesiredStatus, ObservedStatus, OperationState

FINISHED = (OperationState.SUCCEEDED, OperationState.FAILED)
Wait = Annotated[bool, typer.Option(help="Wait until it is done.")]
Timeout = Annotated[float, typer.Option(min=1, help="With --wait: stop waiting after this many seconds.")]
WaitForEffect = Annotated[bool, typer.Option("--wait", help="Wait until the change is in effect; print from where.")]
TIMEOUT = 600.0
ABORTED_FOR = 3.0
"""Seconds: an engine that has just taken a change may say for a moment that the stream is aborted still."""
ENGINE = "engine"
"""The actor of what the engines have told."""
AT_ONCE = "Parameters that are live take effect at once and begin no position."


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


def follow_change(
    api: Api, changed: Json, wait: bool, message: str, timeout: float = TIMEOUT, only: str | None = None,
    live: bool = False,
) -> None:  # fmt: skip
    """`changed`: the stream, as the answer to the change shows it. With `wait`, until the change is in effect at all
    destinations, or at `only` that one; fails when it cannot be, when somebody changes them again meanwhile, or when
    that takes longer than `timeout`. `live`: only parameters have changed, and live ones: they begin no position."""
    end, aborted = time.monotonic() + timeout, None
    stream = changed
    while wait and (waiting := [part for part in _concerned(stream, only) if _waits(stream, part)]):
        names = ", ".join(part["database"]["name"] for part in waiting)
        if any(part["in_effect"] is None for part in waiting):
            raise CommandError(
                f"{message} The engine's version does not tell when this is in effect at {names}.",
                "Upgrade the engine, or look at what arrives.",
            )
        if all(_is_aborted(stream, part) for part in waiting):
            aborted = aborted or time.monotonic()
            if time.monotonic() - aborted >= ABORTED_FOR:
                error = next((part["error"] for part in waiting if part["error"]), None) or stream["error"]
                reason = f" {error['title']}. {error['message']}" if error else ""
                cure = error["cure"] if error else None
                which = "which is" if len(waiting) == 1 else "which are"
                raise CommandError(f"{message} It is not in effect at {names}, {which} aborted.{reason}", cure or "")
        else:
            aborted = None
        if time.monotonic() >= end:
            raise CommandError(
                f"{message} It is not in effect at {names} within {timeout:.0f} s.",
                f"It stays desired; `thalweg streams show {stream['name']}` shows when it is. Wait longer with "
                "--timeout.",
            )
        time.sleep(0.5)
        stream = api.get(f"/streams/{stream['id']}")
        if _is_superseded(changed, stream, only):
            raise CommandError(
                f"{message} It is superseded by a later change{_last_change(api, stream)}.",
                f"`thalweg streams show {stream['name']}` shows what is desired now, and from where it is in effect.",
            )
    shown = [part for part in _concerned(stream, only) if part.get("in_effect")]
    lines = effects_in_words(shown)
    if live:
        lines = [_live_effect_in_words(part) for part in shown] if wait else [AT_ONCE]
    elif not wait and any(part["in_effect"]["under_way"] for part in shown):
        lines = [f"`thalweg streams show {stream['name']}` shows from which position on it is in effect; --wait waits."]
    done("\n".join([message, *lines]), stream if only is None else _concerned(stream, only)[0])


def effects_in_words(destinations: list[Json]) -> list[str]:
    """From where on the last change is in effect, for each destination whose engine tells it."""
    return [
        f"{part['database']['name']}: {_effect_in_words(part['in_effect'])}"
        for part in destinations
        if part.get("in_effect")
    ]


def _live_effect_in_words(part: Json) -> str:
    """Tells the effect of a change that has been waited for; a destination that does not run has no position."""
    runs = part["in_effect"]["from"] is not None
    effect = "in effect; live parameters begin no position." if runs else _effect_in_words(part["in_effect"])
    return f"{part['database']['name']}: {effect}"


def _is_superseded(changed: Json, stream: Json, only: str | None) -> bool:
    """Whether what is desired now is another change's: its effect would be told as that of `changed`."""
    if stream["etag"] == changed["etag"]:
        return False
    own, present = _definitions(changed, only), _definitions(stream, only)
    kept = own.keys() & present.keys()
    return not kept or any(own[id_] != present[id_] for id_ in kept)


def _definitions(stream: Json, only: str | None) -> dict[str, list[Json | str | None]]:
    """Rules, the key of their masks and parameters of each destination; of one that is being dropped there are none. A
    stop, a start or a new name changes nothing of them."""
    if stream["desired_status"] == DesiredStatus.DROPPED:
        return {}
    return {
        part["id"]: [
            stream["rules"], stream.get("mask_key_version"), stream["parameters"], stream.get("capture_kind"),
            part["row_rules"], part["parameters"],
        ]
        for part in _concerned(stream, only)
    }  # fmt: skip


def _last_change(api: Api, stream: Json) -> str:
    """Its author and time, in brackets, where they can be read."""
    with suppress(CommandError):
        for event in api.get(f"/streams/{stream['id']}/history/events", limit=20)["items"]:
            if event["kind"] == "change" and event["actor_name"] not in (None, ENGINE):
                return f" ({event['actor_name']}, {event['at'][:19].replace('T', ' ')} UTC)"
    return ""


def _effect_in_words(effect: Json) -> str:
    if effect["under_way"]:
        return "the last change is not in effect yet."
    if effect["from"] is None:
        return "the last change takes effect with the next start."
    return f"in effect from {effect['from']}, since {effect['since'][:19].replace('T', ' ')} UTC."


def _concerned(stream: Json, only: str | None) -> list[Json]:
    """The destinations to wait for; an API of an earlier version says nothing of any."""
    return [
        {"in_effect": None, **part}
        for part in stream["destinations"]
        if only in (None, part["id"]) and part["desired_status"] != DesiredStatus.DROPPED
    ]


def _waits(stream: Json, part: Json) -> bool:
    """A part that is stopped has nothing to wait for."""
    effect = part["in_effect"]
    if effect is None:
        return True
    return bool(effect["under_way"]) or (effect["from"] is None and _is_aborted(stream, part))


def _is_aborted(stream: Json, part: Json) -> bool:
    return ObservedStatus.ABORTED in (stream["status"], part["status"])
