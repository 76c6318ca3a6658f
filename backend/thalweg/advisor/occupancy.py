"""What a thread's activities mean on a path: waiting for input, held back by what follows, or its own doing.

Source of the activities: engine/src/telemetry. Two of them need the neighbours to be understood. The coordinator's
`execute` is waiting for appliers: it is held back. Capture's `network` is waiting for messages while the source's end
is ahead; where capture is not behind, that is no more than the time between two messages.
"""

from dataclasses import dataclass

from thalweg.advisor.load import Load
from thalweg.live.schemas import ComponentType

CAPTURE_BEHIND_SECONDS = 1.0
CAPTURE_BEHIND_BYTES = 16 << 20
COORDINATOR = "APPLY COORDINATOR"
EVENTS = {
    "busy": "CPU", "network": "NETWORK", "execute": "EXECUTE", "commit": "COMMIT", "dependency": "DEPENDENCY",
    "commit_order": "COMMIT ORDER", "lock": "LOCK", "disk": "DISK",
}  # fmt: skip
SOURCE = "SOURCE"
"""Waiting for the source to decode and send what it has."""


@dataclass(frozen=True)
class Occupancy:
    """Percent of the span; idle, flow control and events sum to 100."""

    idle: float
    flow_control: float
    events: dict[str, float]

    @property
    def top(self) -> tuple[str, float]:
        """The event with most time. Ties go to the first in EVENTS."""
        return max(self.events.items(), key=lambda item: item[1])


def is_behind(capture: Load, backlog_bytes: int | None) -> bool:
    latency = capture.gauge_seconds("latency_us")
    late = latency is not None and latency > CAPTURE_BEHIND_SECONDS
    return late or (backlog_bytes is not None and backlog_bytes > CAPTURE_BEHIND_BYTES)


def occupancy_of(load: Load, capture_behind: bool) -> Occupancy | None:
    """None when nothing was accounted: queues, and what has no rate yet."""
    if load.time is None:
        return None
    time = dict(load.time)
    idle, held = time.pop("idle"), time.pop("flow_control")
    events = {EVENTS[name]: share for name, share in time.items()}
    if load.last.sub_component == COORDINATOR:
        held += events.pop("EXECUTE")
    if load.last.type is ComponentType.CAPTURE:
        waits = events.pop("NETWORK")
        if capture_behind:
            events[SOURCE] = waits
        else:
            idle += waits
    return Occupancy(idle, held, events)


def mean_occupancy(occupancies: list[Occupancy]) -> Occupancy | None:
    """Normalised per thread."""
    if not occupancies:
        return None
    count = len(occupancies)
    events: dict[str, float] = {}
    for occupancy in occupancies:
        for name, share in occupancy.events.items():
            events[name] = events.get(name, 0.0) + share / count
    return Occupancy(
        sum(item.idle for item in occupancies) / count, sum(item.flow_control for item in occupancies) / count, events
    )
