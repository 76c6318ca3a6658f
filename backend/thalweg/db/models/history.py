"""Samples of the past in three tiers: every second, rolled up to minutes, and to hours.

Native range partitions over `at`, which the elected collector makes ahead and drops (history/partitions.py): the
tables themselves are empty. A row is what one engine told of one stream: of a stream over several engines each has
its own, and whoever reads puts them together (history/joining.py).
"""

from datetime import datetime

from sqlalchemy import LargeBinary
from sqlalchemy.orm import Mapped, mapped_column

from thalweg.db.models.base import Base

PARTITIONED = {"postgresql_partition_by": "RANGE (at)"}


class HistoryRow:
    stream_id: Mapped[str] = mapped_column(primary_key=True)
    """No foreign key: it goes with its partition, not with its stream."""
    at: Mapped[datetime] = mapped_column(primary_key=True)
    """The time of the sample; for a roll-up, the beginning of its minute or hour."""
    engine_id: Mapped[str] = mapped_column(primary_key=True)
    samples: Mapped[int]
    """Rows of the finer tier that it is made of, 1 in the finest: more of them, and it is made anew."""
    document: Mapped[bytes] = mapped_column(LargeBinary)
    """docs/formats/history-document.md"""


class HistorySecondRow(HistoryRow, Base):
    __tablename__ = "history_seconds"
    __table_args__ = PARTITIONED


class HistoryMinuteRow(HistoryRow, Base):
    __tablename__ = "history_minutes"
    __table_args__ = PARTITIONED


class HistoryHourRow(HistoryRow, Base):
    __tablename__ = "history_hours"
    __table_args__ = PARTITIONED
