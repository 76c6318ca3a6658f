"""Gives destinations their present ids in reports of engines that still use the former ones."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from thalweg.engine_client.documents import StreamStats, StreamStatus
from thalweg.workers.polling import Poll

Ids = Mapping[str, str]
"""Today's by the former."""
Stats = TypeVar("Stats", bound=StreamStats)


def poll_of_today(poll: Poll, ids: Mapping[str, Ids]) -> Poll:
    """`ids` are by stream: of those that the engine captures."""
    if poll.status is None or poll.stats is None or not ids:
        return poll
    statuses = [_status(stream, ids.get(stream.id, {})) for stream in poll.status.streams]
    return replace(
        poll, status=poll.status.model_copy(update={"streams": statuses}),
        stats=poll.stats.model_copy(update={"streams": stats_of_today(poll.stats.streams, ids)}),
    )  # fmt: skip


def stats_of_today(streams: list[Stats], ids: Mapping[str, Ids]) -> list[Stats]:
    return [_stats(stream, ids.get(stream.id, {})) for stream in streams]


def _status(stream: StreamStatus, ids: Ids) -> StreamStatus:
    if not any(destination.id in ids for destination in stream.destinations):
        return stream
    destinations = [
        destination.model_copy(update={"id": ids.get(destination.id, destination.id)})
        for destination in stream.destinations
    ]
    waits = [
        wait.model_copy(update={"destination": ids.get(wait.destination or "", wait.destination)})
        for wait in stream.waits
    ]
    return stream.model_copy(update={"destinations": destinations, "waits": waits})


def _stats(stream: Stats, ids: Ids) -> Stats:
    if not any(destination.id in ids for destination in stream.destinations):
        return stream
    components = [
        part.model_copy(update={"destination": ids.get(part.destination or "", part.destination)})
        for part in stream.components
    ]
    destinations = [
        destination.model_copy(update={"id": ids.get(destination.id, destination.id)})
        for destination in stream.destinations
    ]
    return stream.model_copy(update={"components": components, "destinations": destinations})
