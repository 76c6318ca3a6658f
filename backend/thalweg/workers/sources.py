"""Looks at the replication slots of all registered databases' servers and at the certificates of engines. Each server
is read at its own pace and with its own deadline: one that does not answer holds up no other."""

import asyncio
import ssl
from collections.abc import Coroutine
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import structlog
from cryptography import x509
from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.alerting.facts import Slot
from thalweg.db.models import SourceReadingRow
from thalweg.inspection.failure import ConnectionFailure
from thalweg.inspection.slots import READ_SECONDS, SourceState, read_slots
from thalweg.inspection.target import Target, target_of
from thalweg.kernel.clock import now
from thalweg.kernel.context import Resources
from thalweg.kernel.outside import outside
from thalweg.kernel.tasks import stop_task
from thalweg.live.lag import Growth
from thalweg.live.marks import Marks
from thalweg.live.sources import SourceReading, moves_of, reading_of, slot_name
from thalweg.live.steady_growth import SteadyGrowth
from thalweg.workers import repository
from thalweg.workers.survival import OUTAGES

AT_ONCE_MAX = 8
CERTIFICATES = "certificates"
CERTIFICATES_EVERY = timedelta(hours=1)
OTHERS_EVERY = timedelta(seconds=20)
"""Servers that are no stream's source are asked less often: only to show their slots. Often enough to know growth."""
SLOT_FRESH = timedelta(seconds=60)
HTTPS_PORT = 443
log = structlog.get_logger(__name__)


@dataclass
class Seen:
    """Owner: the collector. Readings by database id, slots by stream id, ends of TLS certificates by engine id."""

    readings: dict[str, SourceReading] = field(default_factory=dict)
    slots: dict[str, Slot] = field(default_factory=dict)
    certificates: dict[str, datetime] = field(default_factory=dict)

    def slot(self, stream_id: str, at: datetime) -> Slot | None:
        """None when it was not read, or too long ago."""
        known = self.slots.get(stream_id)
        return known if known is not None and at - known.read_at <= SLOT_FRESH else None


