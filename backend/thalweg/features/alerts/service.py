"""Alerts: listing, counting, acknowledging. The collector alone decides which fire and which are over."""

from datetime import datetime

from thalweg.alerting.catalogue import RULES, AlertRuleId, AlertSeverity, SubjectType
from thalweg.alerting.lifecycle import AlertState
from thalweg.alerting.notice import page_of
from thalweg.alerting.policy import Policy, Silence
from thalweg.db.audit import record, snapshot
from thalweg.db.models import AlertRow
from thalweg.db.pages import page_newest_first
from thalweg.features.alerts import repository
from thalweg.features.alerts.schemas import (
    Alert,
    AlertAcknowledge,
    AlertCounts,
    AlertFilter,
    AlertPage,
    AlertResolution,
    AlertSubject,
)
from thalweg.kernel.clock import now
from thalweg.kernel.context import Context
from thalweg.kernel.problems import Problem, not_found
from thalweg.live.evaluations import Evaluation, last_evaluation
from thalweg.live.schemas import AlertEvent


async def silences_of(context: Context, at: datetime) -> Policy:
    rows = await repository.current_silences(context.session, at)
    return Policy(
        silences=tuple(Silence(AlertRuleId(row.rule) if row.rule else None, row.stream_id, row.until) for row in rows)
    )


def _resource(row: AlertRow, policy: Policy, at: datetime) -> Alert:
    rule, kind = RULES[AlertRuleId(row.rule)], SubjectType(row.subject_type)
    firing = row.state != AlertState.RESOLVED
    return Alert(
        id=str(row.id), rule=rule.id, title=rule.title, severity=AlertSeverity(row.severity),
        state=AlertState(row.state), subject=AlertSubject(type=kind, id=row.subject_id, name=row.subject_name),
        stream_id=row.stream_id,
        message=row.message, meaning=rule.meaning, action=rule.action, page=page_of(rule.id, kind, row.subject_id),
        value=row.value, threshold=row.threshold, unit=row.unit, evidence=row.evidence, pending_at=row.pending_at,
        fired_at=row.fired_at, resolved_at=row.resolved_at,
        resolution=AlertResolution(row.resolution) if row.resolution else None,
        over_since=row.clear_since or row.resolved_at,
        silenced=firing and policy.silenced(rule.id, row.stream_id, at), acknowledged_at=row.acknowledged_at,
        acknowledged_by=row.acknowledged_by, note=row.note, run_id=row.run_id,
    )  # fmt: skip


async def list_alerts(
    context: Context, state: AlertFilter, rule: AlertRuleId | None, stream_id: str | None, subject_id: str | None,
    limit: int, cursor: str | None,
) -> AlertPage:  # fmt: skip
    at = now()
    policy = await silences_of(context, at)
    query = repository.alerts(state, rule, stream_id, subject_id)
    rows, following = await page_newest_first(context.session, query, AlertRow.id, limit, cursor)
    items = [_resource(row, policy, at) for row in rows]
    last = await _last_evaluation(context)
    return AlertPage(items=items, next_cursor=following, evaluated_at=last.at, outdated=last.outdated)


async def _last_evaluation(context: Context) -> Evaluation:
    """Ends the request's transaction."""
    await context.release()
    return await last_evaluation(context.resources.redis, context.resources.settings.alerts_interval)


async def count_alerts(context: Context) -> AlertCounts:
    at = now()
    policy = await silences_of(context, at)
    rows = await repository.open_states(context.session)
    firing = [row for row in rows if row.state == AlertState.FIRING]
    waiting = [
        row
        for row in firing
        if row.acknowledged_at is None and not policy.silenced(AlertRuleId(row.rule), row.stream_id, at)
    ]
    last = await _last_evaluation(context)
    return AlertCounts(
        firing=len(firing), critical=sum(row.severity == AlertSeverity.CRITICAL for row in firing),
        unacknowledged=len(waiting), pending=len(rows) - len(firing), evaluated_at=last.at, outdated=last.outdated,
    )  # fmt: skip


async def _existing(context: Context, alert_id: int, *, lock: bool = False) -> AlertRow:
    row = await repository.alert_by_id(context.session, alert_id, lock=lock)
    if row is None:
        raise not_found("alert", str(alert_id))
    return row


async def get_alert(context: Context, alert_id: int) -> Alert:
    at = now()
    return _resource(await _existing(context, alert_id), await silences_of(context, at), at)


async def acknowledge(context: Context, alert_id: int, body: AlertAcknowledge) -> Alert:
    row = await _existing(context, alert_id, lock=True)
    if row.state != AlertState.FIRING:
        raise Problem(
            "invalid_transition", f"The alert is {row.state}: only one that fires is acknowledged.",
            "Read the alert again.",
        )  # fmt: skip
    return await _change(context, row, "alerts_acknowledge", (now(), context.principal.name, body.note or None))


async def unacknowledge(context: Context, alert_id: int) -> Alert:
    """Undoes the acknowledgement; nothing happens when there is none."""
    row = await _existing(context, alert_id, lock=True)
    return await _change(context, row, "alerts_unacknowledge", (None, None, None))


async def _change(
    context: Context, row: AlertRow, action: str, to: tuple[datetime | None, str | None, str | None]
) -> Alert:
    at = now()
    policy = await silences_of(context, at)
    before = snapshot(_resource(row, policy, at))
    row.acknowledged_at, row.acknowledged_by, row.note = to
    alert = _resource(row, policy, at)
    record(context, action, ("alert", str(row.id), f"{alert.title}: {row.subject_name}"), before, snapshot(alert))
    return alert


def event_of(alert: Alert) -> tuple[str, AlertEvent]:
    event = AlertEvent(
        alert_id=alert.id, rule=alert.rule, stream_id=alert.stream_id, severity=alert.severity, state=alert.state,
        at=now(),
    )  # fmt: skip
    return "alert", event
