"""Transactions and markers on their way through a stream, like V$STREAMS_TRANSACTION and message tracking."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from thalweg.kernel.models import NO_CONTROL_CHARACTERS, Body, Resource


class Transaction(Resource):
    """A transaction of the source that has not committed at the destination."""

    xid: int = Field(description="At the source.")
    state: str = Field(
        description="OPEN: commit or abort has not come. WAIT DEPENDENCY: another one has to commit first. READY: no "
        "applier is free, or its group still grows. EXECUTE TRANSACTION. WAIT COMMIT: its turn has not come."
    )
    first_lsn: str | None = Field(description="The position of its first change that came.")
    commit_lsn: str | None = Field(description="Null while it is open.")
    age_seconds: float = Field(description="Since its first change came.")
    lcrs: int
    bytes: int = Field(description="Of its LCRs.")
    spilled_bytes: int = Field(description="Of these, on the engine's disk.")
    streamed: bool = Field(description="It came before its commit.")
    tables: list[str] = Field(description="Quoted, with their schema; 16 at most.")
    applier: int | None = Field(description="The number of the applier that executes it.")
    waits_for_xid: int | None
    destination_id: str | None = Field(description="Of several destinations, its.")
    engine_id: str


class StreamTransactions(Resource):
    stream_id: str
    at: datetime
    transactions: list[Transaction] = Field(description="The oldest first; the largest and oldest when there are many.")
    open: int = Field(description="How many there are, also those that are not listed.")
    waiting: int
    executing: int
    queued_lcrs: int = Field(description="Of complete transactions that are in no group yet.")


class MarkerKind(StrEnum):
    """HEARTBEAT: placed by the engine, every heartbeat_interval. TRACKED: placed by a user."""

    HEARTBEAT = "HEARTBEAT"
    TRACKED = "TRACKED"


class MarkerCreate(Body):
    label: Annotated[str, StringConstraints(max_length=100, pattern=NO_CONTROL_CHARACTERS)] = Field(
        default="", description="Your name for it."
    )


class MarkerHop(Resource):
    """One place of the path. Times are of the engine that noted them: over several hosts their clocks count."""

    stage: str = Field(
        description="CAPTURE: read. ENQUEUE. SEND: packed into a batch. RECEIVE: in the other engine's queue. DEQUEUE. "
        "DISPATCH: the coordinator took it. COMMIT: everything before it has committed at the destination."
    )
    component: str = Field(description="CAPTURE, QUEUE, PROPAGATION SENDER, PROPAGATION RECEIVER or APPLY.")
    engine_id: str
    destination_id: str | None = Field(description="Of several destinations, its.")
    at: datetime
    latency_ms: float = Field(description="Since the commit at the source.")
    step_ms: float = Field(description="Since the stage before, on the way to the same destination.")


class Marker(Resource):
    """A transaction without changes that goes the way of every commit, and is seen at every place of it."""

    id: str | None = Field(description="Null for a heartbeat.")
    kind: MarkerKind
    label: str
    state: str = Field(
        description="WAITING for the source; PLACED: committed there; CAPTURED; ARRIVED at every destination; FAILED."
    )
    placed_at: datetime
    commit_lsn: str | None
    xid: int | None
    committed_at: datetime | None = Field(description="At the source, by its clock.")
    failure: str | None
    latency_ms: float | None = Field(description="To the last commit at a destination; null until it has arrived.")
    hops: list[MarkerHop] = Field(description="In the path's order.")


class StreamMarkers(Resource):
    stream_id: str
    markers: list[Marker] = Field(description="Newest first; engines remember the last 128.")
