"""Reads what the databases of limited and broken paths say, and turns it into clues and into sheets to show."""

import asyncio
import json
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Any

from thalweg.advisor.analysis import PathView
from thalweg.advisor.finding import Fact, FactSheet
from thalweg.advisor.findings.clues import Parameter, StreamFacts
from thalweg.advisor.schemas import Verdict
from thalweg.db.models import DestinationRow, StreamRow
from thalweg.engine_client.mining_limits import WAL_ARCHIVE
from thalweg.inspection.performance import DestinationFacts, Facts, SourceFacts, read_both
from thalweg.inspection.target import Target, target_of
from thalweg.kernel.context import Resources
from thalweg.kernel.renames import name_there
from thalweg.kernel.row_rules import SETS
from thalweg.kernel.words import counted, figure

READ_AT_ONCE = 6
PATHS_READ_MAX = 40
TIMEOUT_SECONDS = 3
UNREAD = (
    Verdict.NONE, Verdict.PARKING, Verdict.SOURCE_IDLE, Verdict.STOPPED, Verdict.PAUSED, Verdict.COPYING,
    Verdict.UNKNOWN, Verdict.STARTING, Verdict.WAITING, Verdict.HELD_UP,
)  # fmt: skip
SESSIONS_SHOWN = 5


@dataclass(frozen=True)
class Known:
    by_path: dict[str, StreamFacts]
    sheets: list[FactSheet]


@dataclass(frozen=True)
class _Reading:
    path_id: str
    stream_id: str
    source: Target
    destination: Target
    tables: dict[tuple[str, str], tuple[str, str]]
    """With their names at the destination."""


class Depth(Enum):
    """How much of the databases is read. RECENT serves views that refresh every few seconds: all that look share what
    was read a while ago."""

    NOTHING = "nothing"
    RECENT = "recent"
    NOW = "now"


async def facts_of(resources: Resources, rows: list[StreamRow], views: list[PathView], depth: Depth) -> Known:
    """Databases are read only where something limits, breaks or stops a path: everything else has no use for it."""
    by_id = {row.id: row for row in rows}
    wanted: list[PathView] = []
    if depth is not Depth.NOTHING:
        wanted = [view for view in views if _is_read(view)][:PATHS_READ_MAX]
    # Facts that were read before a path stood still say nothing of why.
    still = {view.path.path.path_id for view in wanted if view.stands_now}
    readings = [_reading(resources, by_id[view.path.path.stream_id], view) for view in wanted]
    limit = asyncio.Semaphore(READ_AT_ONCE)

    async def read(reading: _Reading) -> tuple[SourceFacts, DestinationFacts]:
        async with limit:
            return await read_both(
                reading.source, reading.destination, reading.stream_id, reading.tables, TIMEOUT_SECONDS
            )

    async def known_of(reading: _Reading) -> tuple[SourceFacts, DestinationFacts]:
        anew = depth is Depth.NOW
        return await resources.recent.of(
            ("facts", reading.path_id, reading.path_id in still), lambda: read(reading), anew=anew
        )

    answers = await asyncio.gather(*(known_of(reading) for reading in readings))
    read_by_path = {reading.path_id: answer for reading, answer in zip(readings, answers, strict=True)}
    sheets: dict[tuple[str, str, str], FactSheet] = {}
    known: dict[str, StreamFacts] = {}
    for view in views:
        path = view.path.path
        row = by_id[path.stream_id]
        source, destination = read_by_path.get(path.path_id, (None, None))
        known[path.path_id] = _known(resources, row, _end_of(row, path.destination_id), source, destination)
        if source is not None:
            sheets[path.source_db, "source", path.stream_id] = _sheet(path.source_db, "source", source)
        if destination is not None:
            sheets[path.destination_db, "destination", path.path_id] = _sheet(
                path.destination_db, "destination", destination
            )
    return Known(known, list(sheets.values()))


def _is_read(view: PathView) -> bool:
    """A path that is held up is read only for an open transaction: the rest is not to be found in a database."""
    staged = view.path.staged_wal
    held = staged is not None and staged.is_full and staged.is_held_by_transaction
    return view.bottleneck.verdict not in UNREAD or view.stands_now or held


def _reading(resources: Resources, row: StreamRow, view: PathView) -> _Reading:
    return _Reading(
        view.path.path.path_id, row.id, target_of(row.source, resources),
        target_of(_end_of(row, view.path.path.destination_id).database, resources), _tables(row),
    )  # fmt: skip


def _end_of(row: StreamRow, destination_id: str) -> DestinationRow:
    """A past path's destination may be gone: another one stands in for it."""
    return row.destination(destination_id) or row.destinations[0]


def _tables(row: StreamRow) -> dict[tuple[str, str], tuple[str, str]]:
    return {(table["schema"], table["table"]): name_there(table) for table in row.tables}


def conditions_of(row: StreamRow) -> int:
    rules = [rule for scope in row.rules.get("row_rules", []) for name in SETS for rule in scope.get(name) or []]
    return sum(rule.get("condition") is not None for rule in rules)


def _known(
    resources: Resources, row: StreamRow, end: DestinationRow, source: SourceFacts | None,
    destination: DestinationFacts | None,
) -> StreamFacts:  # fmt: skip
    contract = _contract(resources.settings.contract_directory)
    set_here = {**row.parameters, **end.parameters}
    parameters = {
        name: Parameter(
            set_here.get(name, item["default"]),
            item["default"],
            item["live"],
            item.get("maximum"),
            of_destination=item["scope"] == "DESTINATION",
        )
        for name, item in contract.items()
    }
    return StreamFacts(
        row.source_id, end.database_id, parameters, list(_tables(row).values()), conditions_of(row), source,
        destination, row.capture_kind, row.parameters.get(WAL_ARCHIVE) or None,
    )  # fmt: skip


@lru_cache(maxsize=4)
def _contract(directory: Path) -> dict[str, dict[str, Any]]:
    document = json.loads((directory / "parameters.json").read_text())
    return {item["name"]: item for item in document["parameters"]}


def _sheet(database: str, side: str, facts: Facts) -> FactSheet:
    lines = [*facts.settings.items()]
    if facts.failure is None:
        lines.append(("working sessions seen", str(facts.waits.sessions)))
        lines += [
            (f"wait {event}", counted(count, "time")) for event, count in facts.waits.events.most_common(SESSIONS_SHOWN)
        ]
        lines += [("blocked by", blocker.description) for blocker in facts.waits.blockers.values()]
    if isinstance(facts, SourceFacts) and facts.slot is not None:
        lines += [(f"slot {name}", str(value)) for name, value in facts.slot.items()]
    if isinstance(facts, DestinationFacts):
        if facts.waits.round_trip_ms is not None:
            lines.append(("round trip", f"{figure(facts.waits.round_trip_ms)} ms"))
        lines += [("no key", ".".join(name)) for name in facts.keyless]
        lines += [("trigger", f"{'.'.join(item.table)}: {item.name} ({item.mode})") for item in facts.triggers]
        lines += [(f"pg_stat_wal {name}", figure(value, 6)) for name, value in facts.wal.items()]
        lines += [(f"pg_stat_io {name}", figure(value, 6)) for name, value in facts.io.items()]
    return FactSheet(
        database=database, side=side, queried_at=facts.queried_at,
        error=facts.failure.message if facts.failure else None,
        facts=[Fact(database=database, side=side, name=name, value=value) for name, value in lines],
    )  # fmt: skip
