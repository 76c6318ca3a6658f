"""Destinations that go on while others do not: only of what applies it may be said."""

from typing import Any

from thalweg.kernel.lifecycle import BacklogState, ObservedStatus, StreamPhase
from thalweg.kernel.words import listed
from thalweg.live.schemas import DestinationSample, Sample


def applies(destination: dict[str, Any]) -> bool:
    """`destination` is one of the contract's document. It must be switched on, have started, and have no error."""
    started = destination.get("phase") != StreamPhase.INITIALIZING
    return destination["status"] == ObservedStatus.ENABLED and destination["error"] is None and started


def that_go_on(observed: dict[str, Any], sample: Sample | None) -> list[dict[str, Any]]:
    """Those that apply, neither park nor stall, and wait for nobody. A full backlog holds up all."""
    destinations: list[dict[str, Any]] = observed.get("destinations", [])
    if any(is_full(destination) for destination in destinations):
        return []
    stuck = {destination.destination_id for destination in (*that_park(sample), *that_stall(sample))}
    stuck |= {wait["destination"] for wait in observed.get("waits", [])}
    # A wait of no destination is the capture's.
    return (
        []
        if None in stuck
        else [destination for destination in destinations if applies(destination) and destination["id"] not in stuck]
    )


def is_full(destination: dict[str, Any]) -> bool:
    return (destination.get("backlog") or {}).get("state") == BacklogState.FULL


def makes_room(names: list[str], *, paused: bool, failed: bool) -> str:
    """The first cure of these destinations' full backlogs, as the beginning of a sentence."""
    who = listed(names)
    if paused:
        return f"Resume {who}"
    if failed:
        return f"Remove the cause that has stopped {who}, then retry {'it' if len(names) == 1 else 'them'}"
    return f"Remove what keeps {who} from applying"


def that_park(sample: Sample | None) -> list[DestinationSample]:
    destinations = sample.destinations if sample is not None else []
    return [
        destination
        for destination in destinations
        if destination.parks_since is not None and destination.status == ObservedStatus.ENABLED
    ]


def that_stall(sample: Sample | None) -> list[DestinationSample]:
    destinations = sample.destinations if sample is not None else []
    return [
        destination
        for destination in destinations
        if destination.stalled_since is not None and destination.parks_since is None
    ]
