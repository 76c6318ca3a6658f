"""Whether alert rules are evaluated: only then is a list of alerts one of now."""

from dataclasses import dataclass
from datetime import datetime

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from thalweg.kernel.clock import now
from thalweg.kernel.words import duration
from thalweg.live.bus import Bus, Rounds

LATE_SECONDS = 15.0
LATE_INTERVALS = 3
log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Evaluation:
    """The last one. `outdated` says in words why what it has found is not of now; None: it is."""

    at: datetime | None
    outdated: str | None


async def last_evaluation(redis: Redis, interval: float) -> Evaluation:
    """`interval`: seconds from one evaluation to the next."""
    try:
        rounds = await Bus(redis).rounds()
    except (RedisError, OSError) as error:
        log.warning("redis cannot be reached", error=str(error))
        return Evaluation(None, "Whether alerts are evaluated is not known: Redis cannot be reached.")
    return evaluation_of(rounds, interval, now())


def evaluation_of(rounds: Rounds | None, interval: float, at: datetime) -> Evaluation:
    if rounds is None:
        return Evaluation(None, "No alert has ever been evaluated: no collector has run yet.")
    # A collector of an earlier version tells only that it lives.
    evaluated_at = rounds.evaluated_at or rounds.reported_at
    age = (at - evaluated_at).total_seconds()
    if age <= max(LATE_SECONDS, LATE_INTERVALS * interval):
        return Evaluation(evaluated_at, None)
    return Evaluation(
        evaluated_at,
        f"Alerts have not been evaluated since {evaluated_at:%Y-%m-%d %H:%M:%S} UTC, for {duration(age)}: the "
        "collector does not run, hangs, or cannot write to the store. Alerts that have begun or ended since are "
        "missing here.",
    )
