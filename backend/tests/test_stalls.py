"""A destination that applies nothing while changes wait; and of several, the worst by name."""

from datetime import timedelta
from typing import Any

from tests.test_health import NAMES, destination
from tests.test_last_latency import AT, sample_at
from tests.test_units import facts
from thalweg.kernel.lifecycle import ObservedStatus, StreamPhase
from thalweg.live.changes_waiting import changes_wait, waiting_seconds
from thalweg.live.going_on import that_go_on, that_hold_up
from thalweg.live.health import health_of
from thalweg.live.lagging import STALL_CURE
from thalweg.live.rates import UNKNOWN
from thalweg.live.reports import with_least_latency
from thalweg.live.schemas import (
    Backlog,
    ComponentSample,
    ComponentType,
    DestinationSample,
    HealthLevel,
    Lag,
    LastLatency,
    Sample,
)
from thalweg.workers.stalls import STALLS_AFTER, Stalls

KEEPS_UP = Lag(bytes=0, seconds=0.0, age_seconds=0.0)
EMPTY = {"waiting_groups": 0.0, "low_watermark_lag_us": 0.0}


def part(sub_component: str | None, rate: float | None = 0.0, **gauges: float) -> ComponentSample:
    kind = ComponentType.APPLY if sub_component else ComponentType.QUEUE
    return ComponentSample(
        id=f"a:{sub_component}", destination_id="a" if sub_component else None, type=kind, name="x",
        sub_component=sub_component, server=None, state="IDLE", lcrs_per_second=rate, transactions_per_second=0.0,
        bytes_per_second=0.0, time_percent=None, counters={}, gauges=gauges, counter_rates=None,
    )  # fmt: skip


def seen(second: float, *parts: ComponentSample, applied: str = "0/1", rate: float | None = 0.0, **more: Any) -> Sample:
    sample = sample_at(AT + timedelta(seconds=second), UNKNOWN)
    lag = Lag(bytes=100, seconds=None, applied=applied)
    share = sample.destinations[0].model_copy(update={"lag": lag, "lcrs_per_second": rate, **more})
    return sample.model_copy(update={"destinations": [share], "components": list(parts)})


def stalled_since(stalls: Stalls, *samples: Sample) -> Any:
    return [stalls.with_stalls(sample) for sample in samples][-1].destinations[0].stalled_since


HELD = part("APPLY COORDINATOR", low_watermark_lag_us=4e6)


def test_what_waits_for_its_retry_does_not_stall() -> None:
    stalls = Stalls()
    for second in range(60):
        waiting = stalls.with_stalls(seen(second, HELD), {"a"})
    assert waiting.destinations[0].stalled_since is None
    assert stalled_since(stalls, *[seen(second, HELD) for second in range(60, 75)]) is None
    assert stalled_since(stalls, seen(75, HELD)) == AT + timedelta(seconds=60), "since the retry's end"


def test_it_stalls_once_it_has_applied_nothing_for_15_seconds_though_transactions_wait() -> None:
    stalls = Stalls()
    assert stalled_since(stalls, *[seen(second, HELD) for second in range(15)]) is None
    assert stalled_since(stalls, seen(15, HELD)) == AT
    assert stalled_since(stalls, seen(16, HELD, rate=None)) == AT, "not known for one interval"
    assert stalled_since(stalls, seen(17, HELD, rate=3.0)) is None, "rows move"
    assert stalled_since(stalls, *[seen(second, HELD) for second in range(18, 34)]) == AT + timedelta(seconds=18)
    assert stalled_since(stalls, seen(35, HELD, applied="0/2")) is None, "the position moves"
    assert stalled_since(stalls, *[seen(second, HELD, phase="RETRYING") for second in range(36, 60)]) is None


