"""Keeps what each of a stream's engines reports, and puts it together to one observation and one sample."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from thalweg.db.models import DestinationRow, EngineRow, StreamRow
from thalweg.engine_client.documents import StreamStatus, observed_document
from thalweg.kernel.lifecycle import DesiredStatus, ObservedStatus
from thalweg.live.joining_rules import is_fresh
from thalweg.live.reports import Receiver, joined, joined_sample, left_behind, received_sample
from thalweg.live.schemas import Sample

# An unchanged observation is written again this often, so that its age says whether the collector lives.
REWRITE_AFTER = timedelta(seconds=5)
Engines = dict[str, EngineRow]


@dataclass(frozen=True)
class Report:
    """One engine's report on a stream."""

    status: StreamStatus
    asked_at: datetime


@dataclass(frozen=True)
class Observation:
    """One stream as a whole. `asked_at` is when the engine that captures was asked, `received_at` when those were that
    receive for a destination."""

    status: StreamStatus
    asked_at: datetime
    received_at: dict[str, datetime] = field(default_factory=dict)

    def newer_than(self, destination_id: str | None) -> datetime:
        """Everything that was said of that destination, or of all, was asked for then or later."""
        own = [at for name, at in self.received_at.items() if destination_id in (None, name)]
        return min([self.asked_at, *own])


@dataclass
class LastSamples:
    """The last sample of each engine. Owner: the collector; shared by its loops, which run in one event loop."""

    last: dict[tuple[str, str], tuple[Sample, datetime]] = field(default_factory=dict)

    def put(self, engine_id: str, sample: Sample, at: datetime) -> None:
        self.last[sample.stream_id, engine_id] = (sample, at)

    def get(self, stream_id: str, engine_id: str, at: datetime) -> Sample | None:
        """None when it is too old to stand beside one of now. Times are of this host's clock."""
        sample, taken_at = self.last.get((stream_id, engine_id), (None, at))
        return sample if is_fresh(taken_at, at) else None

    def forget(self, stream_id: str) -> None:
        for key in [key for key in self.last if key[0] == stream_id]:
            del self.last[key]


def received_by(row: StreamRow, engine_id: str) -> DestinationRow | None:
    """The destination that the engine receives for; an engine does so for one of a stream at most."""
    if engine_id == row.capture_engine_id:
        return None
    return next((receiver for receiver in row.receivers if receiver.engine_id == engine_id), None)


def own_sample(row: StreamRow, engine_id: str, sample: Sample) -> Sample:
    """One engine's sample with its components named as in the whole stream's: what history keeps."""
    destination = received_by(row, engine_id)
    return sample if destination is None else received_sample(sample, destination.id)


def observe(
    row: StreamRow, engine_id: str, status: StreamStatus, asked_at: datetime, engines: Engines, *, awaited: bool
) -> Observation | None:
    """None while the engine that captures has not reported, or where this one has no part in the stream (any more).
    `awaited`: an operation waits, so that every observation counts."""
    captures = engine_id == row.capture_engine_id
    going = row.desired_status == DesiredStatus.DROPPED and row.capture_is_gone
    if not captures and received_by(row, engine_id) is None:
        return None
    elsewhere = [destination for destination in row.destinations if destination.engine_id != row.capture_engine_id]
    if not elsewhere and not going:
        row.reports = None  # Of the time when another engine received: one engine's word is what was observed.
        return Observation(joined(status, engines[engine_id].name, {}), asked_at)
    _keep(row, engine_id, status, asked_at, awaited=awaited)
    if going:
        return _left(row)
    capturing = report_of(row, row.capture_engine_id)
    if capturing is None:
        return None
    reports = {destination.id: report_of(row, destination.engine_id) for destination in elsewhere}
    receivers = {
        destination.id: _receiver(row, destination, engines, reports[destination.id]) for destination in elsewhere
    }
    return Observation(
        joined(capturing.status, engines[row.capture_engine_id].name, receivers), capturing.asked_at,
        {id_: report.asked_at for id_, report in reports.items() if report is not None},
    )  # fmt: skip


def _receiver(row: StreamRow, destination: DestinationRow, engines: Engines, report: Report | None) -> Receiver:
    desired = destination.desired_status if row.desired_status == DesiredStatus.ENABLED else row.desired_status
    observed = report.status if report is not None else None
    return Receiver(engines[destination.engine_id].name, desired, observed, destination.changed_revision)


def _left(row: StreamRow) -> Observation | None:
    """The capturing engine is done with a deletion: now those that receive are on it."""
    reports = [report_of(row, receiver.engine_id) for receiver in row.receivers]
    received = [report for report in reports if report is not None]
    if len(received) < len(reports):
        return None
    capturing = report_of(row, row.capture_engine_id)
    relevant = [*([capturing] if capturing and capturing.status.status == ObservedStatus.DROPPED else []), *received]
    if not relevant:
        return None
    leading = next((report for report in received if report.status.status != ObservedStatus.DROPPED), relevant[-1])
    errors = [report.status.error for report in relevant if report.status.error is not None]
    status = leading.status.model_copy(update={"error": left_behind(errors), "destinations": []})
    return Observation(status, min((report.asked_at for report in received), default=leading.asked_at))


def _keep(row: StreamRow, engine_id: str, status: StreamStatus, asked_at: datetime, *, awaited: bool) -> None:
    before = report_of(row, engine_id)
    if before is None or before.status != status or awaited or asked_at - before.asked_at >= REWRITE_AFTER:
        kept: dict[str, Any] = {"observed": observed_document(status), "asked_at": asked_at.isoformat()}
        row.reports = {**(row.reports or {}), engine_id: kept}


def report_of(row: StreamRow, engine_id: str) -> Report | None:
    kept = (row.reports or {}).get(engine_id)
    if kept is None:
        return None
    return Report(StreamStatus.model_validate(kept["observed"]), datetime.fromisoformat(kept["asked_at"]))


def acknowledged(row: StreamRow, engines: Engines) -> bool:
    """Each engine has the stream as it is now on its disk."""
    wanted = {receiver.engine_id: receiver.changed_revision for receiver in row.receivers}
    if not row.capture_is_gone:
        wanted[row.capture_engine_id] = row.changed_revision
    return all((engines[name].acknowledged_revision or 0) >= revision for name, revision in wanted.items())


def sample_now(
    row: StreamRow, engine_id: str, sample: Sample | None, whole: StreamStatus, kept: LastSamples, at: datetime
) -> Sample | None:
    """The stream's sample to show now: one for each of the capturing engine's. Reports of other engines wait for the
    next."""
    if sample is None or row.capture_is_gone:
        return None
    if engine_id != row.capture_engine_id:
        if received_by(row, engine_id) is not None:
            kept.put(engine_id, own_sample(row, engine_id, sample), at)
        return None
    latest = {receiver.id: kept.get(row.id, receiver.engine_id, at) for receiver in row.receivers}
    return joined_sample(sample, whole, {id_: other for id_, other in latest.items() if other is not None})
