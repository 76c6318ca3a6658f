"""The state that wins if two engines report on one destination, and the age at which a report is too old."""

from datetime import timedelta
from typing import Any

import pytest

from thalweg.engine_client.documents import DestinationStatus, StreamStatus
from thalweg.kernel.clock import now
from thalweg.kernel.lifecycle import DesiredStatus
from thalweg.live.joining_rules import (
    counting,
    earliest,
    failing,
    is_fresh,
    phase_of,
    speaker,
    status_of,
    stream_phase,
)

BACKLOG = {"state": "IN MEMORY", "frames": 0, "lcrs": 0, "bytes": 0, "age_us": 0, "limit_bytes": 1}


def document(told: str, **more: Any) -> dict[str, Any]:
    """`told`: status/phase/code of the error; what is left out is well."""
    status, phase, code = [*told.split("/"), "", ""][:3]
    error = {"code": code, "class": "transient", "title": "Title", "message": "Message"} if code else None
    return {
        "id": "s1", "status": status, "phase": phase, "error": error, "retry_at": None, "positions": None,
        "backlog": None, "instantiation": None, "tables": [], **more,
    }  # fmt: skip


def destination(told: str, *, backlog: bool = False) -> DestinationStatus:
    return DestinationStatus.model_validate(document(told, backlog=BACKLOG if backlog else None))


def stream(told: str) -> StreamStatus:
    own = document(told)
    del own["instantiation"]
    return StreamStatus.model_validate(own)


WAITS = "ENABLED/RETRYING/link_refused"
FAILS = "ENABLED/RETRYING/destination_lost"
ENDED = "ABORTED/STOPPED/apply_failed"
WORKS = "ENABLED/REPLICATING"
BEGINS = "ENABLED/INITIALIZING"
COPIES = "ENABLED/INSTANTIATING"
BEHIND = "ENABLED/CATCHING UP"
PAUSED = "DISABLED/STOPPED"
DROPS = "ENABLED/DROPPING"
GONE = "DROPPED/STOPPED"
SENDER, RECEIVER, BOTH, NONE = (True, False), (False, True), (True, True), (False, False)


@pytest.mark.parametrize(
    ("desired", "sent", "received", "counts", "status", "phase", "fails"),
    [
        # Both work: the one that is less far says the phase.
        ("ENABLED", WORKS, WORKS, BOTH, "ENABLED", "REPLICATING", None),
        ("ENABLED", WORKS, BEHIND, BOTH, "ENABLED", "CATCHING UP", None),
        ("ENABLED", BEHIND, WORKS, BOTH, "ENABLED", "CATCHING UP", None),
        # At a start each waits for the other.
        ("ENABLED", WAITS, None, NONE, None, None, None),
        ("ENABLED", WAITS, COPIES, RECEIVER, "ENABLED", "INSTANTIATING", None),
        ("ENABLED", BEGINS, WAITS, SENDER, "ENABLED", "INITIALIZING", None),
        ("ENABLED", WAITS, WAITS, NONE, None, None, None),
        ("ENABLED", WAITS, WORKS, BOTH, "ENABLED", "RETRYING", "sent"),
        ("ENABLED", WORKS, WAITS, BOTH, "ENABLED", "RETRYING", "received"),
        # One in trouble: an end comes before a retry, whoever reports it.
        ("ENABLED", FAILS, WORKS, BOTH, "ENABLED", "RETRYING", "sent"),
        ("ENABLED", FAILS, ENDED, BOTH, "ABORTED", "STOPPED", "received"),
        ("ENABLED", ENDED, FAILS, BOTH, "ABORTED", "STOPPED", "sent"),
        ("ENABLED", FAILS, FAILS, BOTH, "ENABLED", "RETRYING", "sent"),
        # A stop and a start are done only when both engines have done them.
        ("DISABLED", PAUSED, WORKS, BOTH, "ENABLED", "DRAINING", None),
        ("DISABLED", WORKS, PAUSED, BOTH, "ENABLED", "DRAINING", None),
        ("DISABLED", PAUSED, PAUSED, BOTH, "DISABLED", "STOPPED", None),
        ("ENABLED", PAUSED, WORKS, BOTH, "DISABLED", "INITIALIZING", None),
        # A removal: first the capturing engine, then the one that receives.
        ("DROPPED", DROPS, WORKS, SENDER, "ENABLED", "DROPPING", None),
        ("DROPPED", ENDED, FAILS, SENDER, "ABORTED", "STOPPED", "sent"),
        ("DROPPED", GONE, DROPS, RECEIVER, "ENABLED", "DROPPING", None),
        ("DROPPED", GONE, GONE, RECEIVER, "DROPPED", "STOPPED", None),
        ("DROPPED", GONE, None, SENDER, "DROPPED", "STOPPED", None),
    ],
)  # fmt: skip
def test_destination_at_two_engines(
    desired: str, sent: str, received: str | None, counts: tuple[bool, bool], status: str | None, phase: str | None,
    fails: str | None,
) -> None:  # fmt: skip
    wanted = DesiredStatus(desired)
    sender, receiver = destination(sent), None if received is None else stream(received)
    parts = counting(sender, receiver, None, wanted)
    assert parts == [part for part, does in zip((sender, receiver), counts, strict=True) if does]
    if not parts:
        return
    joined = status_of(parts, wanted)
    assert (joined, phase_of(parts, joined, wanted)) == (status, phase)
    assert failing(parts) is {"sent": sender, "received": receiver, None: None}[fails]


@pytest.mark.parametrize(
    ("capturing", "destinations", "backlog", "speaks", "phase"),
    [
        (WORKS, [FAILS], False, True, None),
        (ENDED, [WORKS], False, True, None),
        (WORKS, [FAILS], True, True, None),
        (WORKS, [ENDED], True, True, None),
        (WORKS, [PAUSED], True, False, "REPLICATING"),
        (FAILS, [ENDED], True, False, "RETRYING"),
        (WORKS, [BEHIND], True, False, "CATCHING UP"),
        (WORKS, [WORKS, COPIES], True, False, "INSTANTIATING"),
        (WORKS, [WORKS, FAILS], True, False, "REPLICATING"),
        (BEHIND, [WORKS, WORKS], True, False, "CATCHING UP"),
        (PAUSED, [WORKS, COPIES], True, False, "STOPPED"),
    ],
)
def test_stream_and_its_destinations(
    capturing: str, destinations: list[str], backlog: bool, speaks: bool, phase: str | None
) -> None:
    parts = [destination(told, backlog=backlog) for told in destinations]
    assert speaker(stream(capturing), parts) is (parts[0] if speaks else None)
    if phase is not None:
        assert stream_phase(stream(capturing), parts) == phase


def test_a_phase_that_no_order_knows_is_unknown() -> None:
    assert earliest({"REPLICATING", "RETRYING", "DREAMING"}) == "RETRYING"
    assert earliest({"DREAMING"}) == earliest(set()) == "UNKNOWN"


@pytest.mark.parametrize(
    ("age", "width", "fresh"), [(0, 0, True), (10, 0, True), (10.1, 0, False), (59, 60, True), (61, 60, False)]
)
def test_age_of_a_report(age: float, width: float, fresh: bool) -> None:
    at = now()
    assert is_fresh(at - timedelta(seconds=age), at, timedelta(seconds=width)) is fresh
