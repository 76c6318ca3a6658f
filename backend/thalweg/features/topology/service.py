"""The graph: a source, capture and queue for each stream; for each of its destinations an apply, after a sender, a
receiver and another queue when another engine applies. Databases are shared nodes."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from thalweg.db.models import DatabaseRow, DestinationRow, EngineRow, SourceReadingRow, StreamRow
from thalweg.db.readings import readings_of
from thalweg.db.streams import whole_streams
from thalweg.features.topology.schemas import EdgeKind, NodeKind, Topology, TopologyEdge, TopologyNode
from thalweg.kernel.clock import now
from thalweg.kernel.context import Context
from thalweg.kernel.lifecycle import SILENT, WORST_FIRST, EngineState, ObservedStatus, ShownState
from thalweg.kernel.states import destination_state
from thalweg.live.going_on import that_hold_up
from thalweg.live.health import is_fresh
from thalweg.live.latest import fresh_samples
from thalweg.live.schemas import ComponentSample, Sample

RESTS = (ShownState.PAUSED, ShownState.STOPPED)


@dataclass(frozen=True)
class _Link:
    """A component of a path. `component` is its id in samples."""

    kind: NodeKind
    component: str
    engine: EngineRow
    destination_id: str | None

    def node_id(self, stream: StreamRow) -> str:
        return f"{stream.id}:{self.component.replace('coordinator', 'apply')}"


async def get_topology(context: Context) -> Topology:
    streams = list(await context.session.scalars(whole_streams().order_by(StreamRow.name)))
    ids = {
        database.id
        for stream in streams
        for database in (stream.source, *(each.database for each in stream.destinations))
    }
    readings = {row.database_id: row for row in await readings_of(context.session, sorted(ids))}
    samples = await fresh_samples(context, [stream.id for stream in streams]) or {}
    at = now()
    nodes: dict[str, TopologyNode] = {}
    edges: dict[str, TopologyEdge] = {}
    for stream in streams:
        sample = samples.get(stream.id)
        for database in (stream.source, *(destination.database for destination in stream.destinations)):
            nodes.setdefault(f"database:{database.id}", _database_node(database, readings.get(database.id)))
        for destination in stream.destinations:
            links = _path(stream, destination)
            nodes |= {node.id: node for node in (_component_node(stream, link, sample, at) for link in links)}
            edges |= {edge.id: edge for edge in _edges(stream, destination, links, sample)}
    return Topology(nodes=list(nodes.values()), edges=list(edges.values()))


def _path(stream: StreamRow, destination: DestinationRow) -> list[_Link]:
    prefix = f"{destination.id}:"
    captures, applies = stream.capture_engine, destination.engine
    shared = [
        _Link(NodeKind.CAPTURE, "capture", captures, None),
        _Link(NodeKind.QUEUE, "queue", captures, None),
    ]
    between = [
        _Link(NodeKind.PROPAGATION_SENDER, f"{prefix}sender", captures, destination.id),
        _Link(NodeKind.PROPAGATION_RECEIVER, f"{prefix}receiver", applies, destination.id),
        _Link(NodeKind.QUEUE, f"{prefix}apply-queue", applies, destination.id),
    ]
    apply = _Link(NodeKind.APPLY, f"{prefix}coordinator", applies, destination.id)
    return [*shared, *(between if captures.id != applies.id else []), apply]


def _database_node(row: DatabaseRow, reading: SourceReadingRow | None) -> TopologyNode:
    failure = reading.failure if reading is not None else None
    known = "UNREADABLE" if failure else EngineState.ONLINE
    return TopologyNode(
        id=f"database:{row.id}", kind=NodeKind.DATABASE, label=row.name, state=known if reading is not None else None,
        reason=failure, stream_id=None, destination_id=None, engine_id=None, engine=None, engine_state=None,
        database_id=row.id,
    )  # fmt: skip


def _component(sample: Sample | None, identifier: str) -> ComponentSample | None:
    components = sample.components if sample else []
    return next((component for component in components if component.id == identifier), None)


def _component_node(stream: StreamRow, link: _Link, sample: Sample | None, at: datetime) -> TopologyNode:
    silent = link.engine.state in SILENT
    return TopologyNode(
        id=link.node_id(stream), kind=link.kind, label=_label(stream, link), engine_id=link.engine.id,
        engine=link.engine.name, engine_state=link.engine.state, state=_state(stream, link, sample, at),
        reason=link.engine.message if silent else None, stream_id=stream.id, destination_id=link.destination_id,
        database_id=None,
    )  # fmt: skip


def _label(stream: StreamRow, link: _Link) -> str:
    """Components of one path have the path's name, also where it is the only one: it has that name everywhere."""
    destination = stream.destination(link.destination_id) if link.destination_id is not None else None
    return stream.name if destination is None else f"{stream.name} → {destination.database.name}"


