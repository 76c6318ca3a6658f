"""Alerts over HTTP."""

from typing import Annotated

import structlog
from fastapi import APIRouter, BackgroundTasks, Path, Query, Response
from redis.exceptions import RedisError

from thalweg.alerting.catalogue import AlertRuleId
from thalweg.features.alerts import channels, deliveries, rules, service, silences
from thalweg.features.alerts.schemas import (
    Alert,
    AlertAcknowledge,
    AlertChannel,
    AlertChannelCreate,
    AlertChannelUpdate,
    AlertCounts,
    AlertDelivery,
    AlertFilter,
    AlertPage,
    AlertRule,
    AlertRules,
    AlertRuleSettings,
    AlertSilence,
    AlertSilenceCreate,
)
from thalweg.kernel.context import Admin, Context, Operator, TransactionalRoute, Viewer
from thalweg.kernel.etags import IfMatch
from thalweg.kernel.idempotency import OnceOnly
from thalweg.kernel.models import ID_PATTERN, Id, Page
from thalweg.kernel.pagination import LIMIT_DEFAULT, Cursor, Limit
from thalweg.live.bus import Bus

router = APIRouter(route_class=TransactionalRoute, tags=["alerts"])
log = structlog.get_logger(__name__)

NumberPath = Annotated[int, Path(ge=1, lt=2**62)]
StreamFilter = Annotated[str | None, Query(pattern=ID_PATTERN)]


@router.get("/alerts", operation_id="alerts_list")
async def list_alerts(
    context: Viewer,
    state: AlertFilter = AlertFilter.OPEN,
    rule: AlertRuleId | None = None,
    stream_id: StreamFilter = None,
    subject_id: StreamFilter = None,
    limit: Limit = LIMIT_DEFAULT,
    cursor: Cursor = None,
) -> AlertPage:
    """Alerts, newest first: those that are open (pending or firing), or the history. `outdated` says so when nobody
    looks any more: an empty list does not mean then that all is well."""
    return await service.list_alerts(context, state, rule, stream_id, subject_id, limit, cursor)


@router.get("/alerts/counts", operation_id="alerts_count")
async def count_alerts(context: Viewer) -> AlertCounts:
    """The number of alerts now."""
    return await service.count_alerts(context)


@router.get("/alerts/rules", operation_id="alert_rules_list")
async def list_alert_rules(context: Viewer) -> AlertRules:
    """All alert rules, with their meaning, defaults, settings and effective values."""
    return await rules.list_rules(context)


@router.put("/alerts/rules/{rule}", operation_id="alert_rules_update")
async def update_alert_rule(
    rule: AlertRuleId, body: AlertRuleSettings, context: Operator, response: Response, if_match: IfMatch = None
) -> AlertRule:
    """Set an alert rule for all streams. The settings replace the previous ones as a whole; an empty object restores
    the defaults."""
    updated = await rules.update_rule(context, rule, body, if_match)
    response.headers["ETag"] = updated.etag
    return updated


@router.put("/alerts/rules/{rule}/streams/{stream_id}", operation_id="alert_rules_update_stream")
async def update_alert_rule_of_stream(
    rule: AlertRuleId, stream_id: Id, body: AlertRuleSettings, context: Operator
) -> AlertRule:
    """Set an alert rule for one stream."""
    return await rules.update_stream_rule(context, rule, stream_id, body)


@router.delete("/alerts/rules/{rule}/streams/{stream_id}", status_code=204, operation_id="alert_rules_delete_stream")
async def delete_alert_rule_of_stream(rule: AlertRuleId, stream_id: Id, context: Operator) -> None:
    """Delete a stream's own settings of an alert rule: those for all streams apply again."""
    await rules.delete_stream_rule(context, rule, stream_id)


@router.get("/alerts/silences", operation_id="alert_silences_list")
async def list_silences(context: Viewer) -> Page[AlertSilence]:
    """Silences in effect now."""
    return await silences.list_silences(context)


@router.post("/alerts/silences", status_code=201, operation_id="alert_silences_create", response_model=AlertSilence)
async def create_silence(body: AlertSilenceCreate, context: Operator, once: OnceOnly) -> Response:
    """Suppress notices for a while, by alert rule and stream."""
    return await once.run(context, lambda: silences.create_silence(context, body))


