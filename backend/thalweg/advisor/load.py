"""The load of each thread in a span: the mean of its samples, weighted by their intervals."""

from dataclasses import dataclass, field

from thalweg.kernel.sums import Sum
from thalweg.live.schemas import ComponentSample, ComponentType, Sample, TimePercent

ACTIVITIES = tuple(TimePercent.model_fields)
SECOND_US = 1e6


@dataclass
class Load:
    """One thread (or queue) over a span. `time` is percent per activity, None when no interval was accounted."""

    last: ComponentSample
    seconds: float = 0.0
    rates: dict[str, float] = field(default_factory=dict)
    time: dict[str, float] | None = None
    gauge_peaks: dict[str, float] = field(default_factory=dict)

    @property
    def idle(self) -> float | None:
        return None if self.time is None else self.time["idle"]

    @property
    def flow_control(self) -> float | None:
        return None if self.time is None else self.time["flow_control"]

    def gauge_seconds(self, name: str) -> float | None:
        """A gauge in microseconds, as seconds."""
        value = self.last.gauges.get(name)
        return None if value is None else value / SECOND_US


def loads_of(samples: list[Sample]) -> dict[str, Load]:
    """By the id of the thread, in the order of the last sample. A thread that only older samples have has ended, and is
    left out."""
    if not samples:
        return {}
    loads = {component.id: Load(component) for component in samples[-1].components}
    weights = dict.fromkeys(loads, 0.0)
    for sample in samples:
        seconds = sample.interval_seconds
        for component in sample.components:
            load = loads.get(component.id)
            if load is None or seconds is None or component.counter_rates is None:
                continue
            load.seconds += seconds
            for name, rate in component.counter_rates.items():
                load.rates[name] = load.rates.get(name, 0.0) + rate * seconds
            for name, value in component.gauges.items():
                load.gauge_peaks[name] = max(value, load.gauge_peaks.get(name, value))
            if component.time_percent is not None:
                _add_time(load, component.time_percent, seconds)
                weights[component.id] += seconds
    for identifier, load in loads.items():
        load.rates = {name: total / load.seconds for name, total in load.rates.items()}
        if load.time is not None:
            load.time = {name: total / weights[identifier] for name, total in load.time.items()}
    return loads


def _add_time(load: Load, time: TimePercent, seconds: float) -> None:
    if load.time is None:
        load.time = dict.fromkeys(ACTIVITIES, 0.0)
    for name in ACTIVITIES:
        load.time[name] += getattr(time, name) * seconds


def mean_of(loads: list[Load], name: str) -> float | None:
    """The mean of the accounted threads: percentages are normalised per thread."""
    known = [load.time[name] for load in loads if load.time is not None]
    return sum(known) / len(known) if known else None


def rates_of(loads: list[Load], counter: str) -> Sum[float]:
    """Over the threads."""
    return Sum.of(load.rates.get(counter) for load in loads)


def rate_of(loads: list[Load], counter: str) -> float | None:
    """The known part: the statistics of each thread are told beside it."""
    return rates_of(loads, counter).value


def of_type(loads: dict[str, Load], kind: ComponentType) -> list[Load]:
    return [load for load in loads.values() if load.last.type is kind]
