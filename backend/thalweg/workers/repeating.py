"""A look that the collector repeats in a task of its own while it leads."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

import structlog

from thalweg.kernel.clock import now
from thalweg.kernel.tasks import stop_task
from thalweg.workers.survival import OUTAGES

log = structlog.get_logger(__name__)


class Repeating:
    """Owner: the collector. An outage is waited out, and logged when it begins; `turn` gets the time."""

    def __init__(self, name: str, turn: Callable[[datetime], Awaitable[None]], every_seconds: float) -> None:
        self._name, self._turn, self._every_seconds = name, turn, every_seconds
        self._task: asyncio.Task[None] | None = None
        self._down = False

    @property
    def running(self) -> bool:
        return self._task is not None and not self._task.done()

    def start(self) -> None:
        if self._task is not None and not self._task.cancelled() and self._task.exception() is not None:
            log.error(f"{self._name} ended", exc_info=self._task.exception())
        self._task = asyncio.create_task(self._run(), name=self._name)

    async def stop(self) -> None:
        if self._task is not None:
            task, self._task = self._task, None
            await stop_task(task)

    async def _run(self) -> None:
        while True:
            try:
                await self._turn(now())
                self._down = False
            except OUTAGES as error:
                if not self._down:
                    log.warning(f"{self._name} pauses", error=str(error))
                self._down = True
            await asyncio.sleep(self._every_seconds)
