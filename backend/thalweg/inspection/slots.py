"""Replication slots of a server, read with no more privilege than to connect: the view is for everybody."""

from datetime import datetime
from typing import Any

from psycopg import errors
from pydantic import BaseModel

from thalweg.inspection.connection import (
    FEW_ROWS_MAX,
    Connection,
    connected,
    read_all,
    read_row,
    read_system_identifier,
)
from thalweg.inspection.failure import ConnectionFailure
from thalweg.inspection.target import Target

# On a standby there is no current WAL position of its own: what it has replayed is its end.
READ_SECONDS = 15.0
"""Others are read again only when all have been."""
END = """
SELECT ((CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END) - '0/0')::int8
       AS lsn, current_setting('server_version_num')::int AS version,
       (SELECT nullif(setting::int8, -1) * 1024 * 1024 FROM pg_settings WHERE name = 'max_slot_wal_keep_size')
       AS keep_bytes,
       (SELECT nullif(setting::float8 * CASE unit WHEN 'min' THEN 60 WHEN 'ms' THEN 0.001 ELSE 1 END, 0)
          FROM pg_settings WHERE name = 'idle_replication_slot_timeout') AS idle_timeout_seconds,
       current_setting('max_replication_slots')::int AS slots_max, pg_postmaster_start_time() AS started_at
"""
SLOTS = """
SELECT slot_name, plugin, slot_type, database, temporary, active, active_pid, wal_status, safe_wal_size,
       (restart_lsn - '0/0')::int8 AS restart_lsn, (confirmed_flush_lsn - '0/0')::int8 AS confirmed_lsn,
       age(xmin) AS xmin_age, age(catalog_xmin) AS catalog_xmin_age,
       to_jsonb(s) ->> 'invalidation_reason' AS invalidation_reason,
       extract(epoch FROM now() - (to_jsonb(s) ->> 'inactive_since')::timestamptz)::float8 AS idle_seconds
  FROM pg_replication_slots s ORDER BY slot_name
"""
DROP = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %(name)s"


LOST = {
    "idle_timeout": (
        "The source has invalidated the slot: it was not read for longer than idle_replication_slot_timeout.",
        "Set idle_replication_slot_timeout at the source to 0, or above the longest time that a stream may stand "
        "still.",
    ),
    "wal_removed": (
        "The source has removed WAL that the slot needs: it kept no more than max_slot_wal_keep_size.",
        "Raise max_slot_wal_keep_size at the source.",
    ),
    "wal_level_insufficient": (
        "The source has invalidated the slot: its wal_level was below logical for a while.",
        "Set wal_level = logical at the source, and restart it.",
    ),
    "rows_removed": (
        "The source has removed rows of its catalogues that the slot needs.",
        "Turn hot_standby_feedback on at the standby.",
    ),
}  # fmt: skip
"""By pg_replication_slots.invalidation_reason, from PostgreSQL 17 on: what happened, and what keeps it from coming
again."""


def why_lost(reason: str | None) -> tuple[str, str]:
    """The reason why a slot was lost (its wal_status is lost), and how to prevent it."""
    unknown = "The source has removed WAL that the slot needs.", "Raise max_slot_wal_keep_size at the source."
    return LOST.get(reason or "", unknown)


class SlotState(BaseModel):
    """Positions as numbers. `safe_bytes` is None where max_slot_wal_keep_size sets no limit, or the slot is lost."""

    name: str
    plugin: str | None = None
    slot_type: str = "logical"
    database: str | None = None
    temporary: bool = False
    active: bool
    active_pid: int | None = None
    wal_status: str | None
    restart_lsn: int | None = None
    confirmed_lsn: int | None = None
    retained_bytes: int
    safe_bytes: int | None
    xmin_age: int | None = None
    catalog_xmin_age: int | None = None
    invalidation_reason: str | None = None
    idle_seconds: float | None = None
    """Seconds without a reader, by the server's clock; PostgreSQL before 17 does not report it."""


