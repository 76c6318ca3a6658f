"""Names of a sample's numbers: their path, with dots. `components.server-1.time_percent.busy`, `latency.p99_ms`,
`components.warehouse:reader.lcrs_per_second`, `destinations.warehouse.lag.bytes`.

Components and destinations are named by their ids, so their places in the lists do not matter.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from thalweg.history.document import Json

ALL = "*"
"""Stands for every item of a list: `components.*.gauges.depth`, `destinations.*.lag.bytes`."""
LISTS = {"components": "id", "destinations": "destination_id"}
"""The field that names the items of each list of a sample."""
DESCRIBED = ("at", "status", "phase", "id", "engine_id", "destination_id", "type", "name", "sub_component", "server",
             "state", "high")  # fmt: skip
UNITS = (
    ("lcrs_per_second", "LCRs/s"), ("transactions_per_second", "transactions/s"), ("bytes_per_second", "bytes/s"),
    ("_ms", "ms"), ("_us", "us"), ("seconds", "s"), ("bytes", "bytes"), ("transactions", "transactions"),
    ("lcrs", "LCRs"), ("frames", "LCRs"), ("depth", "LCRs"), ("capacity", "LCRs"), ("groups", "groups"),
)  # fmt: skip


def flat(document: Json, *, counters: bool = True) -> Iterator[tuple[str, float | None]]:
    """Every number of a document by its name, the unknown ones as None. Components' counters can be left out."""
    for name, value in document.items():
        if name in LISTS:
            for item in value:
                prefix = f"{name}.{item[LISTS[name]]}."
                for part, number in item.items():
                    if part not in DESCRIBED and (counters or part != "counters"):
                        yield from _numbers(prefix + part, number)
        elif name not in DESCRIBED:
            yield from _numbers(name, value)


def _numbers(name: str, value: object) -> Iterator[tuple[str, float | None]]:
    if isinstance(value, dict):
        for part, number in value.items():
            if number is None or isinstance(number, int | float):
                yield f"{name}.{part}", number
    elif value is None or isinstance(value, int | float):
        yield name, value


def set_flat(document: Json, name: str, value: float | None) -> None:
    """Sets one number. An item's groups of numbers that are null so far are made."""
    *path, last = name.split(".")
    place = document
    if path and path[0] in LISTS:
        kind, identifier, *path = path
        place = next(item for item in document[kind] if item[LISTS[kind]] == identifier)
    for part in path:
        if place.get(part) is None:
            place[part] = {}
        place = place[part]
    place[last] = value


@dataclass(frozen=True)
class Picked:
    """One statistic of one document."""

    name: str
    value: float | None
    high: float | None


def pick(document: Json, wanted: list[tuple[str, ...]]) -> list[Picked]:
    """The wanted statistics (their names' parts) that the document has; ALL gives one for each item of the list."""
    items: dict[str, dict[str, Json]] = {
        name: {item[key]: item for item in document.get(name, [])} for name, key in LISTS.items()
    }
    found = []
    for parts in wanted:
        by_id = items.get(parts[0])
        if by_id is None:
            found.append(_picked(document, document, parts, parts))
            continue
        for identifier in by_id if parts[1] == ALL else [parts[1]]:
            if identifier in by_id:
                full = (parts[0], identifier, *parts[2:])
                found.append(_picked(document, by_id[identifier], parts[2:], full))
    return [statistic for statistic in found if statistic is not None]


def _picked(document: Json, place: Json, path: tuple[str, ...], full: tuple[str, ...]) -> Picked | None:
    value: object = place
    for part in path:
        if value is None:
            break
        if not isinstance(value, dict) or part not in value:
            return None
        value = value[part]
    if value is not None and not isinstance(value, int | float):
        return None
    name = ".".join(full)
    return Picked(name, value, document.get("high", {}).get(name, value))


def unit_of(name: str) -> str:
    if ".time_percent." in name:
        return "%"
    last = name.rsplit(".", 1)[-1]
    unit = next((unit for end, unit in UNITS if last.endswith(end)), "")
    return f"{unit or '1'}/s" if ".counter_rates." in name else unit
