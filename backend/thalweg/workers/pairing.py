"""Puts the reports of a stream's two engines together. A stream on one engine passes through as it is."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.models import EngineRow, OperationRow, StreamRow
from thalweg.db.operations import OperationKind, unfinished_operations
from thalweg.engine_client.documents import StreamStatus, observed_document
from thalweg.live.halves import component_of_half, joined_sample, joined_status
from thalweg.live.schemas import HalfRole, Sample

# An unchanged observation is written again this often, so that its age says whether the collector lives.
REWRITE_AFTER = timedelta(seconds=5)
SAMPLE_FRESH = timedelta(seconds=10)


@dataclass(frozen=True)
class Observation:
    """One stream as a whole. `asked_at` is when the older of its halves was asked."""

    status: StreamStatus
    asked_at: datetime


@dataclass
class HalfSamples:
    """The last sample of each half. Owner: the collector; shared by its loops, which run in one event loop."""

    last: dict[tuple[str, HalfRole], tuple[Sample, datetime]] = field(default_factory=dict)

    def put(self, role: HalfRole, sample: Sample, at: datetime) -> None:
        self.last[sample.stream_id, role] = (sample, at)

    def get(self, stream_id: str, role: HalfRole, at: datetime) -> Sample | None:
        """None when it is too old to stand beside one of now. Times are of this host's clock."""
        sample, taken_at = self.last.get((stream_id, role), (None, at))
        return sample if at - taken_at <= SAMPLE_FRESH else None

    def forget(self, stream_id: str) -> None:
        for role in HalfRole:
            self.last.pop((stream_id, role), None)


def role_of(row: StreamRow, engine_id: str) -> HalfRole:
    return HalfRole.SENDING if engine_id == row.capture_engine_id else HalfRole.RECEIVING


def part_of(row: StreamRow, engine_id: str, sample: Sample) -> Sample:
    """One engine's sample with its components named as in the whole stream's: what history keeps."""
    if row.capture_engine_id is None:
        return sample
    role = role_of(row, engine_id)
    return sample.model_copy(update={"components": [component_of_half(part, role) for part in sample.components]})


def observe(
    row: StreamRow, engine_id: str, status: StreamStatus, asked_at: datetime, engines: dict[str, EngineRow],
    *, awaited: bool,
) -> Observation | None:  # fmt: skip
    """None while a half has not reported. `awaited`: an operation waits, so that every observation counts."""
    if row.capture_engine_id is None:
        return Observation(status, asked_at)
    _write_half(row, role_of(row, engine_id), status, asked_at, awaited=awaited)
    sending, receiving = read_half(row, HalfRole.SENDING), read_half(row, HalfRole.RECEIVING)
    if row.sending_dropped:
        sending = None
    names = {
        HalfRole.SENDING: engines[row.capture_engine_id].name,
        HalfRole.RECEIVING: engines[row.engine_id].name,
    }
    whole = joined_status(
        sending.status if sending else None, receiving.status if receiving else None, row.desired_status, names
    )
    if whole is None:
        return None
    return Observation(whole, min(half.asked_at for half in (sending, receiving) if half is not None))


def _write_half(row: StreamRow, role: HalfRole, status: StreamStatus, asked_at: datetime, *, awaited: bool) -> None:
    before = read_half(row, role)
    if before is None or before.status != status or awaited or asked_at - before.asked_at >= REWRITE_AFTER:
        half: dict[str, Any] = {"observed": observed_document(status), "asked_at": asked_at.isoformat()}
        row.halves = {**(row.halves or {}), role.value: half}


def read_half(row: StreamRow, role: HalfRole) -> Observation | None:
    half = (row.halves or {}).get(role.value)
    if half is None:
        return None
    return Observation(StreamStatus.model_validate(half["observed"]), datetime.fromisoformat(half["asked_at"]))


def acknowledged(row: StreamRow, engines: dict[str, EngineRow]) -> bool:
    """The capture engine has the stream as it is now on its disk; of the other engine, operations know themselves."""
    if row.capture_engine_id is None or row.sending_dropped:
        return True
    return (engines[row.capture_engine_id].acknowledged_revision or 0) >= row.sending_revision


def pair_samples(
    row: StreamRow, engine_id: str, sample: Sample | None, whole: StreamStatus, engines: dict[str, EngineRow],
    kept: HalfSamples, at: datetime,
) -> Sample | None:  # fmt: skip
    """The sample to show now: one for each of the receiving half's; the sending half's own while that is silent."""
    if row.capture_engine_id is None:
        return sample
    role = role_of(row, engine_id)
    if sample is not None:
        kept.put(role, sample, at)
    if role is HalfRole.RECEIVING:
        return joined_sample(kept.get(row.id, HalfRole.SENDING, at), sample, whole) if sample is not None else None
    if engines[row.engine_id].state == "ONLINE":
        return None
    return joined_sample(sample, None, whole)


async def sending_half_is_gone(session: AsyncSession, row: StreamRow, receiver: EngineRow) -> list[OperationRow]:
    """Now the receiving half may go: it drops what the sending half held. Both engines must be locked."""
    row.sending_dropped = True
    receiver.desired_revision += 1
    row.changed_revision = receiver.desired_revision
    waiting = [
        operation
        for operation in await unfinished_operations(session, [row.id])
        if operation.kind == OperationKind.STREAM_DELETE
    ]
    for operation in waiting:
        operation.revision = row.changed_revision
    return waiting
