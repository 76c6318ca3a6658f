"""The elected collector's part of the advisor: runs of schedules, second snapshots of cures, the retention."""

from datetime import datetime, timedelta

import structlog

from thalweg.db.models import AdvisorScheduleRow
from thalweg.features.advisor import repository
from thalweg.features.advisor.cures import measure
from thalweg.features.advisor.gathering import Span
from thalweg.features.advisor.schemas import RunReason, RunScope
from thalweg.features.advisor.taking import RunRequest, keep_run, take_run
from thalweg.kernel.context import Resources
from thalweg.workers.curing import CureWorker
from thalweg.workers.repeating import Repeating

log = structlog.get_logger(__name__)
RETENTION_EVERY = timedelta(minutes=10)


class AdvisorWatch:
    """Owner: the collector. Runs while that leads; reading databases for a run holds up no poll."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._cures = CureWorker(resources)
        self._repeating = Repeating("advisor", self.turn, resources.settings.poll_interval)
        self._retained_at: datetime | None = None

    @property
    def running(self) -> bool:
        return self._repeating.running

    def start(self) -> None:
        self._repeating.start()

    async def stop(self) -> None:
        await self._repeating.stop()
        await self._cures.stop()

    async def turn(self, at: datetime) -> None:
        """One look at what is due."""
        async with self._resources.sessions() as session:
            due = [row.id for row in await repository.due_schedules(session, at)]
            cures = [row.id for row in await repository.due_cures(session, at)]
        await self._cures.turn()
        for schedule_id in due:
            await self._take_scheduled(schedule_id, at)
        for cure_id in cures:
            await self._measure(cure_id, at)
        if self._retained_at is None or at - self._retained_at >= RETENTION_EVERY:
            await self._retain(at)
            self._retained_at = at

    async def _take_scheduled(self, schedule_id: str, at: datetime) -> None:
        async with self._resources.sessions() as session:
            row = await session.get(AdvisorScheduleRow, schedule_id)
            if row is None or not row.enabled or row.next_at > at:
                return
            scope = RunScope(stream_id=row.stream_id, component_id=None, window_seconds=row.window_seconds)
            request = RunRequest(
                scope, Span(seconds=row.window_seconds), RunReason.SCHEDULE, "schedule", detail=row.name
            )
            run = await take_run(session, self._resources, request)
            row = await session.get(AdvisorScheduleRow, schedule_id, with_for_update=True, populate_existing=True)
            if row is None:
                return
            await keep_run(session, run)
            row.last_at, row.last_run_id = at, run.id
            # Runs that were missed while no collector led are not made up for.
            row.next_at = max(row.next_at + timedelta(seconds=row.interval_seconds), at)
            await session.commit()

    async def _measure(self, cure_id: int, at: datetime) -> None:
        async with self._resources.sessions() as session:
            await measure(session, self._resources, cure_id, at)
            await session.commit()

    async def _retain(self, at: datetime) -> None:
        async with self._resources.sessions() as session:
            policy = await repository.policy(session)
            gone = await repository.remove_outdated(
                session, at - timedelta(days=policy.retention_days), policy.runs_max
            )
            await session.commit()
        if gone:
            log.info("advisor runs removed", count=gone)
