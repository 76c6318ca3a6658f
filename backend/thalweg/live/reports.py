"""A stream as one, from what its engines report: the one that captures, and those that receive for a destination.

Each destination is joined by itself: what its sender says, and what the engine says that receives and applies. Whether
it works is what people ask: it does when both do, and an error names the engine that has it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from thalweg.engine_client.documents import DestinationStatus, EngineError, EnginePositions, StreamStatus
from thalweg.kernel.lsn import lsn_of, lsn_text
from thalweg.live.schemas import ComponentSample, ComponentType, DestinationSample, LatencySample, Sample

LINK_REFUSED = "link_refused"
STARTING = ("INITIALIZING", "INSTANTIATING")
EARLY = (*STARTING, "CATCHING UP")
"""A stream is no further than the least far of its destinations that work."""
PHASES = ("RETRYING", "INSTANTIATING", "INITIALIZING", "DROPPING", "DRAINING", "STOPPED", "CATCHING UP", "REPLICATING")
"""The phase of a destination is the earliest of its engines' in this order: that is the one that people wait for."""
RATES = ("lcrs_per_second", "transactions_per_second", "bytes_per_second")
OF_APPLY = (*RATES, "latency", "error_queue_transactions")
Part = StreamStatus | DestinationStatus


@dataclass(frozen=True)
class Receiver:
    """The engine that receives for a destination; `report` is None until it has reported."""

    engine: str
    desired_status: str
    report: StreamStatus | None

    @property
    def applied(self) -> DestinationStatus | None:
        destinations = self.report.destinations if self.report is not None else []
        return destinations[0] if destinations else None


def joined(capturing: StreamStatus, sender: str, receivers: Mapping[str, Receiver]) -> StreamStatus:
    """`sender` is the capturing engine's name; `receivers` are by destination."""
    destinations = [
        _destination(one, sender, receivers[one.id]) if one.id in receivers else one for one in capturing.destinations
    ]
    elsewhere = [
        wait.model_copy(update={"destination": id_})
        for id_, receiver in receivers.items()
        if receiver.report is not None
        for wait in receiver.report.waits
    ]
    update: dict[str, object] = {
        "destinations": destinations, "waits": [*capturing.waits, *elsewhere],
        "positions": _positions(capturing.positions, destinations),
    }  # fmt: skip
    update |= _common(capturing, [one for one in destinations if one.status != "DROPPED"] or destinations)
    return capturing.model_copy(update=update)


def _common(capturing: StreamStatus, destinations: list[DestinationStatus]) -> dict[str, object]:
    """Fields of the stream that follow from its destinations. With a destination without a backlog, the stream runs,
    fails and stops; the trouble of an only destination is always the stream's."""
    if len(destinations) == 1:
        (only,) = destinations
        well = capturing.status == "ENABLED" and capturing.error is None
        troubled = only.status == "ABORTED" or (only.status == "ENABLED" and only.error is not None)
        if not only.has_backlog or (well and troubled):
            return {"status": only.status, "phase": only.phase, "error": only.error, "retry_at": only.retry_at}
    if capturing.status != "ENABLED" or capturing.phase not in ("CATCHING UP", "REPLICATING"):
        return {}
    phases = {one.phase for one in destinations if one.status == "ENABLED" and one.error is None}
    return {"phase": next((phase for phase in EARLY if phase in phases), capturing.phase)}


def _destination(sent: DestinationStatus, sender: str, receiver: Receiver) -> DestinationStatus:
    """Joins the reports on a destination that another engine applies."""
    applied = receiver.applied
    if applied is not None:
        positions = sent.positions
        if positions is not None and applied.positions is not None:
            positions = positions.model_copy(update={"applied": applied.positions.applied})
        whole = sent.model_copy(
            update={
                "positions": positions, "instantiation": applied.instantiation, "tables": applied.tables,
                "counted_since": applied.counted_since,
            }
        )  # fmt: skip
    else:
        whole = sent
    told: list[tuple[str, Part]] = []
    if not (_waits(sent) and (receiver.report is None or _starts(receiver.report))):
        told.append((f"{sender}, which sends", sent))
    received = [part for part in (receiver.report, applied) if part is not None]
    told += [(f"{receiver.engine}, which receives", part) for part in received if not (_waits(part) and _starts(sent))]
    if receiver.desired_status == "DROPPED":
        told = _dropping(sent, told)
    if not told:
        return whole.model_copy(update={"phase": "INITIALIZING", "error": None, "retry_at": None})
    if receiver.report is None and sent.status == "ENABLED" and sent.error is None:
        return whole.model_copy(update={"phase": "INITIALIZING"})
    status = _status([part for _, part in told], receiver.desired_status)
    phase = _phase([part for _, part in told], status, receiver.desired_status)
    # An error that has ended something comes before one that an engine tries to overcome.
    failed = sorted((one for one in told if one[1].error), key=lambda one: one[1].status != "ABORTED")
    error, retry_at = (_named(*failed[0]), failed[0][1].retry_at) if failed else (None, None)
    return whole.model_copy(update={"status": status, "phase": phase, "error": error, "retry_at": retry_at})


