"""Transactions and markers on their way through a stream, like V$STREAMS_TRANSACTION and message tracking."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from thalweg.kernel.lifecycle import MarkerState, TransactionState
from thalweg.kernel.models import NO_CONTROL_CHARACTERS, Body, Resource
from thalweg.live.schemas import TransactionRetry


class Transaction(Resource):
    """A transaction of the source that has not committed at the destination."""

    xid: int = Field(description="At the source.")
    state: TransactionState
    first_lsn: str | None = Field(description="The position of the first of its changes that arrived.")
    commit_lsn: str | None = Field(description="Null while it is open.")
    age_seconds: float = Field(description="Since its first change arrived.")
    lcrs: int
    bytes: int = Field(description="The size of its LCRs.")
    spilled_bytes: int = Field(description="Bytes of these on the engine's disk.")
    streamed: bool = Field(description="It arrived before its commit.")
    tables: list[str] = Field(description="Quoted, with their schema; 16 at most.")
    applier: int | None = Field(description="The number of the applier that executes it.")
    waits_for_xid: int | None
    destination_id: str | None = Field(description="Its destination, if there are several.")
    engine_id: str
    retry: TransactionRetry | None = Field(
        default=None,
        description="The retry that it waits for, with the error. Null also for those that wait with it in its group.",
    )


class StreamTransactions(Resource):
    stream_id: str
    at: datetime
    transactions: list[Transaction] = Field(description="The oldest first; the largest and oldest when there are many.")
    open: int = Field(description="The number of open transactions, including those that are not listed.")
    waiting: int
    executing: int
    queued_lcrs: int = Field(description="LCRs of complete transactions that are in no group yet.")


class MarkerKind(StrEnum):
    """HEARTBEAT: placed by the engine, every heartbeat_interval. TRACKED: placed by a user."""

    HEARTBEAT = "HEARTBEAT"
    TRACKED = "TRACKED"


class MarkerCreate(Body):
    label: Annotated[str, StringConstraints(max_length=100, pattern=NO_CONTROL_CHARACTERS)] = Field(
        default="", description="Your name for it."
    )


class MarkerHop(Resource):
    """One stage of the path. Times come from the engine that recorded them: on several hosts, differences between their
    clocks show."""

    stage: str = Field(
        description="CAPTURE: read. ENQUEUE. SEND: packed into a batch. RECEIVE: in the other engine's queue. DEQUEUE. "
        "DISPATCH: the coordinator took it. COMMIT: everything before it has committed at the destination."
    )
    component: str = Field(description="CAPTURE, QUEUE, PROPAGATION SENDER, PROPAGATION RECEIVER or APPLY.")
    engine_id: str
    destination_id: str | None = Field(description="Its destination, if there are several.")
    at: datetime
    latency_ms: float = Field(description="Since the commit at the source.")
    step_ms: float = Field(description="Since the stage before, on the way to the same destination.")


class Marker(Resource):
    """A transaction without changes that takes the path of every commit and is recorded at every stage."""

    id: str | None = Field(description="Null for a heartbeat.")
    kind: MarkerKind
    label: str
    state: MarkerState
    placed_at: datetime
    commit_lsn: str | None
    xid: int | None
    committed_at: datetime | None = Field(description="At the source, by its clock.")
    failure: str | None = Field(description="The source's message; viewers see only that there is one.")
    latency_ms: float | None = Field(description="Until the last commit at a destination; null until it has arrived.")
    hops: list[MarkerHop] = Field(description="In the path's order.")


class StreamMarkers(Resource):
    stream_id: str
    markers: list[Marker] = Field(description="Newest first; engines remember the last 128.")
