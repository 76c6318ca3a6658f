"""Puts the facts together: from the store, from the collector's live samples and from what sources were seen to say."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from cryptography import x509
from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.alerting.catalogue import SubjectType
from thalweg.alerting.facts import DestinationFacts, Disk, EngineFacts, Expiry, Facts, Spill, StreamFacts
from thalweg.db.models import EngineRow, StreamRow
from thalweg.engine_client.documents import ProcessStats
from thalweg.engine_client.error_codes import ErrorCode, ErrorSide
from thalweg.engine_client.mining_limits import WAL_ARCHIVE
from thalweg.features.streams.parameters import effective, load_parameters
from thalweg.kernel.lifecycle import SILENT, ObservedStatus, TroubleKind
from thalweg.kernel.lsn import lsn_of
from thalweg.kernel.settings import Settings
from thalweg.kernel.sums import Sum
from thalweg.live.changes_waiting import changes_wait
from thalweg.live.going_on import that_go_on, that_hold_up
from thalweg.live.health import OBSERVATION_FRESH, engine_of_concern
from thalweg.live.retries import retry_in_words
from thalweg.live.schemas import ComponentSample, ComponentType, DestinationSample, Sample
from thalweg.live.staging import staged_wal_of
from thalweg.workers.alerts import repository
from thalweg.workers.sources import Seen

UNREACHABLE = (ErrorCode.DATABASE_UNREACHABLE, ErrorCode.CONNECTION_LOST)
SAMPLE_FRESH = timedelta(seconds=10)
MIB = 1 << 20


@dataclass
class Live:
    """The evaluation's view of what the collector's loops see. Owner: the collector; one event loop.

    `watching_since`: nobody looked before it, so earlier silence means nothing.
    """

    watching_since: datetime
    samples: dict[str, tuple[Sample, datetime]] = field(default_factory=dict)
    latencies: dict[str, tuple[float, bool]] = field(default_factory=dict)
    """The worst p99 since the last evaluation, in milliseconds, and whether it is a lower bound: samples come more
    often than evaluations."""
    disks: dict[str, Disk] = field(default_factory=dict)
    history_failing_since: datetime | None = None

    def history_failing_seconds(self, at: datetime) -> float:
        return 0.0 if self.history_failing_since is None else (at - self.history_failing_since).total_seconds()

    def put(self, samples: list[Sample], at: datetime) -> None:
        for sample in samples:
            self.samples[sample.stream_id] = (sample, at)
            self._note_latency(sample)

    def put_missed(self, samples: list[Sample], at: datetime) -> None:
        """Takes samples from the engine's own memory, for which the collector came too late. After an outage, most of
        them are too old to alarm anybody now."""
        for sample in samples:
            if at - sample.at <= SAMPLE_FRESH:
                self._note_latency(sample)

    def _note_latency(self, sample: Sample) -> None:
        if sample.latency.p99_ms is not None:
            worst = self.latencies.get(sample.stream_id, (0.0, False))
            self.latencies[sample.stream_id] = max(worst, (sample.latency.p99_ms, sample.latency.at_least))

    def put_disk(self, engine_id: str, process: ProcessStats) -> None:
        if process.disk_total_bytes > 0:
            self.disks[engine_id] = Disk(process.disk_total_bytes, process.disk_free_bytes)

    def sample(self, stream_id: str, at: datetime) -> Sample | None:
        known = self.samples.get(stream_id)
        return known[0] if known is not None and at - known[1] <= SAMPLE_FRESH else None

    def keep_only(self, stream_ids: set[str], engine_ids: set[str]) -> None:
        self.samples = {name: kept for name, kept in self.samples.items() if name in stream_ids}
        self.disks = {name: disk for name, disk in self.disks.items() if name in engine_ids}


async def read_facts(session: AsyncSession, live: Live, seen: Seen, settings: Settings, at: datetime) -> Facts:
    engines = await repository.engines(session)
    streams = await repository.streams_with_engines(session)
    live.keep_only({row.id for row in streams}, {row.id for row in engines})
    latencies, live.latencies = live.latencies, {}
    expiries = [*_identities(engines, seen), *await _tokens(session)]
    authority = await repository.authority_certificate(session)
    if authority is not None:
        until = x509.load_pem_x509_certificate(authority.encode()).not_valid_after_utc
        expiries.append(Expiry(SubjectType.AUTHORITY, "authority", "Thalweg", "authority of engines", until))
    return Facts(
        at, [_stream(row, live.sample(row.id, at), latencies.get(row.id), seen, settings, at) for row in streams],
        [_engine(row, live, at) for row in engines], expiries, live.history_failing_seconds(at),
    )  # fmt: skip


def _engine(row: EngineRow, live: Live, at: datetime) -> EngineFacts:
    heard_at = max(row.last_seen_at or row.created_at, live.watching_since)
    silent = max(0.0, (at - heard_at).total_seconds())
    message = row.message if row.state in SILENT else None
    return EngineFacts(row.id, row.name, row.state, silent, message, live.disks.get(row.id))


def _stream(
    row: StreamRow, sample: Sample | None, p99: tuple[float, bool] | None, seen: Seen, settings: Settings, at: datetime
) -> StreamFacts:
    observed = row.observed or {}
    engines = {
        engine.id: engine for engine in (row.capture_engine, *(destination.engine for destination in row.destinations))
    }
    answers = engine_of_concern(row, engines).state not in SILENT
    fresh = row.observed_at is not None and at - row.observed_at <= OBSERVATION_FRESH
    positions, error = observed.get("positions") or {}, observed.get("error")
    confirmed = lsn_of(positions.get("confirmed", ""))
    parked = Sum.of(destination.error_queue_transactions for destination in (sample.destinations if sample else []))
    return StreamFacts(
        id=row.id, name=row.name, desired_status=row.desired_status, status=row.observed_status,
        phase=row.observed_phase, seen=answers and fresh, error=error["message"] if error else None,
        cure=_cure(error), source_end=lsn_of(positions.get("source_end", "")) or None,
        done=max(lsn_of(positions.get("applied", "")), confirmed) or None, had_slot=confirmed > 0,
        behind_bytes=sample.lag.bytes if sample else None, latency_seconds=p99[0] / 1000 if p99 is not None else None,
        latency_at_least=p99 is not None and p99[1],
        parked=parked.value, parked_at_least=parked.at_least,
        spills=_spills(row, sample, settings), slot=seen.slot(row.id, at),
        destinations=_destinations(row, observed, sample), is_paused=row.is_paused, troubles=_troubles(observed),
        source_name=row.source.name, source_unreachable=_unreachable(row.observed_status, error, ErrorSide.SOURCE),
        staged_wal=staged_wal_of(sample.components) if sample is not None else None,
        archive=row.parameters.get(WAL_ARCHIVE) or None,
    )  # fmt: skip


def _unreachable(status: ObservedStatus, error: dict[str, Any] | None, side: ErrorSide) -> str | None:
    """The message of an error that says so of the side's database, while the engine tries again."""
    if error is None or status != ObservedStatus.ENABLED:
        return None
    return str(error["message"]) if error["code"] in UNREACHABLE and error.get("side") == side else None


