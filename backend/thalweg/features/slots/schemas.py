"""Servers with their replication slots, whosever they are."""

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from thalweg.kernel.models import Resource
from thalweg.live.slots import Slot


class SlotOwner(StrEnum):
    """ORPHAN: it has the name of a stream's slot, and there is no such stream. UNKNOWN_STREAM: an engine has the
    stream, and the control plane does not know it."""

    STREAM = "stream"
    UNKNOWN_STREAM = "unknown_stream"
    ORPHAN = "orphan"
    OTHER = "other"


class SlotStream(Resource):
    id: str
    name: str


class SlotEngine(Resource):
    id: str
    name: str


class ServerSlot(Slot):
    owner: SlotOwner
    stream: SlotStream | None = Field(description="Null if no stream here owns it.")
    engine: SlotEngine | None = Field(description="The engine that has the stream, where the stream is unknown here.")
    why_no_forecast: str | None = Field(
        description="Why `seconds_to_full` is not known, in a sentence. Null where it is."
    )
    drop_sql: str | None = Field(description="For an orphan: the statement that `slots_drop` runs on the server.")


class SlotDatabase(Resource):
    id: str
    name: str
    dbname: str
    failure: str | None = Field(description="Why it did not answer when it was last asked. Null: it did.")


class SlotServer(Resource):
    """One running server, read through the connection of one of its registered databases."""

    address: str = Field(description="host:port")
    other_addresses: list[str] = Field(
        description="Other spellings of its address, under which databases are registered: the same system identifier "
        "answers there, and the same start of the server."
    )
    databases: list[SlotDatabase] = Field(description="The registered ones, sources of streams first.")
    version: str | None = Field(description="Such as 15.12. Null: it has never been read.")
    asked_at: datetime | None
    read_at: datetime | None = Field(description="When it last answered; what is shown dates from then.")
    failure: str | None = Field(
        description="Why it did not answer when it was last asked. Null if any of its databases did."
    )
    current_lsn: str | None = Field(description="The end of its write-ahead log.")
    slots_max: int | None = Field(description="max_replication_slots.")
    keep_bytes: int | None = Field(description="max_slot_wal_keep_size. Null: no limit, or never read.")
    slots: list[ServerSlot]


class SlotServers(Resource):
    servers: list[SlotServer]
