"""The live bus in Redis: samples of each stream and the events of all, both capped streams.

Events are a Redis stream and not pub/sub: a browser that reconnects reads on from its Last-Event-ID.
Losing Redis loses live pictures for its outage, never configuration or data: callers get RedisError.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field
from redis.asyncio import Redis

from thalweg.kernel.lifecycle import ObservedStatus
from thalweg.kernel.outside import outside
from thalweg.kernel.sums import known_sum
from thalweg.live.former_names import with_todays_names
from thalweg.live.schemas import DestinationSample, Sample

EVENTS_KEY = "thalweg:events"
EVENTS_KEPT = 5000
ROUNDS_KEY = "thalweg:rounds"
SAMPLES_EXPIRE_SECONDS = 7200
RATES_KEPT = 120
"""Points of the small charts beside streams."""
PARSED_KEPT = 512

Entries = list[tuple[bytes, dict[bytes, bytes]]]
"""The answer of Redis' protocol 2 for a stream: (id, fields) pairs."""


def samples_key(stream_id: str) -> str:
    return f"thalweg:samples:{stream_id}"


def rates_key(stream_id: str) -> str:
    return f"thalweg:rates:{stream_id}"


def parked_key(stream_id: str) -> str:
    return f"thalweg:parked:{stream_id}"


@lru_cache(maxsize=PARSED_KEPT)
def _parsed(document: bytes) -> Sample:
    """The latest sample of a stream is asked for by every tab: it is read once. Nobody may change it."""
    return Sample.model_validate_json(with_todays_names(document))


class Rounds(BaseModel):
    """The collector's work, as it tells of it: who has no login reads it, so it names neither addresses nor values."""

    model_config = ConfigDict(populate_by_name=True)

    reported_at: datetime = Field(alias="told_at")
    """The name within the document is the one that collectors and APIs of earlier versions know."""
    round_at: datetime
    """When the slowest of its loops last recorded what it had gathered."""
    failure: str | None = None
    """Why that one records nothing, in words."""
    evaluated_at: datetime | None = None
    """When the alert rules were last evaluated, and the store took what that found; at first, when their watch began.
    None: the collector is of an earlier version."""
    history_failure: str | None = None
    """Why the store takes no samples, in words. None: it does."""


@dataclass(frozen=True)
class Event:
    """`id` is the Redis stream's: it grows, and resumes."""

    id: str
    name: str
    data: str

    @cached_property
    def wire(self) -> bytes:
        """The server-sent event. Made once for all tabs: encoding it for each of them was most of their cost."""
        identifier = f"id: {self.id}\r\n" if self.id else ""
        return f"{identifier}event: {self.name}\r\ndata: {self.data}\r\n\r\n".encode()


