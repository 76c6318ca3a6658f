"""Collects what an analysis is made of: the streams' samples, conditions and databases."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from redis.exceptions import RedisError
from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.advisor.schemas import Thresholds
from thalweg.advisor.streams import Condition, DatabaseFacts, StreamInput
from thalweg.db.models import AdvisorPolicyRow, DatabaseRow, EngineRow, StreamRow
from thalweg.features.advisor import repository
from thalweg.history.reading import samples_between
from thalweg.kernel.clock import now
from thalweg.kernel.context import Resources, release
from thalweg.live.bus import Bus
from thalweg.live.health import SILENT, engine_of_concern
from thalweg.live.schemas import Sample


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
    engines = {engine.id: engine for engine in (row.capture_engine, *(one.engine for one in row.destinations))}
    return StreamInput(
        stream_id=row.id, name=row.name, samples=samples, source=_facts(row.source),
        destinations={one.id: _facts(one.database) for one in row.destinations},
        destination_conditions={} if span.is_past else _conditions(row),
        engines={engine.id: engine.name for engine in engines.values()},
        condition=_past(samples) if span.is_past and samples else _condition(row, engines),
    )  # fmt: skip


def _facts(row: DatabaseRow) -> DatabaseFacts:
    return DatabaseFacts(row.name, row.address, row.server_version)


def _condition(row: StreamRow, engines: dict[str, EngineRow]) -> Condition:
    engine = engine_of_concern(row, engines)
    error = (row.observed or {}).get("error") or {}
    return Condition(
        desired_status=row.desired_status, status=row.observed_status, phase=row.observed_phase,
        error_side=error.get("side"), error_message=error.get("message"), error_cure=error.get("cure"),
        engine_silent=engine.name if engine.state in SILENT else None,
    )  # fmt: skip


def _conditions(row: StreamRow) -> dict[str, Condition]:
    """The condition of each destination, while the stream itself is well."""
    found: dict[str, Condition] = {}
    if (row.desired_status, row.observed_status) != ("ENABLED", "ENABLED"):
        return found
    for seen in (row.observed or {}).get("destinations", []):
        one = row.destination(seen["id"])
        if one is not None:
            error = seen.get("error") or {}
            silent = next((engine.name for engine in (row.capture_engine, one.engine) if engine.state in SILENT), None)
            found[one.id] = Condition(
                desired_status=one.desired_status, status=seen["status"], phase=seen["phase"],
                error_side=error.get("side"), error_message=error.get("message"), error_cure=error.get("cure"),
                engine_silent=silent,
            )  # fmt: skip
    return found


def _past(samples: list[Sample]) -> Condition:
    """The condition in a past span, as its last sample tells it."""
    last = samples[-1]
    return Condition(
        desired_status="DISABLED" if last.status == "DISABLED" else "ENABLED", status=last.status, phase=last.phase
    )
