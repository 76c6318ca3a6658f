"""The alert of a full backlog that nothing leaves: it holds the whole stream up."""

from dataclasses import replace
from typing import Any

from tests.alerts.test_rules import MIB, SOUND, Clock
from thalweg.alerting.catalogue import AlertRuleId, AlertSeverity
from thalweg.alerting.facts import DestinationFacts


def test_a_full_backlog_that_nothing_leaves_is_critical_at_once() -> None:
    def both(**of_reports: Any) -> tuple[DestinationFacts, ...]:
        reports = DestinationFacts("reports", "Reports", "DISABLED", None, applies=False)
        return DestinationFacts("warehouse", "Warehouse", "ENABLED", None), replace(reports, **of_reports)

    clock = Clock()
    (begun, _) = clock.at(0, replace(SOUND, destinations=both(full_bytes=16 * MIB)))
    assert (begun.key[0], begun.key[3], begun.settings.severity) == (
        AlertRuleId.BACKLOG_FULL, "reports", AlertSeverity.CRITICAL,
    )  # fmt: skip
    assert clock.firing() == {AlertRuleId.BACKLOG_FULL}
    assert begun.assessment is not None and begun.assessment.message == (
        "Capture of orders waits because the backlog of Reports is full (16.0 MiB): nothing more reaches any "
        "destination, and the source keeps WAL. Resume Reports, raise queue_spill_limit_mb, or drop it."
    )
    clock.at(1, replace(SOUND, seen=False, destinations=()))
    assert clock.firing() == {AlertRuleId.BACKLOG_FULL}, "not known: as it was"
    for second in (2, 7):
        clock.at(second, replace(SOUND, destinations=both()))
    assert clock.alerts == {}
