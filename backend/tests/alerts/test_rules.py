"""The rules as a pure function: facts and time in, changes out."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from thalweg.alerting.catalogue import RULES, AlertRuleId, AlertSeverity, SubjectType
from thalweg.alerting.conditions import CONDITIONS, Key
from thalweg.alerting.evaluation import Change, evaluate
from thalweg.alerting.facts import DestinationFacts, Disk, EngineFacts, Expiry, Facts, Slot, Spill, StreamFacts
from thalweg.alerting.lifecycle import AlertState, OpenAlert, Step
from thalweg.alerting.policy import Override, Policy, Silence, effective
from thalweg.alerting.trend import Memory

START = datetime(2026, 11, 21, 12, tzinfo=UTC)
MIB, GIB = 1 << 20, 1 << 30
SOUND = StreamFacts(
    "s", "orders", "ENABLED", "ENABLED", "REPLICATING", seen=True, source_end=1000, done=1000, had_slot=True,
    behind_bytes=0, latency_seconds=0.01, parked=0,
    slot=Slot(START, missing=False, active=True, wal_status="reserved", current_lsn=1000, retained_bytes=100),
)  # fmt: skip
ENGINE = EngineFacts("e", "local", "ONLINE", 1.0, disk=Disk(100 * GIB, 90 * GIB))


@dataclass
class Clock:
    """Runs evaluations one after the other and keeps the alerts as the store does."""

    policy: Policy = field(default_factory=Policy)
    memory: Memory = field(default_factory=Memory)
    alerts: dict[Key, OpenAlert] = field(default_factory=dict)
    seconds: float = 0
    seen: list[tuple[float, AlertRuleId, Step]] = field(default_factory=list)

    def at(
        self, seconds: float, *streams: StreamFacts, engines: list[EngineFacts] | None = None, expiries: Any = ()
    ) -> list[Change]:
        self.seconds = seconds
        at = START + timedelta(seconds=seconds)
        facts = Facts(at, list(streams), engines if engines is not None else [ENGINE], list(expiries))
        changes = evaluate(facts, self.memory, self.policy, dict(self.alerts))
        for change in changes:
            self._take(change, at)
            if change.step is not Step.REFRESH:
                self.seen.append((seconds, change.key[0], change.step))
        return changes

    def _take(self, change: Change, at: datetime) -> None:
        if change.step is Step.BEGIN:
            self.alerts[change.key] = OpenAlert(AlertState.PENDING, at)
        elif change.step is Step.FIRE:
            self.alerts[change.key] = replace(self.alerts[change.key], state=AlertState.FIRING)
        elif change.step is Step.CLEARING:
            self.alerts[change.key] = replace(self.alerts[change.key], clear_since=at)
        elif change.step is Step.REFRESH:
            self.alerts[change.key] = replace(self.alerts[change.key], clear_since=None)
        else:
            del self.alerts[change.key]

    def firing(self) -> set[AlertRuleId]:
        return {key[0] for key, alert in self.alerts.items() if alert.state is AlertState.FIRING}


def test_every_rule_has_a_condition_and_says_what_to_do() -> None:
    assert set(CONDITIONS) == set(RULES) == set(AlertRuleId)
    for rule in RULES.values():
        assert rule.meaning.endswith(".") and rule.action.endswith(".")
        for threshold in rule.thresholds:
            assert threshold.minimum <= threshold.default <= threshold.maximum


@pytest.mark.parametrize("rule", map(AlertRuleId, ("spill_disk", "spill_limit", "wal_retention", "slot_idle")))
def test_what_a_paused_destination_fills_is_cured_by_resuming_it(rule: AlertRuleId) -> None:
    assert "resume" in RULES[rule].action


def test_nothing_fires_where_all_is_well() -> None:
    clock = Clock()
    for second in range(0, 600, 5):
        end = 1000 + second * MIB
        slot = replace(SOUND.slot, current_lsn=end, read_at=START + timedelta(seconds=second))  # type: ignore[type-var]
        clock.at(second, replace(SOUND, source_end=end, done=end, slot=slot))
    assert clock.seen == []


# --- the life of an alert


def parked(count: int) -> StreamFacts:
    return replace(SOUND, parked=count)


def test_without_hold_time_it_fires_at_once_and_is_resolved_after_its_resolve_time() -> None:
    clock = Clock()
    clock.at(0, parked(1))
    clock.at(1, parked(2))
    clock.at(2, parked(0))
    clock.at(6, parked(0))
    clock.at(7, parked(0))
    rule = AlertRuleId.ERROR_QUEUE
    assert clock.seen == [
        (0, rule, Step.BEGIN), (0, rule, Step.FIRE), (2, rule, Step.CLEARING), (7, rule, Step.RESOLVE)
    ]  # fmt: skip


def test_one_that_comes_back_while_it_clears_goes_on_as_the_same() -> None:
    clock = Clock()
    for second, count in ((0, 1), (2, 0), (4, 1), (6, 0), (8, 1), (10, 0), (14, 0)):
        clock.at(second, parked(count))
    assert [step for _, _, step in clock.seen].count(Step.FIRE) == 1
    assert clock.firing() == {AlertRuleId.ERROR_QUEUE}
    clock.at(15, parked(0))
    assert clock.firing() == set()


def slow(seconds: float | None) -> StreamFacts:
    return replace(SOUND, latency_seconds=seconds, behind_bytes=5)


def test_held_condition_fires_and_a_short_one_does_not() -> None:
    clock = Clock()
    clock.at(0, slow(31))
    clock.at(59, slow(31))
    clock.at(59.5, slow(1))
    assert clock.seen[-1][2] is Step.DISMISS
    clock.at(100, slow(31))
    clock.at(160, slow(31))
    assert clock.firing() == {AlertRuleId.LATENCY}


def test_nothing_is_said_to_arrive_while_changes_only_wait() -> None:
    told = []
    for at_least in (False, True):
        (change,) = Clock().at(0, replace(slow(240), latency_at_least=at_least))
        assert change.assessment is not None
        told.append(change.assessment.message)
    assert told == [
        "Changes of orders arrive after 4 min (p99); the threshold is 30 s.",
        "Changes of orders have not arrived for 4 min; the threshold is 30 s.",
    ]


def test_value_at_the_edge_does_not_flap() -> None:
    clock = Clock()
    for second in range(0, 400, 5):
        clock.at(second, slow(31 if second % 10 else 29))
    assert clock.firing() == set(), "29 s ends what is pending"
    clock = Clock()
    for second in range(400, 800, 5):
        clock.at(second, slow(31 if second < 500 or second % 10 else 29))
    assert [step for _, _, step in clock.seen] == [Step.BEGIN, Step.FIRE]
    for second in range(800, 870, 5):
        clock.at(second, slow(23))
    assert clock.firing() == set(), "below four fifths of the threshold it is over"


def test_what_is_not_known_moves_nothing() -> None:
    clock = Clock()
    clock.at(0, slow(31))
    clock.at(70, slow(31))
    away = replace(SOUND, seen=False, latency_seconds=None, parked=None)
    for second in range(75, 400, 5):
        clock.at(second, away)
    assert clock.firing() == {AlertRuleId.LATENCY}
    clock.at(400, replace(SOUND, latency_seconds=None, behind_bytes=0))  # idle: nothing waits
    clock.at(460, replace(SOUND, latency_seconds=None, behind_bytes=0))
    assert clock.firing() == set()


def test_subject_that_goes_takes_its_alerts_with_it() -> None:
    clock = Clock()
    clock.at(0, parked(1), replace(slow(31), id="t"))
    (change,) = [change for change in clock.at(1) if change.step is Step.RESOLVE]
    assert change.assessment is None
    assert clock.alerts == {}


# --- policy


def test_stream_settings_win_over_those_of_all() -> None:
    rule = AlertRuleId.ERROR_QUEUE
    clock = Clock(Policy({
        (rule, None): Override(thresholds={"transactions": 10}, severity=AlertSeverity.CRITICAL),
        (rule, "s"): Override(thresholds={"transactions": 1}),
        (AlertRuleId.COMPONENT_ABORTED, "s"): Override(enabled=False),
    }))  # fmt: skip
    other = replace(parked(5), id="t", name="t", status="ABORTED")
    fired = [change for change in clock.at(0, replace(parked(5), status="ABORTED"), other) if change.step is Step.FIRE]
    assert [(change.key[0], change.key[2], change.settings.severity) for change in fired] == [
        (AlertRuleId.COMPONENT_ABORTED, "t", AlertSeverity.CRITICAL), (rule, "s", AlertSeverity.CRITICAL)
    ]  # fmt: skip
    assert effective(rule).thresholds == {"transactions": 0}


def test_rule_that_is_switched_off_ends_its_alerts() -> None:
    clock = Clock()
    clock.at(0, parked(1))
    clock.policy = Policy({(AlertRuleId.ERROR_QUEUE, None): Override(enabled=False)})
    clock.at(1, parked(1))
    assert clock.alerts == {}


@pytest.mark.parametrize(
    ("rule", "stream", "covered"),
    [(None, None, True), (AlertRuleId.LATENCY, None, True), (None, "s", True), (AlertRuleId.LATENCY, "s", True),
     (AlertRuleId.SLOT_LOST, None, False), (None, "t", False)],
)  # fmt: skip
def test_silences(rule: AlertRuleId | None, stream: str | None, covered: bool) -> None:
    policy = Policy(silences=(Silence(rule, stream, START),))
    assert policy.silenced(AlertRuleId.LATENCY, "s", START - timedelta(seconds=1)) is covered
    assert not policy.silenced(AlertRuleId.LATENCY, "s", START)
    assert policy.silenced(AlertRuleId.ENGINE_SILENT, None, START - timedelta(seconds=1)) is (
        rule is None and stream is None
    )


# --- the conditions


def test_no_progress_needs_wal_that_grows_and_a_position_that_stands() -> None:
    clock = Clock()
    for second in range(0, 300, 5):  # idle: nothing grows
        clock.at(second, SOUND)
    for second in range(300, 600, 5):  # grows, and it follows in steps
        end = 1000 + (second - 300) * MIB
        clock.at(second, replace(SOUND, source_end=end, done=end - (second % 10) * MIB))
    assert clock.seen == []
    for second in range(600, 700, 5):
        clock.at(second, replace(SOUND, source_end=1000 + second * MIB, done=7))
    assert clock.firing() == {AlertRuleId.NO_PROGRESS}
    clock.at(700, replace(SOUND, source_end=1000 + 700 * MIB, done=1000 + 400 * MIB))
    clock.at(711, replace(SOUND, source_end=1000 + 711 * MIB, done=1000 + 700 * MIB))
    assert clock.firing() == set()


def test_no_progress_believes_the_source_where_the_engine_sees_no_end() -> None:
    """A destination that is away: the engine keeps its last picture, the source's own end moves on."""
    clock = Clock()
    for second in range(0, 100, 5):
        slot = replace(SOUND.slot, current_lsn=1000 + second * MIB)  # type: ignore[type-var]
        clock.at(second, replace(SOUND, phase="RETRYING", slot=slot))
    assert clock.firing() == {AlertRuleId.NO_PROGRESS}
    stopped = replace(SOUND, desired_status="DISABLED", status="DISABLED", phase="STOPPED")
    clock.at(100, stopped)
    assert clock.firing() == set(), "stopped on purpose"


