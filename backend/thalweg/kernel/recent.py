"""Answers to slow questions, shared by all that ask within a while."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar

REUSED_SECONDS = 5.0
REUSED_TIMES = 4
"""An answer is reused for this many times as long as asking took: at most a fifth of the time goes into asking."""

V = TypeVar("V")


@dataclass
class _Answer:
    task: asyncio.Task[Any]
    until: float | None = None
    """Reused so long, by the monotonic clock. None: it is still awaited, by all that ask meanwhile."""


class Recent:
    """One event loop. An error is an answer too: whoever asks has to put up with it as long."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._answers: dict[Hashable, _Answer] = {}

    async def of(self, key: Hashable, ask: Callable[[], Awaitable[V]], *, anew: bool = False) -> V:
        """The answer of a while ago, else `ask`'s. `anew`: always `ask`'s, for the others too."""
        moment = self._clock()
        for other in [
            key for key, answer in self._answers.items() if answer.until is not None and answer.until <= moment
        ]:
            del self._answers[other]
        answer = self._answers.get(key)
        if answer is None or anew:
            answer = self._answers[key] = _Answer(asyncio.create_task(self._ask(key, ask)))
        # A caller that leaves takes nothing from the others.
        result: V = await asyncio.shield(answer.task)
        return result

    async def _ask(self, key: Hashable, ask: Callable[[], Awaitable[V]]) -> V:
        began = self._clock()
        task = asyncio.current_task()
        try:
            return await ask()
        finally:
            ended = self._clock()
            answer = self._answers.get(key)
            if answer is not None and answer.task is task:
                answer.until = ended + max(REUSED_SECONDS, REUSED_TIMES * (ended - began))
