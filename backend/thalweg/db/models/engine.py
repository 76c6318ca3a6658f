"""Engines and the tokens with which they enrol."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Identity, UniqueConstraint
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from thalweg.db.models.base import Base, Identified
from thalweg.kernel.lifecycle import EngineState

ANY_ADDRESS = ("", "*", "0.0.0.0", "::", "[::]")  # noqa: S104


class EngineRow(Identified, Base):
    """`desired_revision` grows by one with every change of the desired state of any of its streams."""

    __tablename__ = "engines"

    name: Mapped[str] = mapped_column(unique=True)
    url: Mapped[str] = mapped_column(unique=True)
    control_token_sealed: Mapped[str]
    desired_revision: Mapped[int] = mapped_column(BigInteger, default=0)
    acknowledged_revision: Mapped[int | None] = mapped_column(BigInteger)
    state: Mapped[EngineState] = mapped_column(default=EngineState.UNKNOWN)
    message: Mapped[str | None]
    version: Mapped[str | None]
    hostname: Mapped[str | None]
    pid: Mapped[int | None]
    started_at: Mapped[datetime | None]
    last_seen_at: Mapped[datetime | None]
    resident_bytes: Mapped[int | None] = mapped_column(BigInteger)
    cpu_percent: Mapped[float | None]
    identity_name: Mapped[str | None]
    """In its certificate, as it says itself; None: it has no identity (yet), or is of a version without."""
    identity_fingerprint: Mapped[str | None]
    identity_not_after: Mapped[datetime | None]
    identity_listen: Mapped[str | None]
    """host:port where it takes propagations, as it was started."""
    propagation_address: Mapped[str | None]
    """host:port where other engines reach it, when an admin has set it."""
    unknown_streams: Mapped[list[dict[str, Any]]] = mapped_column(JSONB, default=list, server_default="[]")
    """Id, status and phase of those that it runs and the store does not know: the store came back from a backup."""
    streams_to_drop: Mapped[list[str]] = mapped_column(JSONB, default=list, server_default="[]")
    """Those of them that an admin wants gone."""
    wal_archives: Mapped[list[str]] = mapped_column(JSONB, default=list, server_default="[]")
    """Names that the engine's host has for archives of sources' WAL, as it told last."""
    edition: Mapped[int] = mapped_column(default=1)
    """Grows with every update by a user: it is the entity tag."""

    @property
    def reached_at(self) -> str | None:
        """host:port where other engines reach it. None: nobody does. Listening on all addresses says nothing."""
        if self.propagation_address is not None or self.identity_listen is None:
            return self.propagation_address
        host, _, _ = self.identity_listen.rpartition(":")
        return None if host in ANY_ADDRESS else self.identity_listen


class EngineStartRow(Base):
    """One start of an engine, as it told: an engine itself knows its latest only."""

    __tablename__ = "engine_starts"
    __table_args__ = (UniqueConstraint("engine_id", "started_at"),)

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    engine_id: Mapped[str] = mapped_column(ForeignKey("engines.id", ondelete="CASCADE"))
    started_at: Mapped[datetime]


class EnrolmentRow(Identified, Base):
    __tablename__ = "enrolments"

    token_hash: Mapped[str] = mapped_column(unique=True)
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]
    engine_id: Mapped[str | None] = mapped_column(ForeignKey("engines.id", ondelete="SET NULL"))