class SourceState(BaseModel):
    """A server at one moment."""

    system_identifier: str | None = None
    started_at: datetime | None = None
    """When the server was started, by its clock: standbys and copies have the same system identifier."""
    version: int = 0
    current_lsn: int
    keep_bytes: int | None = None
    """max_slot_wal_keep_size; None: no limit."""
    idle_timeout_seconds: float | None = None
    """idle_replication_slot_timeout, from PostgreSQL 18 on; None: a slot may be idle for ever."""
    slots_max: int | None = None
    slots: dict[str, SlotState]
    """By name; one that is not there does not exist."""


async def read_slots(target: Target, timeout: int) -> SourceState:
    """Raises ConnectionFailure; `timeout` is in seconds."""
    async with connected(target, timeout, limit=READ_SECONDS) as connection:
        state = await _read(connection)
        if target.reads_standby and not any(name.startswith("thalweg_") for name in state.slots):
            # Where the standby is away the primary answers: that it has none of the slots says nothing of them.
            at_standby = await read_row(connection, "SELECT pg_is_in_recovery() AS found")
            if not at_standby["found"]:
                raise ConnectionFailure(
                    "source_standby_missing", "The standby does not answer; its slots are not known.",
                    "Start the standby, or check that the primary reaches it.",
                )  # fmt: skip
        return state


async def _read(connection: Connection) -> SourceState:
    # The slots first: an end that is read after them is never below what they hold.
    rows = await read_all(connection, SLOTS, rows_max=FEW_ROWS_MAX)
    end = await read_row(connection, END)
    return SourceState(
        system_identifier=await read_system_identifier(connection), started_at=end["started_at"],
        version=end["version"], current_lsn=end["lsn"], keep_bytes=end["keep_bytes"],
        idle_timeout_seconds=end["idle_timeout_seconds"], slots_max=end["slots_max"],
        slots={str(row["slot_name"]): _slot(row, int(end["lsn"])) for row in rows},
    )  # fmt: skip


def _slot(row: dict[str, Any], end: int) -> SlotState:
    restart = row["restart_lsn"]
    return SlotState(
        name=row["slot_name"], plugin=row["plugin"], slot_type=row["slot_type"], database=row["database"],
        temporary=row["temporary"], active=row["active"], active_pid=row["active_pid"], wal_status=row["wal_status"],
        restart_lsn=restart, confirmed_lsn=row["confirmed_lsn"],
        retained_bytes=max(0, end - restart) if restart is not None else 0, safe_bytes=row["safe_wal_size"],
        xmin_age=row["xmin_age"], catalog_xmin_age=row["catalog_xmin_age"],
        invalidation_reason=row["invalidation_reason"], idle_seconds=row["idle_seconds"],
    )  # fmt: skip


async def drop_slot_at(target: Target, name: str, timeout: int) -> bool:
    """False: the server has no such slot. Raises ConnectionFailure; `timeout` is in seconds."""
    if not target.reads_standby:
        return await _drop_slot(target, name, timeout)
    # At the standby, or where it has been promoted. One that does not answer may have it.
    return any([await _drop_slot(server, name, timeout) for server in target.each_server])


async def _drop_slot(target: Target, name: str, timeout: int) -> bool:
    async with connected(target, timeout, read_only=False) as connection:
        try:
            return bool(await read_all(connection, DROP, {"name": name}))
        except errors.UndefinedObject:
            return False  # Dropped between the look and the drop.
        except errors.ObjectInUse as error:
            raise ConnectionFailure("slot_in_use", str(error).strip(), "Stop its reader first.") from error
        except errors.InsufficientPrivilege as error:
            raise ConnectionFailure(
                "insufficient_privilege", str(error).strip(),
                f"Run the SQL as a user with REPLICATION: {target.user} does not have it.",
                f"SELECT pg_drop_replication_slot('{name}')",
            ) from error  # fmt: skip


def version_text(number: int) -> str | None:
    """150012 is 15.12. None: unknown."""
    return f"{number // 10000}.{number % 10000}" if number else None
