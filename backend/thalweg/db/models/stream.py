"""Streams: the desired state that requests write, and the observed state that the collector writes.

One engine captures; each destination is applied by the same engine, or by another one that receives what the capturing
engine sends.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey
from sqlalchemy.orm import Mapped, mapped_column, relationship

from thalweg.db.models.base import Base, Versioned
from thalweg.db.models.database import DatabaseRow
from thalweg.db.models.destination import DestinationRow
from thalweg.db.models.engine import EngineRow
from thalweg.kernel.capture_kinds import CaptureKind
from thalweg.kernel.lifecycle import DesiredStatus, ObservedStatus, Stage, StreamPhase
from thalweg.kernel.modes import StreamMode


class StreamRow(Versioned, Base):
    __tablename__ = "streams"

    name: Mapped[str] = mapped_column(unique=True)
    source_id: Mapped[str] = mapped_column(ForeignKey("databases.id"), index=True)
    capture_engine_id: Mapped[str] = mapped_column(ForeignKey("engines.id"), index=True)
    capture_kind: Mapped[CaptureKind] = mapped_column(default=CaptureKind.LOGICAL)
    """Fixed when the stream is made."""
    rules: Mapped[dict[str, Any]]
    tables: Mapped[list[dict[str, Any]]]
    mask_key_sealed: Mapped[str | None]
    """The masking key of its tables."""
    parameters: Mapped[dict[str, Any]]
    desired_status: Mapped[DesiredStatus]
    force: Mapped[bool] = mapped_column(default=False)
    changed_revision: Mapped[int] = mapped_column(BigInteger, default=0)
    """The capture engine's desired revision that first held the stream as it is now."""
    restart_needed: Mapped[bool] = mapped_column(default=False)
    observed: Mapped[dict[str, Any] | None]
    """The stream's part of the engine's last status, as the contract gives it; of all its engines together."""
    reports: Mapped[dict[str, Any] | None]
    """Over several engines: each one's own, by its id; `observed` is made of them (live/reports.py)."""
    reached: Mapped[dict[str, Any] | None]
    """Position by destination, up to which everything was applied when it was last heard of: an engine that does not
    run a stream knows none."""
    observed_status: Mapped[ObservedStatus] = mapped_column(default=ObservedStatus.UNKNOWN)
    observed_phase: Mapped[StreamPhase] = mapped_column(default=StreamPhase.UNKNOWN)
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
        return sorted({self.capture_engine_id, *(destination.engine_id for destination in self.destinations)})

    @property
    def receivers(self) -> list[DestinationRow]:
        """Destinations that another engine applies and has been told of."""
        return [
            destination
            for destination in self.destinations
            if destination.engine_id != self.capture_engine_id and destination.stage != Stage.NEW
        ]

    @property
    def capture_is_gone(self) -> bool:
        """It is being deleted, and the capturing engine is done with it: the engines that receive follow. Until then
        at least one destination is not to be dropped."""
        return all(destination.stage == Stage.RELEASED for destination in self.destinations)

    @property
    def is_paused(self) -> bool:
        """Each of its destinations is switched off, and the stream itself is not."""
        staying = {destination.desired_status for destination in self.destinations} - {DesiredStatus.DROPPED}
        return self.desired_status == DesiredStatus.ENABLED and staying == {DesiredStatus.DISABLED}

    @property
    def mode(self) -> StreamMode:
        if len(self.destinations) > 1:
            return StreamMode.FAN_OUT
        return next(map(self.mode_to, self.destinations), StreamMode.COMBINED)

    def mode_to(self, destination: DestinationRow) -> StreamMode:
        """COMBINED or PROPAGATION, of each of a fan-out's destinations, too."""
        is_combined = destination.engine_id == self.capture_engine_id
        return StreamMode.COMBINED if is_combined else StreamMode.PROPAGATION

    def destination(self, destination_id: str) -> DestinationRow | None:
        return next((destination for destination in self.destinations if destination.id == destination_id), None)