@router.delete("/alerts/silences/{silence_id}", status_code=204, operation_id="alert_silences_delete")
async def end_silence(silence_id: Id, context: Operator) -> None:
    """End a silence now. Alerts that still fire are then notified."""
    await silences.end_silence(context, silence_id)


@router.get("/alerts/channels", operation_id="alert_channels_list")
async def list_channels(context: Viewer, limit: Limit = LIMIT_DEFAULT, cursor: Cursor = None) -> Page[AlertChannel]:
    """The channels of notices, each with its last delivery."""
    return await channels.list_channels(context, limit, cursor)


@router.post("/alerts/channels", status_code=201, operation_id="alert_channels_create", response_model=AlertChannel)
async def create_channel(body: AlertChannelCreate, context: Admin, once: OnceOnly) -> Response:
    """Add a webhook, a mail address or the log. Test it afterwards."""
    return await once.run(context, lambda: channels.create_channel(context, body))


@router.get("/alerts/channels/{channel_id}", operation_id="alert_channels_get")
async def get_channel(channel_id: Id, context: Viewer, response: Response) -> AlertChannel:
    channel = await channels.get_channel(context, channel_id)
    response.headers["ETag"] = channel.etag
    return channel


@router.patch("/alerts/channels/{channel_id}", operation_id="alert_channels_update")
async def update_channel(
    channel_id: Id, body: AlertChannelUpdate, context: Admin, response: Response, if_match: IfMatch = None
) -> AlertChannel:
    channel = await channels.update_channel(context, channel_id, body, if_match)
    response.headers["ETag"] = channel.etag
    return channel


@router.delete("/alerts/channels/{channel_id}", status_code=204, operation_id="alert_channels_delete")
async def delete_channel(channel_id: Id, context: Admin) -> None:
    """Remove a channel with its deliveries."""
    await channels.delete_channel(context, channel_id)


@router.post("/alerts/channels/{channel_id}/test", operation_id="alert_channels_test")
async def test_channel(channel_id: Id, context: Operator) -> AlertDelivery:
    """Send a test now. A failure is also answered with 200; `error` has the reason and the cure."""
    return await channels.test_channel(context, channel_id)


@router.get("/alerts/deliveries", operation_id="alert_deliveries_list")
async def list_deliveries(
    context: Viewer,
    channel_id: StreamFilter = None,
    alert_id: Annotated[int | None, Query(ge=1, lt=2**62)] = None,
    limit: Limit = LIMIT_DEFAULT,
    cursor: Cursor = None,
) -> Page[AlertDelivery]:
    """Notices, newest first: what was sent where, and what went wrong."""
    return await deliveries.list_deliveries(context, channel_id, alert_id, limit, cursor)


@router.post("/alerts/deliveries/{delivery_id}/retry", operation_id="alert_deliveries_retry")
async def retry_delivery(delivery_id: NumberPath, context: Operator) -> AlertDelivery:
    """Resend a notice now."""
    return await deliveries.retry_delivery(context, delivery_id)


@router.get("/alerts/{alert_id}", operation_id="alerts_get")
async def get_alert(alert_id: NumberPath, context: Viewer) -> Alert:
    return await service.get_alert(context, alert_id)


@router.post("/alerts/{alert_id}/acknowledge", operation_id="alerts_acknowledge")
async def acknowledge(
    alert_id: NumberPath, body: AlertAcknowledge, context: Operator, background: BackgroundTasks
) -> Alert:
    """Say that somebody is working on it. It stays in the list until it is resolved."""
    alert = await service.acknowledge(context, alert_id, body)
    background.add_task(_tell, context, alert)
    return alert


@router.post("/alerts/{alert_id}/unacknowledge", operation_id="alerts_unacknowledge")
async def unacknowledge(alert_id: NumberPath, context: Operator, background: BackgroundTasks) -> Alert:
    """Withdraw the acknowledgement."""
    alert = await service.unacknowledge(context, alert_id)
    background.add_task(_tell, context, alert)
    return alert


async def _tell(context: Context, alert: Alert) -> None:
    """After the commit: other tabs read the alerts again. Without Redis they see it when they next do."""
    try:
        await Bus(context.resources.redis).publish([service.event_of(alert)])
    except (RedisError, OSError) as error:
        log.warning("redis cannot be reached: an event is lost", error=str(error))
