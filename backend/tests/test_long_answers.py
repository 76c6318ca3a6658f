"""Files of any length that the command line writes on: it keeps no more of them than what came last."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import pytest

from thalweg.cli.client import EXIT_UNREACHABLE, Api, CommandError

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
PIECE = b"6\r\nfirst\n\r\n"
REST = b"5\r\nlast\n\r\n0\r\n\r\n"
PATIENCE = 10


@asynccontextmanager
async def answering(
    respond: Callable[[asyncio.StreamReader, asyncio.StreamWriter], object],
) -> AsyncGenerator[Api]:
    server = await asyncio.start_server(respond, "127.0.0.1", 0)  # type: ignore[arg-type]
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield Api(f"http://127.0.0.1:{port}", None)


async def test_a_file_is_written_on_while_it_comes() -> None:
    seen = asyncio.Event()

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD + PIECE)
        await writer.drain()
        async with asyncio.timeout(PATIENCE):
            await seen.wait()
        writer.write(REST)
        await writer.drain()
        writer.close()

    async with answering(respond) as api:
        pieces = api.pieces("/file")
        assert await asyncio.to_thread(next, pieces) == b"first\n"
        seen.set()
        assert await asyncio.to_thread(list, pieces) == [b"last\n"]


async def test_a_file_that_breaks_off_is_an_error() -> None:
    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD + PIECE)
        await writer.drain()
        writer.close()

    async with answering(respond) as api:
        with pytest.raises(CommandError, match="not all of it") as raised:
            await asyncio.to_thread(list, api.pieces("/file"))
    assert raised.value.exit_code == EXIT_UNREACHABLE
