"""The graph: a source, capture, queue, apply and destination for each stream, and sender, receiver and another queue
when two engines share it. Databases are shared nodes."""

from sqlalchemy import select
from sqlalchemy.orm import joinedload

from thalweg.db.models import DatabaseRow, StreamRow
from thalweg.features.topology.schemas import EdgeKind, NodeKind, Topology, TopologyEdge, TopologyNode
from thalweg.kernel.context import Context
from thalweg.live.latest import fresh_samples
from thalweg.live.schemas import ComponentSample, Sample

Link = tuple[NodeKind, str]
"""Kind of a component, and the component's id in samples: in a node's id too, where it stands for more than itself."""
CAPTURE, QUEUE, APPLY = (NodeKind.CAPTURE, "capture"), (NodeKind.QUEUE, "queue"), (NodeKind.APPLY, "coordinator")
SENDER, RECEIVER = (NodeKind.PROPAGATION_SENDER, "sender"), (NodeKind.PROPAGATION_RECEIVER, "receiver")
APPLY_QUEUE = (NodeKind.QUEUE, "apply-queue")
COMBINED: tuple[Link, ...] = (CAPTURE, QUEUE, APPLY)
PROPAGATED: tuple[Link, ...] = (CAPTURE, QUEUE, SENDER, RECEIVER, APPLY_QUEUE, APPLY)
SENDING = (CAPTURE, QUEUE, SENDER)


async def get_topology(context: Context) -> Topology:
    query = select(StreamRow).options(
        joinedload(StreamRow.source), joinedload(StreamRow.destination), joinedload(StreamRow.engine),
        joinedload(StreamRow.capture_engine),
    )  # fmt: skip
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
        engine_id=None, engine=None, database_id=row.id,
    )  # fmt: skip


def _component(sample: Sample | None, identifier: str) -> ComponentSample | None:
    components = sample.components if sample else []
    return next((component for component in components if component.id == identifier), None)


def _chain(stream: StreamRow) -> tuple[Link, ...]:
    return COMBINED if stream.capture_engine is None else PROPAGATED


def _node_id(stream: StreamRow, link: Link) -> str:
    return f"{stream.id}:{'apply' if link is APPLY else link[1]}"


def _component_nodes(stream: StreamRow, sample: Sample | None) -> list[TopologyNode]:
    nodes = []
    for link in _chain(stream):
        kind, identifier = link
        component = _component(sample, identifier)
        engine = stream.capture_engine if stream.capture_engine is not None and link in SENDING else stream.engine
        nodes.append(
            TopologyNode(
                id=_node_id(stream, link), kind=kind, label=stream.name, engine_id=engine.id, engine=engine.name,
                state=component.state if component else None, stream_id=stream.id, database_id=None,
            )
        )  # fmt: skip
    return nodes


def _edges(stream: StreamRow, sample: Sample | None) -> list[TopologyEdge]:
    """Each link's rate is that of what flows into it; into the destination flows what apply has committed."""
    chain = _chain(stream)
    mode = "combined" if stream.capture_engine is None else "propagation"
    names = [_node_id(stream, link) for link in chain]
    ends = [f"database:{stream.source_id}", *names, f"database:{stream.destination_id}"]
    kinds = [EdgeKind.WAL, *[_kind(link) for link in chain[:-1]], EdgeKind.SQL]
    rates = [_rate(sample, "capture"), *[_rate(sample, _counter(link, chain)) for link in chain[:-1]]]
    rates.append(sample.lcrs_per_second if sample else None)
    return [
        TopologyEdge(
            id=f"{source}>{target}", source=source, target=target, kind=kind, stream_id=stream.id,
            mode=mode if kind in (EdgeKind.LCR, EdgeKind.PROPAGATION) else None, lcrs_per_second=rate,
        )
        for source, target, kind, rate in zip(ends, ends[1:], kinds, rates, strict=False)
    ]  # fmt: skip


def _kind(link: Link) -> EdgeKind:
    return EdgeKind.PROPAGATION if link is SENDER else EdgeKind.LCR


def _counter(link: Link, chain: tuple[Link, ...]) -> str:
    """What leaves a queue is counted by who reads it."""
    if link[0] is not NodeKind.QUEUE:
        return link[1]
    return "sender" if chain is PROPAGATED and link is QUEUE else "reader"


def _rate(sample: Sample | None, identifier: str) -> float | None:
    component = _component(sample, identifier)
    return component.lcrs_per_second if component else None
