"""Since when a destination has applied nothing though changes wait for it."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from thalweg.kernel.lifecycle import REPLICATES, ObservedStatus
from thalweg.live.changes_waiting import apply_holds, own_components, untaken
from thalweg.live.schemas import DestinationSample, Sample

STALLS_AFTER = timedelta(seconds=15)
"""A large transaction takes its time: a shorter stop is not worth a word."""
FORGET_AFTER = timedelta(minutes=10)
"""Beyond any pause between two samples of a stream that runs."""


@dataclass
class _Seen:
    at: datetime
    applied: str | None
    since: datetime | None = None


class Stalls:
    """Owner: the collector. A stall ends when anything is applied, the position moves, or nothing waits any more. What
    waits for its retry waits on purpose."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], _Seen] = {}

    def with_stalls(self, sample: Sample, retrying: Collection[str] = ()) -> Sample:
        """The sample with what is known from those before. `retrying`: the destinations where a transaction waits for
        its retry."""
        destinations = [
            self._with_stall(sample, destination, retries=destination.destination_id in retrying)
            for destination in sample.destinations
        ]
        return sample.model_copy(update={"destinations": destinations})

    def forget_before(self, at: datetime) -> None:
        self._seen = {key: seen for key, seen in self._seen.items() if at - seen.at <= FORGET_AFTER}

    def _with_stall(self, sample: Sample, destination: DestinationSample, *, retries: bool) -> DestinationSample:
        key, applied = (sample.stream_id, destination.destination_id), destination.lag.applied
        seen = self._seen.setdefault(key, _Seen(sample.at, applied))
        if (
            destination.status != ObservedStatus.ENABLED
            or destination.phase not in REPLICATES
            or applied != seen.applied
            or retries
        ):
            seen.since = None
        elif (stands := _stands(sample, destination)) is not None:
            seen.since = (seen.since or sample.at) if stands else None
        seen.at, seen.applied = sample.at, applied
        stalls = seen.since is not None and sample.at - seen.since >= STALLS_AFTER
        return destination.model_copy(update={"stalled_since": seen.since if stalls else None})


def _stands(sample: Sample, destination: DestinationSample) -> bool | None:
    """None: not known, as after a restart of its engine."""
    if destination.lcrs_per_second is None:
        return None
    if destination.lcrs_per_second > 0:
        return False
    own = own_components(sample, destination)
    takes = any(part.lcrs_per_second for part in own if part.sub_component == "APPLY READER")
    return apply_holds(own) or (not takes and untaken(sample, destination, own))