def at_both(end: int, warehouse: int, reports: int, **more: Any) -> StreamFacts:
    """A stream with two destinations, each at its own position; the stream's is the lower one."""
    both = (
        DestinationFacts("warehouse", "Warehouse", "ENABLED", None, phase="REPLICATING", done=warehouse),
        DestinationFacts("reports", "Reports", "ENABLED", None, done=reports, **{"phase": "REPLICATING", **more}),
    )
    phase = "INSTANTIATING" if more.get("phase") == "INSTANTIATING" else "REPLICATING"
    lowest = min(warehouse, reports)
    return replace(SOUND, source_end=end, done=lowest, destinations=both, phase=phase)


def parts(clock: Clock, rule: AlertRuleId) -> set[str]:
    return {key[3] for key, alert in clock.alerts.items() if key[0] is rule and alert.state is AlertState.FIRING}


def test_no_progress_is_judged_at_each_destination() -> None:
    """Confirmed positions advance the stream's sum, and the lowest of all positions hides another that stands."""
    clock = Clock()
    for second in range(0, 100, 5):
        end = 1000 + second * MIB
        changes = clock.at(second, replace(at_both(end, end, 7), done=end))
    assert parts(clock, AlertRuleId.NO_PROGRESS) == {"reports"}
    assessment = next(change.assessment for change in changes if change.key[:1] == (AlertRuleId.NO_PROGRESS,))
    assert assessment is not None and assessment.evidence["destination_id"] == "reports"
    assert assessment.message.startswith("Reports of orders has not moved for 95 s")


