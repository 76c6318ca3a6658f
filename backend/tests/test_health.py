"""Health as a sentence: the worst first, how many more there are, and "goes on" only of what applies."""

from datetime import timedelta
from typing import Any

import pytest

from tests.test_last_latency import AT, sample_at
from tests.test_units import facts
from thalweg.kernel.clock import now
from thalweg.live.going_on import that_go_on
from thalweg.live.health import health_of
from thalweg.live.rates import UNKNOWN
from thalweg.live.schemas import HealthLevel, Lag, Sample
from thalweg.workers.parking import Parking

NAMES = {"a": "Warehouse", "b": "Reports", "c": "Archive"}
LOST = {"title": "The connection broke", "message": "no answer"}
GONE = {"title": "A table was replaced", "message": "public.t is another table now"}
RENAMED = {"kind": "RENAMED", "reason": "public.u is called v.", "cure": "Follow the rename."}
REPLACED = {"kind": "REPLACED", "reason": "public.t was replaced.", "cure": "Copy it again."}


def destination(name: str, status: str = "ENABLED", error: Any = None, *troubles: dict[str, Any]) -> dict[str, Any]:
    tables = [{"schema": "public", "table": str(number), "trouble": trouble} for number, trouble in enumerate(troubles)]
    return {"id": name, "status": status, "error": error, "tables": tables, "backlog": None}


def told(*destinations: dict[str, Any], sample: Sample | None = None) -> tuple[str, str]:
    observed = {"error": None, "destinations": list(destinations)}
    known = facts(observed=observed, destination_names=NAMES, sample=sample, observed_at=AT)
    health = health_of(known, AT)
    return health.level, health.reason


STOPPED, RETRIED = destination("a", "ABORTED", GONE), destination("b", "ENABLED", LOST)
STOPS = "A table was replaced: public.t is another table now"


@pytest.mark.parametrize(
    ("destinations", "reason"),
    [
        ([STOPPED, destination("b")], f"Warehouse has stopped; Reports continues. {STOPS}"),
        ([STOPPED, destination("b"), destination("c")], f"Warehouse has stopped; the others continue. {STOPS}"),
        ([STOPPED, destination("b", "ABORTED", GONE)], f"Warehouse and Reports have stopped. {STOPS}"),
        ([STOPPED, destination("b", "DISABLED")], f"Warehouse has stopped. {STOPS}"),
        ([STOPPED, RETRIED], f"Warehouse has stopped. {STOPS} And 1 more."),
        (
            [destination("a"), RETRIED],
            "The engine is retrying Reports; Warehouse continues. The connection broke: no answer",
        ),
        (
            [destination("a", "ENABLED", None, REPLACED, RENAMED), RETRIED],
            "public.t was replaced. Copy it again. And 2 more.",
        ),
        (
            [destination("a", "ABORTED", GONE, REPLACED), destination("b")],
            f"Warehouse has stopped; Reports continues. {STOPS}",
        ),
    ],
)
def test_what_has_stopped_and_what_goes_on(destinations: list[dict[str, Any]], reason: str) -> None:
    assert told(*destinations)[1] == reason


def test_a_paused_destination_is_named() -> None:
    paused = [destination(name, "DISABLED") for name in ("a", "b")]
    assert told(destination("c"), paused[1]) == (HealthLevel.WARNING, "Replicating. Reports is paused.")
    assert told(*paused, destination("c")) == (HealthLevel.WARNING, "Replicating. Warehouse and Reports are paused.")