def test_a_restart_of_the_consumer_does_not_begin_the_count_anew() -> None:
    """As a change of rules makes it: it drains, starts, and reads again from an earlier position."""
    stalls, idle = Stalls(), part("APPLY COORDINATOR", **EMPTY)
    assert stalled_since(stalls, *[seen(second, HELD, applied="0/9") for second in range(30)]) == AT
    draining = [seen(second, HELD, applied="0/9", phase="DRAINING") for second in range(30, 33)]
    assert stalled_since(stalls, *draining) is None, "not while it drains"
    started = [seen(33, phase="INITIALIZING", rate=None, lag=Lag(bytes=None, seconds=None))]
    reads = [seen(second, idle, part("APPLY READER", rate=500.0), phase="CATCHING UP") for second in range(34, 40)]
    assert stalled_since(stalls, *started, *reads) == AT
    assert stalled_since(stalls, seen(54, HELD, phase="CATCHING UP", applied="0/9")) == AT, "as far as it was"
    assert stalled_since(stalls, seen(55, HELD, applied="0/A")) is None
    # Nothing waits any more: over after a while.
    assert stalled_since(stalls, *[seen(second, HELD, applied="0/A") for second in range(56, 80)]) is not None
    assert stalled_since(stalls, *[seen(second, idle, applied="0/A") for second in range(80, 100)]) is None
    # A pause, a copy or an error ends it.
    for other in ({"status": "DISABLED", "phase": "STOPPED"}, {"phase": "INSTANTIATING"}, {"phase": "RETRYING"}):
        stalls = Stalls()
        before = [seen(second, HELD) for second in range(30)]
        assert stalled_since(stalls, *before, seen(30, HELD, **other), seen(31, HELD)) is None


def test_what_catches_up_at_no_rate_and_falls_further_behind_is_not_well() -> None:
    reported = in_phase("a", "CATCHING UP")
    for age, growth, rate, level in (
        (54, 9000.0, 0.0, HealthLevel.WARNING), (54, -9000.0, 0.0, HealthLevel.OK), (54, 9000.0, 20.0, HealthLevel.OK),
        (9, 9000.0, 0.0, HealthLevel.OK), (54, None, 0.0, HealthLevel.OK),
    ):  # fmt: skip
        lag = behind(age).model_copy(update={"growth_bytes_per_second": growth})
        sample = seen(0, rate=rate, phase="CATCHING UP")
        told_level, reason = told(reported, lag=lag, sample=sample, observed_phase="CATCHING UP")
        assert told_level == level, reason


def test_no_stall_where_nothing_waits() -> None:
    idle = part("APPLY COORDINATOR", **EMPTY)
    opened = part("APPLY READER", rate=500.0)
    queue, drained = part(None, depth=7.0), part(None, depth=0.0)
    for parts, stalls in (
        ((idle, drained), False),  # WAL of other tables
        ((idle, opened, queue), False),  # the reader assembles a transaction that is open at the source
        ((idle, part("APPLY READER"), queue), True),  # the reader takes nothing
        ((idle, opened, HELD), True),  # it takes, but nothing is applied
    ):
        samples = [seen(second, *parts) for second in (0, STALLS_AFTER.total_seconds())]
        assert (stalled_since(Stalls(), *samples) is not None) is stalls, parts
    assert not changes_wait(seen(0, idle, drained), seen(0).destinations[0])


def shares(**since: float | None) -> Sample:
    """Destinations by id, with the seconds for which each has stalled."""
    sample = sample_at(AT, UNKNOWN)
    own = [
        sample.destinations[0].model_copy(
            update={"destination_id": name, "stalled_since": AT - timedelta(seconds=time) if time else None}
        )
        for name, time in since.items()
    ]
    return sample.model_copy(update={"destinations": own})


def told(*destinations: dict[str, Any], **more: Any) -> tuple[str, str]:
    observed = {"error": None, "destinations": list(destinations)}
    known = facts(observed=observed, destination_names=NAMES, observed_at=AT, **more)
    health = health_of(known, AT)
    return health.level, health.reason


def test_a_stall_is_no_health_and_one_line_tells_of_all_that_stall() -> None:
    ones = [destination(name) for name in NAMES]
    assert told(*ones, sample=shares(a=None, b=23, c=None)) == (
        HealthLevel.WARNING,
        f"Reports has applied nothing for 23 s though changes wait for it; the others continue. {STALL_CURE}",
    )
    assert told(*ones, sample=shares(a=16, b=23, c=18)) == (
        HealthLevel.WARNING,
        "Reports (for 23 s), Archive (for 18 s) and Warehouse (for 16 s) have applied nothing though changes wait for "
        f"them. {STALL_CURE}",
    )


def behind(seconds: float) -> Lag:
    return Lag(bytes=3 << 20, seconds=None, age_seconds=seconds)


def in_phase(name: str, phase: str, status: str = "ENABLED") -> dict[str, Any]:
    return {**destination(name, status), "phase": phase}


