"""Writes a notice to the process's log, where whoever collects logs finds it."""

import structlog

from thalweg.alerting.notice import Delivered, Notice, NoticeEvent, headline

log = structlog.get_logger("thalweg.alerts")


def write_log(channel: str, notice: Notice) -> Delivered:
    fields = {"channel": channel, "notice": notice.event.value, "url": notice.url}
    if notice.alert is not None:
        fields |= {"rule": notice.alert.rule, "severity": notice.alert.severity, "message": notice.alert.message,
                   "subject": notice.alert.subject.name}  # fmt: skip
    write = log.warning if notice.event is NoticeEvent.FIRING else log.info
    write(headline(notice), **fields)
    return Delivered()
