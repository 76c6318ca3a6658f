"""The three resolutions of history, how long each is kept, and which one a chart is made from."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from thalweg.db.models import HistoryHourRow, HistoryMinuteRow, HistoryRow, HistorySecondRow
from thalweg.kernel.settings import Settings

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ROWS_MAX = 4500
"""Documents that one chart is made from, for each engine of its stream: about a quarter of a second of work."""
STEPS = (
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800,
)  # fmt: skip
"""Seconds between two points of a chart."""


class Resolution(StrEnum):
    SECOND = "second"
    MINUTE = "minute"
    HOUR = "hour"


@dataclass(frozen=True)
class Tier:
    """`partition` is the span of one partition: what is dropped at a time."""

    resolution: Resolution
    row: type[HistoryRow]
    seconds: int
    partition: timedelta

    @property
    def table(self) -> str:
        return f"history_{self.resolution}s"

    @property
    def width(self) -> timedelta:
        return timedelta(seconds=self.seconds)


SECONDS = Tier(Resolution.SECOND, HistorySecondRow, 1, timedelta(minutes=15))
MINUTES = Tier(Resolution.MINUTE, HistoryMinuteRow, 60, timedelta(days=1))
HOURS = Tier(Resolution.HOUR, HistoryHourRow, 3600, timedelta(days=30))
TIERS = (SECONDS, MINUTES, HOURS)


def kept(tier: Tier, settings: Settings) -> timedelta:
    """At least so long; at most one partition longer."""
    if tier is SECONDS:
        return timedelta(seconds=settings.history_second_kept)
    days = settings.history_minute_kept_days if tier is MINUTES else settings.history_hour_kept_days
    return timedelta(days=days)


def floor(at: datetime, width: timedelta) -> datetime:
    """The begin of the span of that width that holds `at`; spans are counted from 1970."""
    return at - (at - EPOCH) % width


def choose_step(span: timedelta, points_max: int) -> int:
    """The shortest of STEPS that makes no more than so many points, in seconds."""
    seconds = span.total_seconds()
    return next((step for step in STEPS if seconds / step <= points_max), STEPS[-1])


def choose_tier(since: datetime, until: datetime, step: int, now: datetime, settings: Settings) -> Tier:
    """The finest that still has `since`, is not finer than the step needs by far, and has not too many rows."""
    for tier in TIERS[:-1]:
        reaches = since >= now - kept(tier, settings)
        if reaches and (until - since) / tier.width <= ROWS_MAX and (tier is MINUTES or step < MINUTES.seconds):
            return tier
    return HOURS if since < now - kept(MINUTES, settings) or (until - since) / MINUTES.width > ROWS_MAX else MINUTES
