"""A stream's health, as one level and one sentence."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from thalweg.db.models import EngineRow, StreamRow
from thalweg.engine_client.error_codes import ErrorSide
from thalweg.inspection.slots import SlotState, why_lost
from thalweg.kernel.words import duration, go_on_in_words, listed, parked_in_words, share_in_words, size
from thalweg.live.backlog import UNKNOWN_BACKLOG
from thalweg.live.schemas import Backlog, DestinationSample, Health, HealthLevel, Sample
from thalweg.live.waits import waits_in_words

OBSERVATION_FRESH = timedelta(seconds=15)
LATENCY_WARNING_MS = 10_000
BACKLOG_WARNING_SECONDS = 60
BEHIND_WARNING_SECONDS = 60
SILENT = ("UNREACHABLE", "REFUSED")
LEVELS = (HealthLevel.ERROR, HealthLevel.WARNING)
"""Levels of trouble, the worse first."""


@dataclass(frozen=True)
class Facts:
    """Known facts of a stream; `observed` is the contract's document of its status."""

    desired_status: str
    observed_status: str
    observed_phase: str
    observed: dict[str, Any] | None
    observed_at: datetime | None
    engine_name: str
    engine_state: str
    engine_message: str | None
    sample: Sample | None
    destination_names: dict[str, str] = field(default_factory=dict)
    """By id."""
    backlog: Backlog = field(default_factory=lambda: UNKNOWN_BACKLOG)
    slot: SlotState | None = None
    seconds_to_idle: float | None = None
    """Until idle_replication_slot_timeout takes the slot that nobody reads."""


def engine_of_concern(row: StreamRow, engines: dict[str, EngineRow]) -> EngineRow:
    """The engine whose silence matters: the one of the stream's engines that does not answer, else the capturing one. A
    receiving engine concerns its destination; the stream, too, if that is its only one or, in a deletion, the last one
    left."""
    captures, receivers = engines[row.capture_engine_id], [engines[one.engine_id] for one in row.receivers]
    wanted = [] if row.capture_is_gone else [captures]
    if row.capture_is_gone or len(row.destinations) == 1:
        wanted += receivers
    return next((engine for engine in wanted if engine.state in SILENT), captures)


def is_fresh(observed_at: datetime | None, at: datetime) -> bool:
    return observed_at is not None and at - observed_at <= OBSERVATION_FRESH


def is_heard(facts: Facts, at: datetime) -> bool:
    """Whether what was observed says anything of now."""
    return facts.engine_state not in SILENT and is_fresh(facts.observed_at, at)


def _health(level: HealthLevel, reason: str) -> Health:
    return Health(level=level, reason=reason)


def health_of(facts: Facts, at: datetime) -> Health:
    if facts.engine_state in SILENT and facts.desired_status == "DROPPED":
        return _health(
            HealthLevel.WARNING,
            f"It is being deleted, but the engine {facts.engine_name} does not answer. When it is lost for good, "
            "delete the stream again with force.",
        )
    if facts.engine_state in SILENT:
        told = f"The engine {facts.engine_name}: {facts.engine_message or 'no answer'}"
        return _health(HealthLevel.UNKNOWN, told + _held(facts))
    if facts.observed is None or facts.observed_at is None:
        refused = f" {facts.engine_name}: {facts.engine_message}" if facts.engine_message else ""
        return _health(HealthLevel.UNKNOWN, f"The engine has not reported on it yet.{refused}")
    if not is_fresh(facts.observed_at, at):
        age = round((at - facts.observed_at).total_seconds())
        return _health(HealthLevel.UNKNOWN, f"The last observation is {age} s old: the collector may not run.")
    error = facts.observed.get("error")
    if facts.observed_status == "ABORTED":
        return _health(HealthLevel.ERROR, _in_words(error) + _held(facts))
    if facts.desired_status == "DROPPED":
        told = f"It is being deleted, held up by: {error['message']}" if error else "It is being deleted."
        told = " ".join([told, *waits_in_words(facts.observed, at)])
        return _health(HealthLevel.WARNING, told)
    if error is not None:
        return _health(HealthLevel.WARNING, f"The engine tries again. {_in_words(error)}")
    # An only destination that is stopped stops its stream.
    if "DISABLED" in (facts.desired_status, facts.observed_status):
        return _stopped(facts)
    return _worst(_troubles(facts, at)) or _running(facts)