def test_a_stream_that_rests_because_its_destinations_are_paused_says_so() -> None:
    one, other = destination("a", "DISABLED"), destination("b", "DISABLED")
    kept = "The source keeps its WAL until it"
    assert resting(one) == (HealthLevel.STOPPED, f"Warehouse is paused. {kept} is resumed.")
    assert resting(one, desired_status="DISABLED") == (HealthLevel.STOPPED, f"Stopped. {kept} starts again.")
    assert told(one, other) == (
        HealthLevel.STOPPED, "Warehouse and Reports are paused. Their changes wait on the engine's disk.",
    )  # fmt: skip
    # The last of several destinations keeps its backlog, and the capture goes on.
    assert told(one)[1] == "Warehouse is paused. The changes for it wait on the engine's disk."
    late = Lag(bytes=3 << 20, seconds=None, age_seconds=300)
    known = facts(observed={"error": None, "destinations": [one]}, destination_names=NAMES, observed_at=AT, lag=late)
    assert health_of(known, AT).reason.startswith("Warehouse is paused and 5 min behind its source")
    troubled = destination("a", "DISABLED", None, REPLACED)
    assert resting(troubled)[1].startswith("Warehouse is paused. public.t was replaced.")


def resting(one: dict[str, Any], **changes: Any) -> tuple[str, str]:
    """Without a backlog: the stream rests with its only destination."""
    known = facts(
        observed={"error": None, "destinations": [one]}, observed_status="DISABLED", observed_phase="STOPPED",
        destination_names=NAMES, observed_at=AT, **changes,
    )  # fmt: skip
    health = health_of(known, AT)
    return health.level, health.reason


FULL = {"title": "No space is left on the disk", "message": "write spill/1.", "side": "engine", "cure": "Free space."}


def test_the_engines_own_trouble_is_said_to_be_the_engines_with_its_cure() -> None:
    words = "No space is left on the disk: write spill/1. The problem is in the engine. Free space."
    assert told(destination("a"), destination("b", "ENABLED", FULL))[1] == (
        f"The engine is retrying Reports; Warehouse continues. {words}"
    )
    for status, reason in (("ENABLED", f"The engine is retrying. {words}"), ("ABORTED", words)):
        known = facts(observed={"error": FULL, "destinations": []}, observed_status=status, observed_at=AT)
        assert health_of(known, AT).reason == reason


def test_a_rule_that_does_not_fit_its_table_is_no_trouble_of_the_engine() -> None:
    error = {
        "code": "rule_refused", "title": "A rule does not fit its table", "side": "engine", "cure": "Correct the rule.",
        "message": 'The rule "north" of "t" is refused at line 1, column 1: the table t has no column "region".',
    }  # fmt: skip
    known = facts(observed={"error": error, "destinations": []}, observed_status="ABORTED", observed_at=AT)
    assert health_of(known, AT).reason == f"{error['title']}: {error['message']}"


def test_who_starts_or_waits_for_a_lock_does_not_go_on() -> None:
    wait = {
        "side": "destination", "destination": "c", "database": "archive", "statement": "LOCK x", "since": None,
        "blockers": [{"pid": 0}],
    }  # fmt: skip
    starts = {**destination("b"), "phase": "INITIALIZING"}
    observed = {"error": None, "destinations": [STOPPED, starts, destination("c")], "waits": [wait]}
    known = facts(observed=observed, destination_names=NAMES, observed_at=AT)
    assert health_of(known, AT).reason == f"Warehouse has stopped. {STOPS} And 1 more."
    assert [part["id"] for part in that_go_on({**observed, "waits": []}, None)] == ["c"]
    assert that_go_on({**observed, "waits": [{**wait, "destination": None}]}, None) == []


def copying(*tables: tuple[int, int]) -> str:
    """Of tables with (estimated, copied) rows."""
    shown = [{"rows_estimated": estimated, "rows_copied": copied} for estimated, copied in tables]
    part = {**destination("a"), "instantiation": {"tables": shown}}
    known = facts(observed={"error": None, "destinations": [part]}, observed_phase="INSTANTIATING", observed_at=AT)
    return health_of(known, AT).reason


def test_no_share_is_told_of_rows_that_nobody_has_counted() -> None:
    assert copying((100, 50), (100, 0)) == "Copying the tables: 25 % of the rows."
    assert copying((100, 50), (-1, 1000)) == copying((-1, 0)) == "Copying the tables."


