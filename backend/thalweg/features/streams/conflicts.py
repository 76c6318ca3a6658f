"""A destination's conflict log, read through the engine that applies there."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from thalweg.db.audit import record
from thalweg.engine_client.access import problem_for, problem_of
from thalweg.engine_client.client import EngineClient, EngineFailure
from thalweg.engine_client.conflict_documents import LoggedColumn, LoggedConflict, LoggedConflicts
from thalweg.features.streams.conflict_schemas import (
    ConflictCount,
    ConflictCounts,
    LoggedChange,
    LoggedChanges,
    OpenedConflict,
)
from thalweg.features.streams.error_queue import engine_of
from thalweg.features.streams.error_queue_schemas import ParkedColumn, ParkedValue, ParkedValueState
from thalweg.kernel.conflict_handlers import ExportFormat, LoggedKind
from thalweg.kernel.context import Context
from thalweg.kernel.models import FieldProblem
from thalweg.kernel.pagination import decode_cursor, encode_cursor
from thalweg.kernel.principal import Role
from thalweg.kernel.problems import Problem
from thalweg.kernel.spreadsheets import csv_cell, csv_line

WHOLE_CHARACTERS = 100_000
"""The characters of a value; the log keeps no more."""
EXPORTED_AT_ONCE = 100
OF_FILE = (
    "id", "logged_at", "commit_lsn", "committed_at", "xid", "change", "schema", "table", "operation", "kind",
    "sqlstate", "action", "message", "before", "wanted", "destination",
)  # fmt: skip


@dataclass(frozen=True)
class Filter:
    """None: any. A table has a schema."""

    kind: LoggedKind | None
    schema: str | None
    table: str | None

    def check(self) -> None:
        if (self.schema is None) != (self.table is None):
            missing = "schema" if self.schema is None else "table"
            raise Problem(
                "invalid_request", "Name the schema and the table together.", "Give both, or neither.",
                errors=[FieldProblem(pointer=f"/query/{missing}", code="missing", message="It is missing.")],
            )  # fmt: skip

    def body(self) -> dict[str, Any]:
        wanted = {"kind": self.kind, "schema": self.schema, "table": self.table}
        return {name: value for name, value in wanted.items() if value is not None}


async def list_conflicts(
    context: Context, stream_id: str, destination_id: str, limit: int, cursor: str | None, which: Filter
) -> LoggedChanges:
    which.check()
    before = 0 if cursor is None else int(decode_cursor(cursor, int)[0])
    _, client = await engine_of(context, stream_id, destination_id)
    body = {**which.body(), "before": max(before, 0), "limit": limit, "characters": 1}
    try:
        page = await client.conflicts(stream_id, destination_id, body)
    except EngineFailure as failure:
        raise problem_for(context.principal, failure) from failure
    reveals = context.principal.role.covers(Role.OPERATOR)
    return LoggedChanges(
        conflicts=[LoggedChange(**_facts(conflict, reveals)) for conflict in page.conflicts],
        next_cursor=None if page.next_before is None else encode_cursor(page.next_before),
    )


async def count(context: Context, stream_id: str, destination_id: str) -> ConflictCounts:
    _, client = await engine_of(context, stream_id, destination_id)
    try:
        counted = await client.conflict_counts(stream_id, destination_id)
    except EngineFailure as failure:
        raise problem_for(context.principal, failure) from failure
    return ConflictCounts(
        counts=[
            ConflictCount.model_validate(
                {
                    **count.model_dump(by_alias=True),
                    "kind": count.kind or LoggedKind.ERROR,
                    "sqlstate": count.sqlstate or None,
                }
            )
            for count in counted.counts
        ]
    )


async def show(context: Context, stream_id: str, destination_id: str, conflict_id: int) -> OpenedConflict:
    row, client = await engine_of(context, stream_id, destination_id)
    body = {"before": conflict_id + 1, "limit": 1, "characters": WHOLE_CHARACTERS}
    try:
        page = await client.conflicts(stream_id, destination_id, body)
    except EngineFailure as failure:
        raise problem_of(failure) from failure
    if not page.conflicts or page.conflicts[0].id != conflict_id:
        raise Problem(
            "not_found", f"The conflict log has no entry {conflict_id}.",
            "Read the list again: old entries are removed after conflict_retention_days.",
        )  # fmt: skip
    # Committed before the answer leaves, as for parked transactions.
    facts = {"destination_id": destination_id, "conflict_id": conflict_id}
    record(context, "stream_conflicts_get", ("stream", row.id, row.name), after=facts)
    found = page.conflicts[0]
    return OpenedConflict(
        **_facts(found, reveals=True),
        columns=[_column(column) for column in found.columns],
        rows_found=1 if found.has_row else 0,
    )


async def export(
    context: Context, stream_id: str, destination_id: str, which: Filter, format_: ExportFormat
) -> AsyncIterator[str]:
    """The whole log, the newest entry first, in pieces. A failure after the first piece ends them early."""
    which.check()
    row, client = await engine_of(context, stream_id, destination_id)
    try:
        page = await _page(client, stream_id, destination_id, which, 0)
    except EngineFailure as failure:
        raise problem_of(failure) from failure
    facts = {"destination_id": destination_id, **which.body()}
    record(context, "stream_conflicts_export", ("stream", row.id, row.name), after=facts)
    return _pieces(client, stream_id, destination_id, which, format_, page)


async def _pieces(
    client: EngineClient, stream_id: str, destination_id: str, which: Filter, format_: ExportFormat,
    page: LoggedConflicts,
) -> AsyncIterator[str]:  # fmt: skip
    if format_ is ExportFormat.CSV:
        yield csv_line(OF_FILE)
    while True:
        for conflict in page.conflicts:
            entry = _exported(conflict)
            yield (
                json.dumps(entry) + "\n"
                if format_ is ExportFormat.NDJSON
                else csv_line([csv_cell(v) for v in entry.values()])
            )
        if page.next_before is None:
            return
        page = await _page(client, stream_id, destination_id, which, page.next_before)


async def _page(
    client: EngineClient, stream_id: str, destination_id: str, which: Filter, before: int
) -> LoggedConflicts:
    body = {**which.body(), "before": before, "limit": EXPORTED_AT_ONCE, "characters": WHOLE_CHARACTERS}
    return await client.conflicts(stream_id, destination_id, body)


def _exported(conflict: LoggedConflict) -> dict[str, Any]:
    """In the order of OF_FILE. A row: by column, null is NULL; what the change does not tell is missing."""
    facts = _facts(conflict, reveals=True)
    return {
        **{name: facts[name] for name in OF_FILE[:-3]},
        "logged_at": conflict.logged_at.isoformat(), "committed_at": conflict.committed_at.isoformat(),
        "before": _row(conflict, "before"), "wanted": _row(conflict, "wanted"),
        "destination": _row(conflict, "there") if conflict.has_row else None,
    }  # fmt: skip


def _row(conflict: LoggedConflict, side: str) -> dict[str, str | None] | None:
    row = {column.name: getattr(column, side) for column in conflict.columns if side in column.model_fields_set}
    return row or None


def _facts(conflict: LoggedConflict, reveals: bool) -> dict[str, Any]:
    return {
        **conflict.model_dump(by_alias=True, exclude={"columns", "has_row"}),
        "kind": conflict.kind or LoggedKind.ERROR.value,
        "sqlstate": conflict.sqlstate or None,
        "message": conflict.message if reveals else None,
    }


def _column(column: LoggedColumn) -> ParkedColumn:
    before, wanted, there = (_value(column, side) for side in ("before", "wanted", "there"))
    return ParkedColumn(
        name=column.name, identity=column.is_identity, wanted=wanted, before=before, now=there,
        wanted_differs=_differ(wanted, there), before_differs=_differ(before, there),
    )  # fmt: skip


def _value(column: LoggedColumn, side: str) -> ParkedValue:
    text: str | None = getattr(column, side)
    if side not in column.model_fields_set:
        return ParkedValue(state=ParkedValueState.ABSENT, text=None, bytes=0, cut=False)
    if text is None:
        return ParkedValue(state=ParkedValueState.NULL, text=None, bytes=0, cut=False)
    return ParkedValue(state=ParkedValueState.TEXT, text=text, bytes=len(text.encode()), cut=False)


def _differ(value: ParkedValue, other: ParkedValue) -> bool | None:
    if ParkedValueState.ABSENT in (value.state, other.state):
        return None
    return value.text != other.text
