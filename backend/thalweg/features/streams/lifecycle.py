"""The life of a stream as an explicit table: what may follow on what, and why not."""

from enum import StrEnum


class DesiredStatus(StrEnum):
    """The status that users want; every desired document tells the engine."""

    ENABLED = "ENABLED"
    DISABLED = "DISABLED"
    DROPPED = "DROPPED"


class Action(StrEnum):
    START = "start"
    STOP = "stop"
    RETRY = "retry"
    DELETE = "delete"


TRANSITIONS: dict[tuple[DesiredStatus, Action], DesiredStatus] = {
    (DesiredStatus.DISABLED, Action.START): DesiredStatus.ENABLED,
    (DesiredStatus.ENABLED, Action.START): DesiredStatus.ENABLED,
    (DesiredStatus.ENABLED, Action.STOP): DesiredStatus.DISABLED,
    (DesiredStatus.DISABLED, Action.STOP): DesiredStatus.DISABLED,
    (DesiredStatus.ENABLED, Action.RETRY): DesiredStatus.ENABLED,
    (DesiredStatus.ENABLED, Action.DELETE): DesiredStatus.DROPPED,
    (DesiredStatus.DISABLED, Action.DELETE): DesiredStatus.DROPPED,
    # Deleting again is allowed: it is how `force` is added when a database turns out to be gone.
    (DesiredStatus.DROPPED, Action.DELETE): DesiredStatus.DROPPED,
}


def next_status(current: DesiredStatus, action: Action) -> DesiredStatus | None:
    """The desired status after the action, or None when the action is not allowed now."""
    return TRANSITIONS.get((current, action))


def allowed_actions(current: DesiredStatus, observed: str) -> list[Action]:
    """The actions to offer: transitions that would change something."""
    actions = []
    for action in Action:
        target = next_status(current, action)
        if target is None:
            continue
        if action in (Action.START, Action.STOP) and target == current:
            continue
        if action is Action.RETRY and observed != "ABORTED":
            continue
        actions.append(action)
    return actions
