"""Since when a destination has applied nothing and parked what came."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from thalweg.live.schemas import DestinationSample, Sample

GROWN_MIN = 3
"""How often the queue must have grown while nothing was applied: a transaction or two alone are not everything."""
FORGET_AFTER = timedelta(minutes=10)
"""Beyond any pause between two samples of a stream that runs."""


@dataclass
class _Seen:
    at: datetime
    parked: int
    grown: int = 0
    since: datetime | None = None
    """The time of the first growth."""


class Parking:
    """Owner: the collector. It is over when anything is applied again, or the queue is empty. A source that writes
    nothing meanwhile changes nothing."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], _Seen] = {}

    def with_parking(self, sample: Sample) -> Sample:
        """The sample with what is known from those before."""
        destinations = [self._with_parking(sample, destination) for destination in sample.destinations]
        return sample.model_copy(update={"destinations": destinations})

    def forget_before(self, at: datetime) -> None:
        self._seen = {key: seen for key, seen in self._seen.items() if at - seen.at <= FORGET_AFTER}

    def _with_parking(self, sample: Sample, destination: DestinationSample) -> DestinationSample:
        parked = destination.error_queue_transactions
        if parked is None:
            return destination  # nothing applies now
        seen = self._seen.setdefault((sample.stream_id, destination.destination_id), _Seen(sample.at, parked))
        if parked == 0 or destination.lcrs_per_second:
            seen.grown, seen.since = 0, None
        elif parked > seen.parked and destination.lcrs_per_second == 0:
            seen.grown, seen.since = seen.grown + 1, seen.since or sample.at
        seen.at, seen.parked = sample.at, parked
        return destination.model_copy(update={"parks_since": seen.since if seen.grown >= GROWN_MIN else None})
