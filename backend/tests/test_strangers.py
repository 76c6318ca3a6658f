"""Somebody without a login holds back nobody who has one, however slow, many or large their requests are."""

import asyncio
import contextlib
import re
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from tests.conftest import Users
from tests.support.real_engine import make_certificate
from tests.support.serving import eventually, serve, without_lifespan
from thalweg import serving
from thalweg.kernel.http import protocol
from thalweg.kernel.http.protocol import Door
from thalweg.kernel.http.strangers import CONNECTIONS_EACH_MAX, REQUESTS_EACH_MAX, USER_CONNECTIONS_MAX, Guests
from thalweg.kernel.principal import Role
from thalweg.kernel.settings import Settings

Connect = Callable[[bytes], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]
HALF_HEAD = b"GET /api/v1/session HTTP/1.1\r\nHost: x\r\n"
HALF_BODY = b"POST /api/v1/session HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{"


class Taker(asyncio.Protocol):
    """Keeps what came before the connection was reset."""

    def __init__(self) -> None:
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._taken = b""

    def data_received(self, data: bytes) -> None:
        self._taken += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.answer.set_result(self._taken)


@contextlib.asynccontextmanager
async def stranger(url: str) -> AsyncGenerator[Connect, None]:
    """Begins requests from an address of its own."""
    writers: list[asyncio.StreamWriter] = []

    async def connect(sent: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        port = int(url.rsplit(":", 1)[1])
        reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=("127.0.0.2", 0))
        writers.append(writer)
        writer.write(sent)
        await writer.drain()
        return reader, writer

    yield connect
    for writer in writers:
        writer.close()


def client_at(url: str, users: Users, address: str) -> httpx.AsyncClient:
    headers = {"Authorization": f"Bearer {users.tokens[Role.VIEWER]}"}
    transport = httpx.AsyncHTTPTransport(local_address=address)
    return httpx.AsyncClient(base_url=url, headers=headers, transport=transport, timeout=60)


async def test_slow_heads_push_out_only_one_another(app: FastAPI, users: Users) -> None:
    async with (
        serve(without_lifespan(app)) as url, stranger(url) as connect,
        client_at(url, users, "127.0.0.1") as elsewhere, client_at(url, users, "127.0.0.2") as beside,
    ):  # fmt: skip
        assert (await beside.get("/api/v1/session")).status_code == 200
        first, _ = await connect(HALF_HEAD)
        for _ in range(CONNECTIONS_EACH_MAX):
            await connect(HALF_HEAD)
        answer = await asyncio.wait_for(first.read(), 60)
        for client in (elsewhere, beside):
            assert (await client.get("/api/v1/session")).status_code == 200
    assert answer.startswith(b"HTTP/1.1 429 Too Many Requests\r\n")
    assert b"Retry-After: 5\r\n" in answer
    assert b"too_many_requests" in answer


async def test_a_newcomer_with_a_login_gets_in_beside_a_stranger_of_the_same_address(
    app: FastAPI, users: Users
) -> None:
    async with serve(without_lifespan(app)) as url, stranger(url) as connect:
        for _ in range(CONNECTIONS_EACH_MAX):
            await connect(HALF_HEAD)
        async with client_at(url, users, "127.0.0.2") as beside:
            assert (await beside.get("/api/v1/session")).status_code == 200


async def test_a_user_has_so_many_connections_and_keeps_them(app: FastAPI, users: Users) -> None:
    def request_of(role: Role) -> bytes:
        return HALF_HEAD + f"Authorization: Bearer {users.tokens[role]}\r\n\r\n".encode()

    async def answer_to(role: Role) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, bytes]:
        reader, writer = await connect(request_of(role))
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
        (size,) = re.findall(rb"content-length: (\d+)", head.lower())
        return reader, writer, head + await reader.readexactly(int(size))

    async with serve(without_lifespan(app)) as url, stranger(url) as connect:
        held = []
        for number in range(USER_CONNECTIONS_MAX):
            reader, writer, answer = await answer_to(Role.VIEWER)
            assert answer.startswith(b"HTTP/1.1 200 "), (number, answer)
            writer.write(HALF_HEAD)
            held.append((reader, writer))
        reader, _, answer = await answer_to(Role.VIEWER)
        assert answer.startswith(b"HTTP/1.1 429 "), answer
        assert b"too_many_requests" in answer and b"retry-after: 5" in answer.lower()
        assert await asyncio.wait_for(reader.read(), 60) == b"", "it is closed"
        _, _, answer = await answer_to(Role.OPERATOR)
        assert answer.startswith(b"HTTP/1.1 200 "), "another user of the same address"
        first, writer = held[0]
        writer.write(request_of(Role.VIEWER).removeprefix(HALF_HEAD))
        assert (await asyncio.wait_for(first.readline(), 60)).startswith(b"HTTP/1.1 200 "), "those that were stay"
        held[1][1].close()

        async def has_room() -> bool:
            return (await answer_to(Role.VIEWER))[2].startswith(b"HTTP/1.1 200 ")

        await eventually(has_room)


