"""Streams: the desired state that requests write, and the observed state that the collector writes.

A stream over two engines has a sending half, which captures, and a receiving half, which does everything that happens
once and applies: `engine` is the one that applies, `capture_engine` is None when it captures too.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey
from sqlalchemy.orm import Mapped, mapped_column, relationship

from thalweg.db.models.base import Base, Versioned
from thalweg.db.models.database import DatabaseRow
from thalweg.db.models.engine import EngineRow


class StreamRow(Versioned, Base):
    __tablename__ = "streams"

    name: Mapped[str] = mapped_column(unique=True)
    source_id: Mapped[str] = mapped_column(ForeignKey("databases.id"), index=True)
    destination_id: Mapped[str] = mapped_column(ForeignKey("databases.id"), index=True)
    engine_id: Mapped[str] = mapped_column(ForeignKey("engines.id"), index=True)
    capture_engine_id: Mapped[str | None] = mapped_column(ForeignKey("engines.id"), index=True)
    """The engine of the sending half. None: one engine captures and applies."""
    rules: Mapped[dict[str, Any]]
    tables: Mapped[list[dict[str, Any]]]
    parameters: Mapped[dict[str, Any]]
    desired_status: Mapped[str]
    force: Mapped[bool] = mapped_column(default=False)
    changed_revision: Mapped[int] = mapped_column(BigInteger, default=0)
    """The engine's desired revision that first held the stream as it is now."""
    sending_revision: Mapped[int] = mapped_column(BigInteger, default=0)
    """The same of the capture engine."""
    sending_dropped: Mapped[bool] = mapped_column(default=False)
    """While it is being deleted: the sending half is gone, now the receiving half goes."""
    restart_needed: Mapped[bool] = mapped_column(default=False)
    observed: Mapped[dict[str, Any] | None]
    """The stream's part of the engine's last status, as the contract gives it; over two engines, of both."""
    halves: Mapped[dict[str, Any] | None]
    """Over two engines: each half's own report, of which `observed` is the sum (live/halves.py)."""
    observed_status: Mapped[str] = mapped_column(default="UNKNOWN")
    observed_phase: Mapped[str] = mapped_column(default="UNKNOWN")
    observed_at: Mapped[datetime | None]

    source: Mapped[DatabaseRow] = relationship(foreign_keys=[source_id], lazy="raise")
    destination: Mapped[DatabaseRow] = relationship(foreign_keys=[destination_id], lazy="raise")
    engine: Mapped[EngineRow] = relationship(foreign_keys=[engine_id], lazy="raise")
    capture_engine: Mapped[EngineRow | None] = relationship(foreign_keys=[capture_engine_id], lazy="raise")

    @property
    def engine_ids(self) -> list[str]:
        """In the order of locking."""
        return sorted({self.engine_id, self.capture_engine_id or self.engine_id})