def _in_words(error: dict[str, Any] | None) -> str:
    """Who reads of a stream looks at its databases first: what is the engine's own says so, with its cure."""
    if error is None:
        return "It has stopped with an error."
    told = f"{error['title']}: {error['message']}"
    if error.get("side") != ErrorSide.ENGINE:
        return told
    return f"{told.rstrip('.')}. It is the engine's own trouble. {error['cure']}".rstrip()


def _worst(troubles: list[Health]) -> Health | None:
    """The first of the worst level, with the number of the others."""
    if not troubles:
        return None
    worst = min(troubles, key=lambda one: LEVELS.index(one.level))
    more = len(troubles) - 1
    return _health(worst.level, worst.reason + (f" And {more} more." if more else ""))


def _troubles(facts: Facts, at: datetime) -> list[Health]:
    """Troubles of destinations and tables, the more pressing first; the stream itself continues."""
    destinations = (facts.observed or {}).get("destinations", [])
    return [
        *_full(facts, destinations), *_broken(facts, destinations, "ABORTED"), *_parking(facts, at),
        *[_health(HealthLevel.WARNING, told) for told in waits_in_words(facts.observed, at)],
        *_table_troubles(facts), *_broken(facts, destinations, "RETRYING"), *_parked(facts),
    ]  # fmt: skip


def _name(facts: Facts, destination_id: str) -> str:
    return facts.destination_names.get(destination_id, destination_id)


def _full(facts: Facts, destinations: list[dict[str, Any]]) -> Iterator[Health]:
    for one in destinations:
        backlog = one.get("backlog") or {}
        if backlog.get("state") == "FULL":
            limit = backlog["limit_bytes"] >> 20
            yield _health(
                HealthLevel.ERROR,
                f"{_name(facts, one['id'])}: its backlog has reached {limit} MiB, and the source keeps WAL for it. "
                "Raise its queue_spill_limit_mb, mend it, or drop it.",
            )


def _broken(facts: Facts, destinations: list[dict[str, Any]], state: str) -> Iterator[Health]:
    """Those destinations that have stopped with an error, or are tried again; one sentence for those with
    the same error. Others are said to go on only where one applies."""
    by_error: dict[str, list[str]] = {}
    for one in destinations:
        told = _in_words(one["error"])
        if _state_of(one) == state and (one.get("backlog") or {}).get("state") != "FULL":
            by_error.setdefault(told, []).append(_name(facts, one["id"]))
    parking = {one.destination_id for one in _that_park(facts)}
    well = [one["id"] for one in destinations if _state_of(one) == "APPLIES" and one["id"] not in parking]
    go_on = go_on_in_words([_name(facts, one) for one in well])
    for what, names in by_error.items():
        if state == "ABORTED":
            have = "has" if len(names) == 1 else "have"
            yield _health(HealthLevel.ERROR, f"{listed(names)} {have} stopped{go_on}. {what}")
        else:
            yield _health(HealthLevel.WARNING, f"The engine tries {listed(names)} again{go_on}. {what}")


def _state_of(one: dict[str, Any]) -> str:
    if one["status"] == "ABORTED":
        return "ABORTED"
    if one["status"] != "ENABLED":
        return "OFF" if one["error"] is None or one["status"] == "DROPPED" else "RETRYING"
    return "APPLIES" if one["error"] is None else "RETRYING"


def _that_park(facts: Facts) -> list[DestinationSample]:
    destinations = facts.sample.destinations if facts.sample is not None else []
    return [one for one in destinations if one.parks_since is not None and one.status == "ENABLED"]


def _parking(facts: Facts, at: datetime) -> Iterator[Health]:
    """A destination that only parks is as good as stopped, however busy it looks."""
    for one in _that_park(facts):
        assert one.parks_since is not None  # noqa: S101
        yield _health(
            HealthLevel.ERROR,
            f"{_name(facts, one.destination_id)} has parked everything for "
            f"{duration((at - one.parks_since).total_seconds())} and applies nothing: "
            f"{parked_in_words(one.error_queue_transactions)} in its error queue.",
        )


def _parked(facts: Facts) -> Iterator[Health]:
    sample, parking = facts.sample, _that_park(facts)
    count = sample.error_queue_transactions if sample is not None else 0
    count -= sum(one.error_queue_transactions for one in parking)
    if count > 0:
        yield _health(HealthLevel.WARNING, f"{parked_in_words(count)} in the error queue.")


