"""Asks the store and Redis whether they answer, and reads what the collector last told of its rounds."""

from collections.abc import Iterator
from datetime import timedelta

import structlog
from prometheus_client import CollectorRegistry, Gauge, generate_latest
from redis.exceptions import RedisError
from sqlalchemy import func, select, text
from sqlalchemy.exc import SQLAlchemyError

from thalweg.db.election import COLLECTOR_LOCK_HELD
from thalweg.db.models import AlertRow
from thalweg.features.health.schemas import CollectorState, HistoryState, Readiness, ReadinessStatus
from thalweg.kernel.clock import now
from thalweg.kernel.context import Context, Resources
from thalweg.kernel.words import duration, ended
from thalweg.live.bus import Bus, Rounds

LATE_SECONDS = 15
REPORT_FRESH = timedelta(seconds=30)
log = structlog.get_logger(__name__)


async def readiness(resources: Resources) -> Readiness:
    held = await _lock_held(resources)
    rounds, redis = await _rounds(resources)
    at = now()
    age = None if rounds is None else max(0.0, (at - rounds.round_at).total_seconds())
    collector = _collector(held, age)
    history: HistoryState = "unknown"
    if rounds is not None and at - rounds.reported_at <= REPORT_FRESH:
        history = "ok" if rounds.history_failure is None else "failing"
    reasons = list(_reasons(held, collector, redis, history, rounds, age))
    status: ReadinessStatus = "degraded" if reasons else "ready"
    return Readiness(
        status="unavailable" if held is None else status, store="unreachable" if held is None else "ok",
        redis="ok" if redis else "unreachable", collector=collector, history=history, reasons=reasons,
        collector_round_age_seconds=None if age is None else round(age, 1),
    )  # fmt: skip


async def _lock_held(resources: Resources) -> bool | None:
    """Whether a collector leads. None: the store cannot be reached."""
    try:
        async with resources.sessions() as session:
            return bool((await session.execute(text(COLLECTOR_LOCK_HELD))).scalar_one())
    except (SQLAlchemyError, OSError) as error:
        log.warning("store cannot be reached", error=str(error))
        return None


async def _rounds(resources: Resources) -> tuple[Rounds | None, bool]:
    """The collector's last report; false when Redis cannot be reached."""
    try:
        return await Bus(resources.redis).rounds(), True
    except (RedisError, OSError) as error:
        log.warning("redis cannot be reached", error=str(error))
        return None, False


def _collector(held: bool | None, age: float | None) -> CollectorState:
    if held is None:
        return "unknown"
    if not held:
        return "absent"
    return "late" if age is not None and age > LATE_SECONDS else "ok"


def _reasons(
    held: bool | None,
    collector: CollectorState,
    redis: bool,
    history: HistoryState,
    rounds: Rounds | None,
    age: float | None,
) -> Iterator[str]:
    if held is None:
        yield "The store cannot be reached."
    if not redis:
        yield "Redis cannot be reached: live data is missing."
    last = f" Its last round was {duration(age)} ago." if age is not None else ""
    if collector == "absent":
        yield f"No collector runs: nothing is observed, and no alert fires.{last}"
    if collector == "late" and rounds is not None and age is not None:
        why = rounds.failure or "the process hangs, or the store answers slowly"
        yield f"The collector has recorded nothing of an engine for {duration(age)}: {ended(why)}"
    if history == "failing" and rounds is not None:
        yield f"No history is written: {ended(rounds.history_failure or '')}"


async def alert_metrics(context: Context) -> bytes:
    """Open alerts in Prometheus' text format."""
    counted = (
        select(AlertRow.rule, AlertRow.severity, AlertRow.state, func.count())
        .where(AlertRow.state != "resolved")
        .group_by(AlertRow.rule, AlertRow.severity, AlertRow.state)
    )
    registry = CollectorRegistry()
    gauge = Gauge("thalweg_alerts", "Open alerts.", ["rule", "severity", "state"], registry=registry)
    for rule, severity, state, count in await context.session.execute(counted):
        gauge.labels(rule, severity, state).set(count)
    return bytes(generate_latest(registry))