def _destinations(row: StreamRow, observed: dict[str, Any], sample: Sample | None) -> tuple[DestinationFacts, ...]:
    names = {destination.id: destination.database.name for destination in row.destinations}
    samples = (
        {destination.destination_id: destination for destination in sample.destinations} if sample is not None else {}
    )
    going = {destination["id"] for destination in that_go_on(observed, sample)}
    holding = {destination["id"] for destination in that_hold_up(observed, sample)}
    return tuple(
        _destination(
            destination,
            names.get(destination["id"], destination["id"]),
            sample,
            samples.get(destination["id"]),
            applies=destination["id"] in going,
            holds_up=destination["id"] in holding,
        )
        for destination in observed.get("destinations") or []
    )


def _destination(
    destination: dict[str, Any],
    name: str,
    sample: Sample | None,
    own: DestinationSample | None,
    *,
    applies: bool,
    holds_up: bool,
) -> DestinationFacts:
    return DestinationFacts(
        destination["id"], name, destination["status"],
        destination["error"]["message"] if destination["error"] else None,
        applies=applies, phase=destination.get("phase", ""),
        done=_done(destination, waits=sample is None or own is None or changes_wait(sample, own)),
        retry=retry_in_words(destination), parked=own.error_queue_transactions if own is not None else None,
        unreachable=_unreachable(destination["status"], destination["error"], ErrorSide.DESTINATION),
        cure=_cure(destination["error"]), full_bytes=destination["backlog"]["limit_bytes"] if holds_up else None,
    )  # fmt: skip


