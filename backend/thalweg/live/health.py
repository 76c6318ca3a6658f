"""How a stream is doing, in one level and one sentence."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from thalweg.db.models import EngineRow, StreamRow
from thalweg.inspection.slots import SlotState
from thalweg.kernel.words import duration, size
from thalweg.live.backlog import UNKNOWN_BACKLOG
from thalweg.live.schemas import Backlog, Health, HealthLevel, Sample

OBSERVATION_FRESH = timedelta(seconds=15)
LATENCY_WARNING_MS = 10_000
BACKLOG_WARNING_SECONDS = 60
BEHIND_WARNING_SECONDS = 60
SILENT = ("UNREACHABLE", "REFUSED")


@dataclass(frozen=True)
class Facts:
    """What is known of a stream; `observed` is the contract's document of its status."""

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
    """By id; several only when the stream fans out."""
    backlog: Backlog = field(default_factory=lambda: UNKNOWN_BACKLOG)
    slot: SlotState | None = None


def engine_of_concern(row: StreamRow, engines: dict[str, EngineRow]) -> EngineRow:
    """Of a stream's engines the one that does not answer; else the one that captures. In a fan-out an engine that
    receives concerns its destination only."""
    wanted = [] if row.capture_dropped else [row.capture_engine_id]
    if row.capture_dropped or not row.fans_out:
        wanted += [one.engine_id for one in row.receivers]
    for engine_id in wanted:
        if engines[engine_id].state in SILENT:
            return engines[engine_id]
    return engines[row.capture_engine_id]


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
        told = f"{error['title']}: {error['message']}" if error else "It has stopped with an error."
        return _health(HealthLevel.ERROR, told + _held(facts))
    if facts.desired_status == "DROPPED":
        told = f"It is being deleted, held up by: {error['message']}" if error else "It is being deleted."
        return _health(HealthLevel.WARNING, told)
    if error is not None:
        return _health(HealthLevel.WARNING, f"Trying again. {error['title']}: {error['message']}")
    if facts.desired_status == "DISABLED":
        return _stopped(facts)
    return _troubled_destination(facts) or _troubled_table(facts) or _running(facts)


def _troubled_destination(facts: Facts) -> Health | None:
    """The worst that one of several destinations has; the stream itself goes on."""
    found: list[tuple[int, Health]] = []
    for one in (facts.observed or {}).get("destinations", []):
        error, backlog = one["error"], one.get("backlog") or {}
        name = facts.destination_names.get(one["id"], one["id"])
        if backlog.get("state") == "FULL":
            limit = backlog["limit_bytes"] >> 20
            told = f"{name}: its backlog has reached {limit} MiB, and the source keeps WAL for it. Raise its "
            found.append((0, _health(HealthLevel.ERROR, told + "queue_spill_limit_mb, mend it, or drop it.")))
        elif one["status"] == "ABORTED":
            what = f"{error['title']}: {error['message']}" if error else "It has stopped with an error."
            found.append((1, _health(HealthLevel.ERROR, f"{name} has stopped, the others go on. {what}")))
        elif one["status"] != "DROPPED" and error is not None:
            what = f"{error['title']}: {error['message']}"
            found.append((2, _health(HealthLevel.WARNING, f"{name}, the others go on. Trying again. {what}")))
    return min(found, key=lambda item: item[0])[1] if found else None


def _troubled_table(facts: Facts) -> Health | None:
    """The worst of the tables that are not at the source what they were; the others go on."""
    told: dict[str, tuple[bool, str]] = {}
    for one in (facts.observed or {}).get("destinations", []):
        for table in one.get("tables", []):
            if trouble := table.get("trouble"):
                is_lossless = trouble["kind"] == "RENAMED"
                told[f"{table['schema']}.{table['table']}"] = (is_lossless, f"{trouble['reason']} {trouble['cure']}")
    if not told:
        return None
    is_lossless, worst = min(told.values())
    others = f" And {len(told) - 1} more of its tables." if len(told) > 1 else ""
    return _health(HealthLevel.WARNING if is_lossless else HealthLevel.ERROR, worst + others)


def _stopped(facts: Facts) -> Health:
    """On purpose, and not well either: its backlog grows."""
    if facts.observed_status == "DISABLED" and (troubled := _troubled_table(facts)):
        return _health(troubled.level, f"Stopped. {troubled.reason}{_held(facts)}")
    if facts.observed_status != "DISABLED":
        return _health(HealthLevel.STOPPED, "It is draining its queue and stopping.")
    level = HealthLevel.STOPPED
    if facts.slot is not None and facts.slot.wal_status == "lost":
        level = HealthLevel.ERROR
    elif facts.backlog.seconds_to_full is not None:
        level = HealthLevel.WARNING
    return _health(level, f"Stopped.{_held(facts) or ' The source keeps its WAL until it starts again.'}")


def _held(facts: Facts) -> str:
    """What the source keeps for a stream that does not move, as a further sentence."""
    backlog, slot = facts.backlog, facts.slot
    if slot is not None and slot.wal_status == "lost":
        return " The source has removed WAL that it needs: delete it and create it anew."
    if not backlog.bytes:
        return ""
    since = f", the oldest {duration(backlog.age_seconds)} old" if backlog.age_seconds is not None else ""
    told = f" {size(backlog.bytes)} of WAL wait for it at the source{since}."
    if backlog.seconds_to_full is not None:
        told += f" In {duration(backlog.seconds_to_full)} max_slot_wal_keep_size takes its slot."
    return told


def _running(facts: Facts) -> Health:
    sample = facts.sample
    if sample is not None and sample.error_queue_transactions:
        count = sample.error_queue_transactions
        told = "1 transaction is" if count == 1 else f"{count} transactions are"
        return _health(HealthLevel.WARNING, f"{told} parked in the error queue.")
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
    tables = (observed.get("instantiation") or {}).get("tables", [])
    total = sum(max(0, table["rows_estimated"]) for table in tables)
    done = sum(table["rows_copied"] for table in tables)
    return f": {min(100, round(100 * done / total))} % of the rows" if total else ""
