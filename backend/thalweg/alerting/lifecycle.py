"""The life of one alert: pending for its hold-down time, firing, resolved. Transitions over assessments and time."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from thalweg.alerting.conditions import Assessment
from thalweg.alerting.policy import RuleSettings


class AlertState(StrEnum):
    PENDING = "pending"
    FIRING = "firing"
    RESOLVED = "resolved"


OPEN = (AlertState.PENDING, AlertState.FIRING)


class Step(StrEnum):
    NOTHING = "nothing"
    BEGIN = "begin"
    """A pending alert is made."""
    FIRE = "fire"
    REFRESH = "refresh"
    """It goes on: value and message are those of now."""
    DISMISS = "dismiss"
    """It was pending and is over: nobody was told, nothing is kept."""
    CLEARING = "clearing"
    """It fires and its condition is over: it is resolved unless that comes back."""
    RESOLVE = "resolve"


@dataclass(frozen=True)
class OpenAlert:
    state: AlertState
    pending_at: datetime
    clear_since: datetime | None = None


def steps_of(alert: OpenAlert | None, assessment: Assessment, settings: RuleSettings, at: datetime) -> list[Step]:
    """The steps to take, in order. An unknown condition does not change an alert."""
    if assessment.breached is None:
        return []
    hold = timedelta(seconds=settings.hold_seconds)
    if alert is None:
        if not assessment.breached:
            return []
        return [Step.BEGIN] if hold else [Step.BEGIN, Step.FIRE]
    if alert.state is AlertState.PENDING:
        if not assessment.breached:
            return [Step.DISMISS]
        return [Step.FIRE] if at - alert.pending_at >= hold else [Step.REFRESH]
    if assessment.breached:
        return [Step.REFRESH]
    resolve = timedelta(seconds=settings.resolve_seconds)
    if not resolve or (alert.clear_since is not None and at - alert.clear_since >= resolve):
        return [Step.RESOLVE]
    return [] if alert.clear_since is not None else [Step.CLEARING]
