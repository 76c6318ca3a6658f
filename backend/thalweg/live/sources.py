"""The last reading of a source, as the collector keeps it in the store."""

from datetime import datetime, timedelta

from pydantic import BaseModel
from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.models import SourceReadingRow
from thalweg.db.readings import readings_of
from thalweg.inspection.slots import SlotState, SourceState
from thalweg.kernel.time_to_full import seconds_to_full
from thalweg.live.marks import Marks

SLOT_PREFIX = "thalweg_"
KEEPS_UP_BYTES = 1 << 20
CONFIRMS_WITHIN = timedelta(seconds=60)
"""Readers confirm every ten seconds or so, each at its own pace: a position that has stood for longer stands still."""
LEAP_SECONDS_MAX = 600.0
"""A restart position that has stood for longer is held by an open transaction."""


def slot_name(stream_id: str) -> str:
    return SLOT_PREFIX + stream_id


class SourceReading(BaseModel):
    """`read_at` is of the control plane's clock. `growth` is that of each slot's retained WAL, in bytes a second;
    `unsteady` are those slots on whose growth no forecast can rest. `moved_at` is when each slot's confirmed position
    was last seen to move, or to have nothing to move for."""

    read_at: datetime
    state: SourceState
    marks: Marks = Marks()
    growth: dict[str, float] = {}
    unsteady: list[str] = []
    moved_at: dict[str, datetime] = {}

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
        moves = self.read_at - self.moved_at.get(slot.name, self.read_at) < CONFIRMS_WITHIN
        age = self.marks.age_of(slot.restart_lsn, self.read_at)
        stands = age is not None and age >= LEAP_SECONDS_MAX
        return not stands and (lag <= KEEPS_UP_BYTES or (moves and lag <= slot.retained_bytes // 2))

    def seconds_to_idle(self, slot: SlotState) -> float | None:
        """Until idle_replication_slot_timeout takes it, when nobody reads from it before."""
        timeout, idle = self.state.idle_timeout_seconds, slot.idle_seconds
        if slot.active or slot.wal_status in (None, "lost") or timeout is None or idle is None:
            return None
        return max(0.0, timeout - idle)

    def seconds_to_full(self, slot: SlotState) -> float | None:
        if self.keeps_up(slot) or slot.safe_bytes is None or slot.name in self.unsteady:
            return None
        return seconds_to_full(slot.safe_bytes, self.growth.get(slot.name))


def moves_of(before: SourceReading | None, state: SourceState, read_at: datetime) -> dict[str, datetime]:
    """The `moved_at` of the reading that follows `before`."""
    moved_at = {}
    for name, slot in state.slots.items():
        if slot.confirmed_lsn is None:
            continue
        earlier = before.state.slots.get(name) if before is not None else None
        stands = earlier is not None and earlier.confirmed_lsn == slot.confirmed_lsn
        waits = state.current_lsn - slot.confirmed_lsn > KEEPS_UP_BYTES
        known = before.moved_at.get(name, read_at) if before is not None else read_at
        moved_at[name] = known if stands and waits else read_at
    return moved_at


def reading_of(row: SourceReadingRow) -> SourceReading | None:
    return SourceReading.model_validate(row.document) if row.document is not None else None


async def source_readings(session: AsyncSession, database_ids: list[str]) -> dict[str, SourceReading]:
    """By database; those that have been read at least once."""
    rows = await readings_of(session, database_ids)
    return {row.database_id: reading for row in rows if (reading := reading_of(row)) is not None}
