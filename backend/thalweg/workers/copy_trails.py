"""Trails of running copies: what was copied when, and how fast indexes were built. Engines report only how far they
are. A trail lies in the stream's observed document, so that it outlives the collector."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from thalweg.kernel.lifecycle import TableState

LOOKS_APART_MAX = timedelta(seconds=30)
"""Between looks further apart nobody knows for how long indexes were built."""
SPACINGS = 150
"""Points lie at least so small a part of the trail's length apart: a copy of a day needs none of each second."""
POINTS_MAX = 600

Document = dict[str, Any]


def follow_copies(document: Document, before: Document, at: datetime) -> None:
    """Gives every destination with an unfinished copy its `copy_trail`, that of `before` continued. Both are documents
    of a stream's status."""
    known = {destination["id"]: destination for destination in before.get("destinations", [])}
    for destination in document["destinations"]:
        last = known.get(destination["id"], {})
        trail, copy = last.get("copy_trail"), destination["instantiation"]
        if copy is None:
            destination["copy_trail"] = trail  # An engine that has just started does not know yet.
        elif copy["finished_at"] is not None or copy["started_at"] is None:
            destination["copy_trail"] = None
        else:
            same = trail is not None and trail["started_at"] == copy["started_at"]
            destination["copy_trail"] = _continued(trail if same else None, last.get("instantiation"), copy, at)


def _continued(trail: Document | None, last: Document | None, copy: Document, at: datetime) -> Document:
    moment = at.timestamp()
    point = [round(moment, 1), sum(table["rows_copied"] for table in copy["tables"])]
    if trail is None:
        return {"started_at": copy["started_at"], "seen_at": moment, "points": [point], "index_seconds": 0.0,
                "index_bytes": 0}  # fmt: skip
    # Looks at several engines may come in another order than they were asked.
    seconds, built = max(0.0, moment - trail["seen_at"]), _bytes_built(last, copy)
    builds = last is not None and (built > 0 or _builds(last))
    counts = builds and seconds <= LOOKS_APART_MAX.total_seconds()
    return {
        **trail, "seen_at": trail["seen_at"] + seconds, "points": _with_point(trail["points"], point),
        "index_seconds": trail["index_seconds"] + (seconds if counts else 0),
        "index_bytes": trail["index_bytes"] + (built if counts else 0),
    }  # fmt: skip


def _with_point(points: list[list[float]], point: list[float]) -> list[list[float]]:
    if point[0] <= points[-1][0]:
        return points
    spacing = (point[0] - points[0][0]) / SPACINGS
    kept = points[:-1] if len(points) > 1 and points[-1][0] - points[-2][0] < spacing else points
    if len(kept) >= POINTS_MAX:
        kept = kept[::2]
    return [*kept, point]


def _bytes_built(last: Document | None, copy: Document) -> int:
    """Bytes of the tables whose indexes, keys and constraints have been finished since: once for each of them."""
    if last is None:
        return 0
    built = {_name(table): table["indexes_built"] for table in last["tables"]}
    return sum(more * table["bytes_copied"] for table, more in _more_built(built, copy) if more > 0)


def _more_built(built: dict[tuple[str, str], int], copy: Document) -> Iterator[tuple[Document, int]]:
    for table in copy["tables"]:
        yield table, table["indexes_built"] - built.get(_name(table), table["indexes_built"])


def _builds(copy: Document) -> bool:
    return any(table["state"] == TableState.INDEXING for table in copy["tables"])


def _name(table: Document) -> tuple[str, str]:
    return table["schema"], table["table"]
