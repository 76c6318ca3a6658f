"""Each rule's condition: from the facts to one assessment for each thing that the rule is about."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from thalweg.alerting.catalogue import AlertRuleId, SubjectType
from thalweg.alerting.facts import EngineFacts, Facts, StreamFacts
from thalweg.alerting.policy import Policy, RuleSettings
from thalweg.alerting.trend import Memory
from thalweg.inspection.slots import why_lost
from thalweg.kernel.lifecycle import DesiredStatus, ObservedStatus, StreamPhase
from thalweg.kernel.sums import Sum
from thalweg.kernel.time_to_full import seconds_to_full
from thalweg.kernel.words import capitalised, days, duration, go_on_in_words, listed, parked_in_words, size
from thalweg.live.going_on import full_in_words, room_in_words

# A firing alert is over only when its value is this far on the good side of the threshold: no flapping at the edge.
CLEAR_SHARE = 0.8
# Positions are told once a second, and a large transaction takes its time: a shorter stop is not worth a pending alert.
STANDS_SECONDS_MIN = 10
# An engine stops spilling when its disk has only so much left for others (engine/src/spill/spill_space.h).
SPILL_LEAVES_BYTES = 256 << 20


@dataclass(frozen=True)
class Subject:
    """`part` tells two alerts of one rule about one thing apart, such as an engine's two certificates."""

    type: SubjectType
    id: str
    name: str
    part: str = ""

    @property
    def stream_id(self) -> str | None:
        return self.id if self.type is SubjectType.STREAM else None


Key = tuple[AlertRuleId, SubjectType, str, str]


@dataclass(frozen=True)
class Assessment:
    """`breached` None: it cannot be told now, so everything stays as it is."""

    rule: AlertRuleId
    subject: Subject
    breached: bool | None
    message: str = ""
    value: float | None = None
    threshold: float | None = None
    unit: str = ""
    evidence: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        return (self.rule, self.subject.type, self.subject.id, self.subject.part)


@dataclass(frozen=True)
class View:
    """One evaluation's input. `firing` are the alerts that fire now."""

    facts: Facts
    memory: Memory
    policy: Policy
    firing: frozenset[Key]

    def streams(self, rule: AlertRuleId) -> Iterator[tuple[StreamFacts, RuleSettings, Subject]]:
        for stream in self.facts.streams:
            settings = self.policy.settings(rule, stream.id)
            if settings.enabled and stream.desired_status != DesiredStatus.DROPPED:
                yield stream, settings, Subject(SubjectType.STREAM, stream.id, stream.name)

    def engines(self, rule: AlertRuleId) -> Iterator[tuple[EngineFacts, RuleSettings, Subject]]:
        settings = self.policy.settings(rule)
        for engine in self.facts.engines if settings.enabled else []:
            yield engine, settings, Subject(SubjectType.ENGINE, engine.id, engine.name)

    def above(self, rule: AlertRuleId, subject: Subject, value: float, threshold: float) -> bool:
        firing = (rule, subject.type, subject.id, subject.part) in self.firing
        return value > threshold * (CLEAR_SHARE if firing else 1)

    def below(self, rule: AlertRuleId, subject: Subject, value: float | None, threshold: float) -> bool:
        firing = (rule, subject.type, subject.id, subject.part) in self.firing
        return value is not None and value < threshold / (CLEAR_SHARE if firing else 1)


@dataclass(frozen=True)
class Mover:
    """A stream, or each of its several destinations, which is to move on."""

    subject: Subject
    name: str
    done: int | None
    phase: str
    error: str | None
    destination_id: str | None = None
    retry: str | None = None


def _movers(stream: StreamFacts, subject: Subject) -> Iterator[Mover]:
    """Without those that rest, have ended, or are being copied."""
    if len(stream.destinations) < 2:
        if stream.phase != StreamPhase.INSTANTIATING:
            retry = next((destination.retry for destination in stream.destinations), None)
            yield Mover(subject, stream.name, stream.done, stream.phase, stream.error, retry=retry)
        return
    for destination in stream.destinations:
        if destination.status == ObservedStatus.ENABLED and destination.phase != StreamPhase.INSTANTIATING:
            own = Subject(subject.type, subject.id, subject.name, destination.id)
            yield Mover(
                own,
                f"{destination.name} of {stream.name}",
                destination.done,
                destination.phase,
                destination.error,
                destination.id,
                destination.retry,
            )


