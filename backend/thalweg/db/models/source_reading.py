"""The last reading of a database server's write-ahead log and replication slots."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from thalweg.db.models.base import Base


class SourceReadingRow(Base):
    """Written by the collector; `live/sources.py` has the documents. The code that drops a slot takes it out."""

    __tablename__ = "source_readings"

    database_id: Mapped[str] = mapped_column(ForeignKey("databases.id", ondelete="CASCADE"), primary_key=True)
    asked_at: Mapped[datetime]
    failure: Mapped[str | None]
    """Why the last question was not answered; what it said before stays."""
    document: Mapped[dict[str, Any] | None]
