"""The client of an engine's control API, against a server that closes connections as engines do."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from pydantic import ValidationError

from tests.support.engine_double import example
from thalweg.composition import engine_http
from thalweg.engine_client.client import EngineClient, EngineFailure
from thalweg.engine_client.rule_documents import RulesCheck
from thalweg.kernel.settings import Settings

ANSWER = b'{"problems": []}'


@asynccontextmanager
async def closing_server(answers_for_connection: int) -> AsyncGenerator[tuple[str, list[str]], None]:
    """Closes a connection at the request after so many, without an answer. Yields its URL and the requests' paths."""
    paths: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for number in range(answers_for_connection + 1):
            try:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
            except asyncio.IncompleteReadError:
                break
            length = next(int(line[15:]) for line in head.lower().split("\r\n") if line.startswith("content-length:"))
            await reader.readexactly(length)
            paths.append(head.split(" ")[1])
            if number < answers_for_connection:
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(ANSWER), ANSWER))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", paths


@asynccontextmanager
async def client_of(url: str) -> AsyncGenerator[EngineClient, None]:
    async with engine_http(Settings()) as http:
        yield EngineClient(http, url, "token", 5)


async def test_a_connection_that_the_engine_closed_is_no_silence() -> None:
    async with closing_server(1) as (url, paths), client_of(url) as client:
        for _ in range(3):
            assert await client.rehearse("", "", [], []) == []
        assert len(paths) == 5, "the second and the third were sent again over a new connection"


async def test_what_may_have_been_done_is_not_sent_again() -> None:
    async with closing_server(0) as (url, paths), client_of(url) as client:
        with pytest.raises(EngineFailure, match="does not answer"):
            await client.resolve_table("s", "d", "copy", "public", "orders")
        assert paths == ["/v1/streams/s/destinations/d/tables/copy"]


async def test_what_is_sent_once_meets_no_connection_that_the_engine_closes() -> None:
    async with closing_server(1) as (url, paths), client_of(url) as client:
        await client.rehearse("", "", [], [])
        for _ in range(2):
            await client.resolve_table("s", "d", "copy", "public", "orders")
        assert paths == ["/v1/rehearsal", *["/v1/streams/s/destinations/d/tables/copy"] * 2]


async def test_an_engine_that_closes_every_connection_does_not_answer() -> None:
    async with closing_server(0) as (url, paths), client_of(url) as client:
        with pytest.raises(EngineFailure, match="does not answer"):
            await client.rehearse("", "", [], [])
        assert len(paths) == 2


def test_an_earlier_engine_calls_problems_of_rules_otherwise() -> None:
    problems = example("rules-check")["problems"]
    for name in ("problems", "findings"):
        assert [found.rule for found in RulesCheck.model_validate({name: problems}).problems] == [
            problem["rule"] for problem in problems
        ]
    with pytest.raises(ValidationError):
        RulesCheck.model_validate({})
