"""Times in which a stream, one of its destinations or an engine did not work: charts of the past mark them."""

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, Identity, Index
from sqlalchemy.orm import Mapped, mapped_column

from thalweg.db.models.base import Base
from thalweg.kernel.lifecycle import OutageState


class OutageRow(Base):
    """An outage of a stream (`stream_id` alone), of one of its destinations (with `destination_id`), or of an engine.
    It is deleted with the stream or engine."""

    __tablename__ = "outages"
    __table_args__ = (
        Index("ix_outages_stream_id", "stream_id", "began_at"),
        Index("ix_outages_engine_id", "engine_id", "began_at"),
    )

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    stream_id: Mapped[str | None] = mapped_column(ForeignKey("streams.id", ondelete="CASCADE"))
    destination_id: Mapped[str | None]
    engine_id: Mapped[str | None] = mapped_column(ForeignKey("engines.id", ondelete="CASCADE"))
    name: Mapped[str]
    state: Mapped[OutageState]
    """The last one."""
    code: Mapped[str]
    """The code of its first cause; empty where none has one."""
    reason: Mapped[str]
    """The first cause, in words."""
    became: Mapped[str | None]
    """The present cause, or the last one, where that is another than the first."""
    became_at: Mapped[datetime | None]
    began_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]
