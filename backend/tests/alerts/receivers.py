"""Real receivers of notices: an HTTP server and a mail server, each on a port of its own."""

import ssl
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any, cast

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from tests.support.servers import free_port
from tests.support.serving import serve

PASSWORD = "the mail password"


@dataclass
class HttpReceiver:
    """Answers with the statuses of `answers`, one after the other, then with 204."""

    url: str = ""
    answers: list[int] = field(default_factory=list)
    taken: list[tuple[dict[str, str], bytes]] = field(default_factory=list)

    async def take(self, request: Request) -> Response:
        self.taken.append((dict(request.headers), await request.body()))
        status = self.answers.pop(0) if self.answers else 204
        return Response(status_code=204) if status == 204 else PlainTextResponse("not now", status)


@asynccontextmanager
async def http_receiver() -> AsyncGenerator[HttpReceiver, None]:
    receiver = HttpReceiver()
    async with serve(Starlette(routes=[Route("/hook", receiver.take, methods=["POST"])])) as url:
        receiver.url = f"{url}/hook"
        yield receiver


@dataclass
class Mailbox:
    """Refuses recipients at refused.example."""

    port: int
    mails: list[EmailMessage] = field(default_factory=list)

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: Any) -> str:  # noqa: N802
        if address.endswith("@refused.example"):
            return "550 5.1.1 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        self.mails.append(cast(EmailMessage, message_from_bytes(envelope.content, policy=policy.default)))
        return "250 taken"


def _authenticate(server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
    good = isinstance(data, LoginPassword) and (data.login, data.password) == (b"thalweg", PASSWORD.encode())
    return AuthResult(success=good, handled=False)


@contextmanager
def mail_server(security: str, certificate: tuple[Path, Path] | None = None) -> Generator[Mailbox, None, None]:
    """With TLS it wants the user thalweg with PASSWORD; plain it takes everything."""
    mailbox = Mailbox(free_port())
    options: dict[str, Any] = {}
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        options = {"authenticator": _authenticate, "auth_required": True, "auth_require_tls": security == "starttls"}
        options |= {"ssl_context": context} if security == "tls" else {"tls_context": context, "require_starttls": True}
    controller = Controller(mailbox, hostname="127.0.0.1", port=mailbox.port, **options)
    controller.start()
    try:
        yield mailbox
    finally:
        controller.stop()