def _cure(error: dict[str, Any] | None) -> str | None:
    return (error.get("cure") or None) if error else None


def _done(destination: dict[str, Any], *, waits: bool) -> int | None:
    """The changes in its backlog are confirmed and not applied. Where nothing waits, what is confirmed had nothing for
    it."""
    positions = destination.get("positions") or {}
    applied, confirmed = lsn_of(positions.get("applied", "")), lsn_of(positions.get("confirmed", ""))
    return (applied if waits else max(applied, confirmed)) or None


def _troubles(observed: dict[str, Any]) -> tuple[str, ...]:
    """A rename loses nothing: it can wait for somebody who looks. A trouble that has stopped a whole destination is
    reported as such."""
    found = {
        f"{table['trouble']['reason']} {table['trouble']['cure']}": None
        for destination in observed.get("destinations") or []
        if destination["status"] != ObservedStatus.ABORTED
        for table in destination.get("tables") or []
        if table.get("trouble") and table["trouble"]["kind"] != TroubleKind.RENAMED
    }
    return tuple(found)


def _spills(row: StreamRow, sample: Sample | None, settings: Settings) -> tuple[Spill, ...]:
    definitions = load_parameters(settings.contract_directory)
    own = {destination.id: destination.parameters for destination in row.destinations}
    names = {destination.id: destination.database.name for destination in row.destinations}
    spills = []
    for component in sample.components if sample else []:
        parameters = effective(definitions, {**row.parameters, **own.get(component.destination_id or "", {})})
        name = _limit_of(component)
        if name is not None and "spill_bytes" in component.gauges:
            limit = float(parameters[name]) * MIB
            if limit > 0:
                place, used = _place(component, names), component.gauges["spill_bytes"]
                spills.append(Spill(component.id, place, name, used, limit, component.destination_id))
    return tuple(spills)


def _place(component: ComponentSample, names: dict[str, str]) -> str:
    where = names.get(component.destination_id or "")
    if where is None:
        return component.id
    return f"the {'backlog' if component.type is ComponentType.QUEUE else 'apply reader'} of {where}"


def _limit_of(component: ComponentSample) -> str | None:
    if component.type is ComponentType.QUEUE:
        return "queue_spill_limit_mb"
    return "spill_limit_mb" if component.sub_component == "APPLY READER" else None


def _identities(engines: list[EngineRow], seen: Seen) -> list[Expiry]:
    found = []
    for row in engines:
        if row.identity_not_after is not None:
            found.append(Expiry(SubjectType.ENGINE, row.id, row.name, "identity", row.identity_not_after))
        if row.id in seen.certificates:
            found.append(Expiry(SubjectType.ENGINE, row.id, row.name, "TLS certificate", seen.certificates[row.id]))
    return found


async def _tokens(session: AsyncSession) -> list[Expiry]:
    return [
        Expiry(SubjectType.TOKEN, token_id, f"“{name}” of {owner}", "API token", until)
        for token_id, name, owner, until in await repository.ending_tokens(session)
    ]