def test_no_progress_says_that_a_transaction_waits_for_its_retry() -> None:
    clock = Clock()
    for second in range(0, 100, 5):
        end = 1000 + second * MIB
        changes = clock.at(
            second, at_both(end, end, 7, retry="1 transaction waits for its retry 2 of 2 at 12:09:13 UTC")
        )
    assessment = next(change.assessment for change in changes if change.key[:1] == (AlertRuleId.NO_PROGRESS,))
    assert assessment is not None
    assert assessment.message.endswith(" of WAL: 1 transaction waits for its retry 2 of 2 at 12:09:13 UTC.")


def test_a_destination_that_is_copied_does_not_silence_the_other() -> None:
    clock = Clock()
    for second in range(0, 100, 5):
        slot = replace(SOUND.slot, active=False)  # type: ignore[type-var]
        stream = at_both(1000 + second * MIB, 7, 1000, phase="INSTANTIATING")
        clock.at(second, replace(stream, slot=slot))
    assert parts(clock, AlertRuleId.NO_PROGRESS) == {"warehouse"}
    assert AlertRuleId.SLOT_INACTIVE in clock.firing()
    clock = Clock()
    for second in range(0, 100, 5):
        alone = replace(SOUND, source_end=1000 + second * MIB, done=7, phase="INSTANTIATING", slot=None)
        clock.at(second, alone)
    assert clock.firing() == set(), "the only one is copied"


