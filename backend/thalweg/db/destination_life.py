"""The life of a destination, between the engine that captures for it and the one that applies there.

The capturing engine comes first: what another engine copied before the capture knows of it, nobody would catch up with.
It goes first, too: until it has let go of a destination, the engine that receives only drains.
"""

from enum import StrEnum


class Stage(StrEnum):
    """CAPTURED: the capturing engine has it among the stream's destinations, so another engine may receive for it.
    RELEASED: the capturing engine has let go of it; the engine that receives removes what is at the database. GONE:
    nothing of it is left anywhere, and its row goes."""

    NEW = "NEW"
    CAPTURED = "CAPTURED"
    RELEASED = "RELEASED"
    GONE = "GONE"


class Report(StrEnum):
    """Reports of engines that move a destination to its next stage."""

    CAPTURE_HAS_IT = "capture has it"
    CAPTURE_DROPPED_IT = "capture dropped it"
    RECEIVER_DROPPED_IT = "receiver dropped it"


TRANSITIONS = {
    (Stage.NEW, Report.CAPTURE_HAS_IT): Stage.CAPTURED,
    # No other engine has heard of it.
    (Stage.NEW, Report.CAPTURE_DROPPED_IT): Stage.GONE,
    (Stage.CAPTURED, Report.CAPTURE_DROPPED_IT): Stage.RELEASED,
    (Stage.RELEASED, Report.RECEIVER_DROPPED_IT): Stage.GONE,
}


def next_stage(stage: str, report: Report, *, received: bool) -> Stage:
    """The stage after the report, or the same one if the report changes nothing. `received`: another engine applies
    there. If the capturing engine applies the destination, it is gone once that engine has dropped it."""
    now = Stage(stage)
    following = TRANSITIONS.get((now, report), now)
    return Stage.GONE if following is Stage.RELEASED and not received else following
