"""A marker's way, put together from what each engine saw of it. Its commit LSN is the same at all of them. Pure."""

from datetime import datetime

from thalweg.engine_client.documents import Markers, PlacedMarker
from thalweg.features.tracking.schemas import Marker, MarkerHop, MarkerKind
from thalweg.kernel.lifecycle import MarkerState

STAGES = ("CAPTURE", "ENQUEUE", "SEND", "RECEIVE", "DEQUEUE", "DISPATCH", "COMMIT")
LAST = STAGES[-1]


def markers_of(trails: list[tuple[str, Markers]]) -> list[Marker]:
    """Newest first. `told`: by engine id, the one that captures first."""
    placed = [marker for _, trail in trails for marker in trail.placed]
    # A marker has arrived when it has at every destination: those that ever had one.
    destinations = {stage.destination for _, trail in trails for stage in trail.stages if stage.stage == LAST}
    return [_marker(marker, trails, len(destinations)) for marker in reversed(placed)]


def _marker(placed: PlacedMarker, trails: list[tuple[str, Markers]], destinations: int) -> Marker:
    hops = [] if placed.commit_time is None else _hops(placed, placed.commit_time, trails)
    commits = [hop.latency_ms for hop in hops if hop.stage == LAST]
    arrived = 0 < destinations <= len(commits)
    return Marker(
        id=placed.id, kind=MarkerKind.HEARTBEAT if placed.id is None else MarkerKind.TRACKED, label=placed.label,
        state=MarkerState.ARRIVED if arrived else placed.state, placed_at=placed.placed_at,
        commit_lsn=placed.commit_lsn, xid=placed.xid, committed_at=placed.commit_time, failure=placed.failure,
        latency_ms=max(commits) if arrived else None, hops=hops,
    )  # fmt: skip


def _hops(placed: PlacedMarker, committed_at: datetime, trails: list[tuple[str, Markers]]) -> list[MarkerHop]:
    found = [
        (STAGES.index(stage.stage), stage.destination, engine_id, stage.component, passage.at)
        for engine_id, trail in trails
        for stage in trail.stages
        if stage.stage in STAGES
        for passage in stage.passages
        if passage.commit_lsn == placed.commit_lsn
    ]
    # Shared stages first, then each destination's in its order; each follows the one before it on its own way.
    found.sort(key=lambda hop: (hop[1] is not None, hop[1] or "", hop[0]))
    before: dict[str | None, datetime] = {None: committed_at}
    hops = []
    for number, destination, engine_id, component, at in found:
        since = before.get(destination, before[None])
        before[destination] = at
        hops.append(
            MarkerHop(
                stage=STAGES[number], component=component, engine_id=engine_id, destination_id=destination, at=at,
                latency_ms=_milliseconds(committed_at, at), step_ms=_milliseconds(since, at),
            )
        )  # fmt: skip
    return hops


def _milliseconds(since: datetime, until: datetime) -> float:
    return round((until - since).total_seconds() * 1000, 3)
