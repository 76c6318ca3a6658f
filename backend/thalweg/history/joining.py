"""Puts what several engines told of one stream together to whole samples: each told its own part, at its own time."""

from thalweg.history.document import AT_LEAST, Json
from thalweg.kernel.lifecycle import ObservedStatus
from thalweg.kernel.sums import known_sum
from thalweg.live.joining_rules import OF_APPLY, RATES, earliest, slowest


def join(parts: list[Json]) -> Json:
    """Parts of one moment, one of each engine. The order of the path: who captures comes first."""
    if len(parts) == 1:
        return with_latency_of_slowest(parts[0])
    parts = sorted(parts, key=lambda part: not _has(part, "CAPTURE"))
    applying = [part for part in parts if _has(part, "APPLY")] or parts
    base = applying[0]
    destinations = _destinations(parts)
    # Several destinations apply the same changes: the stream's rate is the source's, not their sum.
    counted = applying if len(destinations) < 2 else parts[:1]
    high: Json = {}
    for part in parts:
        high |= {
            name: value
            for name, value in part.get("high", {}).items()
            if part is base or name.startswith(("components.", "destinations."))
        }
    aborted = any(part["status"] == ObservedStatus.ABORTED for part in parts)
    whole = {
        **base,
        **{name: known_sum([part[name] for part in counted]) for name in RATES},
        "status": ObservedStatus.ABORTED if aborted else base["status"],
        "phase": earliest({part["phase"] for part in parts}),
        "lag": _longest_lag(parts),
        AT_LEAST: max((value for part in parts if (value := part.get(AT_LEAST)) is not None), default=None),
        "error_queue_transactions": known_sum([part["error_queue_transactions"] for part in applying]),
        "destinations": destinations,
        "components": [component for part in parts for component in part["components"]],
    }
    return with_latency_of_slowest({**whole, "high": high} if high else whole)


def with_latency_of_slowest(document: Json) -> Json:
    """A stream's latency is its slowest destination's. Until the versions of December 2026 it was that of all
    transactions at all destinations, in a row of one engine."""
    destinations = document.get("destinations", [])
    last = slowest(destinations, lambda destination: destination["latency"]["p99_ms"])
    if last is None or len(destinations) < 2:
        return document
    whole = {**document, "latency": last["latency"]}
    if "high" in document:
        own = f"destinations.{last['destination_id']}."
        others = {name: value for name, value in document["high"].items() if not name.startswith("latency.")}
        highs = {name.removeprefix(own): value for name, value in others.items() if name.startswith(f"{own}latency.")}
        whole["high"] = others | highs
    return whole


def _longest_lag(parts: list[Json]) -> Json:
    return {
        name: max((value for value in (part["lag"][name] for part in parts) if value is not None), default=None)
        for name in ("bytes", "seconds")
    }


def _destinations(parts: list[Json]) -> list[Json]:
    """The capturing engine reports on all destinations, an applying one on its own."""
    found: dict[str, Json] = {}
    for part in parts:
        for destination in part.get("destinations", []):
            known = found.get(destination["destination_id"])
            if known is None:
                found[destination["destination_id"]] = destination
            elif _has(part, "APPLY"):
                applied = {name: destination[name] for name in OF_APPLY}
                found[destination["destination_id"]] = {
                    **known,
                    **applied,
                    "lag": _longest_lag([known, destination]),
                }
    return list(found.values())


def _has(part: Json, kind: str) -> bool:
    return any(component["type"] == kind for component in part["components"])


def leads(part: Json) -> bool:
    """Whether its engine applies: whole samples are taken when that one was."""
    return _has(part, "APPLY")
