"""A stream over two engines as one: the sum of what its sending and its receiving half report.

The sending half captures; the receiving half makes slot and publication, copies, applies and keeps the progress. What
people ask is whether the stream works: it does when both halves do, and what keeps it from working names its half.
"""

from typing import Any

from thalweg.engine_client.documents import EnginePositions, StreamStatus
from thalweg.live.positions import lsn_of
from thalweg.live.schemas import Backlog, ComponentSample, ComponentType, HalfRole, Sample

MODE = "PROPAGATION"
PEER_NOT_READY = "peer_not_ready"
REPLICATES = ("CATCHING UP", "REPLICATING")
# The phase of the whole is the earliest of its halves' in this order: that is the one that people wait for.
PHASES = (
    "RETRYING", "INSTANTIATING", "INITIALIZING", "DROPPING", "DRAINING", "STOPPED", "CATCHING UP", "REPLICATING",
)  # fmt: skip


def joined_status(
    sending: StreamStatus | None, receiving: StreamStatus | None, desired_status: str, names: dict[HalfRole, str]
) -> StreamStatus | None:
    """None while a half has not reported. `names` are the engines'. In a deletion the sending half leads until it is
    gone (None or DROPPED), then the receiving half."""
    if desired_status == "DROPPED":
        gone = sending is None or sending.status == "DROPPED"
        role, leading = (HalfRole.RECEIVING, receiving) if gone else (HalfRole.SENDING, sending)
        return None if leading is None else _named(leading, role, names, leading)
    if sending is None or receiving is None:
        return None
    told: list[tuple[HalfRole, StreamStatus]] = [(HalfRole.RECEIVING, receiving)]
    if not _only_waits(sending, receiving):
        told.insert(0, (HalfRole.SENDING, sending))
    halves = [half for _, half in told]
    status = _status([sending, receiving], desired_status)
    phase = _phase(halves, status, desired_status)
    # An error that has ended a half comes before one that it tries to overcome.
    failed = sorted((item for item in told if item[1].error), key=lambda item: item[1].status != "ABORTED")
    whole = receiving.model_copy(
        update={"status": status, "phase": phase, "mode": MODE, "positions": _positions(sending, receiving)}
    )
    if not failed:
        return whole.model_copy(update={"error": None, "retry_at": None})
    role, source = failed[0]
    return _named(whole, role, names, source)


def _only_waits(sending: StreamStatus, receiving: StreamStatus) -> bool:
    """The sending half tries again until the receiving half has made slot and copy: that is no trouble of its own."""
    waits = sending.error is not None and sending.error.code == PEER_NOT_READY and sending.status == "ENABLED"
    return waits and receiving.phase not in REPLICATES


def _status(halves: list[StreamStatus], desired_status: str) -> str:
    statuses = [half.status for half in halves]
    if "ABORTED" in statuses:
        return "ABORTED"
    return next((status for status in statuses if status != desired_status), desired_status)


def _phase(halves: list[StreamStatus], status: str, desired_status: str) -> str:
    phases = {half.phase for half in halves}
    phase = next((phase for phase in PHASES if phase in phases), "UNKNOWN")
    if status == "ABORTED":
        return "STOPPED"
    if phase == "STOPPED" and phases != {"STOPPED"}:
        return "DRAINING" if desired_status == "DISABLED" else "INITIALIZING"
    return phase


def _named(whole: StreamStatus, role: HalfRole, names: dict[HalfRole, str], source: StreamStatus) -> StreamStatus:
    error = source.error
    if error is not None:
        message = f"The {role.value.lower()} half on {names[role]}: {error.message}"
        error = error.model_copy(update={"message": message})
    return whole.model_copy(update={"error": error, "retry_at": source.retry_at, "mode": MODE})


def _positions(sending: StreamStatus, receiving: StreamStatus) -> EnginePositions | None:
    if sending.positions is None or receiving.positions is None:
        return receiving.positions
    return sending.positions.model_copy(update={"applied": receiving.positions.applied})


def component_of_half(component: ComponentSample, role: HalfRole) -> ComponentSample:
    """Both halves have a queue: ids stay unique in the stream."""
    if role is HalfRole.RECEIVING and component.type is ComponentType.QUEUE:
        return component.model_copy(update={"id": f"apply-{component.id}"})
    return component


def joined_sample(sending: Sample | None, receiving: Sample | None, whole: StreamStatus) -> Sample | None:
    """Rates and latency are those of apply; components those of both, in the order of the path."""
    base = receiving or sending
    if base is None:
        return None
    components = [component_of_half(part, HalfRole.SENDING) for part in sending.components] if sending else []
    if receiving is not None:
        components += [component_of_half(part, HalfRole.RECEIVING) for part in receiving.components]
    update: dict[str, Any] = {"components": components, "status": whole.status, "phase": whole.phase}
    if receiving is not None:
        update["backlog"] = _backlog(receiving.backlog, whole.positions)
    return base.model_copy(update=update)


def _backlog(receiving: Backlog, positions: EnginePositions | None) -> Backlog:
    """How far the source is ahead knows the half that is connected to it; how fast it shrinks, the one that applies."""
    if positions is None:
        return receiving
    done = max(lsn_of(positions.applied), lsn_of(positions.confirmed))
    if done == 0:
        return receiving
    behind = max(0, lsn_of(positions.source_end) - done)
    if behind == 0:
        return Backlog(bytes=0, seconds=0.0)
    rate = receiving.bytes / receiving.seconds if receiving.bytes and receiving.seconds else None
    return Backlog(bytes=behind, seconds=round(behind / rate, 3) if rate else None)