def _table_troubles(facts: Facts) -> Iterator[Health]:
    """Troubles of tables that have changed at the source, the worst first; the other tables continue. A trouble that
    has stopped a whole destination is reported as the destination's."""
    told: dict[str, Health] = {}
    for one in (facts.observed or {}).get("destinations", []):
        for table in one.get("tables", []):
            trouble = table.get("trouble")
            if trouble and (one["status"] != "ABORTED" or trouble["kind"] == "RENAMED"):
                level = HealthLevel.WARNING if trouble["kind"] == "RENAMED" else HealthLevel.ERROR
                told[f"{table['schema']}.{table['table']}"] = _health(level, f"{trouble['reason']} {trouble['cure']}")
    yield from sorted(told.values(), key=lambda one: LEVELS.index(one.level))


def _stopped(facts: Facts) -> Health:
    """On purpose, and not well either: its backlog grows."""
    if facts.observed_status == "DISABLED" and (troubled := _worst(list(_table_troubles(facts)))):
        return _health(troubled.level, f"Stopped. {troubled.reason}{_held(facts)}")
    if facts.observed_status != "DISABLED":
        return _health(HealthLevel.STOPPED, "It is draining its queue and stopping.")
    level = HealthLevel.STOPPED
    if facts.slot is not None and facts.slot.wal_status == "lost":
        level = HealthLevel.ERROR
    elif facts.backlog.seconds_to_full is not None or facts.seconds_to_idle is not None:
        level = HealthLevel.WARNING
    return _health(level, f"Stopped.{_held(facts) or ' The source keeps its WAL until it starts again.'}")


def _held(facts: Facts) -> str:
    """A further sentence on what the source keeps for a stream that does not move."""
    backlog, slot = facts.backlog, facts.slot
    if slot is not None and slot.wal_status == "lost":
        return f" {' '.join(why_lost(slot.invalidation_reason))} Then delete the stream and create it anew."
    idle = ""
    if facts.seconds_to_idle is not None:
        idle = f" In {duration(facts.seconds_to_idle)} idle_replication_slot_timeout takes its slot."
    if not backlog.bytes:
        return idle
    age = None if backlog.age_seconds is None else f"{duration(backlog.age_seconds)} old"
    if slot is None:
        oldest = f", the oldest {age}" if age else ""
        told = f" {size(backlog.bytes)} of WAL wait for it at the source, of all its databases{oldest}."
    else:
        # A destination's backlog on the engine's disk is read already: the source keeps less than it is behind.
        oldest = f"; the oldest change that is not applied is {age}" if age else ""
        told = f" Its slot keeps {size(slot.retained_bytes)} of WAL at the source, of all its databases{oldest}."
    if backlog.seconds_to_full is not None:
        told += f" In {duration(backlog.seconds_to_full)} max_slot_wal_keep_size takes its slot."
    return told + idle


def _running(facts: Facts) -> Health:
    sample = facts.sample
    if facts.observed_phase == "INSTANTIATING":
        return _health(HealthLevel.OK, f"Copying the tables{_copied(facts.observed or {})}.")
    if facts.observed_phase == "INITIALIZING":
        return _health(HealthLevel.OK, "Starting.")
    backlog = facts.backlog
    if backlog.bytes and backlog.age_seconds is not None and backlog.age_seconds > BEHIND_WARNING_SECONDS:
        return _health(
            HealthLevel.WARNING,
            f"{duration(backlog.age_seconds)} behind its source: {size(backlog.bytes)} of WAL are not applied.",
        )
    if backlog.seconds is not None and backlog.seconds > BACKLOG_WARNING_SECONDS:
        return _health(HealthLevel.WARNING, f"{duration(backlog.seconds)} of work lie ahead at the present rate.")
    p99 = sample.latency.p99_ms if sample else None
    if p99 is not None and p99 > LATENCY_WARNING_MS:
        return _health(HealthLevel.WARNING, f"Slow: 99 % of the transactions arrive within {p99 / 1000:.0f} s.")
    if facts.observed_phase == "CATCHING UP":
        return _health(HealthLevel.OK, "Catching up with the source.")
    if facts.observed_phase == "DRAINING":
        return _health(HealthLevel.OK, "Draining its queue.")
    return _health(HealthLevel.OK, "Replicating.")


def _copied(observed: dict[str, Any]) -> str:
    copies = [one.get("instantiation") or {} for one in observed.get("destinations", [])]
    tables = [table for copy in copies for table in copy.get("tables", [])]
    estimates = [table["rows_estimated"] for table in tables]
    # The share of a number that nobody knows is not known either.
    total = sum(estimates) if min(estimates, default=-1) >= 0 else 0
    done = sum(table["rows_copied"] for table in tables)
    return f": {share_in_words(done / total)} of the rows" if total else ""