def test_the_worst_destination_is_named_with_its_lag() -> None:
    ones = [in_phase(name, "REPLICATING") for name in ("a", "b")]
    lags = {"a": behind(130), "b": behind(300), "c": behind(90)}
    assert told(*ones, in_phase("c", "STOPPED", "DISABLED"), lags=lags) == (
        HealthLevel.WARNING,
        "Reports is 5 min behind its source: 3.0 MiB of WAL are not applied. Also behind: Warehouse (2 min) and "
        "Archive (paused, 90 s).",
    )
    lags["c"] = behind(400)
    assert told(*ones, in_phase("c", "STOPPED", "DISABLED"), lags=lags)[1].startswith(
        "Archive is paused and 7 min behind its source: 3.0 MiB of WAL are not applied. Also behind: Reports (5 min)"
    )
    slow = shares(a=None, b=None)
    late = slow.destinations[1].model_copy(update={"latency": UNKNOWN.model_copy(update={"p99_ms": 12_000.0})})
    slow = slow.model_copy(update={"destinations": [slow.destinations[0], late]})
    assert told(*ones, sample=slow)[1] == "Reports is slow: 99 % of the transactions arrive within 12 s."


def late(seconds: float, **more: Any) -> Sample:
    """The only destination of a stream; its oldest transaction committed so long ago."""
    return seen(0, part("APPLY COORDINATOR", low_watermark_lag_us=seconds * 1e6), **more)


def test_changes_that_wait_are_as_late_as_those_that_have_arrived() -> None:
    reported, lag = in_phase("a", "REPLICATING"), behind(18)
    assert told(reported, lag=lag, sample=late(18)) == (
        HealthLevel.WARNING,
        "18 s behind its source: 3.0 MiB of WAL are not applied.",
    )
    assert told(reported, lag=lag, sample=late(57), observed_phase="CATCHING UP")[1].startswith(
        "57 s behind its source"
    )
    assert told(reported, lag=lag, sample=late(9)) == ("ok", "Replicating.")
    assert told(reported, lag=lag, sample=late(0)) == ("ok", "Replicating."), "WAL of other tables"
    paused = late(300, status="DISABLED")
    assert told(reported, in_phase("b", "REPLICATING"), sample=paused) == ("ok", "Replicating.")


def test_a_failed_destinations_backlog_waits() -> None:
    backlog = Backlog(state="ON DISK", bytes=9, lcrs=9, frames=9, age_seconds=0, limit_bytes=1 << 20)
    share = seen(0, lag=behind(30), phase=StreamPhase.RETRYING, backlog=backlog).destinations[0]
    assert waiting_seconds(seen(0), share) == 30
    alone = share.model_copy(update={"backlog": None})
    for update, waits in (
        ({}, 30), ({"status": ObservedStatus.ABORTED, "phase": StreamPhase.STOPPED}, 30), ({"lag": KEEPS_UP}, None),
        ({"phase": StreamPhase.CATCHING_UP}, None), ({"phase": StreamPhase.INITIALIZING}, None),
    ):  # fmt: skip
        assert waiting_seconds(seen(0), alone.model_copy(update=update)) == waits, "nothing is captured for it either"
    last = LastLatency(p50_ms=1.2, p99_ms=1.79, at=AT)
    down = alone.model_copy(update={"latency": UNKNOWN.model_copy(update={"last": last})})
    whole = with_least_latency(seen(0).model_copy(update={"destinations": [down]}))
    for latency in (whole.latency, whole.destinations[0].latency):
        assert (latency.p99_ms, latency.at_least, latency.last) == (30_000, True, None)
    for update in ({"phase": StreamPhase.INSTANTIATING}, {"status": ObservedStatus.DISABLED}):
        assert waiting_seconds(seen(0), share.model_copy(update=update)) is None


def test_the_last_latency_speaks_while_nothing_arrives() -> None:
    reported = in_phase("a", "REPLICATING")
    for seconds, expected in ((5, "Slow: 99 % of the last transactions arrived within 27 s."), (61, "Replicating.")):
        last = LastLatency(p50_ms=27_300, p99_ms=27_300, at=AT - timedelta(seconds=seconds))
        latency = UNKNOWN.model_copy(update={"transactions": 0, "last": last})
        assert told(reported, sample=sample_at(AT, latency))[1] == expected


def test_a_copy_for_one_destination_does_not_hide_that_another_is_behind() -> None:
    ones = [in_phase("a", "REPLICATING"), in_phase("b", "INSTANTIATING")]
    late = {"a": behind(300), "b": behind(900)}
    level, reason = told(*ones, lags=late, observed_phase="INSTANTIATING")
    assert (level, reason) == (
        HealthLevel.WARNING,
        "Warehouse is 5 min behind its source: 3.0 MiB of WAL are not applied.",
    )
    well = {"a": KEEPS_UP, "b": behind(900)}
    assert told(*ones, lags=well, observed_phase="INSTANTIATING") == ("ok", "Copying the tables to Reports.")


