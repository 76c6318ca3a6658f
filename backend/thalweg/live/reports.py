"""A stream as one, from what its engines report: the one that captures, and those that receive for a destination.

Each destination is joined by itself, from the report of its sender and that of the engine that receives and applies.
It works when both do, and an error names the engine that has it. live/joining_rules.py says whose state wins.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from thalweg.engine_client.documents import (
    NOT_REPORTED,
    DestinationStatus,
    EngineError,
    EngineInEffect,
    EnginePositions,
    NotReported,
    StreamStatus,
)
from thalweg.kernel.lifecycle import DesiredStatus, ObservedStatus, StreamPhase
from thalweg.kernel.lsn import lsn_of, lsn_text
from thalweg.kernel.sums import known_sum
from thalweg.live.changes_waiting import waiting_seconds
from thalweg.live.joining_rules import (
    OF_APPLY,
    RATES,
    Report,
    counting,
    failing,
    phase_of,
    slowest,
    speaker,
    status_of,
    stream_phase,
)
from thalweg.live.schemas import ComponentSample, ComponentType, LatencySample, Sample

LEAST_MS = 1000
"""Changes that wait for less than a sample's interval arrive in the next one."""


@dataclass(frozen=True)
class Receiver:
    """The engine that receives for a destination; `report` is None until it has reported."""

    engine: str
    desired_status: DesiredStatus
    report: StreamStatus | None
    changed_revision: int
    """Its desired revision that first held the stream as it is now."""

    @property
    def applied(self) -> DestinationStatus | None:
        destinations = self.report.destinations if self.report is not None else []
        return destinations[0] if destinations else None


def joined(capturing: StreamStatus, sender: str, receivers: Mapping[str, Receiver]) -> StreamStatus:
    """`sender` is the capturing engine's name; `receivers` are by destination."""
    destinations = [
        _destination(destination, sender, receivers[destination.id]) if destination.id in receivers else destination
        for destination in capturing.destinations
    ]
    elsewhere = [
        wait.model_copy(update={"destination": id_})
        for id_, receiver in receivers.items()
        if receiver.report is not None
        for wait in receiver.report.waits
    ]
    staying = [destination for destination in destinations if destination.status != ObservedStatus.DROPPED]
    update: dict[str, object] = {
        "destinations": destinations, "waits": [*capturing.waits, *elsewhere],
        "positions": _positions(capturing.positions, destinations),
    }  # fmt: skip
    update |= _of_stream(capturing, staying or destinations)
    return capturing.model_copy(update=update)


def _of_stream(capturing: StreamStatus, destinations: list[DestinationStatus]) -> dict[str, object]:
    """Fields of the stream that follow from its destinations."""
    only = speaker(capturing, destinations)
    if only is not None:
        return {"status": only.status, "phase": only.phase, "error": only.error, "retry_at": only.retry_at}
    return {"phase": stream_phase(capturing, destinations)}


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
                "retrying_transactions": applied.retrying_transactions, "next_retry": applied.next_retry,
                "in_effect": _in_effect(sent, applied, receiver.changed_revision), "effects": [],
            }
        )  # fmt: skip
    else:
        whole = sent.model_copy(update={"in_effect": None, "effects": []})
    desired = receiver.desired_status
    reports = counting(sent, receiver.report, applied, desired)
    if not reports:
        return whole.model_copy(update={"phase": StreamPhase.INITIALIZING, "error": None, "retry_at": None})
    if receiver.report is None and sent.status == ObservedStatus.ENABLED and sent.error is None:
        return whole.model_copy(update={"phase": StreamPhase.INITIALIZING})
    status = status_of(reports, desired)
    error, retry_at = None, None
    if (failed := failing(reports)) is not None:
        engine = f"{sender}, which sends" if failed is sent else f"{receiver.engine}, which receives"
        error, retry_at = _named(engine, failed), failed.retry_at
    return whole.model_copy(
        update={"status": status, "phase": phase_of(reports, status, desired), "error": error, "retry_at": retry_at}
    )


