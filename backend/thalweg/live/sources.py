"""The last reading of a source, as the collector keeps it in the store."""

from datetime import datetime

from pydantic import BaseModel
from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.models import SourceReadingRow
from thalweg.db.readings import readings_of
from thalweg.inspection.slots import SlotState, SourceState
from thalweg.kernel.forecasts import seconds_to_full
from thalweg.live.marks import Marks

SLOT_PREFIX = "thalweg_"
KEEPS_UP_BYTES = 1 << 20
LEAP_SECONDS_MAX = 600.0
"""A restart position that has stood for longer is held by an open transaction."""


def slot_name(stream_id: str) -> str:
    return SLOT_PREFIX + stream_id


class SourceReading(BaseModel):
    """`read_at` is of the control plane's clock. `growth` is that of each slot's retained WAL, in bytes a second."""

    read_at: datetime
    state: SourceState
    marks: Marks = Marks()
    growth: dict[str, float] = {}

    @property
    def end(self) -> int:
        """The furthest that is known: an engine may have told of more since the source was asked."""
        return max(self.state.current_lsn, self.marks.points[-1][1] if self.marks.points else 0)

    def slot(self, stream_id: str) -> SlotState | None:
        return self.state.slots.get(slot_name(stream_id))

    def keeps_up(self, slot: SlotState) -> bool:
        """Its reader does, and what is kept grows only until the server moves the slot's restart position on: that goes
        in leaps, and the way from one to the next is no growth. A position that stands for long is."""
        if not slot.active or slot.confirmed_lsn is None or slot.restart_lsn is None:
            return False
        lag = self.state.current_lsn - slot.confirmed_lsn
        age = self.marks.age_of(slot.restart_lsn, self.read_at)
        stands = age is not None and age >= LEAP_SECONDS_MAX
        return lag <= max(KEEPS_UP_BYTES, slot.retained_bytes // 2) and not stands

    def seconds_to_idle(self, slot: SlotState) -> float | None:
        """Until idle_replication_slot_timeout takes it, when nobody reads from it before."""
        timeout, idle = self.state.idle_timeout_seconds, slot.idle_seconds
        if slot.active or slot.wal_status in (None, "lost") or timeout is None or idle is None:
            return None
        return max(0.0, timeout - idle)

    def seconds_to_full(self, slot: SlotState) -> float | None:
        if self.keeps_up(slot) or slot.safe_bytes is None:
            return None
        return seconds_to_full(slot.safe_bytes, self.growth.get(slot.name))


def reading_of(row: SourceReadingRow) -> SourceReading | None:
    return SourceReading.model_validate(row.document) if row.document is not None else None


async def source_readings(session: AsyncSession, database_ids: list[str]) -> dict[str, SourceReading]:
    """By database; those that have been read at least once."""
    rows = await readings_of(session, database_ids)
    return {row.database_id: reading for row in rows if (reading := reading_of(row)) is not None}
