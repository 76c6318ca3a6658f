"""Files of an ended search: the changes that it has found, or the SQL that undoes them."""

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from thalweg.db.audit import record
from thalweg.engine_client.client import EngineFailure
from thalweg.engine_client.search_documents import FoundChange, FoundChanges
from thalweg.features.changes.engines import Miner, found_at, miners_of, refusal
from thalweg.features.changes.undo import script_of, script_part, undo_of
from thalweg.kernel.conflict_handlers import ExportFormat
from thalweg.kernel.context import Context
from thalweg.kernel.lifecycle import SearchState
from thalweg.kernel.problems import Problem
from thalweg.kernel.spreadsheets import csv_cell, csv_line

AT_ONCE = 1000
"""The engine also ends a page at 8 MiB of texts."""
OF_FILE = (
    "number", "commit_time", "xid", "commit_lsn", "lsn", "origin", "schema", "table", "operation", "before_is",
    "before", "after", "masked", "cut",
)  # fmt: skip


async def export(context: Context, database_id: str, search_id: str, format_: ExportFormat) -> AsyncIterator[str]:
    """All of its changes, in pieces. A failure after the first piece ends them early."""
    miner, page = await _recorded(context, database_id, search_id, "searches_export", {"format": format_.value})
    return _pieces(miner, page, format_)


async def undo(context: Context, database_id: str, search_id: str, numbers: list[int]) -> str:
    """A script for these changes, or for all where none is named."""
    miner, page = await _recorded(
        context, database_id, search_id, "searches_undo", {"changes": numbers} if numbers else {}
    )
    chosen = frozenset(numbers)
    parts, left_out = [], 0
    try:
        async for change in _changes(miner, page):
            if not chosen or change.number in chosen:
                made = undo_of(change)
                parts.append(script_part(change, made))
                left_out += made.sql is None
    except EngineFailure as failure:
        raise refusal(failure) from failure
    is_part = page.truncated or page.state is not SearchState.DONE
    return "".join(script_of(parts, left_out, is_part=is_part and not chosen))


async def _recorded(
    context: Context, database_id: str, search_id: str, action: str, facts: dict[str, Any]
) -> tuple[Miner, FoundChanges]:
    database, miners = await miners_of(context, database_id)
    miner, page = await found_at(miners, search_id, 0, AT_ONCE, whole=True)
    if page.state is SearchState.RUNNING:
        raise Problem(
            "search_running", f"The search {search_id} is still running.", "Wait until it has ended, or end it.",
        )  # fmt: skip
    facts = {"search_id": search_id, "stream_id": miner.stream_id, **facts}
    record(context, action, ("database", database.id, database.name), after=facts)
    return miner, page


async def _changes(miner: Miner, page: FoundChanges) -> AsyncIterator[FoundChange]:
    while True:
        for change in page.changes:
            yield change
        if page.next_after is None:
            return
        page = await miner.client.search(miner.stream_id, page.id, page.next_after, AT_ONCE, whole=True)


async def _pieces(miner: Miner, page: FoundChanges, format_: ExportFormat) -> AsyncIterator[str]:
    if format_ is ExportFormat.CSV:
        yield csv_line(OF_FILE)
    async for change in _changes(miner, page):
        entry = _exported(change)
        csv = format_ is ExportFormat.CSV
        yield csv_line(map(csv_cell, entry.values())) if csv else json.dumps(entry) + "\n"


def _exported(change: FoundChange) -> dict[str, Any]:
    """In the order of OF_FILE. A row: by column, null is NULL; what is not known or masked is missing."""
    facts = change.model_dump(mode="json", by_alias=True, exclude={"columns"})
    return {
        **{name: facts[name] for name in OF_FILE[:-4]},
        "before": _row(change, "before"), "after": _row(change, "after"),
        "masked": _named(change, "masked"), "cut": _named(change, "cut"),
    }  # fmt: skip


def _row(change: FoundChange, side: str) -> dict[str, str | None] | None:
    values = ((column.name, getattr(column, side)) for column in change.columns)
    return {name: value.text for name, value in values if value is not None and not value.masked} or None


def _named(change: FoundChange, what: str) -> list[str]:
    def sides(column: Any) -> Iterator[Any]:
        yield from (value for value in (column.before, column.after) if value is not None)

    return [column.name for column in change.columns if any(getattr(value, what) for value in sides(column))]
