"""What a source said of itself when it was last asked, as the collector keeps it in the store."""

from datetime import datetime

from pydantic import BaseModel
from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.models import SourceReadingRow
from thalweg.db.readings import readings_of
from thalweg.inspection.slots import SlotState, SourceState
from thalweg.live.marks import Marks

SLOT_PREFIX = "thalweg_"


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

    def seconds_to_full(self, slot: SlotState) -> float | None:
        growth = self.growth.get(slot.name)
        return slot.safe_bytes / growth if slot.safe_bytes is not None and growth is not None and growth > 0 else None


def reading_of(row: SourceReadingRow) -> SourceReading | None:
    return SourceReading.model_validate(row.document) if row.document is not None else None


async def source_readings(session: AsyncSession, database_ids: list[str]) -> dict[str, SourceReading]:
    """By database; those that have been read at least once."""
    rows = await readings_of(session, database_ids)
    return {row.database_id: reading for row in rows if (reading := reading_of(row)) is not None}
