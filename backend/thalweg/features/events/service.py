"""One subscription for each browser tab, as server-sent events."""

import asyncio
import re
from collections.abc import AsyncGenerator

import psycopg
from redis.asyncio import Redis
from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError
from sse_starlette import EventSourceResponse

from thalweg.kernel.context import Context
from thalweg.kernel.problems import Problem
from thalweg.live.bus import Event
from thalweg.live.hub import RESET, EventHub, missed_events

STREAMS_EACH_MAX = 40
"""Streams of one user at one process. A browser opens six at most without HTTP/2; a user may have several."""
HELLO = Event("", "hello", "{}")
EVENT_ID = re.compile(r"^[0-9]{1,18}-[0-9]{1,18}$")


async def _may_go_on(context: Context) -> bool:
    """The subscriber may have logged out since. An outage of the store ends nothing: the check is repeated later."""
    resources = context.resources
    try:
        async with resources.sessions() as session:
            return await resources.authenticator.still_valid(session, context.principal)
    except (SQLAlchemyError, psycopg.Error, OSError):
        return True


async def _replayed(redis: Redis, last_event_id: str) -> AsyncGenerator[list[Event], None]:
    if not EVENT_ID.fullmatch(last_event_id):
        yield [RESET]
        return
    try:
        async for missed in missed_events(redis, last_event_id):
            yield missed
    except (RedisError, OSError):
        yield [RESET]


async def subscribe(context: Context, hub: EventHub, last_event_id: str | None) -> EventSourceResponse:
    resources = context.resources
    heartbeat = resources.settings.events_heartbeat
    user_id = context.principal.user_id
    if hub.count_of(user_id) >= STREAMS_EACH_MAX:
        raise Problem(
            "too_many_requests", f"You have {STREAMS_EACH_MAX} event streams open already: as many as one user may.",
            "Close some: each tab of the console and each program that follows events has one. Let programs share one.",
            headers={"Retry-After": "30"},
        )  # fmt: skip

    async def events() -> AsyncGenerator[bytes, None]:
        if hub.count_of(user_id) >= STREAMS_EACH_MAX:
            return  # Others were opened at the same moment.
        with hub.subscription(user_id) as subscription:
            yield HELLO.wire
            # Subscribed first, then caught up: an event in between comes twice and is left out by its id.
            sent: set[str] = set()
            if last_event_id is not None:
                async for missed in _replayed(resources.redis, last_event_id):
                    sent.update(event.id for event in missed)
                    yield b"".join(event.wire for event in missed)
            clock = asyncio.get_running_loop()
            check_at = clock.time() + heartbeat
            while True:
                # By the clock and not by silence: a busy bus must not keep the door open.
                if clock.time() >= check_at:
                    if not await _may_go_on(context):
                        return
                    check_at = clock.time() + heartbeat
                try:
                    async with asyncio.timeout_at(check_at):
                        waiting = await subscription.take()
                except TimeoutError:
                    continue
                fresh = [event for event in waiting if not event.id or event.id not in sent]
                if fresh:
                    sent.clear()
                    yield b"".join(event.wire for event in fresh)

    return EventSourceResponse(
        events(), ping=max(1, round(heartbeat)), headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    )
