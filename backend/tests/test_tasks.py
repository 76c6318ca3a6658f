"""Background tasks end for sure, and what must be done before is done."""

import asyncio

import pytest

from thalweg.kernel import tasks
from thalweg.kernel.tasks import finish, stop_task


async def test_the_last_things_are_done_however_often_it_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "ASK_AGAIN_SECONDS", 0.01)
    done: list[str] = []

    async def last_things() -> None:
        await asyncio.sleep(0.2)
        done.append("connection closed")

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await finish(last_things())

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    await stop_task(task)
    assert done == ["connection closed"]
    assert task.cancelled()


async def test_their_failure_is_the_task_s() -> None:
    async def fails() -> None:
        raise OSError("no such host")

    with pytest.raises(OSError, match="no such host"):
        await finish(fails())
