"""Puts the reports of a stream's engines together. What one engine does alone passes through as it is."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.models import DestinationRow, EngineRow, StreamRow
from thalweg.engine_client.documents import DestinationStatus, StreamStatus, observed_document
from thalweg.live.branches import (
    joined_branch,
    joined_fan_out,
    left_behind,
    only_destination,
    whole_of,
    with_only_destination,
)
from thalweg.live.halves import joined_sample, joined_status, received_components
from thalweg.live.schemas import CAPTURING, HalfRole, Sample

# An unchanged observation is written again this often, so that its age says whether the collector lives.
REWRITE_AFTER = timedelta(seconds=5)
SAMPLE_FRESH = timedelta(seconds=10)
Engines = dict[str, EngineRow]


@dataclass(frozen=True)
class Observation:
    """One stream as a whole. `asked_at` is when the one of its engines that was asked longest ago was asked."""

    status: StreamStatus
    asked_at: datetime


@dataclass
class HalfSamples:
    """The last sample of each engine. Owner: the collector; shared by its loops, which run in one event loop."""

    last: dict[tuple[str, str], tuple[Sample, datetime]] = field(default_factory=dict)

    def put(self, key: str, sample: Sample, at: datetime) -> None:
        self.last[sample.stream_id, key] = (sample, at)

    def get(self, stream_id: str, key: str, at: datetime) -> Sample | None:
        """None when it is too old to stand beside one of now. Times are of this host's clock."""
        sample, taken_at = self.last.get((stream_id, key), (None, at))
        return sample if at - taken_at <= SAMPLE_FRESH else None

    def forget(self, stream_id: str) -> None:
        for key in [key for key in self.last if key[0] == stream_id]:
            del self.last[key]


def key_of(row: StreamRow, engine_id: str) -> str | None:
    """Under which the engine's report stands; None when it has no part in the stream (any more)."""
    if engine_id == row.capture_engine_id:
        return CAPTURING
    return next((one.id for one in row.receivers if one.engine_id == engine_id), None)


def part_of(row: StreamRow, engine_id: str, sample: Sample) -> Sample:
    """One engine's sample with its components named as in the whole stream's: what history keeps."""
    key = key_of(row, engine_id)
    if key is None or not row.destinations:
        return sample
    if key != CAPTURING:
        components = received_components(sample, key if row.fans_out else None)
        sample = sample.model_copy(update={"components": components})
    if not row.fans_out:
        return with_only_destination(sample, row.destinations[0].id)
    return sample if key == CAPTURING else with_only_destination(sample, key)


def observe(
    row: StreamRow, engine_id: str, status: StreamStatus, asked_at: datetime, engines: Engines, *, awaited: bool
) -> Observation | None:
    """None while an engine has not reported. `awaited`: an operation waits, so that every observation counts."""
    key = key_of(row, engine_id)
    if key is None:
        return None
    alone = not row.receivers and not row.capture_dropped
    if not alone:
        _write_half(row, key, status, asked_at, awaited=awaited)
    if row.desired_status == "DROPPED" and row.capture_dropped:
        return _rest(row, engines)
    if alone:
        return Observation(_with_branches(row, status, engines, {}), asked_at)
    capturing = read_half(row, CAPTURING)
    received = {one.id: half for one in row.receivers if (half := read_half(row, one.id)) is not None}
    if capturing is None:
        return None
    if row.fans_out:
        whole = _with_branches(row, capturing.status, engines, received)
        return Observation(whole, capturing.asked_at)
    (only,) = row.destinations
    receiving = received.get(only.id)
    joined = joined_status(
        capturing.status, receiving.status if receiving else None, row.desired_status, _names(row, only, engines)
    )
    if joined is None:
        return None
    oldest = min(half.asked_at for half in (capturing, receiving) if half is not None)
    return Observation(joined.model_copy(update={"destinations": [only_destination(joined, only.id)]}), oldest)


def _names(row: StreamRow, one: DestinationRow, engines: Engines) -> dict[HalfRole, str]:
    return {
        HalfRole.SENDING: engines[row.capture_engine_id].name, HalfRole.RECEIVING: engines[one.engine_id].name,
    }  # fmt: skip


def _with_branches(
    row: StreamRow, capturing: StreamStatus, engines: Engines, received: dict[str, Observation]
) -> StreamStatus:
    if not row.fans_out:
        return capturing.model_copy(update={"destinations": [only_destination(capturing, row.destinations[0].id)]})
    others = {one.id: one for one in row.receivers}
    branches: list[DestinationStatus] = []
    for branch in capturing.destinations:
        one = others.get(branch.id)
        if one is not None:
            half = received.get(one.id)
            desired = one.desired_status if row.desired_status == "ENABLED" else row.desired_status
            branch = joined_branch(branch, capturing, half.status if half else None, desired, _names(row, one, engines))
        branches.append(branch)
    return whole_of(capturing, branches, {id_: half.status for id_, half in received.items() if id_ in others})


