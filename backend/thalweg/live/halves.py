"""A destination over two engines as one: the sum of what its sending and its receiving half report.

The sending half captures. The receiving half copies, applies and keeps the progress; where the capture is not shared it
makes slot and publication too. What people ask is whether it works: it does when both halves do, and what keeps it
from working names its half.
"""

from thalweg.engine_client.documents import EnginePositions, StreamStatus
from thalweg.engine_client.error_codes import ErrorCode
from thalweg.live.positions import lsn_of, lsn_text
from thalweg.live.schemas import Backlog, ComponentSample, ComponentType, HalfRole, Sample

MODE = "PROPAGATION"
REPLICATES = ("CATCHING UP", "REPLICATING")
# The phase of the whole is the earliest of its halves' in this order: that is the one that people wait for.
PHASES = (
    "RETRYING", "INSTANTIATING", "INITIALIZING", "DROPPING", "DRAINING", "STOPPED", "CATCHING UP", "REPLICATING",
)  # fmt: skip
Names = dict[HalfRole, str]


def joined_status(
    sending: StreamStatus | None, receiving: StreamStatus | None, desired_status: str, names: Names
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
    if not only_waits(sending, receiving):
        told.insert(0, (HalfRole.SENDING, sending))
    halves = [half for _, half in told]
    status = _status([sending, receiving], desired_status)
    phase = _phase(halves, status, desired_status)
    # An error that has ended a half comes before one that it tries to overcome.
    failed = sorted((item for item in told if item[1].error), key=lambda item: item[1].status != "ABORTED")
    whole = receiving.model_copy(
        update={
            "status": status, "phase": phase, "mode": MODE, "positions": _positions(sending, receiving),
            "waits": [*sending.waits, *receiving.waits],
        }
    )  # fmt: skip
    if not failed:
        return whole.model_copy(update={"error": None, "retry_at": None})
    role, source = failed[0]
    return _named(whole, role, names, source)


def only_waits(sending: StreamStatus, receiving: StreamStatus | None) -> bool:
    """The sending half tries again until the receiving half has made slot and copy: that is no trouble of its own."""
    waits = sending.error is not None and sending.error.code == ErrorCode.LINK_REFUSED and sending.status == "ENABLED"
    return waits and (receiving is None or receiving.phase not in REPLICATES)


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


def _named(whole: StreamStatus, role: HalfRole, names: Names, source: StreamStatus) -> StreamStatus:
    error = source.error
    if error is not None:
        message = f"The {role.value.lower()} half on {names[role]}: {error.message}"
        error = error.model_copy(update={"message": message})
    return whole.model_copy(update={"error": error, "retry_at": source.retry_at, "mode": MODE})


def _positions(sending: StreamStatus, receiving: StreamStatus) -> EnginePositions | None:
    if sending.positions is None or receiving.positions is None:
        return receiving.positions
    return sending.positions.model_copy(update={"applied": receiving.positions.applied})


def received_components(sample: Sample, destination_id: str | None) -> list[ComponentSample]:
    """Both halves have a queue, and every branch its apply: ids stay unique in the stream. `destination_id` is None
    where the stream has no list."""
    prefix = f"{destination_id}:" if destination_id else ""
    return [
        component.model_copy(
            update={
                "id": prefix + (f"apply-{component.id}" if component.type is ComponentType.QUEUE else component.id),
                "destination_id": destination_id,
            }
        )
        for component in sample.components
    ]


def joined_sample(sending: Sample | None, receiving: Sample | None, whole: StreamStatus) -> Sample | None:
    """Rates and latency are those of apply; components those of both, in the order of the path."""
    base = receiving or sending
    if base is None:
        return None
    components = list(sending.components) if sending else []
    if receiving is not None:
        components += received_components(receiving, None)
    joined = base.model_copy(update={"components": components, "status": whole.status, "phase": whole.phase})
    if receiving is None:
        return joined
    return joined.model_copy(update={"backlog": backlog_behind(receiving.backlog, whole.positions)})


def backlog_behind(receiving: Backlog, positions: EnginePositions | None) -> Backlog:
    """How far the source is ahead knows the half that is connected to it; how fast it shrinks, the one that applies."""
    if positions is None:
        return receiving
    done = max(lsn_of(positions.applied), lsn_of(positions.confirmed))
    if done == 0:
        return receiving
    behind = max(0, lsn_of(positions.source_end) - done)
    if behind == 0:
        return Backlog(bytes=0, seconds=0.0, applied=lsn_text(done))
    rate = receiving.bytes / receiving.seconds if receiving.bytes and receiving.seconds else None
    return Backlog(bytes=behind, seconds=round(behind / rate, 3) if rate else None, applied=lsn_text(done))
