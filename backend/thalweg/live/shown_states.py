"""The states that users see, in live samples."""

from thalweg.kernel.lifecycle import ShownState
from thalweg.kernel.states import destination_state, stream_state
from thalweg.live.schemas import DestinationSample, Sample


def with_states(sample: Sample, desired_status: str) -> Sample:
    """`desired_status` is the stream's. Parking and stalls must be known already."""
    destinations = [
        destination.model_copy(update={"state": _state(destination, desired_status)})
        for destination in sample.destinations
    ]
    state = stream_state(
        sample.phase, [destination.state for destination in destinations if destination.state is not None]
    )
    return sample.model_copy(update={"state": state, "destinations": destinations})


def _state(destination: DestinationSample, desired_status: str) -> ShownState:
    return destination_state(
        destination.status, destination.phase, parks=destination.parks_since is not None,
        stalls=destination.stalled_since is not None, stream_desired_status=desired_status,
    )  # fmt: skip
