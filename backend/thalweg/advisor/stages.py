"""The stages of a path: each component, and each sub-component of apply, with what its threads did."""

from dataclasses import dataclass

from thalweg.advisor.load import Load
from thalweg.advisor.occupancy import Occupancy, is_behind, mean_occupancy, occupancy_of, sender_occupancy, with_lock
from thalweg.advisor.schemas import AdvisorComponent
from thalweg.advisor.shape import Path
from thalweg.live.schemas import ComponentType


@dataclass(frozen=True)
class Thread:
    load: Load
    occupancy: Occupancy


@dataclass(frozen=True)
class Stage:
    """`mean` is normalised per thread; None, and no threads, for queues and before there are rates."""

    component: AdvisorComponent
    sub_component: str | None
    loads: list[Load]
    threads: list[Thread]
    mean: Occupancy | None

    @property
    def busiest(self) -> Thread | None:
        return min(self.threads, key=lambda thread: thread.occupancy.idle, default=None)

    @property
    def title(self) -> str:
        return self.sub_component or self.component.component_type.value

    def with_lock(self, share: float) -> "Stage":
        """The stage if `share` percent of its statements' time are waits for another session's lock."""
        threads = [Thread(thread.load, with_lock(thread.occupancy, share)) for thread in self.threads]
        mean = mean_occupancy([thread.occupancy for thread in threads])
        return Stage(self.component, self.sub_component, self.loads, threads, mean)


def stages_of(path: Path) -> list[Stage]:
    """In the direction of the flow."""
    samples = path.samples
    lag = samples[-1].lag.bytes if samples else None
    receivers = [part for part in path.parts if part.component.component_type is ComponentType.PROPAGATION_RECEIVER]
    receiver = receivers[0].loads[0] if receivers else None
    stages = []
    for part in path.parts:
        behind = part.component.component_type is ComponentType.CAPTURE and is_behind(part.loads[0], lag)
        for sub_component in part.sub_components:
            loads = part.of(sub_component)
            threads = [
                Thread(load, occupancy)
                for load in loads
                if (occupancy := occupancy_of(load, behind)) is not None
            ]  # fmt: skip
            if part.component.component_type is ComponentType.PROPAGATION_SENDER:
                threads = [
                    Thread(thread.load, sender_occupancy(thread.load, thread.occupancy, receiver))
                    for thread in threads
                ]  # fmt: skip
            mean = mean_occupancy([thread.occupancy for thread in threads])
            stages.append(Stage(part.component, sub_component, loads, threads, mean))
    return stages
