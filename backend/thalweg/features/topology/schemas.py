"""The directed graph of all components, for the graph page."""

from enum import StrEnum

from pydantic import Field

from thalweg.kernel.models import Resource
from thalweg.kernel.modes import StreamMode


class NodeKind(StrEnum):
    DATABASE = "DATABASE"
    CAPTURE = "CAPTURE"
    QUEUE = "QUEUE"
    PROPAGATION_SENDER = "PROPAGATION SENDER"
    PROPAGATION_RECEIVER = "PROPAGATION RECEIVER"
    APPLY = "APPLY"


class TopologyNode(Resource):
    id: str = Field(description="`database:<id>` or `<stream id>:<component>`.")
    kind: NodeKind
    label: str
    state: str | None = Field(
        description="The component's, while it works; else that of its engine, destination or stream, which says why "
        "it does not. Of a database: ONLINE, or UNREADABLE. Null: nothing is known."
    )
    reason: str | None = Field(description="Why the database, or the engine, does not answer. Null elsewhere.")
    destination_id: str | None = Field(description="Its destination. Null: shared by all of the stream's destinations.")
    stream_id: str | None
    engine_id: str | None
    engine: str | None = Field(description="Its engine's name.")
    engine_state: str | None = Field(description="ONLINE, UNREACHABLE, REFUSED.")
    database_id: str | None


class EdgeKind(StrEnum):
    WAL = "WAL"
    LCR = "LCR"
    PROPAGATION = "PROPAGATION"
    SQL = "SQL"


class TopologyEdge(Resource):
    id: str
    source: str
    target: str
    kind: EdgeKind
    mode: StreamMode | None = Field(
        description="combined, or propagation if the destination's path has one. Null on edges to and from databases."
    )
    stream_id: str
    destination_id: str | None
    lcrs_per_second: float | None
    backlog_bytes: int | None = Field(description="On disk, before a destination that has a backlog; null elsewhere.")


class Topology(Resource):
    nodes: list[TopologyNode]
    edges: list[TopologyEdge]
