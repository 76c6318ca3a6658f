"""Collects what an analysis is made of: the streams' samples, conditions and databases."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from redis.exceptions import RedisError
from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.advisor.schemas import Thresholds
from thalweg.advisor.streams import Condition, DatabaseFacts, ServerWait, StreamInput
from thalweg.db.models import AdvisorPolicyRow, DatabaseRow, EngineRow, StreamRow
from thalweg.engine_client.error_codes import ErrorSide
from thalweg.features.advisor import repository
from thalweg.history.reading import samples_between
from thalweg.inspection.sessions import Blocker
from thalweg.kernel.clock import now
from thalweg.kernel.context import Resources, release
from thalweg.kernel.lifecycle import SILENT, DesiredStatus, ObservedStatus
from thalweg.live.bus import Bus
from thalweg.live.health import engine_of_concern
from thalweg.live.schemas import Sample
from thalweg.live.waits import waits_in_words


@dataclass(frozen=True)
class Span:
    """The last seconds, as they came in; or after `begin`, up to `end`, by the samples' own times."""

    seconds: int | None = None
    begin: datetime | None = None
    end: datetime | None = None

    @property
    def is_past(self) -> bool:
        """The streams' present condition says nothing about it."""
        return self.end is not None and now() - self.end > timedelta(seconds=60)


@dataclass(frozen=True)
class Gathered:
    rows: list[StreamRow]
    inputs: list[StreamInput]
    live: bool
    """False: Redis could not be reached."""


def thresholds_of(policy: AdvisorPolicyRow) -> Thresholds:
    return Thresholds(
        idle=policy.idle_threshold, flow_control=policy.flow_control_threshold, event=policy.event_threshold
    )


async def gather(session: AsyncSession, resources: Resources, stream_id: str | None, span: Span) -> Gathered:
    rows = await repository.streams_of(session, stream_id)
    await release(session)
    bus, live = Bus(resources.redis), True
    inputs = []
    for row in rows:
        samples: list[Sample] = []
        try:
            samples = await _samples(session, resources, bus, row.id, span)
        except (RedisError, OSError):
            live = False
        inputs.append(_input(row, samples, span))
    return Gathered(rows, inputs, live)


async def _samples(
    session: AsyncSession, resources: Resources, bus: Bus, stream_id: str, span: Span
) -> list[Sample]:  # fmt: skip
    """Live ones from Redis; of a span, from history: the same kind of samples, up to 90 days back."""
    if span.begin is not None and span.end is not None:
        return await samples_between(session, resources.settings, stream_id, span.begin, span.end, now())
    return await bus.recent_samples(stream_id, span.seconds or 0)


def _input(row: StreamRow, samples: list[Sample], span: Span) -> StreamInput:
    engines = {
        engine.id: engine for engine in (row.capture_engine, *(destination.engine for destination in row.destinations))
    }
    return StreamInput(
        stream_id=row.id, name=row.name, samples=samples, source=_facts(row.source),
        destinations={destination.id: _facts(destination.database) for destination in row.destinations},
        destination_conditions={} if span.is_past else _conditions(row),
        engines={engine.id: engine.name for engine in engines.values()},
        condition=_condition(row, engines), is_past=span.is_past,
    )  # fmt: skip


def _facts(row: DatabaseRow) -> DatabaseFacts:
    return DatabaseFacts(row.name, row.address, row.server_version)


def _condition(row: StreamRow, engines: dict[str, EngineRow]) -> Condition:
    engine = engine_of_concern(row, engines)
    error = (row.observed or {}).get("error") or {}
    return Condition(
        desired_status=row.desired_status, status=row.observed_status, phase=row.observed_phase,
        error_code=error.get("code"), error_side=error.get("side"), error_message=error.get("message"),
        error_cure=error.get("cure"), engine_silent=engine.name if engine.state in SILENT else None,
        waits=waits_of(row, None), paused=row.is_paused,
    )  # fmt: skip


def _conditions(row: StreamRow) -> dict[str, Condition]:
    """The condition of each destination, while the stream itself is well."""
    found: dict[str, Condition] = {}
    if row.desired_status != DesiredStatus.ENABLED or row.observed_status != ObservedStatus.ENABLED:
        return found
    for seen in (row.observed or {}).get("destinations", []):
        destination = row.destination(seen["id"])
        if destination is not None:
            error = seen.get("error") or {}
            silent = next(
                (engine.name for engine in (row.capture_engine, destination.engine) if engine.state in SILENT), None
            )
            found[destination.id] = Condition(
                desired_status=destination.desired_status, status=seen["status"], phase=seen["phase"],
                error_code=error.get("code"), error_side=error.get("side"), error_message=error.get("message"),
                error_cure=error.get("cure"), engine_silent=silent, waits=waits_of(row, destination.id),
                paused=destination.desired_status == DesiredStatus.DISABLED,
            )  # fmt: skip
    return found


def waits_of(row: StreamRow, destination_id: str | None) -> list[ServerWait]:
    """Those of the stream as a whole, and the destination's own."""
    documents = (row.observed or {}).get("waits", [])
    return [_wait(document) for document in documents if document["destination"] in (None, destination_id)]


def _wait(document: dict[str, Any]) -> ServerWait:
    at = now()
    (words,) = waits_in_words({"waits": [document]}, at)
    return ServerWait(
        side=ErrorSide(document["side"]), database=document["database"], words=words, statement=document["statement"],
        blockers=[_blocker(blocker, at) for blocker in document["blockers"] if blocker["pid"]],
        prepared=any(blocker["pid"] == 0 for blocker in document["blockers"]),
    )  # fmt: skip


def _blocker(document: dict[str, Any], at: datetime) -> Blocker:
    since = document["since"]
    began = datetime.fromisoformat(since) if isinstance(since, str) else since
    return Blocker(
        document["pid"], document["application_name"], document["user"] or None, document["state"] or None,
        None if began is None else max(0.0, (at - began).total_seconds()),
    )  # fmt: skip
