"""Puts what several engines told of one stream together to whole samples: each told its own part, at its own time."""

from datetime import timedelta

from thalweg.history.document import Json
from thalweg.kernel.sums import known_sum

EARLIEST_FIRST = (
    "RETRYING", "INSTANTIATING", "INITIALIZING", "DROPPING", "DRAINING", "STOPPED", "CATCHING UP", "REPLICATING",
)  # fmt: skip
STALE = timedelta(seconds=10)
"""A part stands beside a later one of another engine for so long, as in live samples."""
RATES = ("lcrs_per_second", "transactions_per_second", "bytes_per_second")
OF_APPLY = (*RATES, "latency", "error_queue_transactions")
"""Facts of a destination that the applying engine knows; the capturing engine knows the rest."""


def join(parts: list[Json]) -> Json:
    """Parts of one moment, one of each engine. The order of the path: who captures comes first."""
    if len(parts) == 1:
        return parts[0]
    parts = sorted(parts, key=lambda part: not _has(part, "CAPTURE"))
    applying = [part for part in parts if _has(part, "APPLY")] or parts
    base = applying[0]
    destinations = _destinations(parts)
    # What several destinations apply is the same changes again and again: the stream has its source's rate.
    counted = applying if len(destinations) < 2 else parts[:1]
    high: Json = {}
    for part in parts:
        high |= {
            name: value
            for name, value in part.get("high", {}).items()
            if part is base or name.startswith(("components.", "destinations."))
        }
    whole = {
        **base,
        **{name: known_sum([part[name] for part in counted]) for name in RATES},
        "status": "ABORTED" if any(part["status"] == "ABORTED" for part in parts) else base["status"],
        "phase": min((part["phase"] for part in parts), key=_earliness),
        "latency": max((part["latency"] for part in applying), key=lambda latency: latency["p99_ms"] or -1.0),
        "backlog": _longest_backlog(parts),
        "error_queue_transactions": known_sum([part["error_queue_transactions"] for part in applying]) or 0,
        "destinations": destinations,
        "components": [component for part in parts for component in part["components"]],
    }
    return {**whole, "high": high} if high else whole


def _longest_backlog(parts: list[Json]) -> Json:
    return {
        name: max((value for value in (part["backlog"][name] for part in parts) if value is not None), default=None)
        for name in ("bytes", "seconds")
    }


def _destinations(parts: list[Json]) -> list[Json]:
    """The capturing engine reports on all destinations, an applying one on its own."""
    found: dict[str, Json] = {}
    for part in parts:
        for one in part.get("destinations", []):
            known = found.get(one["destination_id"])
            if known is None:
                found[one["destination_id"]] = one
            elif _has(part, "APPLY"):
                applied = {name: one[name] for name in OF_APPLY}
                found[one["destination_id"]] = {**known, **applied, "backlog": _longest_backlog([known, one])}
    return list(found.values())


def _has(part: Json, kind: str) -> bool:
    return any(component["type"] == kind for component in part["components"])


def leads(part: Json) -> bool:
    """Whether its engine applies: whole samples are taken when that one was."""
    return _has(part, "APPLY")


def _earliness(phase: str) -> int:
    return EARLIEST_FIRST.index(phase) if phase in EARLIEST_FIRST else len(EARLIEST_FIRST)
