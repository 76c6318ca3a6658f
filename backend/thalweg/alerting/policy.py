"""Users' settings: thresholds for everything and for single streams, alert rules switched off, silences."""

from dataclasses import dataclass, field
from datetime import datetime

from thalweg.alerting.catalogue import RULES, AlertRuleId, AlertSeverity


@dataclass(frozen=True)
class Override:
    """None, or a threshold that is not named: as in the next wider scope."""

    enabled: bool | None = None
    severity: AlertSeverity | None = None
    hold_seconds: float | None = None
    thresholds: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class RuleSettings:
    enabled: bool
    severity: AlertSeverity
    hold_seconds: float
    resolve_seconds: float
    thresholds: dict[str, float]


def effective(rule: AlertRuleId, *overrides: Override | None) -> RuleSettings:
    """The wider scope first: a later override wins."""
    definition = RULES[rule]
    enabled, severity, hold = True, definition.severity, definition.hold_seconds
    thresholds = {threshold.name: threshold.default for threshold in definition.thresholds}
    for override in overrides:
        if override is None:
            continue
        enabled = enabled if override.enabled is None else override.enabled
        severity = severity if override.severity is None else override.severity
        hold = hold if override.hold_seconds is None else override.hold_seconds
        thresholds |= {name: value for name, value in override.thresholds.items() if name in thresholds}
    return RuleSettings(enabled, severity, hold, definition.resolve_seconds, thresholds)


@dataclass(frozen=True)
class Silence:
    """None: every rule, every stream. An engine's alerts fall under silences of no stream only."""

    rule: AlertRuleId | None
    stream_id: str | None
    until: datetime

    def covers(self, rule: AlertRuleId, stream_id: str | None, at: datetime) -> bool:
        return (
            at < self.until
            and (self.rule is None or self.rule == rule)
            and (self.stream_id is None or self.stream_id == stream_id)
        )


@dataclass(frozen=True)
class Policy:
    """Overrides by rule and stream id; the stream is None for those of the whole installation."""

    overrides: dict[tuple[AlertRuleId, str | None], Override] = field(default_factory=dict)
    silences: tuple[Silence, ...] = ()

    def settings(self, rule: AlertRuleId, stream_id: str | None = None) -> RuleSettings:
        own = self.overrides.get((rule, stream_id)) if stream_id is not None else None
        return effective(rule, self.overrides.get((rule, None)), own)

    def silenced(self, rule: AlertRuleId, stream_id: str | None, at: datetime) -> bool:
        return any(silence.covers(rule, stream_id, at) for silence in self.silences)
