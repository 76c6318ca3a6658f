"""Elects the collector: whoever holds one advisory lock of the store, on a connection of its own."""

import psycopg
from psycopg import AsyncConnection

COLLECTOR_LOCK = 7_492_116_001
COLLECTOR_LOCK_HELD = f"""
SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1
                  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
                  AND (classid::bigint << 32) + objid::bigint = {COLLECTOR_LOCK})
"""  # noqa: S608


class Election:
    """Owner: the collector. The lock goes with the connection: a dead leader's is free at once."""

    def __init__(self, store_url: str) -> None:
        self._conninfo = store_url.replace("postgresql+psycopg://", "postgresql://", 1)
        self._connection: AsyncConnection[tuple[object, ...]] | None = None
        self._leading = False

    async def leads(self) -> bool:
        """Tries to become the leader, or checks that it still is. Raises psycopg.Error when the store is gone."""
        try:
            if self._connection is None:
                self._connection = await AsyncConnection.connect(
                    self._conninfo, autocommit=True, connect_timeout=5, application_name="thalweg collector election",
                    keepalives_idle=5, keepalives_interval=2, keepalives_count=3,
                )  # fmt: skip
            if self._leading:
                await self._connection.execute("SELECT 1")
                return True
            cursor = await self._connection.execute("SELECT pg_try_advisory_lock(%s)", (COLLECTOR_LOCK,))
            row = await cursor.fetchone()
            self._leading = bool(row and row[0])
        except psycopg.Error:
            await self.resign()
            raise
        return self._leading

    async def resign(self) -> None:
        """Gives the lock back before it goes on; where the store is gone, its server does it some time later."""
        leading, self._leading = self._leading, False
        if self._connection is not None:
            connection, self._connection = self._connection, None
            try:
                # close() does not wait for the server's process to end, and until then the lock would be held.
                if leading:
                    await connection.execute("SELECT pg_advisory_unlock(%s)", (COLLECTOR_LOCK,))
            except psycopg.OperationalError:
                pass  # the connection is broken, and the lock with it
            finally:
                await connection.close()
