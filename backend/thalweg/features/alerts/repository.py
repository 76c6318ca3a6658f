"""SQL of alerts, rules' settings, silences, channels and deliveries."""

from datetime import datetime

from sqlalchemy import Row, Select, func, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import joinedload

from thalweg.alerting.catalogue import AlertRuleId
from thalweg.alerting.lifecycle import OPEN, AlertState
from thalweg.db.models import (
    AlertChannelRow,
    AlertDeliveryRow,
    AlertRow,
    AlertRuleRow,
    AlertSilenceRow,
    StreamRow,
)
from thalweg.features.alerts.schemas import AlertFilter


def alerts(
    state: AlertFilter, rule: AlertRuleId | None, stream_id: str | None, subject_id: str | None
) -> Select[AlertRow]:
    query = select(AlertRow)
    if state is AlertFilter.OPEN:
        query = query.where(AlertRow.state.in_(OPEN))
    elif state is not AlertFilter.ALL:
        query = query.where(AlertRow.state == state.value)
    if rule is not None:
        query = query.where(AlertRow.rule == rule)
    if stream_id is not None:
        query = query.where(AlertRow.stream_id == stream_id)
    if subject_id is not None:
        query = query.where(AlertRow.subject_id == subject_id)
    return query


async def open_states(session: AsyncSession) -> list[Row[tuple[str, str, str, str | None, datetime | None]]]:
    """(state, severity, rule, stream_id, acknowledged_at)"""
    query = select(
        AlertRow.state, AlertRow.severity, AlertRow.rule, AlertRow.stream_id, AlertRow.acknowledged_at
    ).where(AlertRow.state != AlertState.RESOLVED)
    return list(await session.execute(query))


async def alert_by_id(session: AsyncSession, alert_id: int, *, lock: bool = False) -> AlertRow | None:
    return await session.get(AlertRow, alert_id, with_for_update=lock or None)


async def rule_rows(session: AsyncSession) -> list[AlertRuleRow]:
    return list(await session.scalars(select(AlertRuleRow)))


async def rule_row(session: AsyncSession, rule: AlertRuleId, stream_id: str | None) -> AlertRuleRow | None:
    query = select(AlertRuleRow).where(
        AlertRuleRow.rule == rule, AlertRuleRow.stream_id.is_not_distinct_from(stream_id)
    )
    return (await session.scalars(query.with_for_update())).one_or_none()


async def stream_names(session: AsyncSession, stream_ids: set[str]) -> dict[str, str]:
    query = select(StreamRow.id, StreamRow.name).where(StreamRow.id.in_(stream_ids))
    return {row.id: row.name for row in await session.execute(query)}


async def current_silences(session: AsyncSession, at: datetime) -> list[AlertSilenceRow]:
    query = select(AlertSilenceRow).where(AlertSilenceRow.until > at)
    return list(await session.scalars(query.order_by(AlertSilenceRow.until, AlertSilenceRow.id)))


def all_channels() -> Select[AlertChannelRow]:
    return select(AlertChannelRow)


async def channel_name_is_taken(session: AsyncSession, name: str, except_id: str = "") -> bool:
    query = select(AlertChannelRow.id).where(AlertChannelRow.name == name, AlertChannelRow.id != except_id)
    return (await session.scalars(query)).first() is not None


async def last_deliveries(session: AsyncSession, channel_ids: list[str]) -> dict[str, AlertDeliveryRow]:
    newest = (
        select(func.max(AlertDeliveryRow.id))
        .where(AlertDeliveryRow.channel_id.in_(channel_ids), AlertDeliveryRow.tries > 0)
        .group_by(AlertDeliveryRow.channel_id)
    )
    rows = await session.scalars(deliveries(None, None).where(AlertDeliveryRow.id.in_(newest)))
    return {row.channel_id: row for row in rows}


def deliveries(channel_id: str | None, alert_id: int | None) -> Select[AlertDeliveryRow]:
    query = select(AlertDeliveryRow).options(joinedload(AlertDeliveryRow.channel), joinedload(AlertDeliveryRow.alert))
    if channel_id is not None:
        query = query.where(AlertDeliveryRow.channel_id == channel_id)
    if alert_id is not None:
        query = query.where(AlertDeliveryRow.alert_id == alert_id)
    return query


async def delivery_by_id(session: AsyncSession, delivery_id: int) -> AlertDeliveryRow | None:
    query = deliveries(None, None).where(AlertDeliveryRow.id == delivery_id)
    return (await session.scalars(query.with_for_update(of=AlertDeliveryRow))).one_or_none()
