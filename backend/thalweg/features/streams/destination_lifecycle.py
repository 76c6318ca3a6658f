"""The requests that a destination accepts beside its stream and the stream's other destinations. Its own lifecycle:
kernel/lifecycle.py."""

from thalweg.db.models import DestinationRow, StreamRow
from thalweg.kernel.lifecycle import DesiredStatus, DestinationAction, Refused, next_destination_status


def refusal(row: StreamRow, destination: DestinationRow, action: DestinationAction) -> tuple[str, str] | None:
    """Why not, and the cure. None: it may be done."""
    if row.desired_status == DesiredStatus.DROPPED:
        return "The stream is being deleted.", "Create a new stream."
    try:
        next_destination_status(destination.desired_status, action)
    except Refused as refused:
        return refused.reason, refused.cure
    if action is not DestinationAction.DROP:
        return None
    if all(other.desired_status == DesiredStatus.DROPPED for other in row.destinations if other.id != destination.id):
        message = "It is the last destination: a stream has one at least."
        return message, "Delete the stream, or add another destination first."
    if row.desired_status == DesiredStatus.DISABLED:
        message = "The stream is stopped: its engine drops destinations while it runs."
        return message, "Start the stream first."
    return None


def allowed_actions(row: StreamRow, destination: DestinationRow, *, troubled: bool) -> list[str]:
    """The actions to offer: those that would change something. `troubled`: it has an error, so that retrying makes
    sense."""
    pointless = {
        DestinationAction.START: destination.desired_status == DesiredStatus.ENABLED,
        DestinationAction.STOP: destination.desired_status == DesiredStatus.DISABLED,
        DestinationAction.RETRY: not troubled,
    }
    offered = [action for action in DestinationAction if not pointless.get(action, False)]
    return [str(action) for action in offered if refusal(row, destination, action) is None]