class SourceWatch:
    """Owner: the collector, which runs `turn` again and again, and `stop` at the end. `turn` begins what is due and
    waits for none of it."""

    def __init__(self, resources: Resources, seen: Seen) -> None:
        self._resources = resources
        self._seen = seen
        self._gate = asyncio.Semaphore(AT_ONCE_MAX)
        self._silent_gate = asyncio.Semaphore(AT_ONCE_MAX)
        self._running: dict[str, asyncio.Task[None]] = {}
        self._growth = Growth()
        self._steady = SteadyGrowth()
        self._asked: dict[str, datetime] = {}
        self._certificates_read_at: datetime | None = None
        self._silent: set[str] = set()

    async def turn(self) -> None:
        async with self._resources.sessions() as session:
            databases = await repository.databases(session)
            streams = await repository.streams_of_sources(session)
            engines = await repository.tls_engines(session)
            if not self._seen.readings:
                await self._remember(session)
        known, at = {row.id for row in databases}, now()
        self._forget(known, {stream_id for ids in streams.values() for stream_id in ids}, at)
        due = [row for row in databases if row.id in streams or self._is_due(row.id, at)]
        for row in due:
            if row.id not in self._running:
                self._begin(row.id, self._read(row.id, target_of(row, self._resources), streams.get(row.id, [])))
        if self._certificates_read_at is None or at - self._certificates_read_at >= CERTIFICATES_EVERY:
            self._certificates_read_at = at
            if CERTIFICATES not in self._running:
                self._begin(CERTIFICATES, self._read_certificates(engines))

    async def stop(self) -> None:
        for task in list(self._running.values()):
            await stop_task(task)

    def _begin(self, what: str, work: Coroutine[Any, Any, None]) -> None:
        task = self._running[what] = asyncio.create_task(self._survive(what, work), name=f"sources: {what}")
        task.add_done_callback(lambda _: self._running.pop(what))

    async def _survive(self, what: str, work: Coroutine[Any, Any, None]) -> None:
        """An outage of the store is told by the turn, which asks it first; the next one reads again."""
        try:
            await work
        except OUTAGES as error:
            log.info("a source's reading is lost", of=what, error=str(error))
        except Exception:
            log.exception("a source's reading has failed", of=what)

    async def _remember(self, session: AsyncSession) -> None:
        """Restores the readings of an earlier collector: the age of a lag goes back further than this process."""
        rows = await repository.source_readings(session)
        self._seen.readings = {row.database_id: reading for row in rows if (reading := reading_of(row)) is not None}

    def _is_due(self, database_id: str, at: datetime) -> bool:
        asked_at = self._asked.get(database_id)
        return asked_at is None or at - asked_at >= OTHERS_EVERY

    def _forget(self, database_ids: set[str], stream_ids: set[str], at: datetime) -> None:
        self._seen.readings = {name: reading for name, reading in self._seen.readings.items() if name in database_ids}
        self._seen.slots = {name: slot for name, slot in self._seen.slots.items() if name in stream_ids}
        self._growth.forget_before(at)
        self._steady.forget_before(at)

    async def _read(self, database_id: str, target: Target, stream_ids: list[str]) -> None:
        # Those that were silent the last time wait for each other, not for those that answer.
        async with self._silent_gate if database_id in self._silent else self._gate:
            asked_at = self._asked[database_id] = now()
            try:
                state = await self._state(target)
            except ConnectionFailure as error:
                if database_id not in self._silent:
                    self._silent.add(database_id)
                    log.warning("slots cannot be read", database=database_id, code=error.code, error=error.message)
                await self._keep(database_id, asked_at, error.message)
                return
        self._silent.discard(database_id)
        self._take(database_id, state, asked_at)
        for stream_id in stream_ids:
            reading = self._seen.readings[database_id]
            self._seen.slots[stream_id] = slot_of(reading, slot_name(stream_id))
        await self._keep(database_id, asked_at, None)

    async def _state(self, target: Target) -> SourceState:
        """Raises ConnectionFailure, also where what leads to the server does not answer in time."""
        timeout = self._resources.settings.database_connect_timeout
        deadline = timeout * (len(target.each_server) + 1) + READ_SECONDS
        try:
            async with asyncio.timeout(deadline):
                return await read_slots(target, timeout)
        except TimeoutError as error:
            message = f"There was no answer for {deadline:.0f} s."
            raise ConnectionFailure("database_unreachable", message, "Check the network and the server.") from error

    def _take(self, database_id: str, state: SourceState, read_at: datetime) -> None:
        before = self._seen.readings.get(database_id)
        # A server that was set back, or another one at the same address, begins anew.
        same = before is not None and (before.state.system_identifier, before.state.current_lsn) <= (
            state.system_identifier, state.current_lsn,
        )  # fmt: skip
        marks = before.marks if before is not None and same else Marks()
        marks.add(read_at, state.current_lsn)
        marks.thin(read_at)
        growth, unsteady = self._growth_of(database_id, state, read_at)
        moved_at = moves_of(before if same else None, state, read_at)
        self._seen.readings[database_id] = SourceReading(
            read_at=read_at, state=state, marks=marks, growth=growth, unsteady=unsteady, moved_at=moved_at
        )

    def _growth_of(self, database_id: str, state: SourceState, at: datetime) -> tuple[dict[str, float], list[str]]:
        """That of each slot, and the slots whose growth is not steady: there it is the last minute's."""
        growth, unsteady = {}, []
        for slot in state.slots.values():
            key = database_id, slot.name
            steady = self._steady.per_second(key, at, slot.retained_bytes)
            minute = self._growth.per_second(key, at, slot.retained_bytes)
            if steady is None:
                unsteady.append(slot.name)
            if (known := minute if steady is None else steady) is not None:
                growth[slot.name] = known
        return growth, unsteady

    async def _keep(self, database_id: str, asked_at: datetime, failure: str | None) -> None:
        reading = self._seen.readings.get(database_id) if failure is None else None
        row = SourceReadingRow(
            database_id=database_id, asked_at=asked_at, failure=failure,
            document=reading.model_dump(mode="json") if reading is not None else None,
        )  # fmt: skip
        async with self._resources.sessions() as session:
            await repository.keep_reading(session, row)
            await session.commit()

    async def _read_certificates(self, engines: list[tuple[str, str]]) -> None:
        ends: dict[str, datetime] = {}
        for engine_id, url in engines:
            try:
                ends[engine_id] = await certificate_end(url, self._resources.settings.engine_timeout)
            except (OSError, ssl.SSLError, ValueError) as error:
                log.info("certificate cannot be read", engine=engine_id, error=str(error))
        self._seen.certificates = ends


def slot_of(reading: SourceReading, name: str) -> Slot:
    state, found = reading.state, reading.state.slots.get(name)
    if found is None:
        return Slot(reading.read_at, missing=True, current_lsn=state.current_lsn)
    return Slot(
        reading.read_at, missing=False, active=found.active, wal_status=found.wal_status, current_lsn=state.current_lsn,
        retained_bytes=found.retained_bytes, safe_bytes=found.safe_bytes, keeps_up=reading.keeps_up(found),
        seconds_to_idle=reading.seconds_to_idle(found), invalidation_reason=found.invalidation_reason,
    )  # fmt: skip


async def certificate_end(url: str, timeout: float) -> datetime:
    """The expiry of the certificate that the server shows. The engine client checks whether it is trusted."""
    outside("an engine")
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
