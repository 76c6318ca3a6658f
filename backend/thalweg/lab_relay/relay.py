"""The relay: each connection to it becomes one to the destination, and both end together."""

import asyncio
import contextlib
import logging

from thalweg.lab_relay.link import PIECE_BYTES, Delay, Way

log = logging.getLogger(__name__)
CONNECTIONS_MAX = 250
"""More than the demo's destination takes."""


class Relay:
    """Owner: one event loop."""

    def __init__(self, to: tuple[str, int], delay: Delay) -> None:
        self._to, self._delay = to, delay
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._reached: bool | None = None

    async def listen(self, host: str, port: int) -> int:
        """Returns the port: 0 takes one that is free."""
        self._server = await asyncio.start_server(self._accept, host, port, limit=PIECE_BYTES)
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._connections:
            task.cancel()
        if self._connections:
            await asyncio.wait(self._connections)

    @property
    def connections(self) -> int:
        return len(self._connections)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._connections) >= CONNECTIONS_MAX:
            log.warning("more than %d connections: one is refused", CONNECTIONS_MAX)
            writer.transport.abort()
            return
        task = asyncio.create_task(self._serve(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there_reader, there_writer = await asyncio.open_connection(*self._to, limit=PIECE_BYTES)
        except OSError as error:
            self._note(error)
            writer.close()  # as one whose server is away: the client tries again
            return
        except asyncio.CancelledError:
            writer.transport.abort()
            raise
        self._note(None)
        ways = [
            asyncio.create_task(Way(reader, there_writer, self._delay).run()),
            asyncio.create_task(Way(there_reader, writer, self._delay).run()),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            await _flushed(writer, there_writer)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.wait(ways)
            for end in (writer, there_writer):
                end.transport.abort()

    def _note(self, error: OSError | None) -> None:
        """Logged when it changes, not at every try."""
        if self._reached is not (error is None):
            self._reached = error is None
            log.warning("the destination is away: %s", error) if error else log.info("the destination answers")


async def _flushed(*ends: asyncio.StreamWriter) -> None:
    """Closes both; what was delivered to a socket's buffer is sent before."""
    for end in ends:
        end.close()
    for end in ends:
        with contextlib.suppress(OSError):
            await end.wait_closed()
