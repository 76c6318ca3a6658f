"""Replication slots as the API shows them."""

from datetime import datetime

from pydantic import Field

from thalweg.inspection.slots import SlotState
from thalweg.kernel.lsn import lsn_text
from thalweg.kernel.models import Resource
from thalweg.live.sources import SourceReading


class Slot(Resource):
    name: str
    slot_type: str = Field(description="logical or physical.")
    plugin: str | None
    database: str | None = Field(description="The database that it decodes, by its name on the server.")
    temporary: bool
    active: bool = Field(description="A client is reading from it now.")
    active_pid: int | None
    wal_status: str | None = Field(
        description="reserved, extended, unreserved (about to be lost) or lost. Null: it reserves nothing yet."
    )
    invalidation_reason: str | None = Field(description="Why it is lost, from PostgreSQL 17 on.")
    retained_bytes: int = Field(description="WAL that the server keeps for it: from its restart position on.")
    retained_age_seconds: float | None = Field(
        description="How long ago the oldest of it was written. Null: before anybody looked."
    )
    growth_bytes_per_second: float | None = Field(
        description="The growth of the retained WAL over the last minute, or the last three while it is steady. Null: "
        "not observed long enough."
    )
    safe_bytes: int | None = Field(
        description="WAL that may be written before the slot is lost. Null: max_slot_wal_keep_size sets no limit."
    )
    seconds_to_full: float | None = Field(
        description="Until the slot is lost, at the present growth. Null: no limit, no steady growth, or more than 30 "
        "days."
    )
    idle_seconds: float | None = Field(
        default=None,
        description="How long no client has read from it. Null: one does, or the server is older than 17.",
    )
    seconds_to_idle_timeout: float | None = Field(
        default=None,
        description="Until idle_replication_slot_timeout invalidates it, unless a client reads from it. Null: no such "
        "timeout applies.",
    )
    restart_lsn: str | None
    confirmed_lsn: str | None
    xmin_age: int | None = Field(description="Transactions since the oldest whose rows it keeps vacuum from removing.")
    catalog_xmin_age: int | None = Field(description="The same for system catalogues.")
    read_at: datetime


def slot_of(reading: SourceReading, state: SlotState, at: datetime) -> Slot:
    return Slot(
        **state.model_dump(exclude={"restart_lsn", "confirmed_lsn", "idle_seconds"}), read_at=reading.read_at,
        retained_age_seconds=(
            reading.marks.age_of(state.restart_lsn, at) if state.restart_lsn is not None else None
        ),
        growth_bytes_per_second=reading.growth.get(state.name), seconds_to_full=reading.seconds_to_full(state),
        idle_seconds=None if state.active else state.idle_seconds,
        seconds_to_idle_timeout=reading.seconds_to_idle(state),
        restart_lsn=_text(state.restart_lsn), confirmed_lsn=_text(state.confirmed_lsn),
    )  # fmt: skip


def stream_slot(reading: SourceReading | None, state: SlotState | None, at: datetime) -> Slot | None:
    return slot_of(reading, state, at) if reading is not None and state is not None else None


def _text(position: int | None) -> str | None:
    return None if position is None else lsn_text(position)
