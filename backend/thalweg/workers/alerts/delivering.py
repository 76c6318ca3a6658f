"""Delivers queued notices, with retries: at least once, in the order of each alert's life. Each channel has a task of
its own, so that one that is slow or broken delays no other."""

import asyncio
import time
from datetime import datetime, timedelta

import structlog

from thalweg.alerting.notice import Delivered, NoticeEvent, notice_of
from thalweg.alerting.senders.sending import send
from thalweg.db.models import AlertDeliveryRow
from thalweg.features.alerts.schemas import DeliveryState
from thalweg.kernel.clock import now
from thalweg.kernel.context import Resources
from thalweg.kernel.secret_box import SecretKeyError
from thalweg.kernel.settings import Settings
from thalweg.kernel.tasks import stop_task
from thalweg.workers.alerts import repository

TRIES_MAX = 10
RETRY_AFTER_MAX = timedelta(hours=1)
log = structlog.get_logger(__name__)


class Deliveries:
    """Owner: the alert watch."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._unwritten: dict[int, tuple[Delivered, float]] = {}
        """Results that the store has not taken, by delivery, with the milliseconds that it took: what was tried is not
        tried again before they are written."""

    async def turn(self) -> None:
        """Sees to it that each channel with due notices is at work. Raises what ended a channel's work since."""
        ended = [channel for channel, task in self._tasks.items() if task.done()]
        failures = [self._tasks.pop(channel).exception() for channel in ended]
        async with self._resources.sessions() as session:
            due = await repository.channels_with_due_deliveries(session, now())
        for channel in due:
            if channel not in self._tasks:
                name = f"alerts: deliveries of {channel}"
                self._tasks[channel] = asyncio.create_task(self._deliver_all(channel), name=name)
        for failure in failures:
            if failure is not None:
                raise failure

    async def stop(self) -> None:
        tasks, self._tasks = self._tasks, {}
        for task in tasks.values():
            await stop_task(task)

    async def _deliver_all(self, channel_id: str) -> None:
        """One notice after the other, until none is due."""
        while True:
            async with self._resources.sessions() as session:
                row = await repository.due_delivery(session, channel_id, now())
            if row is None:
                return
            if row.id not in self._unwritten:
                self._unwritten[row.id] = await _deliver(self._resources, row)
            await _write(self._resources, row.id, *self._unwritten[row.id])
            del self._unwritten[row.id]


async def _deliver(resources: Resources, row: AlertDeliveryRow) -> tuple[Delivered, float]:
    assert row.alert is not None  # noqa: S101  # tests of channels are never due
    at, started = now(), time.monotonic()
    notice = notice_of(row.alert, NoticeEvent(row.event), str(row.id), at, resources.settings.console_url)
    try:
        answer = await send(row.channel, resources.secrets, notice, resources.settings)
    except SecretKeyError as error:
        answer = Delivered("secret_key_mismatch", str(error), "Give the channel its secret again.", final=True)
    if answer.code is not None:
        log.warning("notice not delivered", channel=row.channel.name, code=answer.code, error=answer.message)
    return answer, (time.monotonic() - started) * 1000


async def _write(resources: Resources, delivery_id: int, answer: Delivered, took_ms: float) -> None:
    async with resources.sessions() as session:
        kept = await session.get(AlertDeliveryRow, delivery_id, with_for_update=True)
        if kept is not None:
            write_outcome(kept, answer, took_ms, now(), resources.settings)
            await session.commit()


def write_outcome(row: AlertDeliveryRow, answer: Delivered, took_ms: float, at: datetime, settings: Settings) -> None:
    row.tries += 1
    row.took_ms = round(took_ms, 3)
    row.error = None
    if answer.code is None:
        row.state, row.finished_at, row.next_try_at = DeliveryState.DELIVERED, at, None
        return
    row.error = {"code": answer.code, "message": answer.message, "cure": answer.cure}
    if answer.final or row.tries >= TRIES_MAX:
        row.state, row.finished_at, row.next_try_at = DeliveryState.FAILED, at, None
        return
    row.next_try_at = at + retry_after(row.tries, settings)


def retry_after(tries: int, settings: Settings) -> timedelta:
    return min(timedelta(seconds=settings.alerts_retry_after * 2 ** (tries - 1)), RETRY_AFTER_MAX)
