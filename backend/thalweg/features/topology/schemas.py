"""The directed graph of all components, for the graph page."""

from enum import StrEnum

from pydantic import Field

from thalweg.kernel.models import Resource


class NodeKind(StrEnum):
    DATABASE = "DATABASE"
    CAPTURE = "CAPTURE"
    QUEUE = "QUEUE"
    APPLY = "APPLY"


class TopologyNode(Resource):
    id: str = Field(description="`database:<id>` or `<stream id>:<component>`.")
    kind: NodeKind
    label: str
    state: str | None
    stream_id: str | None
    engine_id: str | None
    database_id: str | None


class EdgeKind(StrEnum):
    WAL = "WAL"
    LCR = "LCR"
    SQL = "SQL"


class TopologyEdge(Resource):
    id: str
    source: str
    target: str
    kind: EdgeKind
    mode: str | None = Field(description="COMBINED CAPTURE AND APPLY when no propagation lies between.")
    stream_id: str
    lcrs_per_second: float | None


class Topology(Resource):
    nodes: list[TopologyNode]
    edges: list[TopologyEdge]
