"""Floods from a server that is none. Each has an end, which is reached only where no bound holds."""

import asyncio
import itertools
import resource
import struct
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager

import pytest

from tests.support.false_server import false_server, message, parameters, row
from thalweg.inspection.connection import connected, read_all, read_row
from thalweg.inspection.connection import test_connection as connection_test
from thalweg.inspection.failure import ConnectionFailure
from thalweg.inspection.slots import read_slots
from thalweg.inspection.target import Target

PIECE = 2**16
ROWS = row() * 9000
STILL_SECONDS_MAX = 2.0
"""Of the event loop, in the processor's time: other processes do not count."""


def target(port: int) -> Target:
    return Target(host="127.0.0.1", port=port, dbname="any", user="any", password="", sslmode="disable")


@asynccontextmanager
async def loop_that_goes_on() -> AsyncGenerator[None, None]:
    longest = 0.0

    async def tick() -> None:
        nonlocal longest
        while True:
            before = time.thread_time()
            await asyncio.sleep(0.01)
            longest = max(longest, time.thread_time() - before)

    ticking = asyncio.create_task(tick())
    try:
        yield
    finally:
        ticking.cancel()
    assert longest < STILL_SECONDS_MAX, f"the event loop stood still for {longest:.1f} s"


def one_notice(size: int) -> Iterator[bytes]:
    yield b"N" + struct.pack("!i", 4 + 9 + size) + b"SNOTICE\0M"
    yield from itertools.repeat(b"x" * PIECE, size // PIECE)


@pytest.mark.parametrize(
    "flood",
    [lambda: one_notice(60 * 2**20), lambda: itertools.repeat(message(b"N", b"SNOTICE\0Mx\0\0"), 10**6),
     lambda: parameters(100_000)],
    ids=["long notice", "many notices", "many parameters"],
)  # fmt: skip
async def test_a_flood_before_the_login(flood) -> None:  # type: ignore[no-untyped-def]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with false_server(before_login=flood()) as server:
        async with loop_that_goes_on():
            with pytest.raises(ConnectionFailure) as failure:
                async with connected(target(server.port), 5):
                    pass
    assert failure.value.code == "database_error"
    assert failure.value.message == "The server has sent more than 128 KiB before the login was done."
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 30 * 2**10


async def test_a_login_that_computes_for_minutes_holds_nobody_up() -> None:
    with false_server(scram_rounds=20_000_000) as server:
        asked = Target(host="127.0.0.1", port=server.port, dbname="any", user="any", password="x", sslmode="disable")
        async with loop_that_goes_on():
            with pytest.raises(ConnectionFailure) as failure:
                async with connected(asked, 1):
                    pass
            assert failure.value.message == "The server asks for more SCRAM rounds than a login may cost."
            before = time.monotonic()
            with pytest.raises(ConnectionFailure) as failure:
                async with connected(asked, 1):
                    pass
    assert "still computes" in failure.value.message
    assert time.monotonic() - before < 1


async def test_a_login_that_computes_for_a_moment_is_let_through() -> None:
    with false_server(scram_rounds=100_000) as server:
        asked = Target(host="127.0.0.1", port=server.port, dbname="any", user="any", password="x", sslmode="disable")
        with pytest.raises(ConnectionFailure) as failure:
            async with connected(asked, 5):
                pass
    assert "closed the connection" in failure.value.message


async def test_answers_that_make_no_sense_are_no_error_of_ours() -> None:
    with false_server(answer=[row()]) as server:
        tested = await connection_test(target(server.port), 5)
    assert (tested.code, tested.reachable) == ("database_error", True)
    assert tested.message == "The server answered the queries of the test with something else than was asked for."


async def test_rows_without_columns_are_counted() -> None:
    with false_server(answer=itertools.repeat(ROWS, 400)) as server:
        async with loop_that_goes_on():
            with pytest.raises(ConnectionFailure) as failure:
                async with connected(target(server.port), 5) as connection:
                    await read_all(connection, "SELECT")
    assert failure.value.message.startswith("The server has sent more than 500,000 rows, ")


async def test_there_are_few_slots_and_few_single_rows() -> None:
    with false_server(answer=itertools.repeat(ROWS, 400)) as server:
        with pytest.raises(ConnectionFailure) as failure:
            await read_slots(target(server.port), 5)
        assert "more than 10,000 rows" in failure.value.message
        with pytest.raises(ConnectionFailure) as failure:
            async with connected(target(server.port), 5) as connection:
                await read_row(connection, "SELECT")
        assert "more than 10,000 rows" in failure.value.message


async def test_parameters_that_cost_more_and_more_end_the_session() -> None:
    with false_server(answer=parameters(300_000)) as server:
        async with loop_that_goes_on():
            with pytest.raises(ConnectionFailure) as failure:
                async with connected(target(server.port), 5) as connection:
                    await read_all(connection, "SELECT")
    assert failure.value.message == "The server's answers keep the control plane too busy."


async def test_a_statement_without_rows_has_a_bound_of_its_own() -> None:
    with false_server(answer=itertools.repeat(ROWS, 100)) as server, pytest.raises(ConnectionFailure) as failure:
        async with connected(target(server.port), 5) as connection:
            await connection.execute("SELECT %s", ("1",))
    assert "more than 1 MiB for a statement" in failure.value.message
