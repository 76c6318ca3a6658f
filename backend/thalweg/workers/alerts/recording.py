"""Writes what an evaluation has changed, and queues the notices of it in the same transaction."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.alerting.catalogue import AlertRuleId, AlertSeverity, SubjectType
from thalweg.alerting.conditions import Assessment, Key
from thalweg.alerting.evaluation import Change
from thalweg.alerting.lifecycle import AlertState, OpenAlert, Step
from thalweg.alerting.notice import NoticeEvent
from thalweg.alerting.policy import Override, Policy, Silence
from thalweg.db.models import AlertChannelRow, AlertDeliveryRow, AlertRow
from thalweg.features.alerts.schemas import DeliveryState
from thalweg.live.schemas import AlertEvent
from thalweg.workers.alerts import repository

# A value that changes all the time is written this often, not at every evaluation.
REWRITE_AFTER = timedelta(seconds=15)


def key_of(row: AlertRow) -> Key:
    return (AlertRuleId(row.rule), SubjectType(row.subject_type), row.subject_id, row.part)


def open_alert(row: AlertRow) -> OpenAlert:
    return OpenAlert(AlertState(row.state), row.pending_at, row.clear_since)


async def read_policy(session: AsyncSession, at: datetime) -> Policy:
    overrides = {
        (AlertRuleId(row.rule), row.stream_id): Override(
            row.enabled, AlertSeverity(row.severity) if row.severity else None, row.hold_seconds, row.thresholds
        )
        for row in await repository.overrides(session)
    }
    silences = [
        Silence(AlertRuleId(row.rule) if row.rule else None, row.stream_id, row.until)
        for row in await repository.silences(session, at)
    ]
    return Policy(overrides, tuple(silences))


@dataclass
class Recorded:
    events: list[tuple[str, AlertEvent]]
    fired: list[AlertRow]
    queued: int


async def record_changes(
    session: AsyncSession, rows: dict[Key, AlertRow], changes: list[Change], policy: Policy, at: datetime
) -> Recorded:
    """In the caller's transaction; `rows` are the open alerts."""
    events: list[tuple[str, AlertEvent]] = []
    fired: list[AlertRow] = []
    over: list[AlertRow] = []
    moved: list[AlertRow] = []
    for change in changes:
        row = rows.get(change.key)
        if row is None:
            row = rows[change.key] = begun(change, at)
            session.add(row)
        elif change.assessment is not None:
            refresh(row, change, at)
        if change.step is Step.FIRE:
            row.state, row.fired_at = AlertState.FIRING, at
            fired.append(row)
        elif change.step is Step.CLEARING:
            row.clear_since = at
        elif change.step is Step.RESOLVE:
            row.state, row.resolved_at = AlertState.RESOLVED, at
            row.resolution = "cleared" if change.assessment is not None else "not_applicable"
            over.append(row)
        if change.step not in (Step.REFRESH, Step.CLEARING) and row not in moved:
            moved.append(row)
    await session.flush()
    for row in moved:
        events.append(("alert", event_of(row, at)))
    for change in changes:
        if change.step is Step.DISMISS:
            await session.delete(rows[change.key])
    queued = await _queue_notices(session, list(rows.values()), over, policy, at)
    return Recorded(events, fired, queued)


def begun(change: Change, at: datetime) -> AlertRow:
    assessment = _found(change)
    subject = assessment.subject
    return AlertRow(
        rule=assessment.rule, subject_type=subject.type, subject_id=subject.id, subject_name=subject.name,
        part=subject.part, stream_id=subject.stream_id, severity=change.settings.severity, state=AlertState.PENDING,
        message=assessment.message, value=assessment.value, threshold=assessment.threshold, unit=assessment.unit,
        evidence=assessment.evidence, pending_at=at, changed_at=at,
    )  # fmt: skip


def _found(change: Change) -> Assessment:
    assert change.assessment is not None  # noqa: S101  # nothing begins without an assessment
    return change.assessment


def refresh(row: AlertRow, change: Change, at: datetime) -> None:
    """The message stays as it was once the alert's condition is over: it explains why the alert fired."""
    assessment = _found(change)
    if not assessment.breached:
        return
    if row.clear_since is not None:
        row.clear_since = None
    row.severity = change.settings.severity
    if change.step is Step.FIRE or at - row.changed_at >= REWRITE_AFTER:
        row.subject_name, row.changed_at = assessment.subject.name, at
        row.message, row.value, row.threshold = assessment.message, assessment.value, assessment.threshold
        row.evidence = assessment.evidence


def event_of(row: AlertRow, at: datetime) -> AlertEvent:
    return AlertEvent(
        alert_id=str(row.id), rule=row.rule, stream_id=row.stream_id, severity=row.severity, state=row.state, at=at
    )


async def _queue_notices(
    session: AsyncSession, rows: list[AlertRow], over: list[AlertRow], policy: Policy, at: datetime
) -> int:
    """A silenced alert is told of when the silence ends and it still fires; the end of one only if it was told of."""
    firing = [
        row
        for row in rows
        if row.state == AlertState.FIRING and row.notified_at is None
        and not policy.silenced(AlertRuleId(row.rule), row.stream_id, at)
    ]  # fmt: skip
    ended = [row for row in over if row.notified_at is not None]
    if not firing and not ended:
        return 0
    channels = await repository.enabled_channels(session)
    for row in firing:
        row.notified_at = at
    notices = [(row, NoticeEvent.FIRING) for row in firing] + [(row, NoticeEvent.RESOLVED) for row in ended]
    deliveries = [
        AlertDeliveryRow(
            channel_id=channel.id, alert_id=row.id, event=event, state=DeliveryState.PENDING, next_try_at=at
        )
        for row, event in notices
        for channel in channels
        if wants(channel, row, event)
    ]
    session.add_all(deliveries)
    return len(deliveries)


def wants(channel: AlertChannelRow, row: AlertRow, event: NoticeEvent) -> bool:
    if AlertSeverity(row.severity).rank < AlertSeverity(channel.min_severity).rank:
        return False
    return event is NoticeEvent.FIRING or channel.send_resolved
