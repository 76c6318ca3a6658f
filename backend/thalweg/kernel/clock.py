"""The one place that reads the wall clock."""

from datetime import UTC, datetime


def now() -> datetime:
    return datetime.now(UTC)