def waiting(*blockers: dict[str, Any]) -> dict[str, Any]:
    wait = {
        "side": "source", "destination": None, "database": "orders", "statement": "CREATE_REPLICATION_SLOT x",
        "since": (AT - timedelta(seconds=12)).isoformat(), "blockers": list(blockers),
    }  # fmt: skip
    return {"error": None, "destinations": [], "waits": [wait]}


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ("max_slot_wal_keep_size", "In 2 h max_slot_wal_keep_size takes its slot."),
        ("queue_spill_limit_mb", "In 2 h the backlog on disk reaches queue_spill_limit_mb."),
        ("staging_limit_mb", "In 2 h the staged WAL reaches staging_limit_mb."),
    ],
)
def test_which_limit_a_stopped_stream_reaches_first(limit: str, words: str) -> None:
    lag = Lag(bytes=3 << 20, seconds=None, seconds_to_full=7200, reached_limit=limit)
    health = health_of(facts(desired_status="DISABLED", observed_status="DISABLED", lag=lag), now())
    assert (health.level, words in health.reason) == (HealthLevel.WARNING, True), health.reason


def test_behind_whom_it_waits() -> None:
    since = (AT - timedelta(minutes=5)).isoformat()
    seen = {"pid": 7, "user": "bob", "application_name": "psql", "state": "idle in transaction", "since": since}
    unseen = {"pid": 8, "user": "", "application_name": "", "state": "", "since": None}
    observed = waiting(seen, unseen, {**unseen, "pid": 0})
    health = health_of(facts(observed=observed, observed_phase="INSTANTIATING", observed_at=AT), AT)
    assert (health.level, health.reason) == (
        HealthLevel.WARNING,
        "It waits for 12 s at the source orders behind server process 7 (psql of bob, idle in transaction for 5 min), "
        "server process 8 and a prepared transaction: CREATE_REPLICATION_SLOT x. To end that, run in orders: SELECT "
        "pg_terminate_backend(7), pg_terminate_backend(8) and ROLLBACK PREPARED of the transaction that "
        "pg_prepared_xacts shows.",
    )
    dropped = health_of(facts(observed=observed, desired_status="DROPPED", observed_at=AT), AT)
    assert dropped.reason.startswith("It is being deleted. It waits for 12 s at the source orders behind server")


def test_parked_transactions_are_at_a_destination() -> None:
    share = parked(0, 0).destinations[0]

    def reason(**counts: int | None) -> str:
        shares = [
            share.model_copy(update={"destination_id": name, "error_queue_transactions": count})
            for name, count in counts.items()
        ]
        sample = parked(0, 0).model_copy(update={"destinations": shares})
        return told(*map(destination, counts), sample=sample)[1]

    assert reason(a=2) == "2 transactions are parked in the error queue."
    assert reason(a=0, b=1) == "1 transaction is parked in the error queue of Reports."
    assert reason(a=1, b=2) == "3 transactions are parked in the error queues of Warehouse (1) and Reports (2)."
    assert reason(a=None, b=2) == (
        "At least 2 transactions are parked in the error queues of Warehouse (unknown) and Reports (2)."
    )
    assert reason(a=None, b=0) == reason(a=None) == "Replicating."