def test_what_is_paused_on_purpose_raises_no_alert() -> None:
    """Its only destination is switched off, and the stream rests with it: nobody reads its slot."""
    clock = Clock()
    for second in range(0, 400, 5):
        slot = replace(SOUND.slot, active=False)  # type: ignore[type-var]
        paused = replace(
            SOUND, status="DISABLED", phase="STOPPED", is_paused=True, source_end=1000 + second * MIB, done=7,
            latency_seconds=90.0, slot=slot,
        )  # fmt: skip
        clock.at(second, paused)
    assert clock.seen == []


def kept(second: float, retained: int, **more: Any) -> StreamFacts:
    slot = Slot(START + timedelta(seconds=second), missing=False, active=True, retained_bytes=retained, **more)
    return replace(SOUND, slot=slot)


def test_wal_retention_by_size() -> None:
    clock = Clock()
    clock.at(0, kept(0, 11 * GIB))
    changes = clock.at(30, kept(30, 11 * GIB))
    assert clock.firing() == {AlertRuleId.WAL_RETENTION}
    assert changes[0].assessment is not None
    assert changes[0].assessment.message == "The source keeps 11.0 GiB of WAL for orders."


def test_wal_retention_by_time_to_the_limit() -> None:
    """10 MiB/s with 18 GiB left: half an hour, below the threshold of an hour."""
    clock = Clock()
    for second in range(0, 60, 5):
        changes = clock.at(second, kept(second, second * 10 * MIB, safe_bytes=18 * GIB, wal_status="reserved"))
    assert clock.firing() == {AlertRuleId.WAL_RETENTION}
    assessment = next(change.assessment for change in changes if change.assessment is not None)
    assert assessment.evidence["growth_bytes_per_second"] == pytest.approx(10 * MIB)
    assert assessment.evidence["seconds_to_full"] == pytest.approx(1843.2)
    assert "31 min" in assessment.message


def grown(*values: tuple[float, float]) -> float | None:
    """Of (seconds, value)."""
    memory = Memory()
    for second, value in values:
        growth = memory.growth("disk", START + timedelta(seconds=second), value)
    return growth


def test_growth_begins_where_the_rise_began_and_is_over_with_it() -> None:
    quiet = [(second, 70.0) for second in range(0, 500, 5)]
    rise = [(second, 70 + 8.0 * (second - 495)) for second in range(500, 540, 5)]
    assert grown(*quiet) == 0
    assert grown(*quiet, *rise) == pytest.approx(8), "what was before does not make it slower"
    assert grown(*quiet, *rise, (540, 70.0)) == 0
    assert grown(*quiet, *rise, *((second, 70.0) for second in range(540, 600, 5))) == 0
    again = [(second, 70 + 3.0 * (second - 545)) for second in range(545, 580, 5)]
    assert grown(*quiet, *rise, (540, 70.0), *again) == pytest.approx(3), "one fall is the end of a trouble"
    assert grown(*rise[:2]) is None