def no_progress(view: View) -> Iterator[Assessment]:
    """Judges each destination by itself: one may stand while the others move."""
    rule = AlertRuleId.NO_PROGRESS
    for stream, settings, subject in view.streams(rule):
        if stream.desired_status != DesiredStatus.ENABLED or stream.is_paused:
            continue
        if stream.status == ObservedStatus.ABORTED:
            continue
        ends = [end for end in (stream.source_end, stream.slot.current_lsn if stream.slot else None) if end]
        if not stream.seen or not ends:
            yield Assessment(rule, subject, None)
            continue
        yield from [_progress(view, settings, mover, max(ends)) for mover in _movers(stream, subject)]


def _progress(view: View, settings: RuleSettings, mover: Mover, end: int) -> Assessment:
    rule, subject, at = AlertRuleId.NO_PROGRESS, mover.subject, view.facts.at
    if not mover.done:
        return Assessment(rule, subject, None)
    still = view.memory.standstill((subject.id, subject.part), at, mover.done, end)
    written = max(0, end - still.source_end)
    seconds = (at - still.since).total_seconds()
    threshold = settings.thresholds["wal_bytes"]
    return Assessment(
        rule, subject, seconds >= STANDS_SECONDS_MIN and written >= threshold and end > mover.done,
        f"{mover.name} has not moved for {duration(seconds)}, while the source wrote {size(written)} of WAL"
        f"{f': {mover.retry}' if mover.retry else ''}.",
        written, threshold, "bytes",
        {"stands_for_seconds": round(seconds), "wal_written_bytes": written, "behind_bytes": end - mover.done,
         "phase": mover.phase, "error": mover.error, "retry": mover.retry, "destination_id": mover.destination_id},
    )  # fmt: skip


def latency(view: View) -> Iterator[Assessment]:
    rule = AlertRuleId.LATENCY
    for stream, settings, subject in view.streams(rule):
        if stream.desired_status != DesiredStatus.ENABLED or stream.is_paused:
            continue
        value = stream.latency_seconds
        if value is None and stream.behind_bytes == 0:
            value = 0.0  # Nothing came through because nothing waits.
        if not stream.seen or value is None:
            yield Assessment(rule, subject, None)
            continue
        threshold = settings.thresholds["latency_seconds"]
        seconds = duration(value)
        arrive = f"have not arrived for {seconds}" if stream.latency_at_least else f"arrive after {seconds} (p99)"
        yield Assessment(
            rule, subject, view.above(rule, subject, value, threshold),
            f"Changes of {stream.name} {arrive}; the threshold is {duration(threshold)}.",
            value, threshold, "seconds", {"p99_seconds": value, "behind_bytes": stream.behind_bytes},
        )  # fmt: skip


def spill_disk(view: View) -> Iterator[Assessment]:
    rule = AlertRuleId.SPILL_DISK
    for engine, settings, subject in view.engines(rule):
        disk = engine.disk
        if disk is None or disk.total_bytes <= 0:
            yield Assessment(rule, subject, None)
            continue
        used = disk.total_bytes - disk.free_bytes
        growth = view.memory.growth((rule, engine.id), view.facts.at, used)
        room = disk.free_bytes - SPILL_LEAVES_BYTES
        left = seconds_to_full(room, growth)
        free = 100 * disk.free_bytes / disk.total_bytes
        threshold = settings.thresholds["free_percent"]
        breached = (
            room <= 0
            or view.below(rule, subject, free, threshold)
            or view.below(rule, subject, left, settings.thresholds["seconds_to_full"])
        )
        full = f" At the present growth no more can be spilled in {_left(left)}." if left is not None else ""
        if room <= 0:
            full = f" The engine no longer spills: {size(SPILL_LEAVES_BYTES)} stay free for others."
        yield Assessment(
            rule, subject, breached,
            f"The disk of {engine.name} has {size(disk.free_bytes)} free of {size(disk.total_bytes)} ({free:.0f} %)."
            + full,
            free, threshold, "percent",
            {"free_bytes": disk.free_bytes, "total_bytes": disk.total_bytes, "room_bytes": max(0, room),
             "growth_bytes_per_second": growth,
             "seconds_to_full": left},
        )  # fmt: skip


def _left(seconds: float) -> str:
    return duration(max(1, round(seconds)))


