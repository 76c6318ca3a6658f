"""Engines and the tokens with which they enrol."""

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from thalweg.db.models.base import Base, Identified


class EngineRow(Identified, Base):
    """`desired_revision` grows by one with every change of the desired state of any of its streams."""

    __tablename__ = "engines"

    name: Mapped[str] = mapped_column(unique=True)
    url: Mapped[str] = mapped_column(unique=True)
    control_token_sealed: Mapped[str]
    desired_revision: Mapped[int] = mapped_column(BigInteger, default=0)
    acknowledged_revision: Mapped[int | None] = mapped_column(BigInteger)
    state: Mapped[str] = mapped_column(default="UNKNOWN")
    message: Mapped[str | None]
    version: Mapped[str | None]
    hostname: Mapped[str | None]
    pid: Mapped[int | None]
    started_at: Mapped[datetime | None]
    last_seen_at: Mapped[datetime | None]
    resident_bytes: Mapped[int | None] = mapped_column(BigInteger)
    cpu_percent: Mapped[float | None]


class EnrolmentRow(Identified, Base):
    __tablename__ = "enrolments"

    token_hash: Mapped[str] = mapped_column(unique=True)
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]
    engine_id: Mapped[str | None] = mapped_column(ForeignKey("engines.id", ondelete="SET NULL"))