def test_one_cause_at_several_destinations_is_one_line() -> None:
    def lost(name: str) -> dict[str, Any]:
        error = {"code": "connection_lost", "title": "The connection broke", "message": f"{name} does not answer"}
        return destination(name, "ENABLED", error)

    assert told(lost("a"), lost("b"), destination("c"))[1] == (
        "The engine is retrying Warehouse and Reports; Archive continues. The connection broke: a does not answer. "
        "That is Warehouse; the others have the same kind of error."
    )
    full = {"state": "FULL", "limit_bytes": 16 << 20}
    assert told(*[{**destination(name), "backlog": full} for name in ("a", "b")])[1] == (
        "Capture waits time and again because the backlogs of Warehouse and Reports are full (16.0 MiB): no "
        "destination gets changes faster than they apply them, and the source keeps WAL. Remove what keeps Warehouse "
        "and Reports from applying, raise queue_spill_limit_mb, or drop them."
    )


def test_a_full_backlog_holds_up_the_others() -> None:
    paused = {**destination("a", "DISABLED"), "backlog": {"state": "FULL", "limit_bytes": 16 << 20}}
    assert told(paused, in_phase("b", "REPLICATING")) == (
        HealthLevel.ERROR,
        "Capture waits because the backlog of Warehouse is full (16.0 MiB): nothing more reaches any destination, and "
        "the source keeps WAL. Resume Warehouse, raise queue_spill_limit_mb, or drop it.",
    )
    broken = destination("c", "ABORTED", {"title": "A table was replaced", "message": "public.t"})
    assert told({**broken, "backlog": paused["backlog"]}, paused)[1].endswith(
        "Remove the cause that has stopped Archive, then retry it, raise queue_spill_limit_mb, or drop it. And 1 more."
    )
    assert "continue" not in told(paused, in_phase("b", "REPLICATING"), broken)[1]
    assert that_go_on({"destinations": [paused, in_phase("b", "REPLICATING")]}, None) == []


SPILL_LIMIT = {"code": "spill_limit_reached", "title": "Spilled changes have reached their space limit", "message": "x"}


def test_a_full_backlog_of_one_that_applies_only_slows_the_others_down() -> None:
    """Engines report it as an error of that destination, whatever that does."""
    full = {"backlog": {"state": "FULL", "limit_bytes": 16 << 20}, "error": SPILL_LIMIT}
    slow, well = {**in_phase("a", "CATCHING UP"), **full}, in_phase("b", "REPLICATING")
    assert that_hold_up({"destinations": [slow, well]}, shares(a=None, b=None)) == []
    assert told(slow, well, sample=shares(a=None, b=None))[0] == HealthLevel.WARNING
    for stuck in (
        {**slow, "phase": "RETRYING"}, {**slow, "status": "ABORTED"}, {**slow, "status": "DISABLED"},
    ):  # fmt: skip
        assert that_hold_up({"destinations": [stuck, well]}, None) == [stuck]
        assert told(stuck, well)[0] == HealthLevel.ERROR
    assert that_hold_up({"destinations": [slow, well]}, shares(a=20, b=None)) == [slow], "it stands behind a lock"
    assert that_hold_up({"destinations": [{**slow, "status": "DROPPED"}, well]}, None) == []


def test_the_full_backlog_of_an_only_destination_is_told_as_such() -> None:
    one = {**in_phase("a", "RETRYING"), "backlog": {"state": "FULL", "limit_bytes": 16 << 20}, "error": SPILL_LIMIT}
    observed = {"error": SPILL_LIMIT, "destinations": [one]}
    known = facts(observed=observed, destination_names=NAMES, observed_at=AT, observed_phase="RETRYING")
    health = health_of(known, AT)
    assert (health.level, health.reason.split(":")[0]) == (
        HealthLevel.ERROR, "Capture waits because the backlog of Warehouse is full (16.0 MiB)",
    )  # fmt: skip


def test_parking_destinations_are_one_line() -> None:
    def parks(name: str, seconds: int) -> DestinationSample:
        update = {"parks_since": AT - timedelta(seconds=seconds), "error_queue_transactions": 2, "destination_id": name}
        return shares(a=None).destinations[0].model_copy(update=update)

    sample = shares(a=None).model_copy(update={"destinations": [parks("a", 60), parks("b", 130)]})
    assert told(destination("a"), destination("b"), sample=sample)[1] == (
        "Reports (for 2 min) and Warehouse (for 60 s) have parked everything and apply nothing: 4 transactions are "
        "parked in their error queues."
    )