def test_what_goes_up_and_down_does_not_grow() -> None:
    teeth = [(second, 9.0 * (second % 40)) for second in range(0, 600, 5)]
    assert [grown(*teeth[:end]) for end in range(30, len(teeth), 3)] == [0] * 30
    rising = [(second, value + second) for second, value in teeth]
    assert grown(*rising) == pytest.approx(1, rel=0.2)


def test_checkpoints_of_uneven_length_are_no_growth() -> None:
    """WAL that checkpoints recycle: a tooth that is higher than those before is still a tooth."""
    teeth, second = [], 0
    for length in (300, 270, 320, 290, 340, 300):
        teeth += [(float(second + at), 100.0 + 16.0 * at) for at in range(0, length, 5)]
        second += length
    assert [grown(*teeth[:end]) for end in range(118, len(teeth), 5)] == [0] * len(range(118, len(teeth), 5))
    stalled = [(float(second + at), 100.0 + 16.0 * at) for at in range(0, 900, 5)]
    assert grown(*teeth, *stalled) == pytest.approx(16)


def test_what_is_kept_between_two_moves_of_the_slot_is_no_growth() -> None:
    clock = Clock()
    for second in range(0, 120, 5):
        slot = replace(kept(second, second * 10 * MIB, safe_bytes=18 * GIB, wal_status="reserved").slot, keeps_up=True)
        clock.at(second, replace(SOUND, slot=slot))
    assert clock.seen == []


def test_a_slot_that_the_source_gives_up_as_idle_is_told_before_and_after() -> None:
    clock = Clock()
    stopped = replace(SOUND, desired_status="DISABLED", status="DISABLED")

    def idle(left: float | None) -> StreamFacts:
        return replace(stopped, slot=replace(SOUND.slot, active=False, seconds_to_idle=left))  # type: ignore[type-var]

    clock.at(0, idle(7200))
    assert clock.alerts == {}
    for second in (5, 40):
        changes = clock.at(second, idle(1800))
    assert clock.firing() == {AlertRuleId.SLOT_IDLE}
    assessment = next(change.assessment for change in changes if change.assessment is not None)
    assert "idle_replication_slot_timeout will invalidate it in 30 min" in assessment.message
    lost = Slot(START, missing=False, wal_status="lost", invalidation_reason="idle_timeout")
    changes = clock.at(60, replace(stopped, slot=lost))
    told = next(
        change.assessment
        for change in changes
        if change.assessment is not None and change.assessment.rule is AlertRuleId.SLOT_LOST
    )
    assert "it was not read for longer than idle_replication_slot_timeout" in told.message


def test_steady_retention_has_no_time_to_full() -> None:
    clock = Clock()
    for second in range(0, 120, 5):
        clock.at(second, kept(second, GIB, safe_bytes=MIB, wal_status="extended"))
    assert clock.seen == []


@pytest.mark.parametrize("slot", [Slot(START, missing=True), Slot(START, missing=False, wal_status="lost")])
def test_lost_slot_fires_at_once(slot: Slot) -> None:
    clock = Clock()
    clock.at(0, replace(SOUND, slot=slot))
    assert clock.firing() == {AlertRuleId.SLOT_LOST}
    new = Clock()
    new.at(0, replace(SOUND, slot=Slot(START, missing=True), had_slot=False, phase="INITIALIZING"))
    assert new.alerts == {}, "a new stream has not made its slot yet"


def test_inactive_slot() -> None:
    clock = Clock()
    idle = replace(SOUND, slot=replace(SOUND.slot, active=False))  # type: ignore[type-var]
    clock.at(0, idle)
    clock.at(61, idle)
    assert clock.firing() == {AlertRuleId.SLOT_INACTIVE}
    clock.at(62, replace(idle, desired_status="DISABLED", status="DISABLED"))
    assert clock.alerts == {}


def test_spill_limit_is_watched_for_each_component() -> None:
    clock = Clock()
    spilling = replace(SOUND, spills=(
        Spill("queue", "queue", "queue_spill_limit_mb", 90.0, 100.0),
        Spill("reader", "reader", "spill_limit_mb", 10.0, 100.0),
    ))  # fmt: skip
    clock.at(0, spilling)
    clock.at(30, spilling)
    assert [(key[0], key[3]) for key in clock.alerts] == [(AlertRuleId.SPILL_LIMIT, "queue")]
    clock.at(35, replace(SOUND, seen=False))
    assert clock.firing() == {AlertRuleId.SPILL_LIMIT}, "not known: as it was"