def _in_effect(
    sent: DestinationStatus, applied: DestinationStatus, changed_revision: int
) -> EngineInEffect | NotReported | None:
    """At both engines, from the later position on; the revision is that of the engine that sends."""
    there, here = applied.in_effect, sent.in_effect
    if there is None or here is None or there == NOT_REPORTED or here == NOT_REPORTED:
        return NOT_REPORTED if NOT_REPORTED in (there, here) else None
    if there.revision < changed_revision:
        return None
    later = max(here, there, key=lambda effect: (lsn_of(effect.from_), effect.since))
    return later.model_copy(update={"revision": here.revision})


def _named(engine: str, report: Report) -> EngineError | None:
    return report.error and report.error.model_copy(update={"message": f"{engine}: {report.error.message}"})


def _positions(positions: EnginePositions | None, destinations: list[DestinationStatus]) -> EnginePositions | None:
    """The applied position is the lowest of all destinations."""
    known = [
        lsn_of(destination.positions.applied)
        for destination in destinations
        if destination.positions is not None and destination.status != ObservedStatus.DROPPED
    ]
    if positions is None or not known:
        return positions
    return positions.model_copy(update={"applied": lsn_text(min(known))})


def left_behind(errors: list[EngineError]) -> EngineError | None:
    """Joins the reports of several engines on what they have left behind."""
    if not errors:
        return None
    return errors[0].model_copy(update={"message": " ".join(error.message for error in errors)})


def received_sample(sample: Sample, destination_id: str) -> Sample:
    """A receiving engine's sample with everything named as in the stream's: its queue is the destination's, too."""
    prefix = f"{destination_id}:"
    return sample.model_copy(
        update={
            "components": [_received(component, prefix, destination_id) for component in sample.components],
            "destinations": [
                destination.model_copy(update={"destination_id": destination_id})
                for destination in sample.destinations[:1]
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
    `received_sample` gives it."""
    components, destinations = list(sample.components), []
    statuses = {destination.id: destination for destination in whole.destinations}
    for destination in sample.destinations:
        update: dict[str, object] = {}
        other = received.get(destination.destination_id)
        if other is not None:
            components += other.components
            update |= {name: getattr(other, name) for name in OF_APPLY}
        status = statuses.get(destination.destination_id)
        if status is not None:
            update |= {"status": status.status, "phase": status.phase}
        destinations.append(destination.model_copy(update=update))
    # Several destinations apply the same changes; only a single destination's rates are the stream's.
    rates = {name: getattr(destinations[0], name) for name in RATES} if len(destinations) == 1 else {}
    parked = known_sum([destination.error_queue_transactions for destination in destinations])
    last = slowest(destinations, lambda destination: destination.latency.p99_ms)
    latency = last.latency if last is not None else sample.latency
    return sample.model_copy(
        update={
            "components": components, "destinations": destinations, "status": whole.status, "phase": whole.phase,
            "error_queue_transactions": parked, "latency": latency, **rates,
        }
    )  # fmt: skip


def with_least_latency(sample: Sample) -> Sample:
    """The sample, in which a destination where nothing has arrived is at least as late as what waits for it is old. The
    slowest of the others must not hide it."""
    destinations = [
        destination.model_copy(
            update={"latency": _least_latency(destination.latency, waiting_seconds(sample, destination))}
        )
        for destination in sample.destinations
    ]
    last = slowest(destinations, lambda destination: destination.latency.p99_ms)
    latency = last.latency if last is not None and last.latency.at_least else sample.latency
    return sample.model_copy(update={"destinations": destinations, "latency": latency})


def with_bounds(own: Sample, whole: Sample) -> Sample:
    """The capturing engine's sample with what only the whole sample tells: where a latency is a lower bound."""
    bounds = {
        destination.destination_id: destination.latency
        for destination in whole.destinations
        if destination.latency.at_least
    }
    if not bounds:
        return own
    destinations = [
        destination.model_copy(update={"latency": bounds.get(destination.destination_id, destination.latency)})
        for destination in own.destinations
    ]
    return own.model_copy(update={"destinations": destinations})


def _least_latency(known: LatencySample, waiting: float | None) -> LatencySample:
    last = known.last.p99_ms if known.last is not None else 0.0
    if known.p99_ms is not None or waiting is None or waiting * 1000 <= max(last, LEAST_MS):
        return known
    return LatencySample(p50_ms=None, p99_ms=waiting * 1000, transactions=known.transactions, at_least=True)
