"""Destinations that go on while others do not: only of what applies it may be said."""

from typing import Any

from thalweg.kernel.lifecycle import BacklogState, ObservedStatus, StreamPhase
from thalweg.kernel.words import listed, size
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


def that_hold_up(observed: dict[str, Any], sample: Sample | None) -> list[dict[str, Any]]:
    """Those whose backlog is full and that apply nothing: until that changes, nothing is captured for anybody. A full
    backlog of one that applies only slows the others down."""
    stuck = {destination.destination_id for destination in (*that_park(sample), *that_stall(sample))}
    return [
        destination
        for destination in observed.get("destinations", [])
        if is_full(destination) and (_rests(destination) or destination["id"] in stuck)
    ]


def _rests(destination: dict[str, Any]) -> bool:
    """Its error alone does not say so: engines report the full backlog itself as one."""
    return destination["status"] != ObservedStatus.ENABLED or destination.get("phase") == StreamPhase.RETRYING


def is_full(destination: dict[str, Any]) -> bool:
    full = (destination.get("backlog") or {}).get("state") == BacklogState.FULL
    return full and destination["status"] != ObservedStatus.DROPPED


def full_in_words(names: list[str], limit_bytes: int, *, stands: bool, of: str = "") -> str:
    """The effect of these destinations' full backlogs. `stands`: they apply nothing. `of`: the stream, where the reader
    does not know it."""
    capture = f"Capture of {of}" if of else "Capture"
    backlogs = "backlog of {0} is" if len(names) == 1 else "backlogs of {0} are"
    full = f"the {backlogs.format(listed(names))} full ({size(limit_bytes)})"
    if stands:
        return f"{capture} waits because {full}: nothing more reaches any destination, and the source keeps WAL."
    they = "it applies" if len(names) == 1 else "they apply"
    return (
        f"{capture} waits time and again because {full}: no destination gets changes faster than {they} them, and the "
        "source keeps WAL."
    )


def makes_room(names: list[str], *, paused: bool, failed: bool) -> str:
    """The first cure of these destinations' full backlogs, as the beginning of a sentence."""
    who = listed(names)
    if paused:
        return f"Resume {who}"
    if failed:
        return f"Remove the cause that has stopped {who}, then retry {'it' if len(names) == 1 else 'them'}"
    return f"Remove what keeps {who} from applying"


def room_in_words(names: list[str], *, paused: bool, failed: bool) -> str:
    """All cures, as a sentence."""
    them = "it" if len(names) == 1 else "them"
    return f"{makes_room(names, paused=paused, failed=failed)}, raise queue_spill_limit_mb, or drop {them}."


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
