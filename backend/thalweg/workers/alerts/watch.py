"""The alerts' loops in the elected collector: look at sources, evaluate the rules, deliver notices, take snapshots."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import structlog
from pydantic import BaseModel

from thalweg.alerting.evaluation import evaluate
from thalweg.alerting.trend import Memory
from thalweg.kernel.clock import now
from thalweg.kernel.context import Resources
from thalweg.kernel.tasks import stop_task
from thalweg.workers.alerts import repository
from thalweg.workers.alerts.delivering import Deliveries
from thalweg.workers.alerts.facts import Live, read_facts
from thalweg.workers.alerts.recording import key_of, open_alert, read_policy, record_changes
from thalweg.workers.alerts.snapshots import Snapshots
from thalweg.workers.alerts.unstored import Unstored
from thalweg.workers.sources import Seen, SourceWatch
from thalweg.workers.survival import OUTAGES

OUTAGE_PAUSE = 1.0
FORGET_EVERY = timedelta(hours=1)
DELIVER_EVERY = 2.0
log = structlog.get_logger(__name__)

Publish = Callable[[list[tuple[str, BaseModel]]], Awaitable[None]]


class AlertWatch:
    """Owner: the collector, which starts it when it leads and stops it when it does not any more."""

    def __init__(self, resources: Resources, seen: Seen, publish: Publish) -> None:
        self._resources = resources
        self._publish = publish
        self._seen = seen
        self._sources = SourceWatch(resources, self._seen)
        self._memory = Memory()
        self._snapshots = Snapshots(resources)
        self._deliveries = Deliveries(resources)
        self._unstored = Unstored(resources)
        self._queued = asyncio.Event()
        self._forgot_at: datetime | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._failing: set[str] = set()
        self.live = Live(now())
        self.evaluated_at: datetime | None = None

    @property
    def running(self) -> bool:
        return bool(self._tasks)

    def start(self) -> None:
        self.live.watching_since = self.evaluated_at = now()
        settings = self._resources.settings
        self._begin("sources", self._sources.turn, settings.sources_interval)
        self._begin("evaluation", self._evaluate, settings.alerts_interval)
        self._begin("deliveries", self._deliveries.turn, DELIVER_EVERY)
        self._begin("snapshots", self._snapshots.turn, 0.0)

    async def stop(self) -> None:
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            await stop_task(task)
        await self._deliveries.stop()
        await self._unstored.stop()
        await self._sources.stop()

    def _begin(self, what: str, turn: Callable[[], Coroutine[Any, Any, None]], seconds: float) -> None:
        self._tasks.append(asyncio.create_task(self._again(what, turn, seconds), name=f"alerts: {what}"))

    async def _again(self, what: str, turn: Callable[[], Coroutine[Any, Any, None]], seconds: float) -> None:
        """For ever. An outage of the store is waited out; it says nothing about what went on meanwhile."""
        while True:
            try:
                await turn()
                if what in self._failing:
                    self._failing.discard(what)
                    log.info("alerts go on", part=what)
            except OUTAGES as error:
                self.live.watching_since = now()
                await asyncio.sleep(OUTAGE_PAUSE)
                if what not in self._failing:
                    self._failing.add(what)
                    log.warning("alerts pause", part=what, error=str(error))
            except Exception:
                # A mistake in one part must not end alerting as a whole, and is not silent either.
                log.exception("alerts: an evaluation has failed", part=what)
            if what == "deliveries":
                await self._wait_for_notices(seconds)
            else:
                await asyncio.sleep(seconds)

    async def _wait_for_notices(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._queued.wait()
        except TimeoutError:
            pass
        self._queued.clear()

    async def _evaluate(self) -> None:
        at = now()
        unstored: Callable[[], None] | None = None
        try:
            async with self._resources.sessions() as session:
                facts = await read_facts(session, self.live, self._seen, self._resources.settings, at)
                policy = await read_policy(session, at)
                rows = {key_of(row): row for row in await repository.open_alerts(session)}
                self._unstored.remember(await repository.enabled_channels(session))
                alerts = self._unstored.beside({key: open_alert(row) for key, row in rows.items()})
                changes = evaluate(facts, self._memory, policy, alerts)
                unstored = partial(
                    self._unstored.keep, self._unstored.about_to_fire(rows, changes), changes, policy, at
                )
                self._unstored.put_back(session, rows)
                recorded = await record_changes(session, rows, changes, policy, at)
                if self._forgot_at is None or at - self._forgot_at >= FORGET_EVERY:
                    await repository.forget_resolved(
                        session, at - timedelta(days=self._resources.settings.alerts_kept_days)
                    )
                await session.commit()
        except OUTAGES:
            if unstored is not None:
                unstored()
            raise
        self._unstored.stored()
        self.evaluated_at = at
        if self._forgot_at is None or at - self._forgot_at >= FORGET_EVERY:
            self._forgot_at = at
        for row in recorded.fired:
            log.info("alert fires", rule=row.rule, subject=row.subject_name)
        self._snapshots.want(recorded.fired)
        if recorded.queued:
            self._queued.set()
        if recorded.events:
            await self._publish([*recorded.events])
