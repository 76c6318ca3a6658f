"""The changes that wait for a destination, and their least age. WAL without changes for it does not count where it is
read, nor do transactions that are open at the source."""

from thalweg.kernel.lifecycle import REPLICATES, ObservedStatus, StreamPhase
from thalweg.live.schemas import ComponentSample, ComponentType, DestinationSample, Sample


def changes_wait(sample: Sample, destination: DestinationSample) -> bool:
    """Whether anything that was captured for it is not applied."""
    own = own_components(sample, destination)
    return apply_holds(own) or untaken(sample, destination, own)


def waiting_seconds(sample: Sample, destination: DestinationSample) -> float | None:
    """The age of the oldest change that is known to wait for it. None: none is known to, or it is paused or copied,
    which is why they wait. Without a backlog nothing is captured for a destination that has failed: its heartbeats wait
    at the source, whatever else does."""
    if destination.status in (ObservedStatus.DISABLED, ObservedStatus.DROPPED):
        return None
    if destination.phase == StreamPhase.INSTANTIATING:
        return None
    gauges = [
        component.gauges
        for component in own_components(sample, destination)
        if component.sub_component == "APPLY COORDINATOR"
    ]
    oldest = max((values.get("low_watermark_lag_us", 0.0) for values in gauges), default=0.0)
    if oldest > 0:
        return oldest / 1e6
    backlog, lag = destination.backlog, destination.lag
    if backlog is None:
        failed = destination.phase == StreamPhase.RETRYING or destination.status == ObservedStatus.ABORTED
        return lag.age_seconds if failed and lag.bytes else None
    return None if destination.phase in REPLICATES or backlog.frames == 0 else lag.age_seconds


def own_components(sample: Sample, destination: DestinationSample) -> list[ComponentSample]:
    return [component for component in sample.components if component.destination_id == destination.destination_id]


def apply_holds(own: list[ComponentSample]) -> bool:
    """Apply holds transactions that have committed at the source."""
    coordinators = [component for component in own if component.sub_component == "APPLY COORDINATOR"]
    names = ("waiting_groups", "low_watermark_lag_us")
    return any(coordinator.gauges.get(name) for coordinator in coordinators for name in names)


def untaken(sample: Sample, destination: DestinationSample, own: list[ComponentSample]) -> bool:
    """Its backlog or the queue before it holds changes. A queue that several read does not tell for whom."""
    if destination.backlog is not None and destination.backlog.frames > 0:
        return True
    alone = sample.components if len(sample.destinations) == 1 else own
    return any(component.gauges.get("depth") for component in alone if component.type is ComponentType.QUEUE)
