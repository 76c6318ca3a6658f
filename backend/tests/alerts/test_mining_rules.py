"""Rules about streams that mine the source's log: the staged WAL near its limit, and an archive that lags."""

from dataclasses import replace

from tests.alerts.test_rules import GIB, MIB, SOUND, Clock
from thalweg.alerting.catalogue import RULES, AlertRuleId, AlertSeverity
from thalweg.alerting.facts import DestinationFacts, StreamFacts
from thalweg.live.staging import StagedWal

NEAR = DestinationFacts("near", "Warehouse", "ENABLED", None, done=900)
FAR = DestinationFacts("far", "Reports", "ENABLED", None, done=500)


def staged(used: float, *destinations: DestinationFacts, open_bytes: float = 0.0, full: bool = False) -> StreamFacts:
    wal = StagedWal(used, 10.0 * GIB, open_bytes, full)
    return replace(SOUND, staged_wal=wal, destinations=destinations)


def message(clock: Clock, *streams: StreamFacts) -> str:
    changes = [change for second, stream in enumerate(streams) for change in clock.at(10 * second, stream)]
    return next(change.assessment.message for change in reversed(changes) if change.assessment is not None)


def test_staged_wal_near_its_limit_is_told_with_what_keeps_it() -> None:
    kept = "orders has 8.5 GiB of staged WAL, 85 % of staging_limit_mb."
    used = 8.5 * GIB
    paused = replace(FAR, status="DISABLED")
    assert message(Clock(), staged(used, NEAR, FAR)) == f"{kept} Reports does not have it yet."
    assert message(Clock(), staged(used, NEAR, paused)) == f"{kept} Reports is paused and does not have it yet."
    assert message(Clock(), staged(used, NEAR, paused, open_bytes=8.0 * GIB)) == (
        f"{kept} A transaction that is open at the source needs 8.0 GiB of it."
    )
    assert "It is full: nothing more is received" in message(Clock(), staged(used, full=True))


def test_staged_wal_fires_above_its_share_and_before_it_is_full() -> None:
    share = Clock()
    for second in (0, 15, 30):
        share.at(second, staged(8.1 * GIB))
    assert share.firing() == {AlertRuleId.STAGING_LIMIT}
    share.at(40, replace(staged(1.0), seen=False))
    assert share.firing() == {AlertRuleId.STAGING_LIMIT}, "not known: as it was"
    grows = Clock()
    for second in range(0, 50, 5):
        grows.at(second, staged(5.1 * GIB + second * 10.0 * MIB))
    assert grows.firing() == {AlertRuleId.STAGING_LIMIT}
    mines = Clock()
    for second in range(0, 600, 5):
        mines.at(second, staged((16 + 3 * second % 256) * float(MIB)))
    assert mines.seen == [], "it rises and falls as the stream goes on"
    rests = Clock()
    for second in range(0, 50, 5):
        rests.at(second, staged(7.9 * GIB))
    assert rests.alerts == {}


def test_a_stream_that_mines_no_log_has_no_staged_wal() -> None:
    clock = Clock()
    for second in (0, 40):
        clock.at(second, replace(SOUND, archive="main"))
    assert clock.alerts == {}


def waits(seconds: float, archive: str | None = "main") -> StreamFacts:
    wal = StagedWal(1.0, 10.0 * GIB, archive_wait_seconds=seconds)
    return replace(SOUND, staged_wal=wal, archive=archive, source_name="Shop", error="It lacks 0000000100000001.")


def test_an_archive_that_lacks_the_next_segment_for_long_is_told_until_it_has_it() -> None:
    clock = Clock()
    clock.at(0, waits(300))
    assert clock.alerts == {}
    (begun, *_) = clock.at(1, waits(301))
    assert clock.firing() == {AlertRuleId.ARCHIVE_LAG}
    assert RULES[AlertRuleId.ARCHIVE_LAG].severity is AlertSeverity.CRITICAL
    assert begun.assessment is not None
    assert begun.assessment.message == (
        "orders has waited for 5 min for the next segment of Shop in the archive main, and cannot read it at the "
        "source. It lacks 0000000100000001."
    )
    clock.at(2, waits(0))
    clock.at(12, waits(0))
    assert clock.alerts == {}
