"""A user's allowance of requests that keep a connection to the store."""

import asyncio
from typing import Any

import httpx
import pytest

from tests.features.test_streams import STREAMS, created
from tests.support.engine_double import EngineDouble
from tests.support.serving import eventually
from thalweg.features.history import service
from thalweg.kernel import turns
from thalweg.kernel.problems import Problem
from thalweg.kernel.turns import Turns


async def test_some_go_on_some_wait_and_the_rest_are_refused() -> None:
    turns, end, going_on = Turns(at_once=2, waiting_max=1), asyncio.Event(), []

    async def ask(user: str) -> None:
        async with turns.of(user):
            going_on.append(user)
            await end.wait()

    asked = [asyncio.create_task(ask("ann")) for _ in range(4)] + [asyncio.create_task(ask("ben"))]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert sorted(going_on) == ["ann", "ann", "ben"]
    with pytest.raises(Problem) as refused:
        await asked[3]
    assert (refused.value.code, refused.value.headers) == ("too_many_requests", {"Retry-After": "2"})
    end.set()
    await asyncio.gather(*asked[:3], asked[4])
    assert going_on.count("ann") == 3
    await ask("ann")
    assert turns._allowances == {}


async def test_one_users_charts_keep_nobody_from_the_store(
    operator: httpx.AsyncClient, viewer: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    path = f"{STREAMS}/{(await created(operator, registered))['id']}"
    began, end, real = 0, asyncio.Event(), service.chart

    async def slow(*arguments: Any) -> Any:
        nonlocal began
        began += 1
        await end.wait()
        return await real(*arguments)

    async def answered() -> bool:
        done = sum(request.done() for request in asked)
        return done == 60 - turns.AT_ONCE - turns.WAITING_MAX and began >= turns.AT_ONCE

    monkeypatch.setattr(service, "chart", slow)
    asked = [asyncio.create_task(viewer.get(f"{path}/history")) for _ in range(60)]
    try:
        await eventually(answered)
        assert (await operator.get(path)).status_code == 200
        assert began == turns.AT_ONCE
    finally:
        end.set()
    answers = [await request for request in asked]
    refused = [answer for answer in answers if answer.status_code != 200]
    assert len(refused) == 60 - turns.AT_ONCE - turns.WAITING_MAX
    assert {(answer.status_code, answer.headers["retry-after"]) for answer in refused} == {(429, "2")}
