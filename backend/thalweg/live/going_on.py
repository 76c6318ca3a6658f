"""Destinations that go on while others do not: only of what applies it may be said."""

from typing import Any

from thalweg.kernel.lifecycle import BacklogState, ObservedStatus, StreamPhase
from thalweg.live.schemas import DestinationSample, Sample


def applies(one: dict[str, Any]) -> bool:
    """`one` is a destination of the contract's document: it is switched on, has started, and has no error."""
    started = one.get("phase") != StreamPhase.INITIALIZING
    return one["status"] == ObservedStatus.ENABLED and one["error"] is None and started


def that_go_on(observed: dict[str, Any], sample: Sample | None) -> list[dict[str, Any]]:
    """Those that apply, neither park nor stall, and wait for nobody. A full backlog holds up all."""
    destinations: list[dict[str, Any]] = observed.get("destinations", [])
    if any(is_full(one) for one in destinations):
        return []
    stuck = {one.destination_id for one in (*that_park(sample), *that_stall(sample))}
    stuck |= {wait["destination"] for wait in observed.get("waits", [])}
    # A wait of no destination is the capture's.
    return [] if None in stuck else [one for one in destinations if applies(one) and one["id"] not in stuck]


def is_full(one: dict[str, Any]) -> bool:
    return (one.get("backlog") or {}).get("state") == BacklogState.FULL


def that_park(sample: Sample | None) -> list[DestinationSample]:
    destinations = sample.destinations if sample is not None else []
    return [one for one in destinations if one.parks_since is not None and one.status == ObservedStatus.ENABLED]


def that_stall(sample: Sample | None) -> list[DestinationSample]:
    destinations = sample.destinations if sample is not None else []
    return [one for one in destinations if one.stalled_since is not None and one.parks_since is None]
