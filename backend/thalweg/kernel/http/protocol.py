"""Input that is not HTTP, or not a whole request in time and in bounds, never reaches the application: the server
answers it, in the form of the API's answers. Connections are strangers' until a request of theirs has authenticated,
and then the user's.
"""

import asyncio
import ssl
from asyncio.sslproto import SSLProtocol
from dataclasses import dataclass, field
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from thalweg.kernel.http.strangers import TOO_MANY, Guest, Guests, UsersConnections
from thalweg.kernel.networks import Networks
from thalweg.kernel.problems import MEDIA_TYPE, Problem

HEAD_BYTES_MAX = 32 * 1024
HEAD_LINES_MAX = 100
ANSWER_SECONDS = 120.0
"""Within this a stranger must have taken an answer."""


def _answer(status: bytes, problem: Problem) -> bytes:
    content = problem.details("").model_dump_json().encode()
    return b"\r\n".join(
        [
            b"HTTP/1.1 " + status,
            b"Content-Type: " + MEDIA_TYPE.encode(),
            b"Content-Length: %d" % len(content),
            *(f"{name}: {value}".encode() for name, value in problem.headers.items()),
            b"X-Content-Type-Options: nosniff",
            b"Cache-Control: no-store",
            b"Connection: close",
            b"",
            content,
        ]
    )


NO_HTTP = _answer(
    b"400 Bad Request",
    Problem(
        "malformed_request", "The request is no HTTP/1.1.",
        "Send it through an HTTP client: a header's value holds no control characters.",
    ),
)  # fmt: skip
TOO_SLOW = _answer(
    b"408 Request Timeout",
    Problem(
        "request_timeout", "The request did not arrive completely in time.", "Send headers and body without a pause."
    ),
)
TOO_LARGE = _answer(
    b"431 Request Header Fields Too Large",
    Problem(
        "head_too_large", f"A request has {HEAD_LINES_MAX} headers and {HEAD_BYTES_MAX} bytes beside its body at most.",
        "Send fewer and shorter headers, cookies and query parameters, and the body in larger chunks.",
    ),
)  # fmt: skip
TURNED_AWAY = _answer(b"429 Too Many Requests", TOO_MANY)


@dataclass(frozen=True)
class Door:
    """Shared by all connections."""

    receive_seconds: float
    tls: ssl.SSLContext | None = None
    proxies: Networks | None = None
    """Their connections are of many people: who is a stranger among these shows in the requests."""
    guests: Guests = field(default_factory=Guests)
    users: UsersConnections = field(default_factory=UsersConnections)


class _Tls(SSLProtocol):
    """The standard library's TLS, which tells also of connections whose handshake never ended."""

    def __init__(self, inner: "ProblemProtocol", context: ssl.SSLContext, seconds: float) -> None:
        # Nobody waits for the handshake: it is followed by connection_made, or by nothing.
        super().__init__(inner.loop, inner, context, None, server_side=True, ssl_handshake_timeout=seconds)  # type: ignore[arg-type]
        self._inner = inner

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        self._inner.leave()


class ProblemProtocol(HttpToolsProtocol):
    """uvicorn's protocol. A request that its parser refuses, or whose head is too large, is answered with problem
    details; so is one whose headers and body have not arrived `receive_seconds` after its connection, or after its
    first byte on one that is kept. TLS begins here, so that a handshake that never ends is a stranger's, too."""

    def __init__(self, *arguments: Any, door: Door, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._door = door
        self._guest: Guest | None = None
        self._user_id: str | None = None
        self._bare: asyncio.Transport | None = None
        self._too_late: asyncio.TimerHandle | None = None
        self._beside_body = self._lines = self._unclaimed = 0
        self._receiving = self._refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        if self._bare is not None:  # the handshake has ended
            self._begin(transport)
            return
        peer = transport.get_extra_info("peername")
        address = peer[0] if isinstance(peer, tuple) else None
        proxies = self._door.proxies
        if proxies is None or address is None or not proxies.allow(address):
            self._guest = self._door.guests.enter(address, self._turn_away)
        if self._door.tls is None:
            self._begin(transport)
        else:
            self._bare = transport
            tls = _Tls(self, self._door.tls, self._door.receive_seconds)
            transport.set_protocol(tls)
            tls.connection_made(transport)

    def _begin(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect_nothing()
        self.leave()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        self._unclaimed = len(data)
        self._beside_body += len(data)
        super().data_received(data)
        if self._beside_body > HEAD_BYTES_MAX:
            self._refuse(TOO_LARGE)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._lines = 0
        self._beside_body, self._unclaimed = self._unclaimed, 0
        self._receiving = True
        self.scope["state"]["admit"] = self._admit
        self._expect_request()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Also of a trailer."""
        self._lines += 1
        if self._lines <= HEAD_LINES_MAX:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if self._lines > HEAD_LINES_MAX or size > HEAD_BYTES_MAX:
            self._refuse(TOO_LARGE)
        if not self._refused:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        # The marks of chunks may take as much again.
        self._beside_body -= 2 * len(body)
        if not self._refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._receiving = False
        self._unclaimed = 0  # what follows in the same read is another request's, and uncounted
        self._expect_nothing()
        if self._refused:
            return
        super().on_message_complete()
        if self._guest is not None:
            self._guest.busy = True
            self._too_late = self.loop.call_later(ANSWER_SECONDS, self._end)

    def on_response_complete(self) -> None:
        if self._guest is not None:
            self._guest.busy = False
            self._expect_nothing()
            if self._receiving:  # another request, sent before this one was answered
                self._expect_request()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        self._refuse(NO_HTTP)

    def _expect_request(self) -> None:
        if self._too_late is None:
            self._too_late = self.loop.call_later(self._door.receive_seconds, self._refuse, TOO_SLOW)

    def _expect_nothing(self) -> None:
        if self._too_late is not None:
            self._too_late.cancel()
            self._too_late = None

    def _refuse(self, answer: bytes) -> None:
        """An answer that has begun is not spoilt by another one."""
        if self._refused or self.transport.is_closing():
            return
        self._refused = True
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            self.transport.write(answer)
        self._end()

    def _end(self) -> None:
        """Waits for nothing of the other side's: neither that it takes what is written, nor its end of TLS."""
        if self._door.tls is None and self.transport.get_write_buffer_size() == 0:
            self.transport.close()
        else:
            self.transport.abort()

    def _turn_away(self) -> None:
        if self.transport is not None:
            self._refuse(TURNED_AWAY)
        elif self._bare is not None:
            self._bare.abort()

    def _admit(self, user_id: str) -> bool:
        """A request has authenticated. False: the user has too many connections beside this one. One that is no
        stranger's is counted already, is gone, or is a proxy's."""
        if self._guest is None:
            return True
        if not self._door.users.enter(user_id):
            return False
        self._user_id = user_id
        self._leave_strangers()
        return True

    def leave(self) -> None:
        """The connection is gone, or has never come to be. A second time does nothing."""
        self._leave_strangers()
        user_id, self._user_id = self._user_id, None
        if user_id is not None:
            self._door.users.leave(user_id)

    def _leave_strangers(self) -> None:
        guest, self._guest = self._guest, None
        if guest is not None:
            self._door.guests.leave(guest)
            if guest.busy:
                self._expect_nothing()  # who is known may take an answer as slowly as events come
