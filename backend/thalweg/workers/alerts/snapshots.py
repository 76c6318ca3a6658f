"""An alert that fires takes an advisor run of its stream: what went on when it began is kept."""

import asyncio
from datetime import datetime, timedelta

import structlog

from thalweg.alerting.catalogue import RULES, AlertRuleId
from thalweg.db.models import AlertRow, StreamRow
from thalweg.features.advisor.gathering import Span
from thalweg.features.advisor.schemas import RunReason, RunScope
from thalweg.features.advisor.taking import RunRequest, keep_run, take_run
from thalweg.kernel.context import Resources

WINDOW_SECONDS = 60
# One cause often fires several alerts of a stream: one run tells of all of them.
AGAIN_AFTER = timedelta(seconds=60)
WAITING_MAX = 100
log = structlog.get_logger(__name__)


class Snapshots:
    """Owner: the collector. Taking one may wait for databases, so it holds up no evaluation."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._waiting: asyncio.Queue[int] = asyncio.Queue(WAITING_MAX)
        self._last: dict[str, tuple[datetime, int]] = {}

    def want(self, fired: list[AlertRow]) -> None:
        for row in fired:
            if row.stream_id is None:
                continue
            try:
                self._waiting.put_nowait(row.id)
            except asyncio.QueueFull:
                log.warning("no advisor run for an alert: too many wait", alert=row.id)

    async def turn(self) -> None:
        """Waits for the next alert and takes its run."""
        alert_id = await self._waiting.get()
        async with self._resources.sessions() as session:
            row = await session.get(AlertRow, alert_id)
            if row is None or row.stream_id is None or row.fired_at is None:
                return
            if await session.get(StreamRow, row.stream_id) is None:
                return
            taken_at, run_id = self._last.get(row.stream_id, (None, None))
            if taken_at is None or row.fired_at - taken_at >= AGAIN_AFTER:
                request = RunRequest(
                    RunScope(stream_id=row.stream_id, component_id=None, window_seconds=WINDOW_SECONDS),
                    Span(seconds=WINDOW_SECONDS), RunReason.ALERT, "alert", detail=RULES[AlertRuleId(row.rule)].title,
                )  # fmt: skip
                run = await take_run(session, self._resources, request)
                run_id = (await keep_run(session, run)).id
                self._last[row.stream_id] = (row.fired_at, run_id)
            row.run_id = run_id
            await session.commit()
        self._last = {name: last for name, last in self._last.items() if row.fired_at - last[0] < AGAIN_AFTER}