def test_a_full_backlog_is_told_once() -> None:
    spills = (Spill("reports:queue", "its backlog", "queue_spill_limit_mb", 16.0 * MIB, 16.0 * MIB, "reports"),)
    reports = DestinationFacts("reports", "Reports", "DISABLED", None, applies=False, full_bytes=16 * MIB)
    clock = Clock()
    for second in (0, 40):
        clock.at(second, replace(SOUND, spills=spills, destinations=(reports,)))
    assert clock.firing() == {AlertRuleId.BACKLOG_FULL}
    only = Clock()
    for second in (0, 40):
        changes = only.at(second, replace(SOUND, spills=spills, destinations=(replace(reports, full_bytes=None),)))
    assert only.firing() == {AlertRuleId.SPILL_LIMIT}, "it holds nobody up"
    assert not changes or "at its backlog, 100 %" in str(changes[0].assessment)


def test_a_limit_that_is_reached_has_no_time_left() -> None:
    def told(*used: float) -> str:
        clock = Clock()
        for second, amount in enumerate(used):
            full = replace(SOUND, spills=(Spill("queue", "queue", "queue_spill_limit_mb", amount * MIB, 100.0 * MIB),))
            changes = clock.at(10 * second, full)
        assessment = next(change.assessment for change in changes if change.assessment is not None)
        return assessment.message

    assert told(60, 70, 80, 90, 100).endswith("100 % of queue_spill_limit_mb. It is full.")
    assert told(60, 70, 80, 90, 99.99).endswith("At the present growth it is reached in 1 s.")


def test_spill_disk_by_share_and_by_time() -> None:
    clock = Clock()
    for second in (0, 30):
        clock.at(second, engines=[replace(ENGINE, disk=Disk(100 * GIB, 9 * GIB))])
    assert clock.firing() == {AlertRuleId.SPILL_DISK}
    growing = Clock()
    for second in range(0, 60, 5):
        growing.at(second, engines=[replace(ENGINE, disk=Disk(100 * GIB, 50 * GIB - second * 100 * MIB))])
    assert growing.firing() == {AlertRuleId.SPILL_DISK}, "500 s to full"


def test_disk_of_which_the_engine_takes_no_more_is_full() -> None:
    """A small one: a tenth of it is less than the engine leaves to others."""
    full, clock = [replace(ENGINE, disk=Disk(2 * GIB, 255 * MIB))], Clock()
    clock.at(0, engines=full)
    changes = clock.at(30, engines=full)
    assert clock.firing() == {AlertRuleId.SPILL_DISK}
    assert changes[0].assessment is not None
    assert changes[0].assessment.message.endswith("The engine no longer spills: 256.0 MiB stay free for others.")


def test_one_destination_of_several_that_stops() -> None:
    clock = Clock()
    error = "A row is in the way."
    both = (
        DestinationFacts("warehouse", "Warehouse", "ENABLED", None),
        DestinationFacts("reports", "Reports", "ABORTED", error, applies=False),
    )
    (begun, _) = clock.at(0, replace(SOUND, destinations=both))
    assert (begun.key[0], begun.key[3]) == (AlertRuleId.COMPONENT_ABORTED, "reports")
    assert begun.assessment is not None
    assert begun.assessment.message == f"Reports of {SOUND.name} has stopped; Warehouse continues. {error}"
    alone = Clock().at(0, replace(SOUND, destinations=(replace(both[0], applies=False), both[1])))
    assert alone[0].assessment is not None
    assert alone[0].assessment.message == f"Reports of {SOUND.name} has stopped. {error}"
    for second in (1, 6):
        changes = clock.at(
            second, replace(SOUND, destinations=(both[0], DestinationFacts("reports", "Reports", "ENABLED", None)))
        )
    assert [change.assessment is not None for change in changes] == [True], "cleared, not gone"
    assert clock.alerts == {}


