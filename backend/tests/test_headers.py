"""Headers are bytes of strangers: whatever they hold, a real server answers with what the API promises."""

import asyncio
import json

import pytest
from fastapi import FastAPI

from tests.conftest import Users
from tests.support.serving import serve, without_lifespan
from thalweg.kernel.principal import Role

ODD = {
    "latin-1": bytes(range(0xA0, 0x100)),
    "C1 controls": bytes(range(0x80, 0xA0)),
    "UTF-8": "Größe € 😀".encode(),
    "cut UTF-8": b"\xe2\x82",
    "digits that are none": b"\xb2\xb3\xb9",
    "quotes": b'"\xff", W/"\xfe", =;,\\',
}
# Bytes that no HTTP client may send: the parser below the application refuses them.
REFUSED = [b"a\x01b", b"a\x00b", b"\x7f", b"a\x1b[31m"]
NAMES = ["If-Match", "If-None-Match", "Last-Event-ID", "Authorization", "Cookie", "X-CSRF-Token", "Idempotency-Key",
         "X-Request-Id", "User-Agent", "Accept", "Content-Type", "Origin", "Range", "X-Forwarded-For", "Forwarded",
         "Accept-Encoding"]  # fmt: skip
REQUESTS = [
    ("GET", "/api/v1/streams", b""),
    ("PATCH", "/api/v1/databases/abcdefgh", b'{"port": 1}'),
    ("POST", "/api/v1/databases", b"{}"),
    ("POST", "/api/v1/session", b'{"name": "nobody", "password": "wrong wrong"}'),
    ("DELETE", "/api/v1/streams/abcdefgh", b""),
]


async def ask(
    url: str, method: str, path: str, headers: list[tuple[bytes, bytes]], body: bytes
) -> tuple[int, str, bytes]:
    """(status, content type, body) of one request, sent as it stands: no client of ours would send such headers."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        lines = [f"{method} {path} HTTP/1.1".encode("latin-1"), f"Host: {host}".encode(), b"Connection: close",
                 b"Content-Length: %d" % len(body), *(name + b": " + value for name, value in headers)]  # fmt: skip
        writer.write(b"\r\n".join(lines) + b"\r\n\r\n" + body)
        answer = await asyncio.wait_for(reader.read(), 20)
    finally:
        writer.close()
    head, _, content = answer.partition(b"\r\n\r\n")
    first, *rest = head.decode("latin-1").split("\r\n")
    shown = dict(line.lower().split(": ", 1) for line in rest)
    return int(first.split()[1]), shown.get("content-type", ""), content


@pytest.mark.parametrize("odd", ODD)
async def test_odd_headers_get_the_answers_that_are_promised(app: FastAPI, users: Users, odd: str) -> None:
    token = f"Bearer {users.tokens[Role.ADMIN]}".encode()
    async with serve(without_lifespan(app)) as url:
        for method, path, body in REQUESTS:
            for name in NAMES:
                value = ODD[odd]
                headers = [(name.encode(), b"Bearer " + value if name == "Authorization" else value)]
                if name == "Cookie":
                    headers = [(b"Cookie", b"thalweg_session=" + value)]
                elif name != "Authorization":
                    headers.append((b"Authorization", token))
                if name != "Content-Type":
                    headers.append((b"Content-Type", b"application/json"))
                status, kind, content = await ask(url, method, path, headers, body)
                where = (name, method, path, status, content[:200])
                assert status < 500, where
                if status >= 400:
                    assert kind == "application/problem+json", where
                    assert json.loads(content)["status"] == status, where
                else:
                    assert kind == "application/json", where


async def test_what_is_no_http_gets_a_problem_too(app: FastAPI) -> None:
    async with serve(without_lifespan(app)) as url:
        for name in NAMES:
            for value in REFUSED:
                answer = await ask(url, "GET", "/api/v1/streams", [(name.encode(), value)], b"")
                assert answer[:2] == (400, "application/problem+json"), (name, value, answer)
                problem = json.loads(answer[2])
                assert (problem["status"], problem["code"]) == (400, "malformed_request")
                assert problem["cure"]
        assert (await ask(url, "GET", "/api/v1/ü".encode().decode("latin-1"), [], b""))[0] == 400


async def test_an_odd_last_event_id_starts_afresh(app: FastAPI, users: Users) -> None:
    token = f"Bearer {users.tokens[Role.VIEWER]}".encode()
    async with serve(without_lifespan(app)) as url:
        host, port = url.removeprefix("http://").split(":")
        for value in (*ODD.values(), b"99999999999999999999-1", b"1-1-1"):
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"GET /api/v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: " + token +
                         b"\r\nLast-Event-ID: " + value + b"\r\n\r\n")  # fmt: skip
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 20)
            writer.close()
            assert head.startswith(b"HTTP/1.1 200") and b"text/event-stream" in head, head