def spill_limit(view: View) -> Iterator[Assessment]:
    """Not of a backlog that is full and holds the others up: backlog_full tells of it."""
    rule = AlertRuleId.SPILL_LIMIT
    for stream, settings, subject in view.streams(rule):
        if not stream.seen:
            yield Assessment(rule, subject, None)
            continue
        full_backlogs = {destination.id for destination in stream.destinations if destination.full_bytes is not None}
        for spill in stream.spills:
            own = Subject(subject.type, subject.id, subject.name, spill.component)
            growth = view.memory.growth((rule, stream.id, spill.component), view.facts.at, spill.used_bytes)
            left = seconds_to_full(spill.limit_bytes - spill.used_bytes, growth)
            used, threshold = 100 * spill.used_bytes / spill.limit_bytes, settings.thresholds["used_percent"]
            breached = spill.destination_id not in full_backlogs and (
                used >= 100
                or view.above(rule, own, used, threshold)
                or view.below(rule, own, left, settings.thresholds["seconds_to_full"])
            )
            full = f" At the present growth it is reached in {_left(left)}." if left is not None else ""
            full = " It is full." if spill.used_bytes >= spill.limit_bytes else full
            yield Assessment(
                rule, own, breached,
                f"{stream.name} has {size(spill.used_bytes)} of changes on disk at {spill.place}, {used:.0f} % of "
                f"{spill.parameter}.{full}",
                used, threshold, "percent",
                {"component": spill.component, "parameter": spill.parameter, "used_bytes": spill.used_bytes,
                 "limit_bytes": spill.limit_bytes, "growth_bytes_per_second": growth, "seconds_to_full": left},
            )  # fmt: skip


def staging_limit(view: View) -> Iterator[Assessment]:
    rule = AlertRuleId.STAGING_LIMIT
    for stream, settings, subject in view.streams(rule):
        staged = stream.staged_wal
        if not stream.seen:
            yield Assessment(rule, subject, None)
            continue
        if staged is None:
            continue
        growth = view.memory.growth((rule, stream.id), view.facts.at, staged.used_bytes)
        left = seconds_to_full(staged.limit_bytes - staged.used_bytes, growth)
        used, threshold = 100 * staged.used_bytes / staged.limit_bytes, settings.thresholds["used_percent"]
        breached = (
            staged.is_full
            or view.above(rule, subject, used, threshold)
            or (staged.tells and view.below(rule, subject, left, settings.thresholds["seconds_to_full"]))
        )
        full = f" At the present growth it is reached in {_left(left)}." if left is not None else ""
        if staged.is_full:
            full = " It is full: nothing more is received, and the source keeps what follows."
        resting = [other.name for other in stream.destinations if other.status == ObservedStatus.DISABLED]
        holder = staged.holder_in_words(resting, _most_behind(stream))
        yield Assessment(
            rule, subject, breached,
            f"{stream.name} has {size(staged.used_bytes)} of staged WAL, {used:.0f} % of staging_limit_mb.{full}"
            f"{f' {holder}' if holder else ''}",
            used, threshold, "percent",
            {"used_bytes": staged.used_bytes, "limit_bytes": staged.limit_bytes, "is_full": staged.is_full,
             "open_transaction_bytes": staged.open_bytes, "growth_bytes_per_second": growth, "seconds_to_full": left},
        )  # fmt: skip


def _most_behind(stream: StreamFacts) -> list[str]:
    known = [(other.done, other.name) for other in stream.destinations if other.done is not None]
    return [min(known)[1]] if known and min(known)[0] < (stream.source_end or 0) else []


def archive_lag(view: View) -> Iterator[Assessment]:
    rule = AlertRuleId.ARCHIVE_LAG
    for stream, settings, subject in view.streams(rule):
        if not stream.seen:
            yield Assessment(rule, subject, None)
            continue
        if stream.staged_wal is None or stream.archive is None:
            continue
        waited, threshold = stream.staged_wal.archive_wait_seconds, settings.thresholds["waiting_seconds"]
        why = f" {stream.error}" if stream.error else ""
        yield Assessment(
            rule, subject, waited > threshold,
            f"{stream.name} has waited for {duration(waited)} for the next segment of {stream.source_name} in the "
            f"archive {stream.archive}, and cannot read it at the source.{why}",
            waited, threshold, "seconds", {"archive": stream.archive, "waiting_seconds": round(waited)},
        )  # fmt: skip