class Bus:
    """Shares the process's Redis client. Thread-safe: no; one event loop."""

    def __init__(self, redis: Redis) -> None:
        self._client = redis

    @property
    def _redis(self) -> Redis:
        outside("Redis")
        return self._client

    async def publish(self, events: Iterable[tuple[str, BaseModel]]) -> None:
        """(name, data) pairs, in order, in one round trip."""
        pipeline = self._redis.pipeline(transaction=False)
        for name, data in events:
            fields = {"name": name, "data": data.model_dump_json(by_alias=True)}
            pipeline.xadd(EVENTS_KEY, cast(Any, fields), maxlen=EVENTS_KEPT, approximate=True)
        await pipeline.execute()

    async def tell_rounds(self, rounds: Rounds) -> None:
        """The collector tells it all the time. It does not expire: its age is what /readyz is asked for."""
        await self._redis.set(ROUNDS_KEY, rounds.model_dump_json(by_alias=True))

    async def rounds(self) -> Rounds | None:
        stored = await self._redis.get(ROUNDS_KEY)
        return None if stored is None else Rounds.model_validate_json(stored)

    async def add_samples(self, samples: list[Sample], kept: int) -> None:
        pipeline = self._redis.pipeline(transaction=False)
        for sample in samples:
            key, text = samples_key(sample.stream_id), sample.model_dump_json(by_alias=True)
            pipeline.xadd(key, cast(Any, {"data": text}), maxlen=kept, approximate=True)
            pipeline.expire(key, SAMPLES_EXPIRE_SECONDS)
            rate = "" if sample.lcrs_per_second is None else sample.lcrs_per_second
            pipeline.lpush(rates_key(sample.stream_id), f"{round(sample.at.timestamp() * 1000)} {rate}")
            pipeline.ltrim(rates_key(sample.stream_id), 0, RATES_KEPT - 1)
            pipeline.expire(rates_key(sample.stream_id), SAMPLES_EXPIRE_SECONDS)
            pipeline.xadd(
                EVENTS_KEY,
                cast(Any, {"name": "stream.sample", "data": text}),
                maxlen=EVENTS_KEPT,
                approximate=True,
            )
        await pipeline.execute()

    async def with_last_parked(self, samples: list[Sample]) -> list[Sample]:
        """The samples with the last known numbers of parked transactions where destinations have stopped or are paused:
        nothing parks more of them, and whoever works through them tells `forget_parked`."""
        pipeline = self._redis.pipeline(transaction=False)
        for sample in samples:
            known = {
                own.destination_id: _parked_text(own)
                for own in sample.destinations
                if own.error_queue_transactions is not None
            }
            if known:
                pipeline.hset(parked_key(sample.stream_id), mapping=cast(Any, known))
            for own in sample.destinations:
                if own.status == ObservedStatus.DROPPED:
                    pipeline.hdel(parked_key(sample.stream_id), own.destination_id)
        asked = [sample for sample in samples if any(_rests_unknown(own) for own in sample.destinations)]
        for sample in asked:
            pipeline.hgetall(parked_key(sample.stream_id))
        answers: list[Any] = await pipeline.execute()
        found = answers[len(answers) - len(asked) :]
        last = {sample.stream_id: answer for sample, answer in zip(asked, found, strict=True)}
        return [_with_parked(sample, last.get(sample.stream_id, {})) for sample in samples]

    async def forget_parked(self, stream_id: str, destination_id: str) -> None:
        await self._redis.hdel(parked_key(stream_id), destination_id)

    async def latest_samples(self, stream_ids: list[str]) -> dict[str, Sample]:
        pipeline = self._redis.pipeline(transaction=False)
        for stream_id in stream_ids:
            pipeline.xrevrange(samples_key(stream_id), count=1)
        answers: list[Entries] = await pipeline.execute()
        return {
            stream_id: _parsed(entries[0][1][b"data"])
            for stream_id, entries in zip(stream_ids, answers, strict=True)
            if entries
        }

    async def recent_documents(self, stream_id: str, seconds: int) -> list[bytes]:
        """Samples as JSON, oldest first."""
        since = int((time.time() - seconds) * 1000)
        entries = cast(Entries, await self._redis.xrange(samples_key(stream_id), min=str(since)))
        return [with_todays_names(fields[b"data"]) for _, fields in entries]

    async def recent_samples(self, stream_id: str, seconds: int) -> list[Sample]:
        return [Sample.model_validate_json(document) for document in await self.recent_documents(stream_id, seconds)]

    async def recent_rates(self, stream_ids: list[str]) -> dict[str, list[tuple[int, float | None]]]:
        """(milliseconds since 1970, LCRs a second) of the last RATES_KEPT samples, oldest first."""
        pipeline = self._redis.pipeline(transaction=False)
        for stream_id in stream_ids:
            pipeline.lrange(rates_key(stream_id), 0, -1)
        answers: list[list[bytes]] = await pipeline.execute()
        return {
            stream_id: [_point(entry) for entry in reversed(entries)]
            for stream_id, entries in zip(stream_ids, answers, strict=True)
        }

    async def forget(self, stream_id: str) -> None:
        await self._redis.delete(samples_key(stream_id), rates_key(stream_id), parked_key(stream_id))

    async def last_event_id(self) -> str:
        entries = cast(Entries, await self._redis.xrevrange(EVENTS_KEY, count=1))
        return entries[0][0].decode() if entries else "0-0"

    async def oldest_event_id(self) -> str | None:
        entries = cast(Entries, await self._redis.xrange(EVENTS_KEY, count=1))
        return entries[0][0].decode() if entries else None

    async def events_after(self, event_id: str, block_milliseconds: int | None, count: int = 1000) -> list[Event]:
        """Waits up to the given time for the first; None does not wait."""
        answer = await self._redis.xread({EVENTS_KEY: event_id}, count=count, block=block_milliseconds)
        streams = cast("list[tuple[bytes, Entries]]", answer or [])
        return [_event(identifier, fields) for _, entries in streams for identifier, fields in entries]


def _rests_unknown(own: DestinationSample) -> bool:
    return own.error_queue_transactions is None and own.status in (ObservedStatus.DISABLED, ObservedStatus.ABORTED)


def _parked_text(own: DestinationSample) -> str:
    oldest = own.error_queue_oldest_at
    return f"{own.error_queue_transactions} {oldest.isoformat() if oldest is not None else ''}"


def _parked_of(text: bytes) -> dict[str, object]:
    """Reads what `_parked_text` wrote, and the number alone, which earlier versions wrote."""
    count, _, oldest = text.decode().partition(" ")
    return {
        "error_queue_transactions": int(count),
        "error_queue_oldest_at": datetime.fromisoformat(oldest) if oldest else None,
    }


def _with_parked(sample: Sample, last: dict[bytes, bytes]) -> Sample:
    if not last:
        return sample
    destinations = []
    for own in sample.destinations:
        known = last.get(own.destination_id.encode()) if _rests_unknown(own) else None
        destinations.append(own.model_copy(update={} if known is None else _parked_of(known)))
    parked = known_sum([own.error_queue_transactions for own in destinations])
    return sample.model_copy(update={"destinations": destinations, "error_queue_transactions": parked})


def _event(identifier: bytes, fields: dict[bytes, bytes]) -> Event:
    name, data = fields[b"name"], fields[b"data"]
    current = with_todays_names(data) if name == b"stream.sample" else data
    return Event(identifier.decode(), name.decode(), current.decode())


def _point(entry: bytes) -> tuple[int, float | None]:
    at, _, rate = entry.partition(b" ")
    return int(at), float(rate) if rate else None
