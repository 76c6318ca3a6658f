"""One subscription for each browser tab, as server-sent events."""

import re
from collections.abc import AsyncGenerator

from redis.exceptions import RedisError
from sse_starlette import EventSourceResponse, ServerSentEvent

from thalweg.kernel.context import Context
from thalweg.live.bus import Event
from thalweg.live.hub import RESET, EventHub, missed_events

HEARTBEAT_SECONDS = 15
EVENT_ID = re.compile(r"^[0-9]{1,18}-[0-9]{1,18}$")


def _sse(event: Event) -> ServerSentEvent:
    return ServerSentEvent(event.data, event=event.name, id=event.id or None)


async def subscribe(context: Context, hub: EventHub, last_event_id: str | None) -> EventSourceResponse:
    resources = context.resources

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
            while True:
                event = await subscription.next()
                if event.id and event.id in sent:
                    continue
                sent.clear()
                yield _sse(event)

    return EventSourceResponse(
        events(), ping=HEARTBEAT_SECONDS, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    )
