"""The analysis of performance: from samples to the six tables. Pure: the same for live samples, Redis and history."""

from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise

from thalweg.advisor.bottleneck import IDLE_LCRS_PER_SECOND, bottleneck_of
from thalweg.advisor.load import rate_of
from thalweg.advisor.schemas import (
    AdvisorComponent,
    AdvisorDatabase,
    AdvisorLink,
    Analysis,
    ComponentStatistic,
    PathBottleneck,
    Thresholds,
)
from thalweg.advisor.shape import Part, Path, paths_of
from thalweg.advisor.stages import Stage, stages_of
from thalweg.advisor.statistics import component_rows, path_rows
from thalweg.advisor.streams import DatabaseFacts, StreamInput
from thalweg.kernel.lifecycle import REPLICATES, ObservedStatus
from thalweg.live.schemas import ComponentType, Sample

STANDS_SECONDS, JITTER_SECONDS = 2.0, 0.2
"""For so long nothing is applied before it is asked why. Samples come each second, some of them a little early."""
EXECUTES_PERCENT = 50.0


def _own_rate(path: Path, sample: Sample) -> float | None:
    own = path.own(sample)
    return None if own is None else own.lcrs_per_second


@dataclass(frozen=True)
class PathView:
    """A path as the findings look at it."""

    path: Path
    stages: list[Stage]
    bottleneck: PathBottleneck

    @property
    def stands_still(self) -> bool:
        """Its appliers are at work, and nothing comes of it."""
        row = self.bottleneck
        if row.sub_component_type != "APPLY SERVER":
            return False
        stage = next(stage for stage in self.stages if stage.sub_component == "APPLY SERVER")
        rate = rate_of(stage.loads, "lcrs")
        return rate is not None and rate < IDLE_LCRS_PER_SECOND

    @property
    def stands_now(self) -> bool:
        """Changes wait, an applier executes, and nothing has come of it for the last seconds, however well it went in
        the rest of the span: as behind a lock that somebody has just taken."""
        path = self.path
        if path.past is not None or not path.samples:
            return False
        last = path.samples[-1]
        recent = [sample for sample in path.samples if (last.at - sample.at).total_seconds() < STANDS_SECONDS]
        seconds = sum(sample.interval_seconds or 0.0 for sample in recent)
        own = path.own(last)
        runs = own is not None and own.status == ObservedStatus.ENABLED and own.phase in REPLICATES and own.lag.bytes
        rests = all((rate := _own_rate(path, sample)) is not None and rate < IDLE_LCRS_PER_SECOND for sample in recent)
        return bool(runs) and rests and seconds >= STANDS_SECONDS - JITTER_SECONDS and self._executes

    @property
    def _executes(self) -> bool:
        stage = self.stage(ComponentType.APPLY, "APPLY SERVER")
        times = [load.last.time_percent for load in stage.loads] if stage is not None else []
        return any(time is not None and time.execute > EXECUTES_PERCENT for time in times)

    def stage(self, kind: ComponentType, sub_component: str | None = None) -> Stage | None:
        for stage in self.stages:
            if stage.component.component_type is kind and stage.sub_component == sub_component:
                return stage
        return None


def analyse(
    streams: list[StreamInput], thresholds: Thresholds, at: datetime, component_id: str | None = None
) -> tuple[Analysis, list[PathView]]:
    """`at` stamps what has no sample. With `component_id`, only paths through that component, or through one of its
    threads."""
    views: list[PathView] = []
    for stream in streams:
        for path in paths_of(stream):
            if component_id is None or _passes(path, component_id):
                stages = stages_of(path)
                views.append(PathView(path, stages, bottleneck_of(path, stages, thresholds)))
    return _tables(views, thresholds, at), views


def with_locks(views: list[PathView], locked: dict[str, float], thresholds: Thresholds, at: datetime) -> Analysis:
    """The tables once it is known where appliers wait for locks of others: `locked` has the percent of their
    statements' time, by path."""
    return _tables(
        [_with_lock(view, locked[view.path.path.path_id], thresholds) if view.path.path.path_id in locked else view
         for view in views],
        thresholds, at,
    )  # fmt: skip


