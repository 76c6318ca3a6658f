"""Rolls documents of one stream and engine up to one of a minute or an hour.

Rates, percentages and gauges become their mean over time, counters their last value, states what they were for
longest, `latency.p50_ms` its mean over transactions and `latency.p99_ms` its highest: never better than it was. Unknown
values do not count, and a value that was never known stays null. Beside the mean stands the highest of the seconds.
"""

from collections import defaultdict
from datetime import datetime
from typing import Any

from thalweg.history.document import AT_LEAST, Json
from thalweg.history.joining import with_latency_of_slowest
from thalweg.history.statistics import LISTS, flat, set_flat

LAST = ("error_queue_transactions",)
HIGHEST = ("latency.p99_ms", AT_LEAST)
SUMMED = ("latency.transactions", "interval_seconds")
BY_TRANSACTIONS = ("latency.p50_ms",)
UNWEIGHED_SECONDS = 1.0
"""The weight in seconds of a sample without an interval, such as the first after a start."""


class _Sum:
    """One statistic over the documents."""

    __slots__ = ("high", "last", "sum", "weighed", "weight")

    def __init__(self) -> None:
        self.sum = self.weighed = self.weight = self.last = 0.0
        self.high = float("-inf")

    def add(self, value: float, weight: float, high: float) -> None:
        self.sum += value
        self.weighed += value * weight
        self.weight += weight
        self.last = value
        if high > self.high:
            self.high = high

    def result(self, name: str) -> float:
        if name in SUMMED:
            return self.sum
        if name in HIGHEST:
            return self.high
        return self.last if name in LAST or not self.weight else self.weighed / self.weight


def roll_up(documents: list[Json], until: datetime) -> Json:
    """Rolls up at least one document, in the order of time. `until` is the end of the span: the roll-up's `at`."""
    rolled = _skeleton(documents)
    sums: dict[str, _Sum] = defaultdict(_Sum)
    for document in documents:
        seconds = document["interval_seconds"] or UNWEIGHED_SECONDS
        transactions = {"": document["latency"]["transactions"] or 0} | {
            destination["destination_id"]: destination["latency"]["transactions"] or 0
            for destination in document.get("destinations", [])
        }
        highs = document.get("high", {})
        for name, value in flat(document, counters=False):
            if value is not None:
                owner, own = _of_destination(name)
                weight = transactions[owner] if own in BY_TRANSACTIONS else seconds
                sums[name].add(value, weight, highs.get(name, value))
    high = {}
    for name, known in sums.items():
        _, own = _of_destination(name)
        result = known.result(own)
        set_flat(rolled, name, result)
        if known.high > result and own not in SUMMED:
            high[name] = known.high
    return with_latency_of_slowest({**rolled, "at": until.isoformat(), "high": high})


def _of_destination(name: str) -> tuple[str, str]:
    """(destination, the name within it): its statistics roll up as the stream's do. The stream's own have none."""
    if not name.startswith("destinations."):
        return "", name
    _, destination, own = name.split(".", 2)
    return destination, own


def _skeleton(documents: list[Json]) -> Json:
    """Names and states, with every number unknown. A component stays when it was there at any time."""
    newest = documents[-1]
    components: dict[str, Json] = {}
    destinations: dict[str, Json] = {}
    states: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for document in documents:
        seconds = document["interval_seconds"] or UNWEIGHED_SECONDS
        for destination in document.get("destinations", []):
            blank, known = _blank(destination), destinations.get(destination["destination_id"], {})
            destinations[destination["destination_id"]] = {**blank, "backlog": blank["backlog"] or known.get("backlog")}
        for component in document["components"]:
            components[component["id"]] = component
            states[component["id"]][component["state"]] += seconds
    return {
        **{name: _blank(value) for name, value in newest.items() if name not in (*LISTS, "high")},
        "status": _longest(documents, "status"),
        "phase": _longest(documents, "phase"),
        "destinations": list(destinations.values()),
        "components": [
            {**_blank(component), "server": component["server"], "counters": component["counters"],
             "state": _largest(states[name])}
            for name, component in components.items()
        ],
    }  # fmt: skip


def _longest(documents: list[Json], name: str) -> str:
    spent: dict[str, float] = defaultdict(float)
    for document in documents:
        spent[document[name]] += document["interval_seconds"] or UNWEIGHED_SECONDS
    return _largest(spent)


def _largest(spent: dict[str, float]) -> str:
    return max(spent, key=lambda value: spent[value])


def _blank(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _blank(item) for name, item in value.items()}
    return None if isinstance(value, int | float) else value