def _rest(row: StreamRow, engines: Engines) -> Observation | None:
    """The capture engine is done with a deletion: now those that receive are on it."""
    halves = {one.id: read_half(row, one.id) for one in row.receivers}
    told = {one.id: half for one in row.receivers if (half := halves[one.id]) is not None}
    if len(told) < len(halves):
        return None
    capturing = read_half(row, CAPTURING)
    reports = [*([capturing] if capturing and capturing.status.status == "DROPPED" else []), *told.values()]
    if not reports:
        return None
    leading = next((half for half in told.values() if half.status.status != "DROPPED"), reports[-1])
    errors = [half.status.error for half in reports if half.status.error is not None]
    status = leading.status.model_copy(update={"error": left_behind(errors), "destinations": []})
    return Observation(status, min(half.asked_at for half in told.values()) if told else leading.asked_at)


def _write_half(row: StreamRow, key: str, status: StreamStatus, asked_at: datetime, *, awaited: bool) -> None:
    before = read_half(row, key)
    if before is None or before.status != status or awaited or asked_at - before.asked_at >= REWRITE_AFTER:
        half: dict[str, Any] = {"observed": observed_document(status), "asked_at": asked_at.isoformat()}
        row.halves = {**(row.halves or {}), key: half}


def read_half(row: StreamRow, key: str) -> Observation | None:
    half = (row.halves or {}).get(key)
    if half is None:
        return None
    return Observation(StreamStatus.model_validate(half["observed"]), datetime.fromisoformat(half["asked_at"]))


def acknowledged(row: StreamRow, engines: Engines) -> bool:
    """Each engine has the stream as it is now on its disk."""
    wanted = {one.engine_id: one.changed_revision for one in row.receivers}
    if not row.capture_dropped:
        wanted[row.capture_engine_id] = row.changed_revision
    return all((engines[name].acknowledged_revision or 0) >= revision for name, revision in wanted.items())


def pair_samples(
    row: StreamRow, engine_id: str, sample: Sample | None, whole: StreamStatus, engines: Engines, kept: HalfSamples,
    at: datetime,
) -> Sample | None:  # fmt: skip
    """The sample to show now: of a fan-out one for each of the capture engine's; of a stream over two engines one for
    each of the receiving half's, or of the sending half while that is silent."""
    key = key_of(row, engine_id)
    if key is None or row.capture_dropped:
        return None
    if sample is not None:
        kept.put(key, sample, at)
    if row.fans_out:
        if sample is None or key != CAPTURING:
            return None
        latest = {one.id: kept.get(row.id, one.id, at) for one in row.receivers}
        return joined_fan_out(sample, whole, {name: half for name, half in latest.items() if half is not None})
    if not row.receivers:
        joined = sample
    elif key != CAPTURING:
        sending = kept.get(row.id, CAPTURING, at)
        joined = joined_sample(sending, sample, whole) if sample is not None else None
    elif engines[row.receivers[0].engine_id].state == "ONLINE":
        return None
    else:
        joined = joined_sample(sample, None, whole)
    return None if joined is None else with_only_destination(joined, row.destinations[0].id)


async def capture_is_gone(session: AsyncSession, row: StreamRow, engines: Engines) -> None:
    """Of a stream that is being deleted. Now the engines that receive may go; one that has no list left slot and
    publication to the one that receives. Destinations that the capture engine applied are gone with it. All of the
    stream's engines must be locked."""
    row.capture_dropped = True
    row.destinations = row.receivers
    for one in row.destinations:
        _tell_receiver(one, engines)
    await session.flush()


def _tell_receiver(one: DestinationRow, engines: Engines) -> None:
    engines[one.engine_id].desired_revision += 1
    one.changed_revision = engines[one.engine_id].desired_revision


def follow_branches(row: StreamRow, status: StreamStatus, engine_id: str, engines: Engines) -> bool:
    """What one engine's report of a fan-out means for the next step of its destinations. True: what the capture engine
    shall do has changed, because destinations are gone."""
    seen = {branch.id: branch for branch in status.destinations}
    capturing = engine_id == row.capture_engine_id
    gone: list[DestinationRow] = []
    for one in row.destinations:
        elsewhere = one.engine_id != row.capture_engine_id
        if capturing and elsewhere and not one.listed and one.id in seen and one.desired_status != "DROPPED":
            one.listed = True
            _tell_receiver(one, engines)
        if one.desired_status != "DROPPED":
            continue
        if capturing and one.id in seen and seen[one.id].status == "DROPPED" and not one.detached:
            one.detached = True
            if elsewhere and one.listed:
                _tell_receiver(one, engines)
            else:
                gone.append(one)
        elif one.engine_id == engine_id and elsewhere and one.detached and status.status == "DROPPED":
            gone.append(one)
    if not gone:
        return False
    forget_destinations(row, gone, engines)
    return True


def forget_destinations(row: StreamRow, gone: list[DestinationRow], engines: Engines) -> None:
    row.destinations = [one for one in row.destinations if one not in gone]
    row.halves = {key: half for key, half in (row.halves or {}).items() if key not in {one.id for one in gone}}
    for engine_id in {row.capture_engine_id, *(one.engine_id for one in gone)}:
        engines[engine_id].desired_revision += 1
    row.changed_revision = engines[row.capture_engine_id].desired_revision
