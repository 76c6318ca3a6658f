"""The format of a row of history: docs/formats/history-document.md."""

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from thalweg.kernel.words import ended
from thalweg.live.former_names import with_todays_names
from thalweg.live.schemas import DestinationSample, Sample

VERSION = b"\x01"
DIGITS = 5
"""Significant ones of a fraction: more than a chart or a percentage needs."""
MOMENTARY = {
    "age_seconds", "growth_bytes_per_second", "seconds_to_full", "reached_limit", "applied", "source_read_at",
}  # fmt: skip
"""Fields of a lag that history does not keep."""
AT_LEAST = "latency_at_least_ms"
"""How long the oldest change that waits has waited, where nothing has arrived; of a stream, at the last destination."""
SHARED = ("capture", "queue")
"""Components that all of a stream's destinations share, by their ids."""
Json = dict[str, Any]


@dataclass(frozen=True)
class Stored:
    """A row; `width` is its tier's."""

    stream_id: str
    engine_id: str
    at: datetime
    samples: int
    document: bytes
    width: timedelta = timedelta(seconds=1)


class DocumentError(ValueError):
    """A row's document that this version cannot read."""


@cache
def _typical() -> bytes:
    """The dictionary of typical names and states, which makes them almost free. Never change the file: another one is
    another version."""
    return Path(__file__).with_name("typical_1.json").read_bytes()


def document_of(sample: Sample) -> Json:
    """Without what its row says, and without what only the present is asked about. A latency that is a lower bound has
    a number of its own: what only waits is not mixed with what has arrived."""
    figures = {"lag": MOMENTARY, "latency": {"at_least"}}
    left_out: dict[str, Any] = {"stream_id": True, "state": True, **figures}
    of_now = {"state", "parks_since", "stalled_since", "error_queue_oldest_at"}
    left_out["destinations"] = {"__all__": {**figures, **dict.fromkeys(of_now, True)}}
    document = sample.model_dump(mode="json", by_alias=True, exclude=left_out)
    owners: list[tuple[Json, Sample | DestinationSample]] = [(document, sample)]
    owners += zip(document["destinations"], sample.destinations, strict=True)
    for known, owner in owners:
        known[AT_LEAST] = owner.latency.p99_ms if owner.latency.at_least else None
        if owner.latency.at_least:
            known["latency"]["p99_ms"] = None
    document[AT_LEAST] = max((known[AT_LEAST] or 0.0 for known, _ in owners), default=0.0) or None
    return document


def encode(document: Json) -> bytes:
    packer = zlib.compressobj(6, zdict=_typical())
    text = json.dumps(_rounded(document), separators=(",", ":"), ensure_ascii=False).encode()
    return VERSION + packer.compress(text) + packer.flush()


def decode(document: bytes, ids: Mapping[str, str] = MappingProxyType({})) -> Json:
    """`ids`: those of today by the former ones of the stream's destinations. Raises DocumentError."""
    if document[:1] != VERSION:
        raise DocumentError(f"A document of history has version {document[:1].hex() or 'none'}, not {VERSION.hex()}.")
    try:
        text = zlib.decompressobj(zdict=_typical()).decompress(document[1:])
        return _of_today(dict(json.loads(with_todays_names(text))), ids)
    except (zlib.error, ValueError) as error:
        raise DocumentError(f"A document of history is damaged: {ended(str(error))}") from error


def _of_today(document: Json, ids: Mapping[str, str]) -> Json:
    """Until the versions of December 2026, components of a stream's only destination did not carry its id; a
    destination's own may have been another one."""
    destinations = document.get("destinations", [])
    owners = {
        destination["destination_id"]: ids.get(destination["destination_id"], destination["destination_id"])
        for destination in destinations
    }
    only = next(iter(owners)) if len(owners) == 1 else None
    names = {component["id"]: _name(component, owners, only) for component in document["components"]}
    if all(old == new for old, new in (*owners.items(), *names.items())):
        return document
    today = {
        **document,
        "destinations": [
            {**destination, "destination_id": owners[destination["destination_id"]]} for destination in destinations
        ],
        "components": [
            {
                **component,
                "id": names[component["id"]],
                "destination_id": names[component["id"]].rpartition(":")[0] or None,
            }
            for component in document["components"]
        ],
    }
    if "high" in document:
        renamed = {"components": names, "destinations": owners}
        today["high"] = {_renamed(name, renamed): value for name, value in document["high"].items()}
    return today


def _name(component: Json, owners: dict[str, str], only: str | None) -> str:
    """Its id, with the id of the destination whose own it is."""
    owner, _, name = component["id"].rpartition(":")
    owner = owner or component.get("destination_id") or (None if name in SHARED else only)
    return f"{owners.get(owner, owner)}:{name}" if owner else str(name)


def _renamed(statistic: str, names: dict[str, dict[str, str]]) -> str:
    kind, _, rest = statistic.partition(".")
    item, _, number = rest.partition(".")
    return f"{kind}.{names[kind].get(item, item)}.{number}" if kind in names else statistic


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        whole = round(value)
        return whole if whole == value else float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {name: _rounded(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return value
