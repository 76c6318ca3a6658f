"""Paths of a stream: which threads make up which component, and in which order the components stand."""

from dataclasses import dataclass, replace
from datetime import datetime

from thalweg.advisor.load import Load, loads_of
from thalweg.advisor.past import Past, past_of
from thalweg.advisor.schemas import AdvisorComponent, AdvisorPath
from thalweg.advisor.streams import Condition, StreamInput
from thalweg.kernel.lifecycle import REPLICATES, BacklogState, ObservedStatus
from thalweg.live.schemas import ComponentSample, ComponentType, DestinationSample, Sample
from thalweg.live.staging import StagedWal, staged_wal_of

QUEUE_SPILL = "QUEUE SPILL"
SENDING = (ComponentType.CAPTURE, ComponentType.PROPAGATION_SENDER)


@dataclass(frozen=True)
class Part:
    """A component of a path with the loads of its threads, in their order: of apply, reader, coordinator, appliers."""

    component: AdvisorComponent
    loads: list[Load]

    def of(self, sub_component: str | None) -> list[Load]:
        return [load for load in self.loads if load.last.sub_component == sub_component]

    @property
    def sub_components(self) -> list[str | None]:
        return list(dict.fromkeys(load.last.sub_component for load in self.loads))


@dataclass(frozen=True)
class Path:
    path: AdvisorPath
    parts: list[Part]
    stream: StreamInput
    samples: list[Sample]
    """Those of the stream's that count: since the destination's present start; in a past span, while it ran."""
    past: Past | None = None
    """None: the samples are of the present."""

    def own(self, sample: Sample) -> DestinationSample | None:
        """The path's destination in a sample. None: the sample does not have it."""
        name = self.path.destination_id
        return next((destination for destination in sample.destinations if destination.destination_id == name), None)

    @property
    def condition(self) -> Condition:
        """The destination's own where it has one, else the stream's."""
        if self.past is not None:
            return self.past.condition
        return self.stream.destination_conditions.get(self.path.destination_id, self.stream.condition)

    @property
    def full_backlogs(self) -> list[DestinationSample]:
        """The destinations whose full backlogs keep the source from being read, for all; where the path's own is one of
        them, it alone."""
        destinations = self.samples[-1].destinations if self.samples else []
        full = [
            destination
            for destination in destinations
            if destination.backlog is not None and destination.backlog.state is BacklogState.FULL
        ]
        return [destination for destination in full if self.is_own(destination)] or full

    @property
    def staged_wal(self) -> StagedWal | None:
        """None: the log is not mined."""
        return staged_wal_of(self.samples[-1].components) if self.samples else None

    @property
    def has_mined_all(self) -> bool:
        """Capture waits for more WAL to be staged, for most of the span."""
        capture = next((load for part in self.parts for load in part.of(None) if _is_capture(load)), None)
        return capture is not None and capture.time is not None and capture.time["idle"] + capture.time["network"] > 50

    @property
    def behind(self) -> tuple[list[str], list[str]]:
        """The names of destinations that are paused, and of the one that is farthest behind."""
        destinations = self.samples[-1].destinations if self.samples else []
        paused = [other for other in destinations if other.status == ObservedStatus.DISABLED]
        last = max(destinations, key=lambda other: other.lag.bytes or 0, default=None)
        names = [self.name_of(other.destination_id) for other in paused]
        return names, [self.name_of(last.destination_id)] if last is not None and last.lag.bytes else []

    def is_own(self, destination: DestinationSample) -> bool:
        return destination.destination_id == self.path.destination_id

    def name_of(self, destination_id: str) -> str:
        known = self.stream.destinations.get(destination_id)
        return known.name if known is not None else destination_id

    @property
    def own_samples(self) -> list[DestinationSample]:
        return [own for sample in self.samples if (own := self.own(sample)) is not None]


def _is_capture(load: Load) -> bool:
    return load.last.type is ComponentType.CAPTURE


def _slot(component: ComponentSample) -> tuple[int, str] | None:
    """Place in the flow and name. None: no component of a path, such as a destination's backlog."""
    kind = component.type
    if component.sub_component == QUEUE_SPILL:
        return None
    if kind is ComponentType.CAPTURE:
        return 0, "capture"
    if kind is ComponentType.QUEUE:
        return (4, "apply-queue") if component.id.rsplit(":", 1)[-1].startswith("apply-") else (1, "queue")
    if kind is ComponentType.PROPAGATION_SENDER:
        return 2, "sender"
    if kind is ComponentType.PROPAGATION_RECEIVER:
        return 3, "receiver"
    return 5, "apply"


