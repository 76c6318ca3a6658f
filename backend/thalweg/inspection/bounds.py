"""Bounds of what a user's database may send, and may cost: whoever answers at its address may be no database at all.

libpq has no limits of its own: it keeps an answer whole, a notice of any length, each of the server's parameters (in a
list that it walks from its beginning for each of them) and each row. psycopg runs libpq in steps, one for each piece
that has arrived; between two of them the socket is asked how much has come.
"""

import asyncio
import os
import socket
import sys
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing
from typing import Any, Self, TypeVar, cast

import psycopg
from psycopg import AsyncConnection, AsyncCursor
from psycopg.rows import DictRow

from thalweg.kernel.outside import outside

LOGIN_BYTES_MAX = 128 * 2**10
"""Until the login is done: certificates have some kilobytes, the server's parameters one. libpq's time for parameters
grows with the square of their number: for these bytes it is some tenths of a second."""
LOGIN_WINDOW_BYTES = 16 * 2**10
"""Bytes that may be on their way then. libpq reads a long message for as long as there is more of it: one step would
take hundreds of megabytes from a fast sender."""
SESSION_WINDOW_BYTES = 2**30
"""So large that the system's own limit applies."""
STATEMENT_BYTES_MAX = 2**20
"""The bytes of an answer that is not read row by row: it has one row, or none."""
RECEIVED_BYTES_MAX = 256 * 2**20
"""The bytes of one session; the catalogues of ten thousand tables are a tenth of it."""
ROWS_PART = 500
"""Rows that are taken from libpq at once, before others have their turn."""
STEP_SECONDS_MAX = 0.5
"""The processor's time for one piece of an answer; the event loop stands still meanwhile."""
SESSION_SECONDS_MAX = 2.0
"""The processor's time for all pieces of a session that take more than USUAL_STEP_SECONDS each."""
USUAL_STEP_SECONDS = 0.005
TOO_MUCH = "which is more than any answer may have."
TCP_INFO_BYTES_RECEIVED = 128
"""The offset of tcpi_bytes_received in struct tcp_info (linux/tcp.h)."""
Wanted = TypeVar("Wanted")
Ready = TypeVar("Ready")
Result = TypeVar("Result")


class Overrun(psycopg.OperationalError):
    """The server has sent more than it may, or its answers cost too much. The connection is closed. The message is
    ours."""


class BoundedConnection(AsyncConnection[DictRow]):
    """Owner: one task."""

    _reads_rows = False
    _spent_seconds = 0.0

    @classmethod
    def _connect_gen(cls, conninfo: str = "") -> Generator[tuple[int, Any], Any, Self]:
        def look(wanted: tuple[int, Any], spent: float) -> None:
            set_window(wanted[0], LOGIN_WINDOW_BYTES)
            if received_bytes(wanted[0]) > LOGIN_BYTES_MAX:
                kibibytes = LOGIN_BYTES_MAX // 2**10
                raise Overrun(f"The server has sent more than {kibibytes} KiB before the login was done.")
            if spent > STEP_SECONDS_MAX:
                raise Overrun("The server's answers before the login keep the control plane too busy.")

        connection = yield from _looked_at(super()._connect_gen(conninfo), look)
        set_window(connection.pgconn.socket, SESSION_WINDOW_BYTES)
        return connection

    async def wait(self, gen: Generator[Any, Any, Result], *arguments: Any, **more: Any) -> Result:
        """psycopg's, for everything that it sends and receives."""
        outside("a database")
        total = RECEIVED_BYTES_MAX
        allowed = total if self._reads_rows else min(total, received_bytes(self.pgconn.socket) + STATEMENT_BYTES_MAX)

        def look(_wanted: object, spent: float) -> None:
            self._spent_seconds += max(0.0, spent - USUAL_STEP_SECONDS)
            received = received_bytes(self.pgconn.socket)
            if received > total:
                raise self.hung_up(f"The server has sent more than {total // 2**20} MiB, {TOO_MUCH}")
            if received > allowed:
                mebibytes = STATEMENT_BYTES_MAX // 2**20
                raise self.hung_up(f"The server has sent more than {mebibytes} MiB for a statement without rows.")
            if spent > STEP_SECONDS_MAX or self._spent_seconds > SESSION_SECONDS_MAX:
                raise self.hung_up("The server's answers keep the control plane too busy.")

        result = await super().wait(_looked_at(gen, look), *arguments, **more)
        if not self.closed:
            look(None, 0.0)  # The last step may have read most of it, from a sender that keeps up with libpq.
        return result

    def hung_up(self, message: str) -> Overrun:
        """Closes at once: psycopg would ask the server to cancel the statement, and read what is left of it."""
        self.pgconn.finish()
        return Overrun(message)

    async def rows_of(self, query: str, parameters: dict[str, Any] | None, rows_max: int) -> list[DictRow]:
        """Raises Overrun, when there are more: no more than the rows of one part are held beside those."""
        rows: list[DictRow] = []
        self._reads_rows = True
        try:
            async with self.cursor() as cursor, aclosing(_stream(cursor, query, parameters)) as received:
                async for row in received:
                    rows.append(row)
                    if len(rows) > rows_max:
                        raise self.hung_up(f"The server has sent more than {rows_max:,} rows, {TOO_MUCH}")
                    if len(rows) % ROWS_PART == 0:
                        await asyncio.sleep(0)  # What has arrived already is read without a wait.
        finally:
            self._reads_rows = False
        return rows


def _stream(
    cursor: AsyncCursor[DictRow], query: str, parameters: dict[str, Any] | None
) -> AsyncGenerator[DictRow, None]:
    return cast("AsyncGenerator[DictRow, None]", cursor.stream(query.encode(), parameters, size=ROWS_PART))


def _looked_at(
    steps: Generator[Wanted, Ready, Result], look: Callable[[Wanted, float], None]
) -> Generator[Wanted, Ready, Result]:
    """Calls `look` before each step, with what is waited for and the processor's seconds of the step before."""
    try:
        wanted = next(steps)
        spent = 0.0
        while True:
            ready = yield wanted
            look(wanted, spent)
            begun = time.thread_time()
            wanted = steps.send(ready)
            spent = time.thread_time() - begun
    except StopIteration as end:
        result: Result = end.value
        return result


def set_window(descriptor: int, size: int) -> None:
    with socket.socket(fileno=os.dup(descriptor)) as same:
        if same.family in (socket.AF_INET, socket.AF_INET6):
            same.setsockopt(socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP, size)


def received_bytes(descriptor: int) -> int:
    """So far, as Linux counts them; 0 of a connection that is no TCP: such a server is on this host."""
    with socket.socket(fileno=os.dup(descriptor)) as same:
        if same.family not in (socket.AF_INET, socket.AF_INET6):
            return 0
        facts = same.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES_RECEIVED + 8)
    if len(facts) < TCP_INFO_BYTES_RECEIVED + 8:
        return 0
    return int.from_bytes(facts[TCP_INFO_BYTES_RECEIVED:], sys.byteorder)
