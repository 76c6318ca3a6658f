"""An allowance for each user of what all users have little of."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from thalweg.kernel.problems import Problem

AT_ONCE = 3
WAITING_MAX = 30
"""A page of the console asks for several charts at once; a user may have several pages."""


@dataclass
class _Allowance:
    free: asyncio.Semaphore
    present: int = 0


class Turns:
    """One event loop. So many requests of a user go on at once, and so many wait behind them."""

    def __init__(self, at_once: int = AT_ONCE, waiting_max: int = WAITING_MAX) -> None:
        self._at_once, self._waiting_max = at_once, waiting_max
        self._allowances: dict[str, _Allowance] = {}

    @asynccontextmanager
    async def of(self, user_id: str) -> AsyncGenerator[None, None]:
        """Raises too_many_requests. A caller that waits here should hold nothing that others need."""
        allowance = self._allowances.setdefault(user_id, _Allowance(asyncio.Semaphore(self._at_once)))
        if allowance.present >= self._at_once + self._waiting_max:
            raise Problem(
                "too_many_requests", f"{allowance.present} such requests of yours are under way already.",
                "Wait for their answers. Let programs send one after another.", headers={"Retry-After": "2"},
            )  # fmt: skip
        allowance.present += 1
        try:
            async with allowance.free:
                yield
        finally:
            allowance.present -= 1
            if allowance.present == 0:
                del self._allowances[user_id]
