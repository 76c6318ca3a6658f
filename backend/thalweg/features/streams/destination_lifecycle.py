"""The requests that a destination accepts in each state, and the reasons of refusals. Its further life:
db/destination_life.py."""

from enum import StrEnum

from thalweg.db.models import DestinationRow, StreamRow
from thalweg.features.streams.lifecycle import DesiredStatus


class DestinationAction(StrEnum):
    START = "start"
    STOP = "stop"
    RETRY = "retry"
    DROP = "drop"


TARGETS = {
    DestinationAction.START: DesiredStatus.ENABLED,
    DestinationAction.STOP: DesiredStatus.DISABLED,
    DestinationAction.DROP: DesiredStatus.DROPPED,
}


def refusal(row: StreamRow, one: DestinationRow, action: DestinationAction) -> tuple[str, str] | None:
    """Why not, and the cure. None: it may be done."""
    if row.desired_status == DesiredStatus.DROPPED:
        return "The stream is being deleted.", "Create a new stream."
    if one.desired_status == DesiredStatus.DROPPED and action is not DestinationAction.DROP:
        return "The destination is being dropped.", "Add the database again once it is gone."
    if action is DestinationAction.RETRY and one.desired_status == DesiredStatus.DISABLED:
        return "The destination is stopped.", "Start it instead."
    if action is not DestinationAction.DROP:
        return None
    if all(other.desired_status == DesiredStatus.DROPPED for other in row.destinations if other.id != one.id):
        told = "It is the last destination: a stream has one at least."
        return told, "Delete the stream, or add another destination first."
    if row.desired_status == DesiredStatus.DISABLED:
        told = "The stream is stopped: its engine drops destinations while it runs."
        return told, "Start the stream first."
    return None


def allowed_actions(row: StreamRow, one: DestinationRow, *, troubled: bool) -> list[str]:
    """The actions to offer: those that would change something. `troubled`: it has an error, so that retrying makes
    sense."""
    pointless = {
        DestinationAction.START: one.desired_status == DesiredStatus.ENABLED,
        DestinationAction.STOP: one.desired_status == DesiredStatus.DISABLED,
        DestinationAction.RETRY: not troubled,
    }
    offered = [action for action in DestinationAction if not pointless.get(action, False)]
    return [str(action) for action in offered if refusal(row, one, action) is None]