def _dropping(sent: DestinationStatus, told: list[tuple[str, Part]]) -> list[tuple[str, Part]]:
    """The capturing engine drops first; then it is the other's word that counts."""
    others = [one for one in told if one[1] is not sent]
    return others or told if sent.status == "DROPPED" else [one for one in told if one[1] is sent]


def _waits(part: Part) -> bool:
    """At a start the one that receives waits for the slot and the one that sends for the copy: that is no trouble while
    the other is at it."""
    return part.status == "ENABLED" and part.error is not None and part.error.code == LINK_REFUSED


def _starts(part: Part) -> bool:
    return part.phase in STARTING or _waits(part)


def _status(parts: list[Part], desired_status: str) -> str:
    statuses = [part.status for part in parts]
    if "ABORTED" in statuses:
        return "ABORTED"
    return next((status for status in statuses if status != desired_status), desired_status)


def _phase(parts: list[Part], status: str, desired_status: str) -> str:
    phases = {part.phase for part in parts}
    phase = next((phase for phase in PHASES if phase in phases), "UNKNOWN")
    if status == "ABORTED":
        return "STOPPED"
    if phase == "STOPPED" and phases != {"STOPPED"}:
        return "DRAINING" if desired_status == "DISABLED" else "INITIALIZING"
    return phase


def _named(engine: str, part: Part) -> EngineError | None:
    return part.error and part.error.model_copy(update={"message": f"{engine}: {part.error.message}"})


def _positions(positions: EnginePositions | None, destinations: list[DestinationStatus]) -> EnginePositions | None:
    """The applied position is the lowest of all destinations."""
    known = [
        lsn_of(one.positions.applied) for one in destinations if one.positions is not None and one.status != "DROPPED"
    ]
    if positions is None or not known:
        return positions
    return positions.model_copy(update={"applied": lsn_text(min(known))})


def left_behind(errors: list[EngineError]) -> EngineError | None:
    """Joins the reports of several engines on what they have left behind."""
    if not errors:
        return None
    return errors[0].model_copy(update={"message": " ".join(error.message for error in errors)})


def received_part(sample: Sample, destination_id: str) -> Sample:
    """A receiving engine's sample with everything named as in the stream's: its queue is the destination's, too."""
    prefix = f"{destination_id}:"
    return sample.model_copy(
        update={
            "components": [_received(component, prefix, destination_id) for component in sample.components],
            "destinations": [
                one.model_copy(update={"destination_id": destination_id}) for one in sample.destinations[:1]
            ],
        }
    )


def _received(component: ComponentSample, prefix: str, destination_id: str) -> ComponentSample:
    name = component.id.rsplit(":", 1)[-1]
    shared = component.destination_id is None and component.type is ComponentType.QUEUE
    update = {"id": f"{prefix}apply-{name}" if shared else prefix + name, "destination_id": destination_id}
    return component.model_copy(update=update)


def joined_sample(sample: Sample, whole: StreamStatus, received: Mapping[str, Sample]) -> Sample:
    """`sample` is the capturing engine's; `received` has the latest of each destination that another one applies, as
    `received_part` gives it."""
    components, destinations = list(sample.components), []
    phases = {one.id: one for one in whole.destinations}
    for one in sample.destinations:
        share = one
        other = received.get(one.destination_id)
        if other is not None:
            components += other.components
            share = one.model_copy(update={name: getattr(other, name) for name in OF_APPLY})
        seen = phases.get(one.destination_id)
        if seen is not None:
            share = share.model_copy(update={"status": seen.status, "phase": seen.phase})
        destinations.append(share)
    # What several apply is the same changes again and again; what one applies is what the stream does.
    rates = {name: getattr(destinations[0], name) for name in RATES} if len(destinations) == 1 else {}
    parked = sum(one.error_queue_transactions for one in destinations)
    return sample.model_copy(
        update={
            "components": components, "destinations": destinations, "status": whole.status, "phase": whole.phase,
            "error_queue_transactions": parked, "latency": _slowest(destinations, sample.latency), **rates,
        }
    )  # fmt: skip


def _slowest(destinations: Iterable[DestinationSample], default: LatencySample) -> LatencySample:
    """Histograms of several engines are not at hand here: the slowest destination's stands for all."""
    known = [one.latency for one in destinations if one.latency.p99_ms is not None]
    return max(known, key=lambda latency: latency.p99_ms or 0.0, default=default)
