"""Something that speaks PostgreSQL's protocol and is no database: it floods whoever comes."""

import re
import socket
import struct
import threading
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager


def message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack("!i", 4 + len(body)) + body


def parameters(count: int) -> Iterator[bytes]:
    """Settings with names of their own, in pieces."""
    for first in range(0, count, 1000):
        yield b"".join(message(b"S", b"%x\0\0" % number) for number in range(first, first + 1000))


LET_IN = message(b"R", struct.pack("!i", 0))
READY = message(b"Z", b"I")
KNOWN = b"".join(
    message(b"S", name + b"\0" + value + b"\0")
    for name, value in (
        (b"server_version", b"16.4"),
        (b"client_encoding", b"UTF8"),
        (b"standard_conforming_strings", b"on"),
    )
)
PROCESS = message(b"K", struct.pack("!ii", 7, 7))


def columns(*names: bytes) -> bytes:
    text = b"".join(name + b"\0" + struct.pack("!ihihih", 0, 0, 25, -1, -1, 0) for name in names)
    return message(b"T", struct.pack("!h", len(names)) + text)


def row(*values: bytes) -> bytes:
    body = b"".join(struct.pack("!i", len(value)) + value for value in values)
    return message(b"D", struct.pack("!h", len(values)) + body)


class FalseServer:
    """Sends `before_login` after the password, and `answer` to each statement that is no setting. With `scram_rounds`
    it wants a password and hangs up on whoever has computed its proof. Owner: one thread for each client."""

    def __init__(
        self, before_login: Iterator[bytes] | None, answer: Iterable[bytes] | None, scram_rounds: int | None
    ) -> None:
        self._before_login, self._answer, self._scram_rounds = before_login, answer, scram_rounds
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client:
            try:
                self._talk(client)
            except (OSError, ValueError, struct.error):
                return  # The other end has hung up.

    def _talk(self, client: socket.socket) -> None:
        (length,) = struct.unpack("!i", _exactly(client, 4))
        marker = re.search(rb"thalweg\.session=(\w+)", _exactly(client, length - 4))
        if self._scram_rounds is not None:
            return _ask_for_proof(client, self._scram_rounds)
        client.sendall(LET_IN)
        for piece in self._before_login or ():
            client.sendall(piece)
        client.sendall(KNOWN + PROCESS + READY)
        while True:
            kind = _exactly(client, 1)
            (length,) = struct.unpack("!i", _exactly(client, 4))
            text = _exactly(client, length - 4)
            if kind == b"Q" and b"thalweg.session" in text:
                fields = columns(b"marker", b"pid") + row(marker[1] if marker else b"", b"7")
                client.sendall(fields + message(b"C", b"SELECT 1\0") + READY)
            elif kind == b"Q" and text.startswith(b"SET "):
                client.sendall(message(b"C", b"SET\0") + READY)
            elif kind in b"QS":
                client.sendall((message(b"1") + message(b"2") if kind == b"S" else b"") + columns())
                for piece in self._answer or ():
                    client.sendall(piece)
                client.sendall(message(b"C", b"SELECT 0\0") + READY)
            elif kind == b"X":
                return None


def _ask_for_proof(client: socket.socket, rounds: int) -> None:
    """RFC 5802, section 5."""
    client.sendall(message(b"R", struct.pack("!i", 10) + b"SCRAM-SHA-256\0\0"))
    _kind, length = struct.unpack("!ci", _exactly(client, 5))
    nonce = _exactly(client, length - 4).partition(b"r=")[2]
    client.sendall(message(b"R", struct.pack("!i", 11) + b"r=%bX,s=c2FsdA==,i=%d" % (nonce, rounds)))
    _exactly(client, 5)


def _exactly(client: socket.socket, count: int) -> bytes:
    parts = b""
    while len(parts) < count:
        part = client.recv(count - len(parts))
        if not part:
            raise ValueError("hung up")
        parts += part
    return parts


@contextmanager
def false_server(
    before_login: Iterator[bytes] | None = None,
    answer: Iterable[bytes] | None = None,
    scram_rounds: int | None = None,
) -> Generator[FalseServer, None, None]:
    server = FalseServer(before_login, answer, scram_rounds)
    try:
        yield server
    finally:
        server.close()