async def test_requests_without_a_login_have_an_allowance(app: FastAPI, users: Users) -> None:
    async with serve(without_lifespan(app)) as url, stranger(url) as connect:
        for _ in range(REQUESTS_EACH_MAX):
            await connect(HALF_BODY)

        async def refused() -> bytes:
            reader, _ = await connect(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            answer = await asyncio.wait_for(reader.read(), 60)
            return answer if b" 429 " in answer else b""

        answer = await eventually(refused)
        assert b"retry-after: 5" in answer.lower()
        assert b"too_many_requests" in answer
        for address in ("127.0.0.1", "127.0.0.2"):
            async with client_at(url, users, address) as client:
                assert (await client.get("/api/v1/session")).status_code == 200


async def test_behind_a_proxy_the_forwarded_address_has_the_allowance(
    app: FastAPI, users: Users, settings: Settings
) -> None:
    settings.trusted_proxies = ["127.0.0.2"]
    forwarded = HALF_BODY.replace(b"Host: x\r\n", b"Host: x\r\nX-Forwarded-For: 203.0.113.9\r\n")
    async with serve(without_lifespan(app), settings=settings) as url, stranger(url) as proxy:
        for _ in range(CONNECTIONS_EACH_MAX + 1):
            first, _ = await proxy(HALF_HEAD)  # nobody is turned away: the proxy's connections are everybody's
        for _ in range(REQUESTS_EACH_MAX):
            await proxy(forwarded)

        async def status_for(address: bytes) -> bytes:
            head = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Forwarded-For: " + address
            reader, _ = await proxy(head + b"\r\n\r\n")
            return (await asyncio.wait_for(reader.read(), 60)).split()[1]

        async def refused() -> bool:
            return await status_for(b"203.0.113.9") == b"429"

        await eventually(refused)
        assert await status_for(b"203.0.113.10") == b"200"
        assert not first.at_eof()


@pytest.mark.parametrize(
    "sent",
    [
        HALF_HEAD + b"X: " + b"x" * 40_000,
        HALF_HEAD + b"X: " + b"x" * 40_000 + b"\r\n\r\n",
        HALF_HEAD + b"".join(b"X-%d: x\r\n" % number for number in range(101)) + b"\r\n",
        b"GET /?" + b"x" * 40_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        HALF_BODY.replace(b"Content-Length: 50", b"Transfer-Encoding: chunked").removesuffix(b"{") + b"0\r\nX: "
        + b"x" * 40_000,
        HALF_BODY.replace(b"Content-Length: 50", b"Transfer-Encoding: chunked").removesuffix(b"{")
        + b"1;x=" + b"y" * 40_000,
    ],
    ids=["endless line", "long line", "many lines", "long address", "endless trailer", "long extension"],
)  # fmt: skip
async def test_a_request_s_head_has_bounds(app: FastAPI, sent: bytes) -> None:
    async with serve(without_lifespan(app)) as url:
        port, taker = int(url.rsplit(":", 1)[1]), Taker()
        transport, _ = await asyncio.get_running_loop().create_connection(lambda: taker, "127.0.0.1", port)
        transport.write(sent)
        answer = await asyncio.wait_for(taker.answer, 60)
    assert answer.startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")
    assert b"head_too_large" in answer


async def test_half_handshakes_of_tls_are_strangers_too(
    app: FastAPI, users: Users, settings: Settings, tmp_path: Path
) -> None:
    settings.tls_certificate_file, settings.tls_key_file = make_certificate(tmp_path)
    trusted = ssl.create_default_context(cafile=settings.tls_certificate_file)
    async with serve(without_lifespan(app), settings=settings) as url, stranger(url) as connect:
        first, _ = await connect(b"\x16\x03\x01")
        for _ in range(CONNECTIONS_EACH_MAX):
            await connect(b"\x16\x03\x01")
        with contextlib.suppress(ConnectionError):
            assert await asyncio.wait_for(first.read(), 60) == b""
        headers = {"Authorization": f"Bearer {users.tokens[Role.VIEWER]}"}
        transport = httpx.AsyncHTTPTransport(local_address="127.0.0.2", verify=trusted)
        async with httpx.AsyncClient(base_url=url, headers=headers, transport=transport, timeout=60) as client:
            assert (await client.get("/api/v1/session")).status_code == 200


async def test_an_answer_that_nobody_takes_is_ended(
    app: FastAPI, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    doors: list[Door] = []
    monkeypatch.setattr(protocol, "ANSWER_SECONDS", 2)
    monkeypatch.setattr(serving, "Door", lambda *parts: doors.append(Door(*parts)) or doors[-1])
    (settings.console_directory / "assets").mkdir(parents=True)
    size = 64 * 1024 * 1024
    (settings.console_directory / "assets" / "big.js").write_bytes(b"x" * size)
    async with serve(without_lifespan(app)) as url, stranger(url) as connect:
        reader, _ = await connect(b"GET /assets/big.js HTTP/1.1\r\nHost: x\r\n\r\n")
        await asyncio.wait_for(reader.readexactly(1), 60)  # and is not read beyond a buffer

        async def none_is_left() -> bool:
            return not doors[0].guests._by_network

        await eventually(none_is_left)
        with contextlib.suppress(ConnectionError):
            assert len(await asyncio.wait_for(reader.read(), 60)) < size


def test_where_all_places_are_taken_the_largest_network_makes_room() -> None:
    guests, turned_away = Guests(each_max=5, all_max=8), list[str]()
    for number in range(4):
        guests.enter("192.0.2.1", lambda number=number: turned_away.append(f"a{number}")).busy = number == 0
    few = [guests.enter("198.51.100.1", lambda: turned_away.append("few")) for _ in range(2)]
    for number in range(2):  # one network, as IPv6 counts
        guests.enter(f"2001:db8::{number}", lambda: turned_away.append("six"))
    guests.enter("203.0.113.1", lambda: turned_away.append("new"))
    assert turned_away == ["a1"], "the oldest whose request has not arrived"
    guests.leave(few[0])
    guests.leave(few[0])
    guests.enter("203.0.113.2", lambda: turned_away.append("new"))
    assert turned_away == ["a1"], "there was room"
