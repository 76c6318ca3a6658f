"""Slow questions that many ask at once."""

import asyncio

import pytest

from thalweg.kernel.recent import REUSED_SECONDS, Recent


class Asked:
    """A question that takes `takes` seconds of the clock that it moves."""

    def __init__(self, takes: float = 0.0) -> None:
        self.now, self.takes, self.times = 0.0, takes, 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.recent = Recent(lambda: self.now)

    async def __call__(self) -> int:
        self.times += 1
        mine = self.times
        await self.gate.wait()
        self.now += self.takes
        return mine


async def test_an_answer_is_shared_and_reused_for_a_while() -> None:
    asked = Asked()
    asked.gate.clear()
    waiting = [asyncio.create_task(asked.recent.of("a", asked)) for _ in range(5)]
    await asyncio.sleep(0)
    asked.gate.set()
    assert await asyncio.gather(*waiting) == [1] * 5
    asked.now += REUSED_SECONDS - 0.1
    assert await asked.recent.of("a", asked) == 1
    assert await asked.recent.of("b", asked) == 2, "another question"
    asked.now += 0.2
    assert await asked.recent.of("a", asked) == 3


async def test_a_long_question_is_asked_less_often() -> None:
    asked = Asked(takes=3.0)
    await asked.recent.of("a", asked)
    asked.now += 11
    assert await asked.recent.of("a", asked) == 1
    asked.now += 2
    assert await asked.recent.of("a", asked) == 2


async def test_an_answer_that_is_asked_anew_is_the_others_too() -> None:
    asked = Asked()
    await asked.recent.of("a", asked)
    assert await asked.recent.of("a", asked, anew=True) == 2
    assert await asked.recent.of("a", asked) == 2


async def test_a_caller_that_leaves_takes_nothing_from_the_others() -> None:
    asked = Asked()
    asked.gate.clear()
    leaves = asyncio.create_task(asked.recent.of("a", asked))
    stays = asyncio.create_task(asked.recent.of("a", asked))
    await asyncio.sleep(0)
    leaves.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaves
    asked.gate.set()
    assert (await stays, asked.times) == (1, 1)
