"""Alerts that the store does not take: their life goes on in memory, and their notices go out all the same.

A full disk refuses the alert that tells of it, too. Channels are those of the last good read. Once the store accepts
alerts again, these are written as they are, and what follows of them is the store's.
"""

import asyncio
from datetime import datetime

import structlog
from sqlalchemy import inspect
from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.alerting.catalogue import AlertRuleId
from thalweg.alerting.conditions import Key
from thalweg.alerting.evaluation import Change
from thalweg.alerting.lifecycle import AlertState, OpenAlert, Step
from thalweg.alerting.notice import Delivered, NoticeEvent, notice_of
from thalweg.alerting.policy import Policy
from thalweg.alerting.senders.sending import send
from thalweg.db.models import AlertChannelRow, AlertRow
from thalweg.db.models.base import Base
from thalweg.kernel.context import Resources
from thalweg.kernel.ids import new_id
from thalweg.kernel.secret_box import SecretKeyError
from thalweg.kernel.tasks import stop_task
from thalweg.workers.alerts.delivering import TRIES_MAX, retry_after
from thalweg.workers.alerts.recording import begun, open_alert, refresh, wants

log = structlog.get_logger(__name__)
ALERT_ID = "unstored"
"""In notices: the store numbers alerts."""


def _columns(row: Base) -> dict[str, object]:
    return {column.key: getattr(row, column.key) for column in inspect(type(row)).column_attrs}


def _copy(row: AlertRow) -> AlertRow:
    """A new one, without the number that the store gives."""
    return AlertRow(**{name: value for name, value in _columns(row).items() if name != "id"})


class Unstored:
    """Owner: the alert watch."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._alerts: dict[Key, AlertRow] = {}
        self._channels: list[AlertChannelRow] = []
        self._tasks: dict[tuple[Key, str], asyncio.Task[None]] = {}

    def remember(self, channels: list[AlertChannelRow]) -> None:
        self._channels = [AlertChannelRow(**_columns(channel)) for channel in channels]

    def beside(self, stored: dict[Key, OpenAlert]) -> dict[Key, OpenAlert]:
        """All open alerts; of one that the store has, what is here is newer."""
        return stored | {key: open_alert(row) for key, row in self._alerts.items()}

    def about_to_fire(self, rows: dict[Key, AlertRow], changes: list[Change]) -> dict[Key, AlertRow]:
        """Copies of stored alerts, which a transaction that fails would take along."""
        return {
            change.key: _copy(rows[change.key])
            for change in changes
            if change.step is Step.FIRE and change.key in rows and change.key not in self._alerts
        }

    def put_back(self, session: AsyncSession, rows: dict[Key, AlertRow]) -> None:
        """Adds to the open alerts what the store has missed, in the caller's transaction."""
        for key, row in self._alerts.items():
            fresh = _copy(row)
            stored = rows.get(key)
            if stored is None:
                session.add(fresh)
                rows[key] = fresh
                continue
            stored.state, stored.fired_at, stored.notified_at = fresh.state, fresh.fired_at, fresh.notified_at
            stored.clear_since, stored.message, stored.evidence = fresh.clear_since, fresh.message, fresh.evidence

    def stored(self) -> None:
        self._alerts.clear()

    def keep(self, about_to_fire: dict[Key, AlertRow], changes: list[Change], policy: Policy, at: datetime) -> None:
        """Takes the steps that the store has refused, and tells of them. The end of an alert that the store has is left
        to the store."""
        self._alerts |= about_to_fire
        ended: list[tuple[Key, AlertRow]] = []
        for change in changes:
            if change.step is Step.BEGIN:
                self._alerts[change.key] = begun(change, at)
                continue
            row = self._alerts.get(change.key)
            if row is None:
                continue
            if change.assessment is not None:
                refresh(row, change, at)
            if change.step is Step.FIRE:
                row.state, row.fired_at = AlertState.FIRING, at
                log.info("alert fires, but is not stored", rule=row.rule, subject=row.subject_name)
            elif change.step is Step.CLEARING:
                row.clear_since = at
            elif change.step is Step.DISMISS:
                del self._alerts[change.key]
            elif change.step is Step.RESOLVE:
                row.state, row.resolved_at = AlertState.RESOLVED, at
                ended.append((change.key, self._alerts.pop(change.key)))
        for key, row in self._alerts.items():
            silent = policy.silenced(AlertRuleId(row.rule), row.stream_id, at)
            if row.state == AlertState.FIRING and row.notified_at is None and not silent:
                row.notified_at = at
                self._tell(key, row, NoticeEvent.FIRING, at)
        for key, row in ended:
            if row.notified_at is not None:
                self._tell(key, row, NoticeEvent.RESOLVED, at)

    async def stop(self) -> None:
        tasks, self._tasks = self._tasks, {}
        for task in tasks.values():
            await stop_task(task)

    def _tell(self, key: Key, row: AlertRow, event: NoticeEvent, at: datetime) -> None:
        self._tasks = {place: task for place, task in self._tasks.items() if not task.done()}
        for channel in self._channels:
            if wants(channel, row, event):
                before = self._tasks.get((key, channel.id))
                work = self._deliver(channel, _copy(row), event, at, before)
                self._tasks[key, channel.id] = asyncio.create_task(work, name=f"alerts: notice to {channel.id}")

    async def _deliver(
        self, channel: AlertChannelRow, row: AlertRow, event: NoticeEvent, at: datetime,
        before: "asyncio.Task[None] | None",
    ) -> None:  # fmt: skip
        """With the retries of stored notices, after the notice of the same alert `before`."""
        if before is not None:
            await asyncio.wait([before])
        settings = self._resources.settings
        notice = notice_of(row, event, new_id(), at, settings.console_url, alert_id=ALERT_ID)
        for tries in range(1, TRIES_MAX + 1):
            try:
                answer = await send(channel, self._resources.secrets, notice, settings)
            except SecretKeyError as error:
                answer = Delivered("secret_key_mismatch", str(error), "Give the channel its secret again.", final=True)
            if answer.code is None:
                return
            log.warning("notice not delivered", channel=channel.name, code=answer.code, error=answer.message)
            if answer.final or tries == TRIES_MAX:
                return
            await asyncio.sleep(retry_after(tries, settings).total_seconds())
