"""Replication slots at a source, read with no more privilege than to connect: the view is for everybody."""

from dataclasses import dataclass

from thalweg.inspection.connection import connected, read_all, read_one
from thalweg.inspection.target import Target

# On a standby there is no current WAL position of its own: what it has replayed is its end.
END = """
SELECT ((CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END) - '0/0')::int8
       AS lsn
"""
SLOTS = """
SELECT slot_name, active, wal_status, safe_wal_size, (restart_lsn - '0/0')::int8 AS restart_lsn
  FROM pg_replication_slots WHERE slot_name = ANY(%(names)s)
"""


@dataclass(frozen=True)
class SlotState:
    """Positions as numbers. `safe_bytes` is None where max_slot_wal_keep_size sets no limit, or the slot is lost."""

    active: bool
    wal_status: str | None
    retained_bytes: int
    safe_bytes: int | None


@dataclass(frozen=True)
class SourceState:
    current_lsn: int
    slots: dict[str, SlotState]
    """By name; one that is not there does not exist."""


async def read_slots(target: Target, names: list[str], timeout: int) -> SourceState:
    """Raises ConnectionFailure; `timeout` is in seconds."""
    async with connected(target, timeout) as connection:
        end = int((await read_one(connection, END))["lsn"])
        rows = await read_all(connection, SLOTS, {"names": names})
    slots = {
        str(row["slot_name"]): SlotState(
            active=row["active"], wal_status=row["wal_status"], safe_bytes=row["safe_wal_size"],
            retained_bytes=max(0, end - row["restart_lsn"]) if row["restart_lsn"] is not None else 0,
        )
        for row in rows
    }  # fmt: skip
    return SourceState(end, slots)
