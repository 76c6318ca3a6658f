"""Deliveries: what was sent where, how it ended, and trying again by hand."""

from thalweg.alerting.catalogue import RULES, AlertRuleId
from thalweg.alerting.notice import NoticeEvent
from thalweg.alerting.senders.settings import ChannelKind
from thalweg.db.audit import record
from thalweg.db.models import AlertChannelRow, AlertDeliveryRow
from thalweg.db.pages import page_newest_first
from thalweg.features.alerts import repository
from thalweg.features.alerts.schemas import AlertDelivery, DeliveryError, DeliveryState
from thalweg.kernel.clock import now
from thalweg.kernel.context import Context
from thalweg.kernel.models import Page
from thalweg.kernel.principal import Principal, Role
from thalweg.kernel.problems import Problem, not_found

HIDDEN_FROM_VIEWERS = "The reason may name the channel's address: an operator can read it."


def reveals_address(principal: Principal, channel: AlertChannelRow) -> bool:
    """Hides where a webhook leads from viewers, because knowing it is enough to post there."""
    return channel.kind != ChannelKind.WEBHOOK or principal.role.covers(Role.OPERATOR)


def _error_for(principal: Principal, row: AlertDeliveryRow) -> DeliveryError | None:
    """Hides messages from viewers, unless the receiver has answered: then the message has its status only."""
    if row.error is None:
        return None
    error = DeliveryError(**row.error)
    if error.code.startswith("http_") or reveals_address(principal, row.channel):
        return error
    return error.model_copy(update={"message": HIDDEN_FROM_VIEWERS})


def delivery_of(principal: Principal, row: AlertDeliveryRow) -> AlertDelivery:
    title = "Test of the channel"
    if row.alert is not None:
        title = f"{RULES[AlertRuleId(row.alert.rule)].title}: {row.alert.subject_name}"
    return AlertDelivery(
        id=str(row.id), channel_id=row.channel.id, channel_name=row.channel.name,
        alert_id=str(row.alert_id) if row.alert_id is not None else None, title=title, event=NoticeEvent(row.event),
        state=DeliveryState(row.state), tries=row.tries, next_try_at=row.next_try_at, created_at=row.created_at,
        finished_at=row.finished_at, took_ms=row.took_ms,
        error=_error_for(principal, row),
    )  # fmt: skip


async def list_deliveries(
    context: Context, channel_id: str | None, alert_id: int | None, limit: int, cursor: str | None
) -> Page[AlertDelivery]:
    query = repository.deliveries(channel_id, alert_id)
    rows, following = await page_newest_first(context.session, query, AlertDeliveryRow.id, limit, cursor)
    return Page[AlertDelivery](items=[delivery_of(context.principal, row) for row in rows], next_cursor=following)


async def retry_delivery(context: Context, delivery_id: int) -> AlertDelivery:
    """At once, by the collector; its tries begin anew."""
    row = await repository.delivery_by_id(context.session, delivery_id)
    if row is None:
        raise not_found("delivery", str(delivery_id))
    if row.alert_id is None or row.state == DeliveryState.DELIVERED:
        raise Problem(
            "invalid_transition", "It was delivered, or it was a test.", "Press the channel's test button instead."
        )
    row.state, row.tries, row.next_try_at, row.finished_at = DeliveryState.PENDING, 0, now(), None
    record(context, "alert_deliveries_retry", ("alert_delivery", str(row.id), row.channel.name))
    return delivery_of(context.principal, row)
