"""Since when the oldest transaction of an error queue is parked: asked of the engine, known while a stream rests."""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, cast

import httpx
import pytest

from tests.conftest import Users
from tests.features.test_error_queue import at_rest, queue_of
from tests.features.test_streams import STREAMS
from tests.support.engine_double import EngineDouble
from tests.support.serving import eventually
from tests.test_collector import collector  # noqa: F401
from tests.test_commands import Shell, shell, with_token  # noqa: F401
from thalweg.engine_client.client import EngineClient, EngineFailure
from thalweg.kernel.clock import now
from thalweg.kernel.context import Resources
from thalweg.kernel.principal import Role
from thalweg.live.bus import Bus
from thalweg.live.schemas import Sample
from thalweg.workers.oldest_parked import ASK_EVERY, OldestParked

IDS = "stream01", "a"


@dataclass
class Parked:
    parked_at: datetime


@dataclass
class Queue:
    errors: list[Parked]


@dataclass
class Engine:
    """Answers with the transactions that are in the queue, or not at all."""

    times: list[datetime] | None
    asked: int = 0
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    async def errors(self, stream_id: str, destination: str, **page: Any) -> Queue:
        assert (stream_id, destination, page["after"], page["limit"]) == (*IDS, 0, 1)
        self.asked += 1
        await self.gate.wait()
        if self.times is None:
            raise EngineFailure("database_unreachable", "no answer", "")
        return Queue([Parked(at) for at in self.times])


def sample(count: int | None) -> Sample:
    return at_rest(*IDS, count, "ENABLED")


async def turn(known: OldestParked, engine: Engine, count: int | None, at: datetime) -> datetime | None:
    """Returns what the sample of a poll says; the answers that it asks for have come afterwards."""
    own = sample(count)
    shown = known.with_oldest(own).destinations[0].error_queue_oldest_at
    known.ask(cast(EngineClient, engine), own, at)
    for _ in range(3):
        await asyncio.sleep(0)
    return shown


async def test_the_queue_is_asked_now_and_then_and_when_it_has_become_shorter() -> None:
    first, second = now() - timedelta(hours=3), now() - timedelta(hours=1)
    known, engine, at = OldestParked(), Engine([first, second]), now()
    engine.gate.set()
    assert await turn(known, engine, 0, at) is None
    assert engine.asked == 0, "there is nothing to ask for"
    assert await turn(known, engine, 2, at) is None
    assert await turn(known, engine, 3, at) == first
    assert engine.asked == 1
    engine.times = [second]
    await turn(known, engine, 2, at)
    assert await turn(known, engine, 2, at) == second, "the first has been executed"
    engine.times = None
    await turn(known, engine, 2, at + ASK_EVERY)
    assert engine.asked == 3
    assert await turn(known, engine, 2, at + ASK_EVERY) == second, "an engine that does not answer takes nothing back"
    assert await turn(known, engine, None, at + ASK_EVERY) is None, "nothing applies now: Redis has the last"
    assert await turn(known, engine, 0, at + ASK_EVERY) is None
    assert await turn(known, engine, 1, at + ASK_EVERY) is None, "the queue was empty in between"


async def test_an_engine_that_does_not_answer_is_asked_once_and_holds_up_nobody() -> None:
    known, engine, at = OldestParked(), Engine([now()]), now()
    await turn(known, engine, 1, at)
    await turn(known, engine, 1, at + 3 * ASK_EVERY)
    assert engine.asked == 1
    await known.stop()
    engine.gate.set()
    await turn(known, engine, 1, at + 6 * ASK_EVERY)
    assert engine.asked == 2


async def test_it_stays_known_while_a_stream_rests(resources: Resources) -> None:
    bus, oldest = Bus(resources.redis), now() - timedelta(hours=3)
    parking = sample(2)
    own = parking.destinations[0].model_copy(update={"error_queue_oldest_at": oldest})
    await bus.with_last_parked([parking.model_copy(update={"destinations": [own]})])
    (rests,) = await bus.with_last_parked([at_rest(*IDS, None, "DISABLED")])
    assert rests.destinations[0].error_queue_oldest_at == oldest
    await resources.redis.hset("thalweg:parked:stream01", "a", "7")
    (rests,) = await bus.with_last_parked([at_rest(*IDS, None, "DISABLED")])
    assert (rests.destinations[0].error_queue_transactions, rests.destinations[0].error_queue_oldest_at) == (7, None)


@pytest.mark.usefixtures("collector")
async def test_the_stream_shows_it_and_so_does_the_command_line(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    users: Users,
    shell: Shell,  # noqa: F811
) -> None:
    engine.counts_parked = True
    stream, path = await queue_of(operator, registered)
    (first, *_) = (await operator.get(path)).json()["errors"]

    async def known() -> bool:
        shown = (await operator.get(f"{STREAMS}/{stream['id']}")).json()
        (destination,) = shown["destinations"]
        is_known = destination["error_queue_oldest_at"] == first["parked_at"]
        return is_known and "the oldest for" in shown["health"]["reason"]

    await eventually(known)
    run = with_token(shell, users, Role.OPERATOR)
    assert "OLDEST" in (await run("streams", "show", stream["name"])).out
    assert "the oldest for" in (await run("status")).out
