"""The meaning of a thread's activities on a path: it waits for input, is held back by the next one, or works itself.

Source of the activities: engine/src/telemetry. Three of them depend on the neighbours. The coordinator's `execute` is a
wait for appliers: it is held back. Capture's `network` is a wait for messages while the source's end is ahead; if
capture is not behind, that is only the time between two messages. The sender accounts the thread that fills its window;
its other thread writes to the network and may be blocked there while the first one has nothing to do. And as long as
the receiver works, the sender waits for the receiver and not for the network.
"""

from dataclasses import dataclass

from thalweg.advisor.load import Load
from thalweg.live.schemas import ComponentType

CAPTURE_BEHIND_SECONDS = 1.0
CAPTURE_BEHIND_BYTES = 16 << 20
NANOSECONDS_PER_PERCENT = 1e7
"""Nanoseconds in one percent of a second."""
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


def is_behind(capture: Load, lag_bytes: int | None) -> bool:
    latency = capture.gauge_seconds("latency_us")
    late = latency is not None and latency > CAPTURE_BEHIND_SECONDS
    return late or (lag_bytes is not None and lag_bytes > CAPTURE_BEHIND_BYTES)


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


def sender_occupancy(sender: Load, own: Occupancy, receiver: Load | None) -> Occupancy:
    """The occupancy of the sender as a whole, beside its receiver."""
    idle, held, events = own.idle, own.flow_control, dict(own.events)
    blocked = sender.rates.get("link_network_ns", 0.0) / NANOSECONDS_PER_PERCENT
    unseen = min(idle, max(0.0, blocked - events["NETWORK"]))
    idle, events["NETWORK"] = idle - unseen, events["NETWORK"] + unseen
    if receiver is not None and receiver.time is not None:
        at_work = min(events["NETWORK"], 100 - receiver.time["idle"] - receiver.time["flow_control"])
        held, events["NETWORK"] = held + at_work, events["NETWORK"] - at_work
    return Occupancy(idle, held, events)


def with_lock(occupancy: Occupancy, share: float) -> Occupancy:
    """`share`: percent of its statements' time in which they wait for a lock that somebody else holds. The engine
    cannot tell: to it a statement that waits is one that runs."""
    moved = occupancy.events.get("EXECUTE", 0.0) * share / 100
    events = {**occupancy.events}
    events["EXECUTE"] = events.get("EXECUTE", 0.0) - moved
    events["LOCK"] = events.get("LOCK", 0.0) + moved
    return Occupancy(occupancy.idle, occupancy.flow_control, events)


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