def test_how_long_the_oldest_is_parked() -> None:
    share = parked(0, 0).destinations[0]

    def reason(**hours: int | None) -> str:
        shares = [
            share.model_copy(
                update={
                    "destination_id": name, "error_queue_transactions": 2,
                    "error_queue_oldest_at": None if ago is None else AT - timedelta(hours=ago),
                }
            )
            for name, ago in hours.items()
        ]  # fmt: skip
        sample = parked(0, 0).model_copy(update={"destinations": shares})
        return told(*map(destination, hours), sample=sample)[1]

    assert reason(a=3) == "2 transactions are parked in the error queue, the oldest for 3 h."
    assert reason(a=3, b=50).endswith("error queues of Warehouse (2) and Reports (2), the oldest for 2 days.")
    assert reason(a=None, b=3).endswith("error queues of Warehouse (2) and Reports (2), the oldest for 3 h.")
    assert reason(a=0) == "2 transactions are parked in the error queue."
    parks = share.model_copy(
        update={
            "error_queue_transactions": 3, "parks_since": AT - timedelta(minutes=5),
            "error_queue_oldest_at": AT - timedelta(hours=4),
        }
    )  # fmt: skip
    sample = parked(0, 3).model_copy(update={"destinations": [parks]})
    assert told(destination("a"), sample=sample)[1].endswith(
        "3 transactions are parked in its error queue, the oldest for 4 h."
    )


def parked(seconds: int, count: int, rate: float = 0.0) -> Sample:
    sample = sample_at(AT + timedelta(seconds=seconds), UNKNOWN)
    share = {"error_queue_transactions": count, "lcrs_per_second": rate}
    destinations = [part.model_copy(update=share) for part in sample.destinations]
    return sample.model_copy(update={"destinations": destinations, **share})


def since(parking: Parking, *samples: Sample) -> Any:
    return [parking.with_parking(sample) for sample in samples][-1].destinations[0].parks_since


def test_parking_everything_begins_with_growth_and_ends_with_anything_applied() -> None:
    parking = Parking()
    assert since(parking, parked(0, 0), parked(1, 1), parked(2, 2)) is None
    assert since(parking, parked(3, 5)) == AT + timedelta(seconds=1)
    assert since(parking, parked(4, 5)) == AT + timedelta(seconds=1)  # The source writes nothing.
    assert since(parking, parked(5, 6, rate=3.0)) is None
    assert since(parking, parked(6, 7), parked(7, 8), parked(8, 9)) == AT + timedelta(seconds=6)
    assert since(parking, parked(9, 0)) is None


def test_a_destination_that_parks_everything_has_failed_and_does_not_go_on() -> None:
    sample = parked(0, 14047)
    share = sample.destinations[0].model_copy(update={"parks_since": AT - timedelta(seconds=300)})
    sample = sample.model_copy(update={"destinations": [share]})
    assert told(destination("a"), sample=sample) == (
        HealthLevel.ERROR,
        "Warehouse has parked everything for 5 min and applies nothing: 14\u202f047 transactions are parked in its "
        "error queue.",
    )
    unknown = share.model_copy(update={"error_queue_transactions": None})
    assert told(destination("a"), sample=sample.model_copy(update={"destinations": [unknown]}))[1].endswith(
        "applies nothing: an unknown number of transactions is parked in its error queue."
    )
    level, reason = told(destination("a"), RETRIED, sample=sample)
    assert (level, reason.endswith(" And 1 more.")) == (HealthLevel.ERROR, True)
    assert "continues" not in told(destination("a"), destination("b", "ABORTED", GONE), sample=sample)[1]


def test_the_oldest_change_ages_while_its_engine_is_silent() -> None:
    lag = Lag(bytes=5 << 20, seconds=None, age_seconds=0.05)
    sample = sample_at(AT, UNKNOWN)
    shares = [share.model_copy(update={"lag": lag}) for share in sample.destinations]
    sample = sample.model_copy(update={"at": AT, "lag": lag, "destinations": shares})
    known = facts(observed={"destinations": []}, sample=sample, observed_at=AT, lag=lag, engine_state="UNREACHABLE")
    assert health_of(known, AT + timedelta(seconds=5)).reason.endswith(", the oldest 5.05 s old.")
    fresh = facts(
        observed={"destinations": []}, sample=sample, observed_at=AT, engine_state="UNREACHABLE",
        lag=lag.model_copy(update={"age_seconds": 7.0}),
    )  # fmt: skip
    assert health_of(fresh, AT + timedelta(seconds=5)).reason.endswith(", the oldest 7 s old."), "measured just now"
