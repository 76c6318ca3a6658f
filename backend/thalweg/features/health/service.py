"""Asks the store and Redis whether they answer."""

from typing import Literal

import structlog
from prometheus_client import CollectorRegistry, Gauge, generate_latest
from redis.exceptions import RedisError
from sqlalchemy import func, select, text
from sqlalchemy.exc import SQLAlchemyError

from thalweg.db.election import COLLECTOR_LOCK_HELD
from thalweg.db.models import AlertRow
from thalweg.features.health.schemas import Readiness
from thalweg.kernel.context import Context, Resources
from thalweg.live.bus import HISTORY_KEY

log = structlog.get_logger(__name__)


async def readiness(resources: Resources) -> Readiness:
    store: Literal["ok", "unreachable"] = "ok"
    collector: Literal["ok", "absent", "unknown"] = "unknown"
    redis: Literal["ok", "unreachable"] = "ok"
    history: Literal["ok", "failing", "unknown"] = "unknown"
    try:
        async with resources.sessions() as session:
            held = (await session.execute(text(COLLECTOR_LOCK_HELD))).scalar_one()
            collector = "ok" if held else "absent"
    except (SQLAlchemyError, OSError) as error:
        log.warning("store cannot be reached", error=str(error))
        store = "unreachable"
    try:
        told = await resources.redis.get(HISTORY_KEY)
        history = "unknown" if told is None else "ok" if told == b"ok" else "failing"
    except (RedisError, OSError) as error:
        log.warning("redis cannot be reached", error=str(error))
        redis = "unreachable"
    status: Literal["ready", "degraded", "unavailable"] = "ready"
    if store != "ok":
        status = "unavailable"
    elif redis != "ok" or collector != "ok" or history == "failing":
        status = "degraded"
    return Readiness(status=status, store=store, redis=redis, collector=collector, history=history)


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