def backlog_full(view: View) -> Iterator[Assessment]:
    """At once: nothing flows any more, however well the other destinations are."""
    rule = AlertRuleId.BACKLOG_FULL
    for stream, _, subject in view.streams(rule):
        if stream.desired_status != DesiredStatus.ENABLED:
            continue
        if not stream.seen:
            yield Assessment(rule, subject, None)
            continue
        for destination in stream.destinations:
            own = Subject(subject.type, subject.id, subject.name, destination.id)
            limit = destination.full_bytes
            if limit is None:
                yield Assessment(rule, own, False)
                continue
            room = room_in_words(
                [destination.name],
                paused=destination.status == ObservedStatus.DISABLED,
                failed=destination.status == ObservedStatus.ABORTED,
            )
            yield Assessment(
                rule, own, True,
                f"{full_in_words([destination.name], limit, stands=True, of=stream.name)} {room}",
                limit, limit, "bytes",
                {"destination_id": destination.id, "status": destination.status, "limit_bytes": limit,
                 "error": destination.error},
            )  # fmt: skip


def wal_retention(view: View) -> Iterator[Assessment]:
    rule = AlertRuleId.WAL_RETENTION
    for stream, settings, subject in view.streams(rule):
        slot = stream.slot
        if slot is None:
            yield Assessment(rule, subject, None)
            continue
        if slot.missing or slot.wal_status == "lost":
            continue
        growth = view.memory.growth((rule, stream.id), slot.read_at, slot.retained_bytes)
        growth = 0.0 if slot.keeps_up and growth is not None else growth
        left = seconds_to_full(slot.safe_bytes, growth) if slot.safe_bytes is not None else None
        threshold = settings.thresholds["retained_bytes"]
        breached = view.above(rule, subject, slot.retained_bytes, threshold) or view.below(
            rule, subject, left, settings.thresholds["seconds_to_full"]
        )
        message = f"The source keeps {size(slot.retained_bytes)} of WAL for {stream.name}."
        if left is not None:
            message += (
                f" At the present growth max_slot_wal_keep_size is reached in {_left(left)}: the slot is lost then."
            )
        elif growth is not None and growth > 0:
            message += f" It grows by {size(growth)} a second" + (
                ", and no max_slot_wal_keep_size limits it." if slot.safe_bytes is None else "."
            )
        yield Assessment(
            rule, subject, breached or slot.wal_status == "unreserved", message, slot.retained_bytes, threshold,
            "bytes",
            {"retained_bytes": slot.retained_bytes, "safe_bytes": slot.safe_bytes, "wal_status": slot.wal_status,
             "growth_bytes_per_second": growth, "seconds_to_full": left},
        )  # fmt: skip


def slot_inactive(view: View) -> Iterator[Assessment]:
    rule = AlertRuleId.SLOT_INACTIVE
    for stream, _, subject in view.streams(rule):
        if stream.desired_status != DesiredStatus.ENABLED or stream.copies or not stream.had_slot:
            continue
        if stream.is_paused and stream.status == ObservedStatus.DISABLED:
            continue
        slot = stream.slot
        if slot is None:
            yield Assessment(rule, subject, None)
        elif not slot.missing and slot.wal_status != "lost":
            why = f" {stream.error}" if stream.error else ""
            yield Assessment(
                rule, subject, not slot.active, f"Nobody reads from the slot of {stream.name}.{why}",
                evidence={"wal_status": slot.wal_status, "retained_bytes": slot.retained_bytes, "phase": stream.phase},
            )  # fmt: skip


def slot_idle(view: View) -> Iterator[Assessment]:
    """Includes stopped streams: their slots are the ones without a reader."""
    rule = AlertRuleId.SLOT_IDLE
    for stream, settings, subject in view.streams(rule):
        slot = stream.slot
        if slot is None:
            yield Assessment(rule, subject, None)
            continue
        left, threshold = slot.seconds_to_idle, settings.thresholds["seconds_left"]
        consequence = (
            "Somebody reads from it."
            if left is None
            else f"idle_replication_slot_timeout will invalidate it in {_left(left)}."
        )
        yield Assessment(
            rule, subject, view.below(rule, subject, left, threshold),
            f"Nobody reads from the slot of {stream.name}: {consequence}", left, threshold, "seconds",
            {"seconds_left": left, "retained_bytes": slot.retained_bytes},
        )  # fmt: skip


