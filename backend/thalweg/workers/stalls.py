"""Since when a destination has applied nothing though changes wait for it."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from thalweg.kernel.lifecycle import REPLICATES, ObservedStatus, StreamPhase
from thalweg.kernel.lsn import lsn_of
from thalweg.live.changes_waiting import apply_holds, own_components, untaken
from thalweg.live.schemas import DestinationSample, Sample

STALLS_AFTER = timedelta(seconds=15)
"""A large transaction takes its time: a shorter stop is not worth a word."""
FORGET_AFTER = timedelta(minutes=10)
"""Beyond any pause between two samples of a stream that runs."""


CARRIES_OVER = (*REPLICATES, StreamPhase.DRAINING, StreamPhase.INITIALIZING, StreamPhase.UNKNOWN)
"""The phases of a destination that has drained, or whose consumer starts again, as after a change of rules."""


@dataclass
class _Seen:
    at: datetime
    applied: int = 0
    """The furthest position: one that starts again may begin at an earlier one."""
    since: datetime | None = None
    rests_since: datetime | None = None
    """Nothing is known to wait any more: over, or a new consumer has not read what waits yet."""


class Stalls:
    """Owner: the collector. A stall ends when anything is applied, the position moves on, or nothing has waited for as
    long as a stall takes: a restart of the consumer alone ends none. A transaction that waits for its retry waits on
    purpose."""

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
        key, applied = (sample.stream_id, destination.destination_id), lsn_of(destination.lag.applied or "")
        seen = self._seen.setdefault(key, _Seen(sample.at, applied))
        runs = destination.status == ObservedStatus.ENABLED and destination.phase in REPLICATES
        carries = destination.status == ObservedStatus.ENABLED and destination.phase in CARRIES_OVER
        if (
            not carries
            or applied > seen.applied
            or destination.lcrs_per_second
            or destination.lag.bytes == 0
            or retries
        ):
            seen.since = seen.rests_since = None
        elif runs and (stands := _stands(sample, destination)) is not None:
            _note(seen, sample.at, stands=stands)
        seen.at, seen.applied = sample.at, max(seen.applied, applied)
        stalls = runs and seen.since is not None and sample.at - seen.since >= STALLS_AFTER
        return destination.model_copy(update={"stalled_since": seen.since if stalls else None})


def _note(seen: _Seen, at: datetime, *, stands: bool) -> None:
    if stands:
        seen.since, seen.rests_since = seen.since or at, None
        return
    seen.rests_since = seen.rests_since or at
    if at - seen.rests_since >= STALLS_AFTER:
        seen.since = None


def _stands(sample: Sample, destination: DestinationSample) -> bool | None:
    """None: not known, as after a restart of its engine."""
    if destination.lcrs_per_second is None:
        return None
    own = own_components(sample, destination)
    takes = any(part.lcrs_per_second for part in own if part.sub_component == "APPLY READER")
    return apply_holds(own) or (not takes and untaken(sample, destination, own))
