"""Fans the bus's events out to this process's subscribers: one reader of Redis for all browser tabs.

Losing Redis ends nothing: subscribers hear nothing until it is back, then `reset`, which tells them to read afresh.
"""

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from thalweg.kernel.tasks import stop_task
from thalweg.live.bus import Bus, Event

QUEUE_MAX = 1000
REPLAYED_MAX = 1000
"""Missed events that are sent again: a tab that missed more reads afresh, which costs less."""
REPLAY_PART = 100
BLOCK_MILLISECONDS = 2000
RETRY_SECONDS = 1.0
RESET = Event("", "reset", "{}")
log = structlog.get_logger(__name__)


class Subscription:
    """One browser tab. A tab that does not keep up loses events, and is told so by `reset`."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Event] = asyncio.Queue(QUEUE_MAX)
        self._overflown = False

    def offer(self, event: Event) -> None:
        if self._overflown:
            return
        try:
            self._queue.put_nowait(event)
        except asyncio.QueueFull:
            self._overflown = True

    async def take(self) -> list[Event]:
        """All that wait, in order; waits for the first."""
        if self._overflown and self._queue.empty():
            self._overflown = False
            return [RESET]
        events = [await self._queue.get()]
        while not self._queue.empty():
            events.append(self._queue.get_nowait())
        return events


class EventHub:
    """Owner: the application's lifespan, which runs `run()` as a task. One event loop."""

    def __init__(self, redis: Redis) -> None:
        self._bus = Bus(redis)
        self._subscriptions: dict[Subscription, str] = {}

    def count_of(self, user_id: str) -> int:
        return sum(owner == user_id for owner in self._subscriptions.values())

    @contextmanager
    def subscription(self, user_id: str) -> Generator[Subscription, None, None]:
        subscription = Subscription()
        self._subscriptions[subscription] = user_id
        try:
            yield subscription
        finally:
            del self._subscriptions[subscription]

    async def run(self) -> None:
        last: str | None = None
        reachable = True
        while True:
            try:
                if last is None:
                    last = await self._bus.last_event_id()
                    if not reachable:
                        log.info("redis is back")
                        reachable = True
                        self._offer(RESET)
                for event in await self._bus.events_after(last, BLOCK_MILLISECONDS):
                    last = event.id
                    self._offer(event)
            except (RedisError, OSError) as error:
                if reachable:
                    log.warning("redis cannot be reached: live events pause", error=str(error))
                reachable, last = False, None
                await asyncio.sleep(RETRY_SECONDS)

    def _offer(self, event: Event) -> None:
        for subscription in self._subscriptions:
            subscription.offer(event)


async def missed_events(redis: Redis, last_event_id: str) -> AsyncGenerator[list[Event], None]:
    """Events after one that a browser has seen, in parts. Instead of those that are no longer kept, or of too many,
    comes `reset`."""
    bus = Bus(redis)
    oldest = await bus.oldest_event_id()
    if oldest is None or _number(last_event_id) < _number(oldest):
        yield [RESET]
        return
    for _ in range(REPLAYED_MAX // REPLAY_PART):
        events = await bus.events_after(last_event_id, None, REPLAY_PART)
        if events:
            yield events
            last_event_id = events[-1].id
        if len(events) < REPLAY_PART:
            return
    if await bus.events_after(last_event_id, None, 1):
        yield [RESET]


def _number(event_id: str) -> tuple[int, int]:
    milliseconds, _, sequence = event_id.partition("-")
    return int(milliseconds), int(sequence or 0)


@asynccontextmanager
async def running(hub: EventHub) -> AsyncGenerator[None, None]:
    task = asyncio.create_task(hub.run(), name="event hub")
    try:
        yield
    finally:
        await stop_task(task)
