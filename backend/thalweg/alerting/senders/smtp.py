"""A conversation with a mail server that ends in time: RFC 5321 by the standard library's client.

That client's time-out is for each read, so a server that sends a byte now and then would hold it for ever. Here the
whole conversation has a deadline: when it has passed, the connection is shut down under the client, in whatever it was
doing. The name is looked up once, and only addresses that the administrator allows are connected to.
"""

import asyncio
import io
import smtplib
import socket
import ssl
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from email.message import EmailMessage
from functools import partial

from thalweg.alerting.senders.settings import EmailSettings, MailSecurity
from thalweg.kernel.networks import Networks
from thalweg.kernel.outside import outside

AT_ONCE_MAX = 20
"""Conversations; each has a thread. The others wait, within their own time."""
REPLIES_BYTES_MAX = 64 * 1024
"""The bytes of the replies between two changes of the connection: a server need not say more."""
GREETING = 220
_threads = ThreadPoolExecutor(AT_ONCE_MAX, thread_name_prefix="mail")


async def send_mail(
    settings: EmailSettings, password: str, mail: EmailMessage, timeout: float, within: Networks
) -> None:
    """`timeout` in seconds, for everything. Raises TimeoutError, AddressRefused, OSError, ValueError and
    smtplib.SMTPException."""
    outside("a mail server")
    line = _Line(time.monotonic() + timeout)
    try:
        async with asyncio.timeout(timeout):
            line.addresses = await within.addresses_of(settings.host, settings.port)
            talk = partial(_converse, line, settings, password, mail)
            await asyncio.get_running_loop().run_in_executor(_threads, talk)
    except (OSError, smtplib.SMTPException) as error:
        if time.monotonic() >= line.until:  # whichever of the two noticed it first
            raise TimeoutError from error
        raise
    finally:
        line.cut()


@dataclass
class _Line:
    """The way to the server, and the means to end it from another thread."""

    until: float
    """time.monotonic()"""
    addresses: list[str] = field(default_factory=list)
    _end: socket.socket | None = None
    _is_cut: bool = False

    def connect(self, port: int) -> socket.socket:
        """To the first address that answers. Raises OSError."""
        failure: OSError = TimeoutError("timed out")
        for address in self.addresses:
            left = self.until - time.monotonic()
            if left <= 0 or self._is_cut:
                break
            try:
                connection = socket.create_connection((address, port), left)
            except OSError as error:
                failure = error
                continue
            # A second descriptor of the same connection: TLS takes the first one over.
            self._end = connection.dup()
            if self._is_cut:
                self.cut()
            return connection
        raise failure

    def cut(self) -> None:
        """From any thread. A thread that waits for the connection sees its end at once."""
        self._is_cut = True
        end, self._end = self._end, None
        if end is not None:
            with suppress(OSError):  # it has ended already
                end.shutdown(socket.SHUT_RDWR)
            end.close()


class _Replies(io.BufferedReader):
    """The server's words, as far as they are read."""

    def __init__(self, raw: io.RawIOBase) -> None:
        super().__init__(raw)
        self._left = REPLIES_BYTES_MAX

    def readline(self, size: int | None = -1, /) -> bytes:
        line = super().readline(size)
        self._left -= len(line)
        if self._left < 0:
            raise OSError("The server's replies do not end.")
        return line


class _Client(smtplib.SMTP):
    _line: _Line

    def begin(self, line: _Line, settings: EmailSettings) -> None:
        self._line = line
        self._host = settings.host  # whose certificate it must be
        code, answer = self.connect(settings.host, settings.port)
        if code != GREETING:
            self.close()  # nobody who would answer a farewell
            raise smtplib.SMTPConnectError(code, answer)

    def _get_socket(self, _host: str, port: int, _timeout: float) -> socket.socket:
        return self._line.connect(port)

    def getreply(self) -> tuple[int, bytes]:
        if self.file is None and self.sock is not None:
            self.file = _Replies(self.sock.makefile("rb", buffering=0))
        return super().getreply()


class _TlsClient(smtplib.SMTP_SSL, _Client):
    """With TLS from the beginning: SMTP_SSL wraps the socket that _Client gives it."""


def _converse(line: _Line, settings: EmailSettings, password: str, mail: EmailMessage) -> None:
    context = None if settings.security is MailSecurity.PLAIN else _trust(settings)
    with _TlsClient(context=context) if settings.security is MailSecurity.TLS else _Client() as client:
        client.begin(line, settings)
        if settings.security is MailSecurity.STARTTLS:
            client.starttls(context=context)
        if settings.user:
            client.login(settings.user, password)
        client.send_message(mail)


def _trust(settings: EmailSettings) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=settings.ca_certificate or None)
