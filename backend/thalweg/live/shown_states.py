"""The states that users see, in live samples."""

from thalweg.kernel.lifecycle import BacklogState, ObservedStatus, ShownState, StreamPhase
from thalweg.kernel.states import destination_state, stream_state
from thalweg.live.schemas import DestinationSample, Sample


def with_states(sample: Sample, desired_status: str) -> Sample:
    """`desired_status` is the stream's. Parking and stalls must be known already."""
    held_up = any(map(_holds_up, sample.destinations))
    destinations = [
        destination.model_copy(update={"state": _state(destination, desired_status, held_up=held_up)})
        for destination in sample.destinations
    ]
    state = stream_state(
        sample.phase, [destination.state for destination in destinations if destination.state is not None]
    )
    return sample.model_copy(update={"state": state, "destinations": destinations})


def _holds_up(destination: DestinationSample) -> bool:
    """The same question as going_on.that_hold_up answers for what engines report."""
    if destination.backlog is None or destination.backlog.state != BacklogState.FULL:
        return False
    stuck = destination.parks_since is not None or destination.stalled_since is not None
    rests = destination.status != ObservedStatus.ENABLED or destination.phase == StreamPhase.RETRYING
    return destination.status != ObservedStatus.DROPPED and (rests or stuck)


def _state(destination: DestinationSample, desired_status: str, *, held_up: bool) -> ShownState:
    return destination_state(
        destination.status, destination.phase, parks=destination.parks_since is not None,
        stalls=destination.stalled_since is not None or held_up, stream_desired_status=desired_status,
    )  # fmt: skip
