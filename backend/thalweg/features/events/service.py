"""One subscription for each browser tab, as server-sent events."""

import asyncio
import re
from collections.abc import AsyncGenerator

import psycopg
from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError
from sse_starlette import EventSourceResponse, ServerSentEvent

from thalweg.kernel.context import Context
from thalweg.live.bus import Event
from thalweg.live.hub import RESET, EventHub, missed_events

EVENT_ID = re.compile(r"^[0-9]{1,18}-[0-9]{1,18}$")


def _sse(event: Event) -> ServerSentEvent:
    return ServerSentEvent(event.data, event=event.name, id=event.id or None)


async def _may_go_on(context: Context) -> bool:
    """Whoever subscribed may have logged out since. An outage of the store ends nothing: it is asked again later."""
    resources = context.resources
    try:
        async with resources.sessions() as session:
            return await resources.authenticator.still_valid(session, context.principal)
    except (SQLAlchemyError, psycopg.Error, OSError):
        return True


async def subscribe(context: Context, hub: EventHub, last_event_id: str | None) -> EventSourceResponse:
    resources = context.resources
    heartbeat = resources.settings.events_heartbeat

    async def events() -> AsyncGenerator[ServerSentEvent, None]:
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
            yield ServerSentEvent("{}", event="hello")
            sent = {event.id for event in missed}
            for event in missed:
                yield _sse(event)
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
                        event = await subscription.next()
                except TimeoutError:
                    continue
                if event.id and event.id in sent:
                    continue
                sent.clear()
                yield _sse(event)

    return EventSourceResponse(
        events(), ping=max(1, round(heartbeat)), headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    )
