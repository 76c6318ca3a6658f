"""The format of a row of history: docs/formats/history-document.md."""

import json
import zlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from thalweg.live.schemas import Sample

VERSION = b"\x01"
DIGITS = 5
"""Significant ones of a fraction: more than a chart or a percentage needs."""
MOMENTARY = {"age_seconds", "growth_bytes_per_second", "seconds_to_full", "applied", "source_read_at"}
"""Fields of a backlog that history does not keep."""
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
    """Without what its row says, and without what only the present is asked about."""
    left_out: dict[str, Any] = {"stream_id": True, "backlog": MOMENTARY}
    left_out["destinations"] = {"__all__": {"backlog": MOMENTARY, "parks_since": True}}
    return sample.model_dump(mode="json", by_alias=True, exclude=left_out)


def encode(document: Json) -> bytes:
    packer = zlib.compressobj(6, zdict=_typical())
    text = json.dumps(_rounded(document), separators=(",", ":"), ensure_ascii=False).encode()
    return VERSION + packer.compress(text) + packer.flush()


def decode(document: bytes) -> Json:
    """Raises DocumentError."""
    if document[:1] != VERSION:
        raise DocumentError(f"A document of history has version {document[:1].hex() or 'none'}, not {VERSION.hex()}.")
    try:
        return _with_owners(dict(json.loads(zlib.decompressobj(zdict=_typical()).decompress(document[1:]))))
    except (zlib.error, ValueError) as error:
        raise DocumentError(f"A document of history is damaged: {error}.") from error


def _with_owners(document: Json) -> Json:
    """Until the versions of December 2026, components of a stream's only destination did not carry its id."""
    destinations = document.get("destinations", [])
    if len(destinations) != 1:
        return document
    only = destinations[0]["destination_id"]
    names = {
        one["id"]: f"{only}:{one['id']}"
        for one in document["components"]
        if one.get("destination_id") is None and one["id"] not in SHARED
    }
    if not names:
        return document
    components = [
        {**one, "id": names[one["id"]], "destination_id": only} if one["id"] in names else one
        for one in document["components"]
    ]
    named = {**document, "components": components}
    if "high" in document:
        named["high"] = {_renamed(name, names): value for name, value in document["high"].items()}
    return named


def _renamed(statistic: str, names: dict[str, str]) -> str:
    kind, _, rest = statistic.partition(".")
    component, _, number = rest.partition(".")
    return f"{kind}.{names[component]}.{number}" if kind == "components" and component in names else statistic


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        whole = round(value)
        return whole if whole == value else float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {name: _rounded(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return value
