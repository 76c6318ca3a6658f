"""`thalweg-collector`: the one elected process that reconciles desired with observed state and takes live samples.

Each engine has its own loop, so that a slow one holds up no other. Losing the store, Redis or an engine is an outage
to wait out, not an end: it is logged once, shown where it can be, and what was lost in it is only live pictures.
"""

import asyncio
import signal
import time
from datetime import datetime, timedelta

import psycopg
import structlog
from pydantic import BaseModel
from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from thalweg.composition import close_resources, make_resources
from thalweg.db.election import Election
from thalweg.db.models import EngineRow
from thalweg.db.operations import begin_sent
from thalweg.engine_client.access import client_of
from thalweg.engine_client.client import EngineClient, EngineFailure
from thalweg.engine_client.desired import desired_document
from thalweg.engine_client.identity import give_identity, needs_identity, open_authority
from thalweg.history.tiers import HOURS, kept
from thalweg.kernel.clock import now
from thalweg.kernel.context import Resources
from thalweg.kernel.libpq_environment import forget_libpq_environment
from thalweg.kernel.logging import configure_logging
from thalweg.kernel.settings import Settings
from thalweg.kernel.tasks import finish, stop_task
from thalweg.live.bus import Bus, Rounds
from thalweg.live.schemas import Sample
from thalweg.workers import repository
from thalweg.workers.abandoning import abandon_streams
from thalweg.workers.advising import AdvisorWatch
from thalweg.workers.alerts.watch import AlertWatch
from thalweg.workers.backfill import backfill
from thalweg.workers.executions import ExecutionWatch
from thalweg.workers.history import HistoryWriter
from thalweg.workers.lab import LabWatch
from thalweg.workers.lags import Lags
from thalweg.workers.overdue import Untaken, end_overdue
from thalweg.workers.polling import EngineMemory, Poll, poll
from thalweg.workers.progress import operation_event
from thalweg.workers.recording import record_poll
from thalweg.workers.reports import LastSamples
from thalweg.workers.sources import Seen
from thalweg.workers.stream_recording import Memories
from thalweg.workers.survival import OUTAGES, in_brief

log = structlog.get_logger(__name__)
GAP_INTERVALS = 2.5
"""A poll that is later than so many intervals after the last one leaves a gap in history."""
IDENTITY_RETRY = timedelta(seconds=60)


