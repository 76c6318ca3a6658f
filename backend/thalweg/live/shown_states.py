"""The states that users see, in live samples."""

from thalweg.kernel.lifecycle import ShownState
from thalweg.kernel.states import destination_state, stream_state
from thalweg.live.schemas import DestinationSample, Sample


def with_states(sample: Sample, desired_status: str) -> Sample:
    """`desired_status` is the stream's. Parking and stalls must be known already."""
    destinations = [one.model_copy(update={"state": _state(one, desired_status)}) for one in sample.destinations]
    state = stream_state(sample.phase, [one.state for one in destinations if one.state is not None])
    return sample.model_copy(update={"state": state, "destinations": destinations})


def _state(one: DestinationSample, desired_status: str) -> ShownState:
    return destination_state(
        one.status, one.phase, parks=one.parks_since is not None, stalls=one.stalled_since is not None,
        stream_desired_status=desired_status,
    )  # fmt: skip
