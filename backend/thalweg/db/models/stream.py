"""Streams: the desired state that requests write, and the observed state that the collector writes.

One engine captures; each destination is applied by the same engine or by another one. A destination of another engine
makes two halves: the capture engine sends, the destination's engine receives and applies.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey
from sqlalchemy.orm import Mapped, mapped_column, relationship

from thalweg.db.models.base import Base, Versioned
from thalweg.db.models.database import DatabaseRow
from thalweg.db.models.destination import DestinationRow
from thalweg.db.models.engine import EngineRow


class StreamRow(Versioned, Base):
    __tablename__ = "streams"

    name: Mapped[str] = mapped_column(unique=True)
    source_id: Mapped[str] = mapped_column(ForeignKey("databases.id"), index=True)
    capture_engine_id: Mapped[str] = mapped_column(ForeignKey("engines.id"), index=True)
    fans_out: Mapped[bool] = mapped_column(default=False)
    """Its engine keeps a list of destinations, each with a backlog on disk. A list never turns back."""
    rules: Mapped[dict[str, Any]]
    tables: Mapped[list[dict[str, Any]]]
    parameters: Mapped[dict[str, Any]]
    desired_status: Mapped[str]
    force: Mapped[bool] = mapped_column(default=False)
    changed_revision: Mapped[int] = mapped_column(BigInteger, default=0)
    """The capture engine's desired revision that first held the stream as it is now."""
    capture_dropped: Mapped[bool] = mapped_column(default=False)
    """While it is being deleted: the capture engine is done with it, now the engines that receive go on."""
    restart_needed: Mapped[bool] = mapped_column(default=False)
    observed: Mapped[dict[str, Any] | None]
    """The stream's part of the engine's last status, as the contract gives it; of all its engines together."""
    halves: Mapped[dict[str, Any] | None]
    """Over several engines: each one's own report, of which `observed` is the sum (workers/pairing.py)."""
    reached: Mapped[dict[str, Any] | None]
    """Position by destination, up to which everything was applied when it was last heard of: an engine that does not
    run a stream knows none."""
    observed_status: Mapped[str] = mapped_column(default="UNKNOWN")
    observed_phase: Mapped[str] = mapped_column(default="UNKNOWN")
    observed_at: Mapped[datetime | None]

    source: Mapped[DatabaseRow] = relationship(foreign_keys=[source_id], lazy="raise")
    capture_engine: Mapped[EngineRow] = relationship(foreign_keys=[capture_engine_id], lazy="raise")
    destinations: Mapped[list[DestinationRow]] = relationship(
        lazy="raise", cascade="all, delete-orphan", passive_deletes=True,
        order_by=[DestinationRow.ordinal],
    )  # fmt: skip

    @property
    def engine_ids(self) -> list[str]:
        """In the order of locking."""
        return sorted({self.capture_engine_id, *(one.engine_id for one in self.destinations)})

    @property
    def receivers(self) -> list[DestinationRow]:
        """Destinations that another engine applies and knows of. It learns of one of several once the capture engine
        lists it: what it would copy before, nobody would catch up with."""
        return [
            one
            for one in self.destinations
            if one.engine_id != self.capture_engine_id and (one.listed or not self.fans_out)
        ]

    def destination(self, destination_id: str) -> DestinationRow | None:
        return next((one for one in self.destinations if one.id == destination_id), None)