def paths_of(stream: StreamInput) -> list[Path]:
    """One for each destination, in a past span for each that there was. A stream that has never been sampled has paths
    without components."""
    loads: dict[tuple[datetime, ...], dict[str, Load]] = {}
    paths = []
    for destination in _destinations(stream):
        past = past_of(stream.samples, destination) if stream.is_past else None
        samples = past.samples if past is not None else since_start(stream.samples, destination)
        times = tuple(sample.at for sample in samples)
        if times not in loads:
            loads[times] = loads_of(samples)
        paths.append(replace(_path(stream, samples, loads[times], destination), past=past))
    return paths


def _destinations(stream: StreamInput) -> list[str]:
    known = {destination.destination_id for sample in stream.samples for destination in sample.destinations}
    everything = not stream.is_past or not known
    return [destination for destination in stream.destinations if everything or destination in known]


def since_start(samples: list[Sample], destination: str) -> list[Sample]:
    """Those of the destination's present run: what was before a stop, an error, a copy or a restart of the engine tells
    nothing of it. All of them, if it does not run now."""
    for number in range(len(samples) - 1, -1, -1):
        if not _runs(samples[number], destination):
            return samples[number + 1 :] or samples
        if samples[number].interval_seconds is None:
            return samples[number:]
    return samples


def _runs(sample: Sample, destination: str) -> bool:
    known = next((part for part in sample.destinations if part.destination_id == destination), sample)
    return known.status == ObservedStatus.ENABLED and known.phase in REPLICATES


def _path(stream: StreamInput, samples: list[Sample], loads: dict[str, Load], destination: str) -> Path:
    places: dict[tuple[int, str], list[Load]] = {}
    for load in loads.values():
        slot = _slot(load.last)
        if slot is not None and load.last.destination_id in (None, destination):
            places.setdefault(slot, []).append(load)
    parts = [_part(stream, name, found, destination) for (_, name), found in sorted(places.items(), key=_in_flow)]
    path = AdvisorPath(
        path_id=f"{stream.stream_id}:{destination}", stream_id=stream.stream_id, stream_name=stream.name,
        destination_id=destination, source_db=stream.source.name,
        destination_db=stream.destinations[destination].name,
        component_ids=[part.component.component_id for part in parts],
        combined=not any(name in ("sender", "receiver") for _, name in places),
    )  # fmt: skip
    return Path(path, parts, stream, samples)


def _in_flow(item: tuple[tuple[int, str], list[Load]]) -> tuple[int, str]:
    return item[0]


def _part(stream: StreamInput, name: str, loads: list[Load], destination: str) -> Part:
    first = loads[0].last
    shared = all(load.last.destination_id is None for load in loads)
    owner = name if shared else f"{name}:{destination}"
    upstream = first.type in SENDING or name == "queue"
    database = stream.source if upstream else stream.destinations[destination]
    component = AdvisorComponent(
        component_id=f"{stream.stream_id}:{owner}", component_name=_name(stream, name, destination),
        component_db=database.name, component_type=first.type,
        engine=stream.engines.get(first.engine_id or ""), stream_id=stream.stream_id,
        state=first.state if len(loads) == 1 else _state(loads), parts=[load.last.id for load in loads],
    )  # fmt: skip
    return Part(component, loads)


def _state(loads: list[Load]) -> str:
    """The state of the first applier that is not idle, else the coordinator's."""
    for load in loads:
        if load.last.server is not None and load.last.state != "IDLE":
            return load.last.state
    return loads[0].last.state


def _name(stream: StreamInput, name: str, destination: str) -> str:
    """The name that Streams would give: a sender's and a receiver's name says from which queue to which."""
    far = stream.destinations[destination].name
    queue, apply_queue = f'"{stream.name}.queue"', f'"{stream.name}.apply-queue"'
    names = {
        "capture": stream.name, "queue": f"{stream.name}.queue", "apply-queue": f"{stream.name}.apply-queue",
        "sender": f"{queue}=>{apply_queue}@{far}", "receiver": f"{queue}@{stream.source.name}=>{apply_queue}",
    }  # fmt: skip
    if name == "apply":
        return f"{stream.name}@{far}"
    return names[name]
