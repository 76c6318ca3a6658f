"""A TCP relay in front of a real server, which a test can sever and mend: what a server that is away looks like."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager


class Relay:
    """Owner: one test, in its event loop. Severed, connections are refused and those that were open are broken."""

    def __init__(self, target_port: int) -> None:
        self._target = target_port
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self.port = 0
        self._frozen = False

    async def mend(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = int(self._server.sockets[0].getsockname()[1])

    async def sever(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in list(self._writers):
            writer.transport.abort()

    def freeze(self) -> None:
        """Holds back everything that the server sends, while all connections stay."""
        self._frozen = True

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self._target)
        ends = {writer, there_writer}
        self._writers |= ends
        try:
            await asyncio.gather(self._pump(reader, there_writer), self._pump(there_reader, writer))
        finally:
            self._writers -= ends

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Until one end is gone: then the other goes, too."""
        try:
            while data := await reader.read(65536):
                if self._frozen:
                    continue
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            writer.transport.abort()
        finally:
            writer.close()


@asynccontextmanager
async def relaying(target_port: int) -> AsyncGenerator[Relay, None]:
    relay = Relay(target_port)
    await relay.mend()
    try:
        yield relay
    finally:
        await relay.sever()
