"""SQL of the alerts' evaluation and of the deliveries."""

from datetime import datetime

from sqlalchemy import ColumnElement, and_, delete, exists, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased, joinedload

from thalweg.alerting.lifecycle import AlertState
from thalweg.db.models import (
    AlertChannelRow,
    AlertDeliveryRow,
    AlertRow,
    AlertRuleRow,
    AlertSilenceRow,
    AuthorityRow,
    EngineRow,
    StreamRow,
    TokenRow,
    UserRow,
)
from thalweg.db.streams import whole_streams
from thalweg.features.alerts.schemas import DeliveryState


async def streams_with_engines(session: AsyncSession) -> list[StreamRow]:
    return list(await session.scalars(whole_streams().order_by(StreamRow.id)))


async def engines(session: AsyncSession) -> list[EngineRow]:
    return list(await session.scalars(select(EngineRow).order_by(EngineRow.id)))


async def ending_tokens(session: AsyncSession) -> list[tuple[str, str, str, datetime]]:
    """(id, name, owner's name, end) of tokens that can still be used, or could until they ended."""
    query = (
        select(TokenRow.id, TokenRow.name, UserRow.name.label("owner"), TokenRow.expires_at)
        .join(UserRow, UserRow.id == TokenRow.user_id)
        .where(TokenRow.expires_at.is_not(None), TokenRow.revoked_at.is_(None), UserRow.enabled)
        .order_by(TokenRow.id)
    )
    return [(row.id, row.name, row.owner, row.expires_at) for row in await session.execute(query)]


async def authority_certificate(session: AsyncSession) -> str | None:
    return (await session.scalars(select(AuthorityRow.certificate))).one_or_none()


async def overrides(session: AsyncSession) -> list[AlertRuleRow]:
    return list(await session.scalars(select(AlertRuleRow)))


async def silences(session: AsyncSession, at: datetime) -> list[AlertSilenceRow]:
    return list(await session.scalars(select(AlertSilenceRow).where(AlertSilenceRow.until > at)))


async def open_alerts(session: AsyncSession) -> list[AlertRow]:
    query = select(AlertRow).where(AlertRow.state != AlertState.RESOLVED).order_by(AlertRow.id)
    return list(await session.scalars(query))


async def enabled_channels(session: AsyncSession) -> list[AlertChannelRow]:
    return list(await session.scalars(select(AlertChannelRow).where(AlertChannelRow.enabled)))


def _due(at: datetime) -> ColumnElement[bool]:
    """One delivery at a time for each alert and channel, so that nobody hears the end before the beginning."""
    earlier = aliased(AlertDeliveryRow)
    waits = exists().where(
        and_(
            earlier.channel_id == AlertDeliveryRow.channel_id, earlier.alert_id == AlertDeliveryRow.alert_id,
            earlier.state == DeliveryState.PENDING, earlier.id < AlertDeliveryRow.id,
        )
    )  # fmt: skip
    return and_(
        AlertDeliveryRow.state == DeliveryState.PENDING, AlertDeliveryRow.alert_id.is_not(None),
        AlertDeliveryRow.next_try_at <= at, AlertChannelRow.enabled, ~waits,
    )  # fmt: skip


async def channels_with_due_deliveries(session: AsyncSession, at: datetime) -> list[str]:
    query = select(AlertChannelRow.id).where(
        exists().where(AlertDeliveryRow.channel_id == AlertChannelRow.id, _due(at)).correlate(AlertChannelRow)
    )
    return list(await session.scalars(query))


async def due_delivery(session: AsyncSession, channel_id: str, at: datetime) -> AlertDeliveryRow | None:
    """The oldest one of a channel."""
    query = (
        select(AlertDeliveryRow)
        .options(joinedload(AlertDeliveryRow.channel), joinedload(AlertDeliveryRow.alert))
        .join(AlertChannelRow, AlertChannelRow.id == AlertDeliveryRow.channel_id)
        .where(AlertDeliveryRow.channel_id == channel_id, _due(at))
        .order_by(AlertDeliveryRow.id)
        .limit(1)
    )
    return (await session.scalars(query)).one_or_none()


async def forget_resolved(session: AsyncSession, before: datetime) -> None:
    """Their deliveries go with them; tests of channels, and silences that have ended, by their own age."""
    await session.execute(delete(AlertRow).where(AlertRow.resolved_at < before))
    await session.execute(
        delete(AlertDeliveryRow).where(AlertDeliveryRow.alert_id.is_(None), AlertDeliveryRow.created_at < before)
    )
    await session.execute(delete(AlertSilenceRow).where(AlertSilenceRow.until < before))
