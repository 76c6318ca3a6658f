"""The input of an analysis: the samples of a stream and other known facts, as plain values."""

from dataclasses import dataclass, field
from datetime import datetime

from thalweg.engine_client.error_codes import ErrorSide
from thalweg.inspection.sessions import Blocker
from thalweg.kernel.lifecycle import DesiredStatus, ObservedStatus, StreamPhase
from thalweg.live.schemas import Sample


@dataclass(frozen=True)
class DatabaseFacts:
    name: str
    address: str
    version: str | None
    queried_at: datetime | None = None


@dataclass(frozen=True)
class ServerWait:
    """A wait of a stream's start behind other sessions at a server."""

    side: ErrorSide
    database: str
    words: str
    statement: str
    blockers: list[Blocker]
    prepared: bool
    """Behind a prepared transaction, which has no session."""


@dataclass(frozen=True)
class Condition:
    """The condition of the stream, beside its samples."""

    desired_status: DesiredStatus
    status: ObservedStatus
    phase: StreamPhase
    error_side: ErrorSide | None = None
    """None: there is no error, or its side is not known."""
    error_message: str | None = None
    """None: there is no error."""
    error_cure: str | None = None
    engine_silent: str | None = None
    """The name of an engine that does not answer."""
    waits: list[ServerWait] = field(default_factory=list)
    error_code: str | None = None
    paused: bool = False
    """The destination is switched off, and the stream is not."""


@dataclass(frozen=True)
class StreamInput:
    """`samples` are oldest first, of one stream; they may come from the engine, from Redis or from history."""

    stream_id: str
    name: str
    samples: list[Sample]
    source: DatabaseFacts
    destinations: dict[str, DatabaseFacts]
    """By the destination's id."""
    engines: dict[str, str]
    """Names by id."""
    condition: Condition
    """The present one: of a past span, the samples tell."""
    destination_conditions: dict[str, Condition] = field(default_factory=dict)
    """The condition of each of several destinations; a missing one has the stream's condition."""
    is_past: bool = False
    """The samples are of a span that is over: those count in which the path ran, whatever was started meanwhile."""