class Collector:
    """Owner: this process. `run` ends when it is cancelled."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._settings = resources.settings
        self._election = Election(self._settings.store_url)
        self._bus = Bus(resources.redis)
        self._loops: dict[str, asyncio.Task[None]] = {}
        self._outages: set[str] = set()
        self._turned: dict[str, tuple[datetime, str | None]] = {}
        """When each engine's loop last recorded a poll, and why it does not any more."""
        self._unrecorded: dict[str, datetime] = {}
        """Engines of which the store takes no record, each since when: there is nothing for history then, either."""
        self._addresses: dict[str, tuple[str, str]] = {}
        self._last_samples = LastSamples()
        self._history = HistoryWriter(resources, self._history_lost)
        self._history_task: asyncio.Task[None] | None = None
        self._memories: dict[str, EngineMemory] = {}
        self._advisor = AdvisorWatch(resources)
        self._lab = LabWatch(resources)
        self._executions = ExecutionWatch(resources)
        self._seen = Seen()
        self._untaken = Untaken()
        self._remembered = Memories(Lags(self._seen), kept(HOURS, self._settings))
        self._alerts = AlertWatch(resources, self._seen, lambda events: self._publish([], events, []))

    async def run(self) -> None:
        try:
            while True:
                await self._cycle()
                await asyncio.sleep(self._settings.poll_interval)
        finally:
            await finish(self._stand_down())

    async def _cycle(self) -> None:
        """Keeps one loop for each enrolled engine while leading."""
        try:
            leading = await self._election.leads()
            if not leading:
                await self._stop_loops()
                return
            async with self._resources.sessions() as session:
                engines = {engine.id: engine for engine in await repository.all_engines(session)}
            await self._publish([], await end_overdue(self._resources, self._untaken), [])
            self._over("store")
            if not self._alerts.running:
                self._alerts.start()
        except OUTAGES as error:
            self._outage("store", error)
            await self._stop_loops()
            return
        # An engine that was enrolled anew has another token: its loop begins again with it.
        addresses = {name: (engine.url, engine.control_token_sealed) for name, engine in engines.items()}
        for engine_id in list(self._loops):
            if addresses.get(engine_id) != self._addresses.get(engine_id):
                await self._stop_loop(engine_id)
        self._addresses = addresses
        for engine_id, engine in engines.items():
            task = self._loops.get(engine_id)
            if task is None or task.done():
                if task is not None and not task.cancelled() and task.exception() is not None:
                    log.error("engine loop ended", engine=engine.name, exc_info=task.exception())
                self._turned.setdefault(engine_id, (now(), None))
                self._loops[engine_id] = asyncio.create_task(self._watch(engine), name=f"engine {engine.name}")

        if self._history_task is None or self._history_task.done():
            if self._history_task is not None and self._history_task.exception() is not None:
                log.error("history ended", exc_info=self._history_task.exception())
            self._history_task = asyncio.create_task(self._history.run(), name="history")
        await self._tell_rounds()
        self._remembered.forget_before(now())
        if not self._advisor.running:
            self._advisor.start()
        if not self._executions.running:
            self._executions.start()
        if self._settings.lab_source is not None and not self._lab.running:
            await self._lab.start()

    async def _tell_rounds(self) -> None:
        failing = [since for since in (self._history.failing_since, *self._unrecorded.values()) if since is not None]
        self._alerts.live.history_failing_since = min(failing, default=None)
        at = now()
        slowest = min(self._turned.values(), key=lambda turned: turned[0], default=(at, None))
        try:
            await self._bus.tell_rounds(
                Rounds(
                    reported_at=at, round_at=slowest[0], failure=slowest[1], history_failure=self._history.failure,
                    evaluated_at=self._alerts.evaluated_at,
                )
            )  # fmt: skip
        except (RedisError, OSError) as error:
            self._outage("redis", error)

    async def _watch(self, engine: EngineRow) -> None:
        memory = self._memories[engine.id] = EngineMemory()
        while True:
            started = time.monotonic()
            try:
                client = self._client_of(engine)
                if not await self._turn(engine.id, client, memory):
                    return
                self._turned[engine.id] = (now(), None)
                self._unrecorded.pop(engine.id, None)
                self._over(f"engine {engine.name}")
            except OUTAGES as error:
                memory.missed = True
                if isinstance(error, SQLAlchemyError | psycopg.Error):
                    self._unrecorded.setdefault(engine.id, now())
                self._turned[engine.id] = (self._turned[engine.id][0], in_brief(error))
                self._outage(f"engine {engine.name}", error)
            spent = time.monotonic() - started
            await asyncio.sleep(max(0.05, self._settings.poll_interval - spent))

    def _client_of(self, engine: EngineRow) -> EngineClient:
        return client_of(engine, self._resources.http, self._resources.secrets, self._settings.engine_timeout)

    async def _turn(self, engine_id: str, client: EngineClient, memory: EngineMemory) -> bool:
        """Poll, record, publish, reconcile. False when the engine was deleted."""
        answer = await poll(client)
        memory.note_gap(answer, GAP_INTERVALS * self._settings.poll_interval)
        losses = memory.losses
        await self._catch_up(engine_id, client, answer, memory)
        async with self._resources.sessions() as session:
            outcome = await record_poll(session, engine_id, answer, memory, self._last_samples, self._remembered, now())
            await session.commit()
        if outcome is None:
            return False
        if memory.losses == losses:
            self._offer(engine_id, memory, outcome.own_samples)
        for sample in outcome.own_samples:
            self._remembered.oldest_parked.ask(client, sample, now())
        self._alerts.live.put(outcome.samples, now())
        if answer.stats is not None:
            self._alerts.live.put_disk(engine_id, answer.stats.process)
        await self._publish(outcome.samples, outcome.events, outcome.deleted_streams)
        silent_seconds = memory.silent_seconds(answer)
        if silent_seconds > self._settings.engine_lost_after:
            events, gone = await abandon_streams(self._resources, engine_id, silent_seconds)
            await self._publish([], events, gone)
        if outcome.engine_revision is not None and outcome.engine_revision != outcome.desired_revision:
            await self._reconcile(engine_id, client)
        await self._identify(engine_id, client, answer, memory)
        return True

    async def _catch_up(self, engine_id: str, client: EngineClient, answer: Poll, memory: EngineMemory) -> None:
        """Gives history what was missed of the engine, before what `answer` tells."""
        if not memory.missed or answer.status is None or answer.restamped:
            return
        losses = memory.losses
        try:
            async with self._resources.sessions() as session:
                samples = await backfill(session, self._settings, client, engine_id, memory, answer)
        except EngineFailure as failure:
            self._outage(f"history of {engine_id}", failure)
            return
        self._over(f"history of {engine_id}")
        if memory.losses != losses:
            return
        memory.missed = False
        self._offer(engine_id, memory, samples, missed=True)
        self._alerts.live.put_missed(samples, now())

    def _offer(self, engine_id: str, memory: EngineMemory, samples: list[Sample], *, missed: bool = False) -> None:
        self._history.offer(engine_id, samples, missed=missed)
        memory.offered |= {sample.stream_id: sample.at for sample in samples}

    def _history_lost(self) -> None:
        for memory in self._memories.values():
            memory.missed = True
            memory.losses += 1
            memory.offered.clear()

    async def _publish(
        self, samples: list[Sample], events: list[tuple[str, BaseModel]], deleted_streams: list[str]
    ) -> None:
        try:
            if samples:
                shown = await self._bus.with_last_parked(samples)
                await self._bus.add_samples(shown, self._settings.samples_kept)
            if events:
                await self._bus.publish(events)
            for stream_id in deleted_streams:
                await self._bus.forget(stream_id)
            self._over("redis")
        except (RedisError, OSError) as error:
            self._outage("redis", error)

    async def _reconcile(self, engine_id: str, client: EngineClient) -> None:
        async with self._resources.sessions() as session:
            document = await desired_document(session, engine_id, self._resources)
        if document is None:
            return
        sent_at = now()
        try:
            await client.put_desired(document)
            await self._begin_sent(engine_id, document["revision"], sent_at)
            log.info("desired state sent", engine_id=engine_id, revision=document["revision"])
            self._over(f"desired state of {engine_id}")
        except EngineFailure as failure:
            self._outage(f"desired state of {engine_id}", failure)
            async with self._resources.sessions() as session:
                row = await session.get(EngineRow, engine_id)
                if row is not None:
                    row.message = f"The desired state was refused: {failure.message} {failure.cure}".strip()
                    await session.commit()

    async def _identify(self, engine_id: str, client: EngineClient, answer: Poll, memory: EngineMemory) -> None:
        """Gives the engine its identity, or a new one in time; not at every turn when that fails."""
        at = now()
        if answer.status is None or not needs_identity(answer.status.engine, engine_id, at):
            memory.identity_tried_at = None
            return
        if memory.identity_tried_at is not None and at - memory.identity_tried_at < IDENTITY_RETRY:
            return
        memory.identity_tried_at = at
        async with self._resources.sessions() as session:
            authority = await open_authority(session, self._resources.secrets)
            await session.commit()
        try:
            await give_identity(client, engine_id, authority)
            log.info("identity given", engine_id=engine_id)
            self._over(f"identity of {engine_id}")
        except EngineFailure as failure:
            self._outage(f"identity of {engine_id}", failure)

    async def _begin_sent(self, engine_id: str, revision: int, at: datetime) -> None:
        async with self._resources.sessions() as session:
            begun = await begin_sent(session, engine_id, revision, at)
            await session.commit()
        await self._publish([], [operation_event(operation, at) for operation in begun], [])

    def _outage(self, what: str, error: BaseException) -> None:
        """Logged when it begins and when it is over, not every second."""
        if what not in self._outages:
            self._outages.add(what)
            log.warning("outage", of=what, error=str(error))

    def _over(self, what: str) -> None:
        if what in self._outages:
            self._outages.discard(what)
            log.info("outage is over", of=what)

    async def _stop_loop(self, engine_id: str) -> None:
        await stop_task(self._loops.pop(engine_id))
        self._turned.pop(engine_id, None)
        self._unrecorded.pop(engine_id, None)

    async def _stop_loops(self) -> None:
        await self._lab.stop()
        await self._advisor.stop()
        await self._executions.stop()
        await self._alerts.stop()
        for engine_id in list(self._loops):
            await self._stop_loop(engine_id)
        await self._remembered.oldest_parked.stop()
        if self._history_task is not None:
            task, self._history_task = self._history_task, None
            await stop_task(task)

    async def _stand_down(self) -> None:
        await self._stop_loops()
        await self._election.resign()


async def collect(settings: Settings) -> None:
    """Until SIGTERM or SIGINT."""
    resources = make_resources(settings, "thalweg collector")
    task = asyncio.create_task(Collector(resources).run())
    asked_to_stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked_to_stop.set)
    task.add_done_callback(lambda _: asked_to_stop.set())
    log.info("collector started")
    try:
        await asked_to_stop.wait()
        ended_by_itself = task.done()
        await stop_task(task)
        if ended_by_itself:
            task.result()
    finally:
        await close_resources(resources)
        log.info("collector stopped")


def run() -> None:
    forget_libpq_environment()
    settings = Settings()
    configure_logging(settings)
    asyncio.run(collect(settings))
