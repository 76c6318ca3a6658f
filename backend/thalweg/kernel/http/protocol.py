"""Input that is not HTTP, or not a whole request in time, never reaches the application: the server answers it, in the
form of the API's answers.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from thalweg.kernel.problems import MEDIA_TYPE, Problem


def _answer(status: bytes, problem: Problem) -> bytes:
    content = problem.details("").model_dump_json().encode()
    return b"\r\n".join(
        [
            b"HTTP/1.1 " + status,
            b"Content-Type: " + MEDIA_TYPE.encode(),
            b"Content-Length: %d" % len(content),
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
    Problem("request_timeout", "The request did not arrive whole in time.", "Send headers and body without a pause."),
)


class ProblemProtocol(HttpToolsProtocol):
    """uvicorn's protocol. A request that its parser refuses is answered with problem details; so is one whose headers
    and body have not arrived `receive_seconds` after its connection, or after its first byte on one that is kept."""

    def __init__(self, *arguments: Any, receive_seconds: float, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._receive_seconds = receive_seconds
        self._too_late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect_nothing()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._expect_request()

    def on_message_complete(self) -> None:
        self._expect_nothing()
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        self.transport.write(NO_HTTP)
        self.transport.close()

    def _expect_request(self) -> None:
        if self._too_late is None:
            self._too_late = self.loop.call_later(self._receive_seconds, self._give_up)

    def _expect_nothing(self) -> None:
        if self._too_late is not None:
            self._too_late.cancel()
            self._too_late = None

    def _give_up(self) -> None:
        self._too_late = None
        if not self.transport.is_closing():
            self.transport.write(TOO_SLOW)
            self.transport.close()