def slot_lost(view: View) -> Iterator[Assessment]:
    rule = AlertRuleId.SLOT_LOST
    for stream, _, subject in view.streams(rule):
        slot = stream.slot
        if slot is None or not stream.had_slot:
            yield Assessment(rule, subject, None if slot is None else False)
            continue
        message = f"The slot of {stream.name} is gone."
        if slot.wal_status == "lost":
            message = f"The slot of {stream.name} is lost. {' '.join(why_lost(slot.invalidation_reason))}"
        yield Assessment(
            rule, subject, slot.missing or slot.wal_status == "lost", message,
            evidence={
                "missing": slot.missing, "wal_status": slot.wal_status,
                "invalidation_reason": slot.invalidation_reason,
            },
        )  # fmt: skip


def database_unreachable(view: View) -> Iterator[Assessment]:
    """One alert for each database, which it names."""
    rule = AlertRuleId.DATABASE_UNREACHABLE
    for stream, _, subject in view.streams(rule):
        databases = [("source", "source", stream.source_name, stream.source_unreachable)]
        databases += [("destination", each.id, each.name, each.unreachable) for each in stream.destinations]
        for side, part, name, message in databases:
            own = Subject(subject.type, subject.id, subject.name, f"{side}:{part}")
            yield Assessment(
                rule, own, message is not None if stream.seen else None,
                f"{name}, {'the source' if side == 'source' else 'a destination'} of {stream.name}, cannot be reached. "
                f"{message or ''}".strip(),
                evidence={"side": side, "database": name, "error": message},
            )  # fmt: skip


def component_aborted(view: View) -> Iterator[Assessment]:
    rule = AlertRuleId.COMPONENT_ABORTED
    for stream, _, subject in view.streams(rule):
        if not stream.seen:
            yield Assessment(rule, subject, None)
            continue
        error = stream.error or "It has stopped with an error."
        yield Assessment(rule, subject, stream.status == ObservedStatus.ABORTED, f"{stream.name} has stopped. {error}",
                      evidence={"status": stream.status, "error": stream.error, "cure": stream.cure})  # fmt: skip
        yield from _aborted_destinations(stream, subject)


def _aborted_destinations(stream: StreamFacts, subject: Subject) -> Iterator[Assessment]:
    """One of several destinations may stop alone."""
    for destination in stream.destinations if stream.status != ObservedStatus.ABORTED else ():
        own = Subject(subject.type, subject.id, subject.name, destination.id)
        error = destination.error or "It has stopped with an error."
        others = go_on_in_words(
            [other.name for other in stream.destinations if other.applies and other is not destination]
        )
        yield Assessment(
            AlertRuleId.COMPONENT_ABORTED, own, destination.status == ObservedStatus.ABORTED,
            f"{destination.name} of {stream.name} has stopped{others}. {error}",
            evidence={
                "destination_id": destination.id, "status": destination.status, "error": destination.error,
                "cure": destination.cure,
            },
        )  # fmt: skip


def table_trouble(view: View) -> Iterator[Assessment]:
    rule = AlertRuleId.TABLE_TROUBLE
    for stream, _, subject in view.streams(rule):
        if not stream.seen:
            yield Assessment(rule, subject, None)
            continue
        count = len(stream.troubles)
        tables = f"A table of {stream.name} needs" if count == 1 else f"{count} tables of {stream.name} need"
        reasons = " ".join(stream.troubles[:3])
        yield Assessment(
            rule, subject, count > 0, f"{tables} a cure. {reasons}",
            evidence={"troubles": list(stream.troubles)},
        )  # fmt: skip


def error_queue(view: View) -> Iterator[Assessment]:
    rule = AlertRuleId.ERROR_QUEUE
    for stream, settings, subject in view.streams(rule):
        threshold = settings.thresholds["transactions"]
        # A lower bound at or under the threshold does not mean that the sum is.
        if not stream.seen or stream.parked is None or (stream.parked_at_least and stream.parked <= threshold):
            yield Assessment(rule, subject, None)
            continue
        parked = Sum(stream.parked, stream.parked_at_least)
        yield Assessment(
            rule, subject, stream.parked > threshold,
            f"{capitalised(parked_in_words(parked))} in the error queue of {_parking(stream)}.",
            stream.parked, threshold, "transactions", {"transactions": stream.parked},
        )  # fmt: skip


