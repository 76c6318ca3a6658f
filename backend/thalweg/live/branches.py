"""A stream's destinations, each by itself: branches of a fan-out, or the one destination of a stream without a list."""

from collections.abc import Mapping

from thalweg.engine_client.documents import (
    DestinationPositions,
    DestinationStatus,
    EngineError,
    EnginePositions,
    StreamStatus,
)
from thalweg.live.halves import Names, joined_status, only_waits, received_components
from thalweg.live.schemas import DestinationSample, LatencySample, Sample

# The whole is no further than the least far of its destinations that work.
EARLY = ("INITIALIZING", "INSTANTIATING", "CATCHING UP")
RATES = ("lcrs_per_second", "transactions_per_second", "bytes_per_second")
OF_APPLY = (*RATES, "latency", "error_queue_transactions")


def only_destination(whole: StreamStatus, destination_id: str) -> DestinationStatus:
    """Of a stream without a list: its one destination is doing what the stream does."""
    positions = whole.positions
    return DestinationStatus(
        id=destination_id, status=whole.status, phase=whole.phase, mode=whole.mode, error=whole.error,
        retry_at=whole.retry_at, backlog=None, instantiation=whole.instantiation, counted_since=whole.counted_since,
        tables=whole.tables,
        positions=DestinationPositions(applied=positions.applied, confirmed=positions.confirmed) if positions else None,
    )  # fmt: skip


def joined_branch(
    branch: DestinationStatus, stream: StreamStatus, receiving: StreamStatus | None, desired_status: str, names: Names
) -> DestinationStatus:
    """A branch that another engine applies. `stream` is the capture engine's report, `receiving` the other's."""
    sending = StreamStatus(
        id=stream.id, status=branch.status, phase=branch.phase, error=branch.error, retry_at=branch.retry_at,
        instantiation=None, tables=[], positions=_positions(branch, stream),
    )  # fmt: skip
    whole = joined_status(sending, receiving, desired_status, names)
    if whole is None:
        if not only_waits(sending, receiving):
            return branch
        return branch.model_copy(update={"phase": "INITIALIZING", "error": None, "retry_at": None})
    update = {"status": whole.status, "phase": whole.phase, "error": whole.error, "retry_at": whole.retry_at}
    if receiving is None:
        return branch.model_copy(update=update)
    positions = branch.positions
    if positions is not None and receiving.positions is not None:
        positions = positions.model_copy(update={"applied": receiving.positions.applied})
    more = {
        "positions": positions, "instantiation": receiving.instantiation, "tables": receiving.tables,
        "counted_since": receiving.counted_since,
    }  # fmt: skip
    return branch.model_copy(update={**update, **more})


def _positions(branch: DestinationStatus, stream: StreamStatus) -> EnginePositions | None:
    if branch.positions is None or stream.positions is None:
        return None
    update = {"applied": branch.positions.applied, "confirmed": branch.positions.confirmed}
    return stream.positions.model_copy(update=update)


def whole_of(
    stream: StreamStatus, branches: list[DestinationStatus], received: Mapping[str, StreamStatus]
) -> StreamStatus:
    """The fan-out with its joined branches: those that another engine applies, and has `received`, may be behind what
    this one knows."""
    elsewhere = [
        wait.model_copy(update={"destination": id_}) for id_, status in received.items() for wait in status.waits
    ]
    update: dict[str, object] = {"destinations": branches, "waits": [*stream.waits, *elsewhere]}
    if stream.status == "ENABLED" and stream.phase in ("CATCHING UP", "REPLICATING"):
        phases = {one.phase for one in branches if one.status == "ENABLED" and one.error is None}
        update["phase"] = next((phase for phase in EARLY if phase in phases), stream.phase)
    return stream.model_copy(update=update)


def left_behind(errors: list[EngineError]) -> EngineError | None:
    """What several engines have left behind, as one."""
    if not errors:
        return None
    return errors[0].model_copy(update={"message": " ".join(error.message for error in errors)})


def with_only_destination(sample: Sample, destination_id: str) -> Sample:
    """What is the stream's is its one destination's. Its components name none: there is no other."""
    own = DestinationSample(destination_id=destination_id, spilled=None, **_share(sample))
    return sample.model_copy(update={"destinations": [own]})


def _share(sample: Sample) -> dict[str, object]:
    names = DestinationSample.model_fields.keys() - {"destination_id", "spilled", "parks_since"}
    return {name: getattr(sample, name) for name in names}


def joined_fan_out(sample: Sample, whole: StreamStatus, received: Mapping[str, Sample]) -> Sample:
    """`received` has the latest of each destination that another engine applies."""
    components, destinations = list(sample.components), []
    phases = {one.id: one for one in whole.destinations}
    for one in sample.destinations:
        joined = one
        other = received.get(one.destination_id)
        if other is not None:
            components += received_components(other, one.destination_id)
            joined = one.model_copy(update={name: getattr(other, name) for name in OF_APPLY})
        seen = phases.get(one.destination_id)
        if seen is not None:
            joined = joined.model_copy(update={"status": seen.status, "phase": seen.phase})
        destinations.append(joined)
    # Of a list with one destination, what is applied is what that one applies.
    rates = {name: getattr(destinations[0], name) for name in RATES} if len(destinations) == 1 else {}
    parked = sum(one.error_queue_transactions for one in destinations)
    return sample.model_copy(
        update={
            "components": components, "destinations": destinations, "status": whole.status, "phase": whole.phase,
            "error_queue_transactions": parked, "latency": _slowest(destinations, sample.latency), **rates,
        }
    )  # fmt: skip


def _slowest(destinations: list[DestinationSample], default: LatencySample) -> LatencySample:
    """Histograms of several engines are not at hand here: the slowest destination's stands for all."""
    known = [one.latency for one in destinations if one.latency.p99_ms is not None]
    return max(known, key=lambda latency: latency.p99_ms or 0.0, default=default)
