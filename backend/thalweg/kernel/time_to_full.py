"""When something that grows is full."""

from enum import StrEnum

HORIZON_SECONDS = 30 * 86400.0
"""Nobody knows the growth of a later time."""


class FillingLimit(StrEnum):
    """The settings and parameters that bound what grows, by their names."""

    SLOT = "max_slot_wal_keep_size"
    BACKLOG = "queue_spill_limit_mb"
    STAGING = "staging_limit_mb"


def seconds_to_full(room: float, growth: float | None) -> float | None:
    """Until `room` is used up at this growth, per second. None: it is full, it does not grow, the growth is not known,
    or it lasts beyond HORIZON_SECONDS."""
    if room <= 0 or growth is None or growth <= 0:
        return None
    seconds = room / growth
    return seconds if seconds <= HORIZON_SECONDS else None