def _with_lock(view: PathView, share: float, thresholds: Thresholds) -> PathView:
    stages = [stage.with_lock(share) if stage.sub_component == "APPLY SERVER" else stage for stage in view.stages]
    return replace(view, stages=stages, bottleneck=bottleneck_of(view.path, stages, thresholds))


def _passes(path: Path, component_id: str) -> bool:
    for part in path.parts:
        threads = {f"{path.path.stream_id}:{load.last.id}" for load in part.loads}
        if component_id == part.component.component_id or component_id in threads:
            return True
    return False


def _tables(views: list[PathView], thresholds: Thresholds, at: datetime) -> Analysis:
    components: dict[str, AdvisorComponent] = {}
    databases: dict[tuple[str, str], AdvisorDatabase] = {}
    statistics: dict[tuple[str, str | None, int | None, str], ComponentStatistic] = {}
    links: list[AdvisorLink] = []
    for view in views:
        path, stream = view.path.path, view.path.stream
        _add_database(databases, stream.source, "SOURCE")
        _add_database(databases, stream.destinations[path.destination_id], "DESTINATION")
        components.update((part.component.component_id, part.component) for part in view.path.parts)
        links += _links(view)
        for row in component_rows(view.stages, _time_of(view.path, at)):
            key = (row.component_id, row.sub_component_type, row.thread, row.statistic_name)
            statistics.setdefault(key, row)
    counted = [[sample for sample in view.path.samples if sample.interval_seconds] for view in views]
    ends = [samples[-1].at for samples in counted if samples]
    begins = [samples[0].at.timestamp() - (samples[0].interval_seconds or 0) for samples in counted if samples]
    return Analysis(
        begin_at=datetime.fromtimestamp(min(begins), at.tzinfo) if begins else None,
        end_at=max(ends) if ends else None, samples=max((len(samples) for samples in counted), default=0),
        thresholds=thresholds, paths=[view.path.path for view in views], databases=list(databases.values()),
        components=list(components.values()), component_links=links, component_statistics=list(statistics.values()),
        path_statistics=[row for view in views for row in path_rows(view.path, _time_of(view.path, at))],
        path_bottlenecks=[view.bottleneck for view in views],
    )  # fmt: skip


def _time_of(path: Path, at: datetime) -> datetime:
    return path.samples[-1].at if path.samples else at


def _add_database(
    databases: dict[tuple[str, str], AdvisorDatabase], facts: DatabaseFacts, role: str
) -> None:  # fmt: skip
    databases.setdefault(
        (role, facts.name),
        AdvisorDatabase(
            global_name=facts.name, role=role, address=facts.address, version=facts.version,
            last_queried=facts.queried_at,
        ),
    )  # fmt: skip


def _links(view: PathView) -> list[AdvisorLink]:
    parts = view.path.parts
    return [
        _link(view, position, source, destination)
        for position, (source, destination) in enumerate(pairwise(parts), start=1)
    ]


def _link(view: PathView, position: int, source: Part, destination: Part) -> AdvisorLink:
    """Into a queue goes what its producer has made; out of it, what its consumer has taken."""
    counted = destination if source.component.component_type is ComponentType.QUEUE else source
    rate = rate_of(counted.loads[:1], "lcrs")
    return AdvisorLink(
        path_id=view.path.path.path_id, position=position,
        source_component_id=source.component.component_id, source_component_name=source.component.component_name,
        source_component_db=source.component.component_db, source_component_type=source.component.component_type,
        destination_component_id=destination.component.component_id,
        destination_component_name=destination.component.component_name,
        destination_component_db=destination.component.component_db,
        destination_component_type=destination.component.component_type,
        back_pressured=_back_pressured(view, source, destination),
        messages_per_second=None if rate is None else round(rate, 3),
    )  # fmt: skip


def _back_pressured(view: PathView, source: Part, destination: Part) -> bool | None:
    """A queue has no thread: its link is held back when the queue is kept full by what follows, so when its producer
    is held back."""
    held = source if source.component.component_type is not ComponentType.QUEUE else _producer(view, source)
    if held is None:
        return None
    stage = next((stage for stage in view.stages if stage.component is held.component), None)
    if stage is None or stage.mean is None:
        return None
    return stage.mean.flow_control > Thresholds().flow_control


def _producer(view: PathView, queue: Part) -> Part | None:
    number = view.path.parts.index(queue)
    return view.path.parts[number - 1] if number > 0 else None
