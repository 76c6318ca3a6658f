"""Alerts: their state and history, what users have set about them, channels and deliveries."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Identity, Index, UniqueConstraint, func, text
from sqlalchemy.orm import Mapped, mapped_column, relationship

from thalweg.db.models.base import Base, Identified, Versioned


class AlertRow(Base):
    """One occurrence. Kept after what it is about is gone: it names it."""

    __tablename__ = "alerts"
    __table_args__ = (
        Index(
            "uq_alerts_open", "rule", "subject_type", "subject_id", "part", unique=True,
            postgresql_where=text("state <> 'resolved'"),
        ),
        Index("ix_alerts_resolved_at", "resolved_at"),
    )  # fmt: skip

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    rule: Mapped[str]
    subject_type: Mapped[str]
    subject_id: Mapped[str] = mapped_column(index=True)
    subject_name: Mapped[str]
    part: Mapped[str] = mapped_column(default="")
    """Tells two of one rule about one thing apart, such as an engine's two certificates."""
    stream_id: Mapped[str | None]
    severity: Mapped[str]
    state: Mapped[str]
    message: Mapped[str]
    value: Mapped[float | None]
    threshold: Mapped[float | None]
    unit: Mapped[str] = mapped_column(default="")
    evidence: Mapped[dict[str, Any]]
    pending_at: Mapped[datetime]
    fired_at: Mapped[datetime | None]
    clear_since: Mapped[datetime | None]
    """It fires, and its condition has been over since."""
    resolved_at: Mapped[datetime | None]
    resolution: Mapped[str | None]
    """cleared: the condition was over. not_applicable: the subject is gone or stopped, or the rule switched off."""
    changed_at: Mapped[datetime]
    notified_at: Mapped[datetime | None]
    """None while a silence keeps it quiet."""
    acknowledged_at: Mapped[datetime | None]
    acknowledged_by: Mapped[str | None]
    note: Mapped[str | None]
    run_id: Mapped[int | None] = mapped_column(ForeignKey("advisor_runs.id", ondelete="SET NULL"))
    """The advisor run that was taken when it fired; it may be forgotten earlier."""


class AlertRuleRow(Versioned, Base):
    """Differences from the alert rule's defaults, everywhere (no stream) or for one stream."""

    __tablename__ = "alert_rules"
    __table_args__ = (UniqueConstraint("rule", "stream_id", postgresql_nulls_not_distinct=True),)

    rule: Mapped[str]
    stream_id: Mapped[str | None] = mapped_column(ForeignKey("streams.id", ondelete="CASCADE"))
    enabled: Mapped[bool | None]
    severity: Mapped[str | None]
    hold_seconds: Mapped[float | None]
    thresholds: Mapped[dict[str, Any]]


class AlertSilenceRow(Identified, Base):
    __tablename__ = "alert_silences"

    rule: Mapped[str | None]
    stream_id: Mapped[str | None] = mapped_column(ForeignKey("streams.id", ondelete="CASCADE"))
    until: Mapped[datetime] = mapped_column(index=True)
    reason: Mapped[str]
    created_by: Mapped[str]


class AlertChannelRow(Versioned, Base):
    __tablename__ = "alert_channels"

    name: Mapped[str] = mapped_column(unique=True)
    kind: Mapped[str]
    enabled: Mapped[bool] = mapped_column(default=True)
    min_severity: Mapped[str]
    send_resolved: Mapped[bool] = mapped_column(default=True)
    settings: Mapped[dict[str, Any]]
    secret_sealed: Mapped[str | None]


class AlertDeliveryRow(Base):
    """A notice on its way: written in the transaction that made the alert fire, so that none is lost."""

    __tablename__ = "alert_deliveries"
    __table_args__ = (Index("ix_alert_deliveries_due", "next_try_at", postgresql_where=text("state = 'pending'")),)

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    channel_id: Mapped[str] = mapped_column(ForeignKey("alert_channels.id", ondelete="CASCADE"), index=True)
    alert_id: Mapped[int | None] = mapped_column(ForeignKey("alerts.id", ondelete="CASCADE"), index=True)
    """None: a test."""
    event: Mapped[str]
    state: Mapped[str]
    tries: Mapped[int] = mapped_column(default=0)
    next_try_at: Mapped[datetime | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    finished_at: Mapped[datetime | None]
    took_ms: Mapped[float | None]
    error: Mapped[dict[str, Any] | None]
    """code, message and cure of the last try."""

    channel: Mapped[AlertChannelRow] = relationship(lazy="raise")
    alert: Mapped[AlertRow | None] = relationship(lazy="raise")
