"""Streams that were deleted without their engine, which had been given up for lost."""

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from thalweg.db.models.base import Base


class AbandonedStreamRow(Base):
    """Kept until the engine has come back and reported the stream as DROPPED: it still has it on its disk."""

    __tablename__ = "abandoned_streams"

    id: Mapped[str] = mapped_column(primary_key=True)
    engine_id: Mapped[str] = mapped_column(ForeignKey("engines.id", ondelete="CASCADE"), primary_key=True, index=True)
    """A stream over two engines may have been given up at both."""
    name: Mapped[str]
    definition_sealed: Mapped[str]
    """Its part of the desired document, sealed: it holds passwords."""
    revision: Mapped[int] = mapped_column(BigInteger)
    """The engine's desired revision that first asked for it to be dropped this way."""
    abandoned_at: Mapped[datetime]
