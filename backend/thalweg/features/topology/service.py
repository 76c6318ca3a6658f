"""The graph: a source, capture, queue, apply and destination for each stream; databases are shared nodes."""

from sqlalchemy import select
from sqlalchemy.orm import joinedload

from thalweg.db.models import DatabaseRow, StreamRow
from thalweg.features.topology.schemas import EdgeKind, NodeKind, Topology, TopologyEdge, TopologyNode
from thalweg.kernel.context import Context
from thalweg.live.latest import fresh_samples
from thalweg.live.schemas import ComponentSample, Sample

CHAIN = ((NodeKind.CAPTURE, "capture"), (NodeKind.QUEUE, "queue"), (NodeKind.APPLY, "coordinator"))


async def get_topology(context: Context) -> Topology:
    query = select(StreamRow).options(joinedload(StreamRow.source), joinedload(StreamRow.destination))
    streams = list(await context.session.scalars(query.order_by(StreamRow.name)))
    samples = await fresh_samples(context, [stream.id for stream in streams]) or {}
    nodes: dict[str, TopologyNode] = {}
    edges: list[TopologyEdge] = []
    for stream in streams:
        for database in (stream.source, stream.destination):
            nodes.setdefault(f"database:{database.id}", _database_node(database))
        for node in _component_nodes(stream, samples.get(stream.id)):
            nodes[node.id] = node
        edges.extend(_edges(stream, samples.get(stream.id)))
    return Topology(nodes=list(nodes.values()), edges=edges)


def _database_node(row: DatabaseRow) -> TopologyNode:
    return TopologyNode(
        id=f"database:{row.id}", kind=NodeKind.DATABASE, label=row.name, state=None, stream_id=None,
        engine_id=None, database_id=row.id,
    )  # fmt: skip


def _component(sample: Sample | None, identifier: str) -> ComponentSample | None:
    components = sample.components if sample else []
    return next((component for component in components if component.id == identifier), None)


def _component_nodes(stream: StreamRow, sample: Sample | None) -> list[TopologyNode]:
    nodes = []
    for kind, identifier in CHAIN:
        component = _component(sample, identifier)
        nodes.append(
            TopologyNode(
                id=f"{stream.id}:{kind.lower()}", kind=kind, label=stream.name, engine_id=stream.engine_id,
                state=component.state if component else None, stream_id=stream.id, database_id=None,
            )
        )  # fmt: skip
    return nodes


def _edges(stream: StreamRow, sample: Sample | None) -> list[TopologyEdge]:
    capture, queue, apply = (f"{stream.id}:{kind.lower()}" for kind, _ in CHAIN)
    captured, queued = _component(sample, "capture"), _component(sample, "reader")
    mode = (stream.observed or {}).get("mode")
    ends = (
        (
            f"database:{stream.source_id}",
            capture,
            EdgeKind.WAL,
            captured.lcrs_per_second if captured else None,
        ),
        (capture, queue, EdgeKind.LCR, captured.lcrs_per_second if captured else None),
        (queue, apply, EdgeKind.LCR, queued.lcrs_per_second if queued else None),
        (
            apply,
            f"database:{stream.destination_id}",
            EdgeKind.SQL,
            sample.lcrs_per_second if sample else None,
        ),
    )
    return [
        TopologyEdge(
            id=f"{source}>{target}", source=source, target=target, kind=kind, stream_id=stream.id,
            mode=mode if kind is EdgeKind.LCR else None, lcrs_per_second=rate,
        )
        for source, target, kind, rate in ends
    ]  # fmt: skip
