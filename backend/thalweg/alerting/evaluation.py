"""One evaluation of all rules. Pure but for the memory that it is given."""

from dataclasses import dataclass

from thalweg.alerting.catalogue import AlertRuleId
from thalweg.alerting.conditions import CONDITIONS, Assessment, Key, View
from thalweg.alerting.facts import Facts
from thalweg.alerting.lifecycle import AlertState, OpenAlert, Step, steps_of
from thalweg.alerting.policy import Policy, RuleSettings
from thalweg.alerting.trend import Memory


@dataclass(frozen=True)
class Change:
    """`assessment` is None when what the alert is about is gone, stopped on purpose, or its rule is switched off."""

    key: Key
    step: Step
    assessment: Assessment | None
    settings: RuleSettings


def evaluate(facts: Facts, memory: Memory, policy: Policy, alerts: dict[Key, OpenAlert]) -> list[Change]:
    """`alerts` are the open ones. Changes come in the order of the rules."""
    firing = frozenset(key for key, alert in alerts.items() if alert.state is AlertState.FIRING)
    view = View(facts, memory, policy, firing)
    assessments = {assessment.key: assessment for rule in CONDITIONS for assessment in CONDITIONS[rule](view)}
    memory.sweep({stream.id for stream in facts.streams})
    changes: list[Change] = []
    for key, assessment in assessments.items():
        settings = policy.settings(assessment.rule, assessment.subject.stream_id)
        changes += [
            Change(key, step, assessment, settings)
            for step in steps_of(alerts.get(key), assessment, settings, facts.at)
        ]
    for key, alert in alerts.items():
        if key not in assessments and not _unseen(key, assessments):
            step = Step.RESOLVE if alert.state is AlertState.FIRING else Step.DISMISS
            changes.append(Change(key, step, None, policy.settings(AlertRuleId(key[0]))))
    return changes


def _unseen(key: Key, assessments: dict[Key, Assessment]) -> bool:
    """A rule that knows nothing of a thing now gives one assessment for it, without parts."""
    rule, kind, identifier, _ = key
    whole = assessments.get((rule, kind, identifier, ""))
    return whole is not None and whole.breached is None
