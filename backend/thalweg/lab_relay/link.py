"""Passes bytes between two sockets, complete and in order, each piece with the delay that the lab wants."""

import asyncio
import contextlib
import time
from collections import deque

PIECE_BYTES = 64 * 1024
PIECE_COST_BYTES = 256
"""The cost of a piece beside its bytes, so that many small ones count, too."""
HELD_BYTES_MAX = 1 << 20
"""The limit of held bytes in one direction of one connection. At the limit the reader waits, and with it the sender."""


class Delay:
    """The present delay of everything that passes. Owner: the relay's event loop."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._until = 0.0

    def begin(self, seconds: float, lasts: float) -> None:
        """It ends by itself after `lasts` seconds, whoever is there to end it."""
        self._seconds, self._until = seconds, time.monotonic() + lasts

    def end(self) -> None:
        self._until = 0.0

    @property
    def seconds(self) -> float:
        return self._seconds if time.monotonic() < self._until else 0.0


class Way:
    """One direction of a connection. Owner: its two tasks, in the relay's event loop."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay: Delay) -> None:
        self._reader, self._writer, self._delay = reader, writer, delay
        self._held: deque[tuple[float, bytes]] = deque()
        """Each piece with the time when it is due; empty bytes are the end."""
        self._bytes = 0
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Until the reader's end was delivered, or the writer's peer is gone."""
        reading = asyncio.create_task(self._read())
        try:
            with contextlib.suppress(OSError):
                await self._deliver()
        finally:
            reading.cancel()
            await asyncio.wait({reading})

    async def _read(self) -> None:
        data = b"first"
        while data:
            while self._bytes >= HELD_BYTES_MAX:
                await self._next_change()
            try:
                data = await self._reader.read(PIECE_BYTES)
            except OSError:  # reset: what came before is delivered all the same
                data = b""
            self._bytes += len(data) + PIECE_COST_BYTES
            self._held.append((time.monotonic() + self._delay.seconds, data))
            self._changed.set()

    async def _deliver(self) -> None:
        """One piece after the other: one that came when the delay was shorter does not overtake."""
        while True:
            while not self._held:
                await self._next_change()
            due, data = self._held[0]
            late = due - time.monotonic()
            if late > 0:
                await asyncio.sleep(late)
            if not data:
                return
            self._writer.write(data)
            await self._writer.drain()
            self._held.popleft()
            self._bytes -= len(data) + PIECE_COST_BYTES
            self._changed.set()

    async def _next_change(self) -> None:
        self._changed.clear()
        await self._changed.wait()
