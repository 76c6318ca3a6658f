"""Looks at the sources' replication slots and at the certificates of engines, beside the evaluation: a source that does
not answer holds up nothing."""

import asyncio
import ssl
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from urllib.parse import urlsplit

import structlog
from cryptography import x509

from thalweg.alerting.facts import Slot
from thalweg.inspection.connection import ConnectionFailure
from thalweg.inspection.slots import SourceState, read_slots
from thalweg.inspection.target import Target, target_of
from thalweg.kernel.clock import now
from thalweg.kernel.context import Resources
from thalweg.workers.alerts import repository

AT_ONCE_MAX = 8
CERTIFICATES_EVERY = timedelta(hours=1)
SLOT_FRESH = timedelta(seconds=60)
HTTPS_PORT = 443
log = structlog.get_logger(__name__)


def slot_name(stream_id: str) -> str:
    return f"thalweg_{stream_id}"


@dataclass
class Seen:
    """Owner: the collector. Slots by stream id, ends of TLS certificates by engine id."""

    slots: dict[str, Slot] = field(default_factory=dict)
    certificates: dict[str, datetime] = field(default_factory=dict)

    def slot(self, stream_id: str, at: datetime) -> Slot | None:
        """None when it was not read, or too long ago."""
        known = self.slots.get(stream_id)
        return known if known is not None and at - known.read_at <= SLOT_FRESH else None


class SourceWatch:
    """Owner: the collector, which runs `turn` again and again."""

    def __init__(self, resources: Resources, seen: Seen) -> None:
        self._resources = resources
        self._seen = seen
        self._gate = asyncio.Semaphore(AT_ONCE_MAX)
        self._certificates_read_at: datetime | None = None
        self._silent: set[str] = set()

    async def turn(self) -> None:
        async with self._resources.sessions() as session:
            streams = await repository.streams_with_sources(session)
            engines = await repository.tls_engines(session)
        targets: dict[str, tuple[Target, list[str]]] = {}
        for stream in streams:
            target = target_of(stream.source, self._resources.secrets)
            targets.setdefault(stream.source_id, (target, []))[1].append(stream.id)
        await asyncio.gather(*(self._read(name, target, ids) for name, (target, ids) in targets.items()))
        known = {stream.id for stream in streams}
        self._seen.slots = {name: slot for name, slot in self._seen.slots.items() if name in known}
        at = now()
        if self._certificates_read_at is None or at - self._certificates_read_at >= CERTIFICATES_EVERY:
            self._certificates_read_at = at
            await self._read_certificates(engines)

    async def _read(self, source_id: str, target: Target, stream_ids: list[str]) -> None:
        settings = self._resources.settings
        asked_at = now()
        async with self._gate:
            try:
                state = await read_slots(
                    target, [slot_name(name) for name in stream_ids], settings.database_connect_timeout
                )
            except ConnectionFailure as failure:
                if source_id not in self._silent:
                    self._silent.add(source_id)
                    log.warning("slots cannot be read", source=source_id, code=failure.code, error=failure.message)
                return
        self._silent.discard(source_id)
        for stream_id in stream_ids:
            self._seen.slots[stream_id] = slot_of(state, slot_name(stream_id), asked_at)

    async def _read_certificates(self, engines: list[tuple[str, str]]) -> None:
        ends: dict[str, datetime] = {}
        for engine_id, url in engines:
            try:
                ends[engine_id] = await certificate_end(url, self._resources.settings.engine_timeout)
            except (OSError, ssl.SSLError, ValueError) as error:
                log.info("certificate cannot be read", engine=engine_id, error=str(error))
        self._seen.certificates = ends


def slot_of(state: SourceState, name: str, read_at: datetime) -> Slot:
    found = state.slots.get(name)
    if found is None:
        return Slot(read_at, missing=True, current_lsn=state.current_lsn)
    return Slot(
        read_at, missing=False, active=found.active, wal_status=found.wal_status, current_lsn=state.current_lsn,
        retained_bytes=found.retained_bytes, safe_bytes=found.safe_bytes,
    )  # fmt: skip


async def certificate_end(url: str, timeout: float) -> datetime:
    """When the certificate that the server shows ends. Whether it is trusted is the engine client's question."""
    parts = urlsplit(url)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    async with asyncio.timeout(timeout):
        _, writer = await asyncio.open_connection(parts.hostname, parts.port or HTTPS_PORT, ssl=context)
    try:
        shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    finally:
        writer.close()
    return x509.load_der_x509_certificate(shown).not_valid_after_utc
