"""A stream's destinations: one at least."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, UniqueConstraint, func
from sqlalchemy.orm import Mapped, mapped_column, relationship

from thalweg.db.models.base import Base
from thalweg.db.models.database import DatabaseRow
from thalweg.db.models.engine import EngineRow
from thalweg.kernel.lifecycle import DesiredStatus, Stage


class DestinationRow(Base):
    """`id` is unique in its stream, as the engine's contract has it."""

    __tablename__ = "destinations"
    __table_args__ = (UniqueConstraint("stream_id", "database_id"),)

    stream_id: Mapped[str] = mapped_column(ForeignKey("streams.id", ondelete="CASCADE"), primary_key=True)
    id: Mapped[str] = mapped_column(primary_key=True)
    former_id: Mapped[str | None]
    """Its id in older rows of history, and at an engine that was upgraded until that has the next document."""
    database_id: Mapped[str] = mapped_column(ForeignKey("databases.id"), index=True)
    engine_id: Mapped[str] = mapped_column(ForeignKey("engines.id"), index=True)
    """The engine that applies."""
    parameters: Mapped[dict[str, Any]]
    """Overrides of the stream's parameters."""
    row_rules: Mapped[list[dict[str, Any]]]
    """Row rules for this destination alone, beside the stream's."""
    desired_status: Mapped[DesiredStatus]
    force: Mapped[bool] = mapped_column(default=False)
    changed_revision: Mapped[int] = mapped_column(BigInteger, default=0)
    """For a receiving engine: its desired revision that first held the destination as it is now."""
    backlog: Mapped[bool]
    """Changes that it has not taken are kept on the capturing engine's disk. From a stream's second destination on,
    each has a backlog and keeps it. Without a backlog, the source keeps WAL for it."""
    stage: Mapped[Stage] = mapped_column(default=Stage.NEW)
    """The stage of its life (kernel/lifecycle.py)."""
    ordinal: Mapped[int]
    """Orders a stream's destinations as they came."""
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())

    database: Mapped[DatabaseRow] = relationship(lazy="raise")
    engine: Mapped[EngineRow] = relationship(lazy="raise")
