"""One subscription for each browser tab, as server-sent events."""

import asyncio
import re
from collections.abc import AsyncGenerator

import psycopg
from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError
from sse_starlette import EventSourceResponse

from thalweg.kernel.context import Context
from thalweg.live.bus import Event
from thalweg.live.hub import RESET, EventHub, missed_events

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


async def subscribe(context: Context, hub: EventHub, last_event_id: str | None) -> EventSourceResponse:
    resources = context.resources
    heartbeat = resources.settings.events_heartbeat

    async def events() -> AsyncGenerator[bytes, None]:
        with hub.subscription() as subscription:
            # Subscribed first, then caught up: an event in between comes twice and is left out by its id.
            missed: list[Event] = []
            if last_event_id is not None:
                missed = [RESET]
                if EVENT_ID.fullmatch(last_event_id):
                    try:
                        missed = await missed_events(resources.redis, last_event_id)
                    except (RedisError, OSError):
                        missed = [RESET]
            yield HELLO.wire
            sent = {event.id for event in missed}
            if missed:
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