def test_a_table_that_misses_changes() -> None:
    clock = Clock()
    reason = '"public"."orders" was dropped at the source.'
    (_, fired) = clock.at(0, replace(SOUND, troubles=(reason,)))
    assert clock.firing() == {AlertRuleId.TABLE_TROUBLE}
    assert fired.assessment is not None
    assert fired.assessment.message == f"A table of orders needs a cure. {reason}"
    for second in (1, 6):
        clock.at(second, SOUND)
    assert clock.alerts == {}
    (_, both) = Clock().at(0, replace(SOUND, troubles=(reason, "Another.")))
    assert both.assessment is not None
    assert both.assessment.message == f"2 tables of orders need a cure. {reason} Another."


def test_an_error_queue_is_told_with_its_destinations() -> None:
    parks = {"Warehouse": 2, "Reports": 0, "Archive": 1}
    ends = tuple(DestinationFacts(name.lower(), name, "ENABLED", None, parked=count) for name, count in parks.items())
    changes = Clock().at(0, replace(parked(3), destinations=ends))
    (message,) = {change.assessment.message for change in changes if change.assessment is not None}
    assert message == "3 transactions are parked in the error queue of Warehouse and Archive of orders."


def test_a_lower_bound_of_an_error_queue_fires_but_ends_nothing() -> None:
    clock = Clock()
    changes = clock.at(0, replace(parked(3), parked_at_least=True))
    (message,) = {change.assessment.message for change in changes if change.assessment is not None}
    assert message == "At least 3 transactions are parked in the error queue of orders."
    for second in range(1, 30):
        clock.at(second, replace(parked(0), parked_at_least=True))
    assert clock.firing() == {AlertRuleId.ERROR_QUEUE}, "the other destination tells nothing of its error queue"


def test_a_database_that_cannot_be_reached_is_named_within_seconds() -> None:
    refused = "connection to server at 10.0.0.5, port 5432 failed: Connection refused"
    warehouse = DestinationFacts("warehouse", "Warehouse", "ENABLED", refused, phase="RETRYING", unreachable=refused)
    reports = DestinationFacts("reports", "Reports", "ENABLED", None, phase="REPLICATING")
    away = replace(SOUND, destinations=(warehouse, reports), source_name="Shop")
    clock = Clock()
    for second in range(12):
        clock.at(second, away)
    assert parts(clock, AlertRuleId.DATABASE_UNREACHABLE) == {"destination:warehouse"}
    assert RULES[AlertRuleId.DATABASE_UNREACHABLE].severity is AlertSeverity.CRITICAL
    clock.at(12, replace(away, seen=False))
    assert parts(clock, AlertRuleId.DATABASE_UNREACHABLE) == {"destination:warehouse"}, "its engine does not answer now"
    for second in range(13, 30):
        back = replace(away, destinations=(replace(warehouse, unreachable=None), reports), source_unreachable=refused)
        changes = clock.at(second, back)
    assert parts(clock, AlertRuleId.DATABASE_UNREACHABLE) == {"source:source"}
    assessment = next(change.assessment for change in changes if change.key[0] is AlertRuleId.DATABASE_UNREACHABLE)
    assert assessment is not None
    assert assessment.message == f"Shop, the source of orders, cannot be reached. {refused}"


def test_silent_engine_is_one_alert_and_its_streams_keep_theirs() -> None:
    clock = Clock()
    clock.at(0, parked(1))
    away = replace(SOUND, seen=False, parked=None, latency_seconds=None)
    clock.at(31, away, engines=[replace(ENGINE, state="UNREACHABLE", silent_seconds=31, message="refused")])
    assert clock.firing() == {AlertRuleId.ENGINE_SILENT, AlertRuleId.ERROR_QUEUE}


def test_expiries() -> None:
    def expiry(kind: SubjectType, what: str, days: float) -> Expiry:
        return Expiry(kind, "x" * 8, "x", what, START + timedelta(days=days))

    clock = Clock()
    clock.at(0, expiries=[
        expiry(SubjectType.ENGINE, "identity", 13), expiry(SubjectType.ENGINE, "TLS certificate", 15),
        expiry(SubjectType.TOKEN, "API token", -1), expiry(SubjectType.AUTHORITY, "authority", 300),
    ])  # fmt: skip
    assert {(key[0], key[3]) for key in clock.alerts} == {
        (AlertRuleId.CERTIFICATE_EXPIRING, "identity"), (AlertRuleId.TOKEN_EXPIRING, "API token")
    }  # fmt: skip
    clock.at(1, expiries=[expiry(SubjectType.ENGINE, "identity", 90)])
    assert clock.alerts == {}
