"""Channels: where notices go. A secret goes in and never comes out."""

import time
from typing import Any

from pydantic import ValidationError

from thalweg.alerting.catalogue import AlertSeverity
from thalweg.alerting.notice import Delivered, NoticeEvent, notice_of_test
from thalweg.alerting.senders.sending import send
from thalweg.alerting.senders.settings import SETTINGS, ChannelKind
from thalweg.db.audit import record, snapshot
from thalweg.db.models import AlertChannelRow, AlertDeliveryRow
from thalweg.db.pages import page_by_name
from thalweg.features.alerts import repository
from thalweg.features.alerts.channel_secrets import check_secret_stays
from thalweg.features.alerts.deliveries import delivery_of, reveals_address
from thalweg.features.alerts.schemas import (
    AlertChannel,
    AlertChannelCreate,
    AlertChannelUpdate,
    AlertDelivery,
    DeliveryState,
)
from thalweg.kernel.clock import now
from thalweg.kernel.context import Context
from thalweg.kernel.etags import check_if_match, etag_of
from thalweg.kernel.idempotency import Created
from thalweg.kernel.models import FieldProblem, Page
from thalweg.kernel.problems import Problem, name_taken, not_found

INTERRUPTED = {
    "code": "interrupted", "message": "The control plane ended before the answer came.", "cure": "Test it again.",
}  # fmt: skip


def _resource(context: Context, row: AlertChannelRow, last: AlertDeliveryRow | None) -> AlertChannel:
    return AlertChannel(
        id=row.id, name=row.name, kind=ChannelKind(row.kind), enabled=row.enabled,
        min_severity=AlertSeverity(row.min_severity), send_resolved=row.send_resolved,
        settings=row.settings if reveals_address(context.principal, row) else {},
        has_secret=row.secret_sealed is not None,
        last_delivery=delivery_of(context.principal, last) if last else None,
        created_at=row.created_at, updated_at=row.updated_at, etag=etag_of(row.version),
    )  # fmt: skip


async def _shown(context: Context, row: AlertChannelRow) -> AlertChannel:
    return _resource(context, row, (await repository.last_deliveries(context.session, [row.id])).get(row.id))


async def _existing(context: Context, channel_id: str, *, lock: bool = False) -> AlertChannelRow:
    row = await context.session.get(AlertChannelRow, channel_id, with_for_update=lock or None)
    if row is None:
        raise not_found("channel", channel_id)
    return row


async def list_channels(context: Context, limit: int, cursor: str | None) -> Page[AlertChannel]:
    rows, following = await page_by_name(
        context.session, repository.all_channels(), AlertChannelRow.name, AlertChannelRow.id, limit, cursor
    )
    last = await repository.last_deliveries(context.session, [row.id for row in rows])
    return Page[AlertChannel](items=[_resource(context, row, last.get(row.id)) for row in rows], next_cursor=following)


async def get_channel(context: Context, channel_id: str) -> AlertChannel:
    return await _shown(context, await _existing(context, channel_id))


async def create_channel(context: Context, body: AlertChannelCreate) -> Created:
    if await repository.channel_name_is_taken(context.session, body.name):
        raise name_taken("channel", body.name)
    row = AlertChannelRow(
        name=body.name, kind=body.kind, enabled=body.enabled, min_severity=body.min_severity,
        send_resolved=body.send_resolved, settings=body.settings.model_dump(mode="json"),
        secret_sealed=context.resources.secrets.seal(body.secret) if body.secret else None,
    )  # fmt: skip
    context.session.add(row)
    await context.session.flush()
    await context.session.refresh(row)
    channel = _resource(context, row, None)
    record(context, "alert_channels_create", ("alert_channel", row.id, row.name), after=snapshot(channel))
    return Created(channel, headers={"Location": f"/api/v1/alerts/channels/{row.id}", "ETag": channel.etag})


async def update_channel(
    context: Context, channel_id: str, body: AlertChannelUpdate, if_match: str | None
) -> AlertChannel:
    row = await _existing(context, channel_id, lock=True)
    check_if_match(if_match, row.version)
    before = snapshot(await _shown(context, row))
    if body.name is not None and body.name != row.name:
        if await repository.channel_name_is_taken(context.session, body.name, row.id):
            raise name_taken("channel", body.name)
        row.name = body.name
    if body.settings is not None:
        settings = _checked(ChannelKind(row.kind), body.settings)
        if row.secret_sealed is not None and body.secret is None:
            check_secret_stays(ChannelKind(row.kind), row.settings, settings)
        row.settings = settings
    if body.secret is not None:
        row.secret_sealed = context.resources.secrets.seal(body.secret) if body.secret else None
    for field, value in body.model_dump(
        include={"enabled", "min_severity", "send_resolved"}, exclude_none=True
    ).items():
        setattr(row, field, value)
    row.version += 1
    row.updated_at = now()
    await context.session.flush()
    channel = await _shown(context, row)
    record(context, "alert_channels_update", ("alert_channel", row.id, row.name), before, snapshot(channel))
    return channel


def _checked(kind: ChannelKind, settings: dict[str, Any]) -> dict[str, Any]:
    try:
        return SETTINGS[kind].model_validate(settings).model_dump(mode="json")
    except ValidationError as error:
        errors = [
            FieldProblem(
                pointer="/settings" + "".join(f"/{part}" for part in found["loc"])[:200], code=found["type"],
                message=found["msg"],
            )
            for found in error.errors(include_url=False, include_input=False)
        ]  # fmt: skip
        raise Problem(
            "invalid_request", f"The settings do not fit a channel of the kind {kind}.", "Correct them.", errors=errors
        ) from error


async def delete_channel(context: Context, channel_id: str) -> None:
    row = await _existing(context, channel_id, lock=True)
    record(context, "alert_channels_delete", ("alert_channel", row.id, row.name),
           before=snapshot(await _shown(context, row)))  # fmt: skip
    await context.session.delete(row)


async def test_channel(context: Context, channel_id: str) -> AlertDelivery:
    """Tries once, now. The answer says how it went; it is kept with the channel's deliveries."""
    row, resources = await _existing(context, channel_id), context.resources
    delivery = AlertDeliveryRow(
        channel=row,
        alert=None,
        event=NoticeEvent.TEST,
        state=DeliveryState.FAILED,
        tries=1,
        next_try_at=None,
        error=INTERRUPTED,
    )
    context.session.add(delivery)
    await context.session.flush()
    await context.session.refresh(delivery, ["created_at"])
    notice = notice_of_test(str(delivery.id), now(), resources.settings.console_url)
    await context.release()
    started = time.monotonic()
    answer: Delivered = await send(row, resources.secrets, notice, resources.settings)
    delivery.took_ms, delivery.finished_at = round((time.monotonic() - started) * 1000, 3), now()
    delivery.error = None
    if answer.code is None:
        delivery.state = "delivered"
    else:
        delivery.error = {"code": answer.code, "message": answer.message, "cure": answer.cure}
    record(context, "alert_channels_test", ("alert_channel", row.id, row.name), after={"state": delivery.state})
    return delivery_of(context.principal, delivery)
