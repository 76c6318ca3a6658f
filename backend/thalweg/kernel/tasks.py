"""Ending background tasks for sure."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

ASK_AGAIN_SECONDS = 0.5


async def stop_task(task: asyncio.Task[None]) -> None:
    """Cancels until it has ended: a cancellation that meets a client library's own time-out can get lost in it.

    The error with which the task ended is not raised again.
    """
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=ASK_AGAIN_SECONDS)


async def finish(work: Coroutine[Any, Any, None]) -> None:
    """Does what must be done before a task ends. `stop_task` cancels again while it waits, which must not leave half of
    it undone: the caller's cancellation goes on afterwards.
    """
    task = asyncio.create_task(work)
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait({task})
    task.result()