def _state(stream: StreamRow, link: _Link, sample: Sample | None, at: datetime) -> str | None:
    """The stream's state in the overview, if it says more than what the component does at the moment."""
    if link.engine.state in SILENT:
        return link.engine.state
    if stream.observed is None:
        return None
    if not is_fresh(stream.observed_at, at):
        return ObservedStatus.UNKNOWN
    whole = _observed_state(stream, link.destination_id, sample)
    component = _component(sample, link.component)
    # The others on the way to a destination that fails or rests may still work.
    if component is None or (link.kind is NodeKind.APPLY and whole in WORST_FIRST) or whole in RESTS:
        return whole
    return component.state


def _observed_state(stream: StreamRow, destination_id: str | None, sample: Sample | None) -> ShownState:
    whole = {"status": stream.observed_status, "phase": stream.observed_phase}
    reported: list[dict[str, Any]] = (stream.observed or {}).get("destinations", [])
    observed = next((part for part in reported if part["id"] == destination_id), whole)
    own = (
        next((part for part in sample.destinations if part.destination_id == destination_id), None) if sample else None
    )
    stalls = own is not None and own.stalled_since is not None
    held_up = bool(that_hold_up(stream.observed or {}, sample))
    return destination_state(
        observed["status"], observed["phase"], parks=own is not None and own.parks_since is not None,
        stalls=stalls or held_up, stream_desired_status=stream.desired_status,
    )  # fmt: skip


def _edges(
    stream: StreamRow, destination: DestinationRow, links: list[_Link], sample: Sample | None
) -> list[TopologyEdge]:
    """Each link's rate is that of what flows into it; into the destination flows what apply has committed."""
    own = (
        next((part for part in sample.destinations if part.destination_id == destination.id), None) if sample else None
    )
    mode = stream.mode_to(destination)
    names = [link.node_id(stream) for link in links]
    ends = [f"database:{stream.source_id}", *names, f"database:{destination.database_id}"]
    kinds = [EdgeKind.WAL, *[_kind(link) for link in links[:-1]], EdgeKind.SQL]
    rates = [_rate(sample, "capture"), *[_rate(sample, _counter(link, links)) for link in links[:-1]]]
    rates.append(own.lcrs_per_second if own else None)
    # The first two edges, into capture and queue, are the stream's.
    owners = [None, None, *[destination.id] * len(links)]
    waiting = own.backlog.bytes if own is not None and own.backlog is not None else None
    return [
        TopologyEdge(
            id=f"{source}>{target}", source=source, target=target, kind=kind, stream_id=stream.id,
            destination_id=owner, mode=mode if kind in (EdgeKind.LCR, EdgeKind.PROPAGATION) else None,
            lcrs_per_second=rate, backlog_bytes=waiting if number == len(("source", "capture")) else None,
        )
        for number, (source, target, kind, rate, owner) in enumerate(
            zip(ends, ends[1:], kinds, rates, owners, strict=False)
        )
    ]  # fmt: skip


def _kind(link: _Link) -> EdgeKind:
    return EdgeKind.PROPAGATION if link.kind is NodeKind.PROPAGATION_SENDER else EdgeKind.LCR


def _counter(link: _Link, links: list[_Link]) -> str:
    """The component that counts what leaves a queue is its reader: a sender, or the reader of an apply."""
    if link.kind is not NodeKind.QUEUE:
        return link.component
    return links[links.index(link) + 1].component.replace("coordinator", "reader")


def _rate(sample: Sample | None, identifier: str) -> float | None:
    component = _component(sample, identifier)
    return component.lcrs_per_second if component else None