def _parking(stream: StreamFacts) -> str:
    """Each destination has an error queue of its own."""
    names = [destination.name for destination in stream.destinations if destination.parked]
    return f"{listed(names)} of {stream.name}" if names and len(stream.destinations) > 1 else stream.name


def engine_silent(view: View) -> Iterator[Assessment]:
    rule = AlertRuleId.ENGINE_SILENT
    for engine, settings, subject in view.engines(rule):
        threshold = settings.thresholds["silent_seconds"]
        why = f" {engine.message}" if engine.message else ""
        yield Assessment(
            rule, subject, engine.silent_seconds > threshold,
            f"{engine.name} has not answered for {duration(engine.silent_seconds)}.{why}",
            engine.silent_seconds, threshold, "seconds",
            {"state": engine.state, "silent_seconds": round(engine.silent_seconds), "message": engine.message},
        )  # fmt: skip


def _expiring(view: View, rule: AlertRuleId, *types: SubjectType) -> Iterator[Assessment]:
    settings = view.policy.settings(rule)
    if not settings.enabled:
        return
    threshold = settings.thresholds["days"]
    for expiry in view.facts.expiries:
        if expiry.subject_type not in types:
            continue
        left = (expiry.until - view.facts.at).total_seconds() / 86400
        subject = Subject(expiry.subject_type, expiry.subject_id, expiry.subject_name, expiry.credential)
        named = expiry.subject_type is SubjectType.TOKEN
        whose = expiry.subject_name if named else f"of {expiry.subject_name}"
        when = f"expires in {days(left)}" if left > 0 else f"expired {days(-left)} ago"
        yield Assessment(
            rule, subject, left < threshold, f"The {expiry.credential} {whose} {when}.", left, threshold,
            "days", {"until": expiry.until.isoformat(), "what": expiry.credential},
        )  # fmt: skip


def certificate_expiring(view: View) -> Iterator[Assessment]:
    return _expiring(view, AlertRuleId.CERTIFICATE_EXPIRING, SubjectType.ENGINE, SubjectType.AUTHORITY)


def token_expiring(view: View) -> Iterator[Assessment]:
    return _expiring(view, AlertRuleId.TOKEN_EXPIRING, SubjectType.TOKEN)


def history_unwritten(view: View) -> Iterator[Assessment]:
    rule = AlertRuleId.HISTORY_UNWRITTEN
    settings = view.policy.settings(rule)
    if not settings.enabled:
        return
    threshold, failing = settings.thresholds["failing_seconds"], view.facts.history_failing_seconds
    yield Assessment(
        rule, Subject(SubjectType.STORE, "store", "Thalweg"), failing > threshold,
        f"The store has accepted no history for {duration(failing)}.", failing, threshold, "seconds",
        {"failing_seconds": round(failing)},
    )  # fmt: skip


CONDITIONS: dict[AlertRuleId, Callable[[View], Iterator[Assessment]]] = {
    AlertRuleId.NO_PROGRESS: no_progress,
    AlertRuleId.LATENCY: latency,
    AlertRuleId.SPILL_DISK: spill_disk,
    AlertRuleId.SPILL_LIMIT: spill_limit,
    AlertRuleId.STAGING_LIMIT: staging_limit,
    AlertRuleId.ARCHIVE_LAG: archive_lag,
    AlertRuleId.BACKLOG_FULL: backlog_full,
    AlertRuleId.WAL_RETENTION: wal_retention,
    AlertRuleId.SLOT_INACTIVE: slot_inactive,
    AlertRuleId.SLOT_IDLE: slot_idle,
    AlertRuleId.SLOT_LOST: slot_lost,
    AlertRuleId.DATABASE_UNREACHABLE: database_unreachable,
    AlertRuleId.COMPONENT_ABORTED: component_aborted,
    AlertRuleId.TABLE_TROUBLE: table_trouble,
    AlertRuleId.ERROR_QUEUE: error_queue,
    AlertRuleId.ENGINE_SILENT: engine_silent,
    AlertRuleId.CERTIFICATE_EXPIRING: certificate_expiring,
    AlertRuleId.TOKEN_EXPIRING: token_expiring,
    AlertRuleId.HISTORY_UNWRITTEN: history_unwritten,
}
