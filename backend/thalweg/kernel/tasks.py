"""Ending background tasks for sure."""

import asyncio

ASK_AGAIN_SECONDS = 0.5


async def stop_task(task: asyncio.Task[None]) -> None:
    """Cancels until it has ended: a cancellation that meets a client library's own time-out can get lost in it.

    What the task ended with is not raised again.
    """
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=ASK_AGAIN_SECONDS)
