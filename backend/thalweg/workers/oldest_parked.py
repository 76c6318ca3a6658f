"""Since when the oldest transaction of each error queue is parked. Engines report only the number at every poll: the
queue itself is asked for its first transaction now and then, where it has any."""

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from thalweg.engine_client.client import EngineClient, EngineFailure
from thalweg.kernel.tasks import stop_task
from thalweg.live.schemas import DestinationSample, Sample

ASK_EVERY = timedelta(seconds=30)
FORGET_AFTER = timedelta(minutes=10)
"""Beyond any pause between two samples of a stream that runs."""
log = structlog.get_logger(__name__)
Key = tuple[str, str]
"""A stream and its destination."""


@dataclass
class _Queue:
    seen_at: datetime
    parked: int
    asked_at: datetime | None = None
    """None: it must be asked now."""
    oldest_at: datetime | None = None


class OldestParked:
    """Owner: the collector. `ask` waits for no engine: what it finds is in the samples after the answer."""

    def __init__(self) -> None:
        self._queues: dict[Key, _Queue] = {}
        self._asking: dict[Key, asyncio.Task[None]] = {}

    def with_oldest(self, sample: Sample) -> Sample:
        destinations = [self._with_oldest(sample, destination) for destination in sample.destinations]
        return sample.model_copy(update={"destinations": destinations})

    def ask(self, client: EngineClient, own_sample: Sample, at: datetime) -> None:
        """Asks the engine for those of the queues that it works on, as its own sample says."""
        for destination in own_sample.destinations:
            key = own_sample.stream_id, destination.destination_id
            queue = self._queues.get(key)
            if not destination.error_queue_transactions or queue is None or key in self._asking:
                continue
            if queue.asked_at is None or at - queue.asked_at >= ASK_EVERY:
                queue.asked_at = at
                self._asking[key] = asyncio.create_task(self._find(client, key, queue), name=f"oldest of {key}")

    def forget_before(self, at: datetime) -> None:
        self._queues = {key: queue for key, queue in self._queues.items() if at - queue.seen_at <= FORGET_AFTER}

    async def stop(self) -> None:
        for task in list(self._asking.values()):
            await stop_task(task)
        self._asking.clear()

    def _with_oldest(self, sample: Sample, destination: DestinationSample) -> DestinationSample:
        parked = destination.error_queue_transactions
        if parked is None:
            return destination  # nothing applies now
        key = sample.stream_id, destination.destination_id
        if parked == 0:
            self._queues.pop(key, None)
            return destination
        queue = self._queues.setdefault(key, _Queue(sample.at, parked))
        if parked < queue.parked:
            queue.asked_at = None  # The oldest may be among those that have left the queue.
        queue.seen_at, queue.parked = sample.at, parked
        return destination.model_copy(update={"error_queue_oldest_at": queue.oldest_at})

    async def _find(self, client: EngineClient, key: Key, queue: _Queue) -> None:
        try:
            first = await client.errors(*key, after=0, limit=1, roots_only=False)
        except EngineFailure as failure:
            log.info("an error queue cannot be read", stream=key[0], destination=key[1], error=failure.message)
        else:
            queue.oldest_at = first.errors[0].parked_at if first.errors else None
        finally:
            self._asking.pop(key, None)
