"""The lab's relay: every byte arrives, in order, as late as is wanted; both ends go together."""

import asyncio
import hashlib
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import psycopg
import pytest

from tests.conftest import Sides
from tests.support.servers import free_port
from tests.support.serving import eventually
from thalweg.lab_relay import relay as relay_module
from thalweg.lab_relay.link import HELD_BYTES_MAX, Delay
from thalweg.lab_relay.relay import Relay
from thalweg.lab_relay.wish import follow

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
LONG = 60.0
LATE = 0.25  # by so much more than a slow machine takes by itself


@asynccontextmanager
async def relaying(
    serve: Serve, delay: Delay, there: int = 0
) -> AsyncGenerator[tuple[Relay, int, asyncio.Server], None]:
    server = await asyncio.start_server(serve, "127.0.0.1", there)
    relay = Relay(("127.0.0.1", server.sockets[0].getsockname()[1]), delay)
    port = await relay.listen("127.0.0.1", 0)
    try:
        yield relay, port, server
    finally:
        await relay.close()
        server.close()


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


async def test_every_byte_arrives_in_order_while_the_delay_changes() -> None:
    delay, chance = Delay(), random.Random(7)  # noqa: S311
    sent, received = hashlib.sha256(), hashlib.sha256()
    total = 8 << 20
    async with relaying(echo, delay) as (_, port, _server):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)

        async def send() -> None:
            left = total
            while left:
                piece = chance.randbytes(min(left, chance.choice((1, 100, 5000, 200_000))))
                left -= len(piece)
                sent.update(piece)
                writer.write(piece)
                await writer.drain()

        async def change() -> None:
            while True:
                delay.begin(chance.choice((0.0, 0.002, 0.03)), LONG)
                await asyncio.sleep(0.02)

        changing = asyncio.create_task(change())
        sending = asyncio.create_task(send())
        got = 0
        async with asyncio.timeout(60):
            while got < total:
                data = await reader.read(65536)
                assert data, "the relay has ended the connection"
                got += len(data)
                received.update(data)
        await sending
        changing.cancel()
        writer.close()
    assert received.digest() == sent.digest()


async def round_trip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> float:
    started = time.monotonic()
    writer.write(b"ping")
    assert await reader.readexactly(4) == b"ping"
    return time.monotonic() - started


async def test_a_round_trip_takes_twice_the_delay_until_its_time_is_over() -> None:
    delay = Delay()
    async with relaying(echo, delay) as (_, port, _server):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await round_trip(reader, writer) < 2 * LATE
        delay.begin(LATE, 1.0)
        assert await round_trip(reader, writer) >= 2 * LATE
        await asyncio.sleep(1.0)  # nobody ends it
        assert await round_trip(reader, writer) < 2 * LATE
        delay.begin(LATE, LONG)
        assert await round_trip(reader, writer) >= 2 * LATE
        delay.end()
        assert await round_trip(reader, writer) < 2 * LATE
        writer.close()


async def test_pieces_are_late_side_by_side() -> None:
    """A delay, not a narrow link: ten pieces in a row are no later than one."""
    delay = Delay()
    delay.begin(0.2, LONG)
    async with relaying(echo, delay) as (_, port, _server):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        started = time.monotonic()
        for _ in range(10):
            writer.write(b"x" * 100)
            await asyncio.sleep(0.01)
        await reader.readexactly(1000)
        assert 0.4 <= time.monotonic() - started < 1.5
        writer.close()


async def test_what_was_sent_before_the_end_arrives_and_both_ends_close() -> None:
    whole: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def collect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        whole.set_result(await reader.read(-1))
        writer.close()

    delay = Delay()
    delay.begin(0.1, LONG)
    async with relaying(collect, delay) as (relay, port, _server):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"y" * 300_000)
        writer.close()
        async with asyncio.timeout(10):
            assert await whole == b"y" * 300_000
        await eventually(lambda: _true(relay.connections == 0))


async def _true(value: bool) -> bool:
    return value


async def test_the_servers_last_words_arrive() -> None:
    async def farewell(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"z" * 300_000)
        writer.close()

    delay = Delay()
    delay.begin(0.1, LONG)
    async with relaying(farewell, delay) as (relay, port, _server):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        async with asyncio.timeout(10):
            assert await reader.read(-1) == b"z" * 300_000
        await eventually(lambda: _true(relay.connections == 0))
        writer.close()


async def test_a_reader_that_stands_still_holds_back_the_sender() -> None:
    going = asyncio.Event()

    async def stand_still(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await going.wait()
        while await reader.read(1 << 20):
            pass
        writer.close()

    delay, sent = Delay(), 0
    async with relaying(stand_still, delay) as (_, port, _server):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        # Beyond what is held: buffers of the kernel's sockets and of the streams, each of a few megabytes at most.
        bound = HELD_BYTES_MAX + (24 << 20)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3):
                while sent < bound:
                    writer.write(b"w" * 65536)
                    await writer.drain()
                    sent += 65536
        assert 0 < sent < bound
        going.set()
        async with asyncio.timeout(10):
            await writer.drain()
        writer.transport.abort()


async def test_a_destination_that_was_away_is_reached_again() -> None:
    delay, there = Delay(), free_port()  # one that the kernel had chosen could be somebody else's by then
    async with relaying(echo, delay, there) as (relay, port, server):
        server.close()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        async with asyncio.timeout(5):
            assert await reader.read(1) == b""
        writer.close()
        await eventually(lambda: _true(relay.connections == 0))
        again = await asyncio.start_server(echo, "127.0.0.1", there)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await round_trip(reader, writer) < 1
        writer.close()
        again.close()


async def test_connections_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay_module, "CONNECTIONS_MAX", 1)
    async with relaying(echo, Delay()) as (_, port, _server):
        first = await asyncio.open_connection("127.0.0.1", port)
        await round_trip(*first)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        async with asyncio.timeout(5):
            assert await reader.read(1) == b""
        assert await round_trip(*first) < 1
        first[1].close()
        writer.close()


WISH = (
    "CREATE SCHEMA lab_network",
    "CREATE TABLE lab_network.delay AS SELECT 60 AS ms, clock_timestamp() + interval '1 hour' AS until",
)


async def test_the_delay_is_what_the_row_at_a_real_destination_says(sides: Sides) -> None:
    dbname, delay = sides.destination["dbname"], Delay()
    relay = Relay(("127.0.0.1", sides.cluster.port), delay)
    port = await relay.listen("127.0.0.1", 0)
    place = f"host=127.0.0.1 user=postgres dbname={dbname}"
    following = asyncio.create_task(follow(delay, f"{place} port={sides.cluster.port} application_name=relay"))
    try:
        async with await psycopg.AsyncConnection.connect(f"{place} port={port}", autocommit=True) as connection:

            async def took() -> float:
                started = time.monotonic()
                await connection.execute("SELECT 1")
                return time.monotonic() - started

            async def is_slow() -> bool:
                return await took() >= 0.12

            async def is_fast() -> bool:
                return await took() < 0.06

            await eventually(is_fast)
            sides.on_destination(*WISH)
            await eventually(is_slow)
            # The destination was restarted, as far as the relay can tell: it asks again.
            sides.on_destination(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'relay'",
                "UPDATE lab_network.delay SET ms = 0",
            )
            await eventually(is_fast)
            sides.on_destination("UPDATE lab_network.delay SET ms = 60")
            await eventually(is_slow)
            sides.on_destination("DROP SCHEMA lab_network CASCADE")
            await eventually(is_fast)
    finally:
        following.cancel()
        await relay.close()
