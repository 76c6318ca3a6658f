"""Twenty tabs as the console behaves: one event stream each, the overview read again every five seconds, the alerts'
counts every fifteen. A relay stands before the API workers as a load balancer does: each connection to the next one.
"""

import asyncio
import contextlib
import json
import time
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime

OVERVIEW_EVERY = 5.0
COUNTS_EVERY = 15.0
RETRY_SECONDS = 0.2


@dataclass
class Seen:
    """Record of one tab. Times are of this host's wall clock, in seconds."""

    samples: dict[str, list[tuple[float, str]]] = field(default_factory=lambda: defaultdict(list))
    lags: list[float] = field(default_factory=list)
    """From the engine's sampling to the tab."""
    reads: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """By path, from connecting to the last byte."""
    reconnects: list[float] = field(default_factory=list)
    """How long each time until events came again."""
    resets: int = 0
    failed_reads: int = 0


class Balancer:
    """Takes turns between the workers that take a connection. Owner: the event loop."""

    def __init__(self, ports: list[int]) -> None:
        self.ports = ports
        self.turn = 0
        self.server: asyncio.Server | None = None
        self.port = 0
        self.open: set[asyncio.StreamWriter] = set()

    async def start(self) -> None:
        self.server = await asyncio.start_server(self._take, "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in self.ports:
            port = self.ports[self.turn % len(self.ports)]
            self.turn += 1
            try:
                far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                continue
            self.open |= {writer, far_writer}
            await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))
            self.open -= {writer, far_writer}
            return
        writer.close()

    async def stop(self) -> None:
        """Ends all connections, so that what relays them ends by itself."""
        assert self.server
        self.server.close()
        for writer in self.open:
            writer.close()
        while self.open:
            await asyncio.sleep(0.05)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


class Tab:
    def __init__(self, port: int, token: str) -> None:
        self.port = port
        self.token = token
        self.seen = Seen()
        self.last_id: str | None = None

    async def run(self) -> None:
        await asyncio.gather(self._events(), self._reads("/overview", OVERVIEW_EVERY),
                             self._reads("/alerts/counts", COUNTS_EVERY))

    async def _open(self, path: str, *headers: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 22)
        lines = [f"GET /api/v1{path} HTTP/1.1", "Host: thalweg", f"Authorization: Bearer {self.token}", *headers]
        writer.write("".join(f"{line}\r\n" for line in [*lines, ""]).encode())
        status = await reader.readline()
        if b" 200 " not in status:
            writer.close()
            raise OSError(f"{path}: {status!r}")
        while (await reader.readline()).strip():
            pass
        return reader, writer

    async def _reads(self, path: str, seconds: float) -> None:
        while True:
            began = time.monotonic()
            try:
                reader, writer = await self._open(path, "Connection: close")
                await reader.read()
                writer.close()
                self.seen.reads[path].append(time.monotonic() - began)
            except OSError:
                self.seen.failed_reads += 1
            await asyncio.sleep(seconds)

    async def _events(self) -> None:
        lost_at: float | None = None
        while True:
            try:
                resume = [f"Last-Event-ID: {self.last_id}"] if self.last_id else []
                reader, _ = await self._open("/events", *resume)
                async for name, identifier, data in _parsed(reader):
                    if lost_at is not None and name != "hello":
                        self.seen.reconnects.append(time.time() - lost_at)
                        lost_at = None
                    self._take(name, identifier, data)
            except OSError:
                pass
            lost_at = lost_at or time.time()
            await asyncio.sleep(RETRY_SECONDS)

    def _take(self, name: str, identifier: str, data: str) -> None:
        self.last_id = identifier or self.last_id
        if name == "reset":
            self.seen.resets += 1
        if name == "stream.sample":
            sample = json.loads(data)
            now = time.time()
            self.seen.samples[sample["stream_id"]].append((now, sample["at"]))
            self.seen.lags.append(now - datetime.fromisoformat(sample["at"]).timestamp())


async def _parsed(reader: asyncio.StreamReader):  # type: ignore[no-untyped-def]
    """(name, id, data) of each event; chunks' lengths between them are lines without a colon."""
    name, identifier, data = "", "", ""
    while line := await reader.readline():
        text = line.decode().rstrip("\r\n")
        key, _, value = text.partition(": ")
        if key == "event":
            name = value
        elif key == "id":
            identifier = value
        elif key == "data":
            data = value
        elif not text and name:
            yield name, identifier, data
            name, identifier, data = "", "", ""
