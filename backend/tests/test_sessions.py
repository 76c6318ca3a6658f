"""Sessions at databases that others write in, too, and at servers that stand still."""

import asyncio
import time
from collections.abc import Generator

import pytest
from psycopg.waiting import Wait

from tests.conftest import Sides
from tests.support.relay import relaying
from thalweg.inspection import bounds
from thalweg.inspection.connection import connected, read_all, read_row
from thalweg.inspection.failure import ConnectionFailure
from thalweg.inspection.sessions import NOT_SEEN, without_values
from thalweg.inspection.slots import read_slots
from thalweg.inspection.target import Target


def target(sides: Sides, port: int | None = None) -> Target:
    source = sides.source
    return Target(
        host=source["host"], port=port or source["port"], dbname=source["dbname"], user=source["user"],
        password=source["password"], sslmode="disable",
    )  # fmt: skip


async def test_functions_of_others_are_not_called(sides: Sides) -> None:
    """A role that may create in public could act with the rights of our user."""
    sides.on_source(
        "CREATE TABLE taken (by text)",
        "GRANT ALL ON taken TO PUBLIC",
        "CREATE FUNCTION public.to_jsonb(pg_catalog.pg_replication_slots) RETURNS jsonb LANGUAGE sql AS "
        "$$ INSERT INTO public.taken VALUES (current_user); SELECT '{}'::jsonb $$",
        "CREATE FUNCTION public.pg_is_in_recovery() RETURNS bool LANGUAGE sql AS $$ SELECT true $$",
        "SELECT pg_create_logical_replication_slot('watched', 'pgoutput')",
    )
    state = await read_slots(target(sides), 5)
    assert "watched" in state.slots
    async with connected(target(sides), 5) as connection:
        looked = "SELECT pg_is_in_recovery() AS recovers, (SELECT count(*) FROM public.taken) AS taken"
        assert await read_row(connection, looked) == {"recovers": False, "taken": 0}
    sides.on_source("SELECT pg_drop_replication_slot('watched')")


async def test_a_server_that_stops_answering_is_hung_up_on(sides: Sides) -> None:
    async with relaying(sides.source["port"]) as relay:
        begun = time.monotonic()
        with pytest.raises(ConnectionFailure) as failure:
            async with connected(target(sides, relay.port), 5, limit=1.0) as connection:
                relay.freeze()
                await asyncio.wait_for(read_row(connection, "SELECT 1 AS one"), 20)
    assert (failure.value.code, time.monotonic() - begun < 10) == ("database_unreachable", True)
    assert "did not answer within 1 s" in failure.value.message


async def test_a_server_that_answers_without_end_is_hung_up_on(sides: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows would fill the memory; so would one value."""
    monkeypatch.setattr(bounds, "RECEIVED_BYTES_MAX", 20 * 2**20)
    for query in (
        "SELECT repeat('x', 10000) AS x FROM generate_series(1, 100000)",
        "SELECT repeat('x', 100000000) AS x",
    ):
        with pytest.raises(ConnectionFailure) as failure:
            async with connected(target(sides), 5) as connection:
                await read_all(connection, query)
        assert failure.value.code == "database_error"
        assert "more than 20 MiB" in failure.value.message
    async with connected(target(sides), 5) as connection:
        assert len(await read_all(connection, "SELECT repeat('x', 1000000) AS x FROM generate_series(1, 10)")) == 10


async def test_what_comes_in_the_last_step_counts_too(sides: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    """libpq reads on for as long as there is more: from a sender that keeps up with it, one step takes everything."""

    def one_step() -> Generator[Wait, object, str]:
        yield Wait.W
        monkeypatch.setattr(bounds, "received_bytes", lambda _: 2 * bounds.RECEIVED_BYTES_MAX)
        return "an answer"

    async with connected(target(sides), 5) as connection:
        with pytest.raises(bounds.Overrun, match="more than 256 MiB"):
            await connection.wait(one_step())
        assert connection.closed


async def test_a_statement_that_takes_too_long_says_what_may_keep_the_server(sides: Sides) -> None:
    with pytest.raises(ConnectionFailure) as failure:
        async with connected(target(sides), 5) as connection:
            await connection.execute("SET statement_timeout = '50ms'")
            await read_row(connection, "SELECT pg_sleep(5)")
    assert "gives each statement 20 s" in failure.value.message and "very large" in failure.value.cure


@pytest.mark.parametrize(
    ("statement", "shown"),
    [
        ("UPDATE t SET a = 'it''s', b = 12.5, c1 = $1 WHERE id=42", "UPDATE t SET a = …, b = …, c1 = $1 WHERE id=…"),
        ('SELECT  $$a \'b$$, $x$ 1 $x$, \n "2nd" -- a secret', 'SELECT …, …, "2nd" …'),
        (r"SELECT E'it\\'s secret', more", "SELECT E…"),
        ("INSERT INTO t VALUES ('cut of", "INSERT INTO t VALUES (…"),
        ("<insufficient privilege>", None),
        ("", None),
    ],
)
def test_a_statement_is_shown_without_values(statement: str, shown: str | None) -> None:
    assert without_values(statement, NOT_SEEN) == shown
