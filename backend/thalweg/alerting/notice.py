"""A channel's notice: one alert at one moment, with everything that a reader or a program needs."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from thalweg.alerting.catalogue import RULES, AlertRuleId, SubjectType
from thalweg.db.models import AlertRow
from thalweg.kernel.models import Resource

PAYLOAD_VERSION = 1


class NoticeEvent(StrEnum):
    FIRING = "firing"
    RESOLVED = "resolved"
    TEST = "test"


class NoticeSubject(Resource):
    type: str
    id: str
    name: str


class NoticeAlert(Resource):
    id: str
    rule: str
    title: str
    severity: str
    state: str
    subject: NoticeSubject
    message: str
    meaning: str
    action: str
    value: float | None
    threshold: float | None
    unit: str
    evidence: dict[str, Any]
    fired_at: datetime | None
    resolved_at: datetime | None


class Notice(Resource):
    """The webhook's body. `alert` is null in a test."""

    version: int
    event: NoticeEvent
    delivery_id: str
    at: datetime
    url: str
    alert: NoticeAlert | None


@dataclass(frozen=True)
class Delivered:
    """The result of an attempt to deliver: `code` is None on success; else `message` and `cure` give the reason."""

    code: str | None = None
    message: str = ""
    cure: str = ""
    final: bool = False
    """Trying again would give the same answer."""


def page_of(rule: AlertRuleId, subject_type: SubjectType, subject_id: str) -> str:
    """The console's page that shows more, as a path."""
    if subject_type is SubjectType.STREAM:
        tab = RULES[rule].tab
        return f"/streams/{subject_id}" + (f"?tab={tab}" if tab else "")
    return "/settings?tab=tokens" if subject_type is SubjectType.TOKEN else "/engines"


def notice_of(
    row: AlertRow, event: NoticeEvent, delivery_id: str, at: datetime, console: str, alert_id: str | None = None
) -> Notice:  # fmt: skip
    """`alert_id`: of an alert that the store has not numbered."""
    rule = RULES[AlertRuleId(row.rule)]
    return Notice(
        version=PAYLOAD_VERSION, event=event, delivery_id=delivery_id, at=at,
        url=console + page_of(rule.id, SubjectType(row.subject_type), row.subject_id),
        alert=NoticeAlert(
            id=alert_id or str(row.id), rule=row.rule, title=rule.title, severity=row.severity, state=row.state,
            subject=NoticeSubject(type=row.subject_type, id=row.subject_id, name=row.subject_name),
            message=row.message, meaning=rule.meaning, action=rule.action, value=row.value, threshold=row.threshold,
            unit=row.unit, evidence=row.evidence, fired_at=row.fired_at, resolved_at=row.resolved_at,
        ),
    )  # fmt: skip


def notice_of_test(delivery_id: str, at: datetime, console: str) -> Notice:
    return Notice(version=PAYLOAD_VERSION, event=NoticeEvent.TEST, delivery_id=delivery_id, at=at,
                  url=f"{console}/alerts?tab=channels", alert=None)  # fmt: skip


def headline(notice: Notice) -> str:
    """One line, such as a mail's subject."""
    if notice.alert is None:
        return "Thalweg: a test of this channel"
    mark = "RESOLVED" if notice.event is NoticeEvent.RESOLVED else notice.alert.severity.upper()
    return f"[{mark}] {notice.alert.subject.name}: {notice.alert.title}"
