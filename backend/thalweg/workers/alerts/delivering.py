"""Delivers queued notices, with retries: at least once, in the order of each alert's life."""

import asyncio
import time
from datetime import datetime, timedelta

import structlog

from thalweg.alerting.notice import Delivered, NoticeEvent, notice_of
from thalweg.alerting.senders.sending import send
from thalweg.db.models import AlertDeliveryRow
from thalweg.kernel.clock import now
from thalweg.kernel.context import Resources
from thalweg.kernel.secret_box import SecretKeyError
from thalweg.kernel.settings import Settings
from thalweg.workers.alerts import repository

AT_ONCE_MAX = 20
TRIES_MAX = 10
RETRY_AFTER_MAX = timedelta(hours=1)
log = structlog.get_logger(__name__)


async def deliver_due(resources: Resources) -> int:
    """One try of each notice that is due. Gives how many there were."""
    async with resources.sessions() as session:
        due = await repository.due_deliveries(session, now(), AT_ONCE_MAX)
    await asyncio.gather(*(_deliver(resources, row) for row in due))
    return len(due)


async def _deliver(resources: Resources, row: AlertDeliveryRow) -> None:
    if row.alert is None:
        return
    at, started = now(), time.monotonic()
    notice = notice_of(row.alert, NoticeEvent(row.event), str(row.id), at, resources.settings.console_url)
    try:
        answer = await send(
            row.channel,
            resources.secrets,
            notice,
            resources.settings.alerts_timeout,
            resources.settings.webhook_networks,
        )
    except SecretKeyError as error:
        answer = Delivered("secret_key_mismatch", str(error), "Give the channel its secret again.", final=True)
    took_ms = (time.monotonic() - started) * 1000
    async with resources.sessions() as session:
        kept = await session.get(AlertDeliveryRow, row.id, with_for_update=True)
        if kept is not None:
            write_outcome(kept, answer, took_ms, now(), resources.settings)
            await session.commit()
    if answer.code is not None:
        log.warning("notice not delivered", channel=row.channel.name, code=answer.code, error=answer.message)


def write_outcome(row: AlertDeliveryRow, answer: Delivered, took_ms: float, at: datetime, settings: Settings) -> None:
    row.tries += 1
    row.took_ms = round(took_ms, 3)
    row.error = None
    if answer.code is None:
        row.state, row.finished_at, row.next_try_at = "delivered", at, None
        return
    row.error = {"code": answer.code, "message": answer.message, "cure": answer.cure}
    if answer.final or row.tries >= TRIES_MAX:
        row.state, row.finished_at, row.next_try_at = "failed", at, None
        return
    wait = timedelta(seconds=settings.alerts_retry_after * 2 ** (row.tries - 1))
    row.next_try_at = at + min(wait, RETRY_AFTER_MAX)
