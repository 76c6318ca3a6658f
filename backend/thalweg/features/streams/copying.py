"""The initial copy as the API shows it: how far, how fast, and how long it still takes, as far as that is known."""

from datetime import UTC, datetime
from typing import Any

from thalweg.features.streams.schemas import CopyPoint, CopyStage, Instantiation, TableProgress
from thalweg.kernel.lifecycle import HAS_ROWS
from thalweg.kernel.sums import Sum, known_sum


def instantiation_of(
    document: dict[str, Any] | None, *, runs: bool, trail: dict[str, Any] | None = None
) -> Instantiation | None:
    """Rates are those of the tables that are being copied, each since it began: ranges finish at once, so that shorter
    intervals would jump, and a copy that comes later does not count the pause before it. A copy that is interrupted has
    no rate."""
    if document is None:
        return None
    tables = [_table_progress(table, runs=runs) for table in document["tables"]]
    left = [table for table in tables if not _has_rows(table.state)]
    running = [table for table in left if table.rows_per_second is not None]
    finished = time_of(document["finished_at"])
    rows_seconds = _rows_seconds_left(left, running)
    index_bytes = 0 if finished else _index_bytes_left(tables)
    index_rate = _index_rate(trail) if runs and not finished else None
    index_seconds = _index_seconds_left(index_bytes, index_rate)
    return Instantiation(
        started_at=time_of(document["started_at"]), finished_at=finished,
        stage=CopyStage.FINISHED if finished else CopyStage.ROWS if left else CopyStage.INDEXES,
        rows_estimated=known_sum(table.rows_estimated for table in tables),
        rows_copied=sum(table.rows_copied for table in tables),
        bytes_copied=sum(table.bytes_copied for table in tables),
        indexes_total=sum(table.indexes_total for table in tables),
        indexes_built=sum(table.indexes_built for table in tables),
        rows_per_second=known_sum(table.rows_per_second for table in running),
        bytes_per_second=known_sum(table.bytes_per_second for table in running),
        rows_seconds_left=rows_seconds,
        index_bytes_left=index_bytes, index_bytes_per_second=index_rate, indexes_seconds_left=index_seconds,
        seconds_left=None if rows_seconds is None or index_seconds is None else rows_seconds + index_seconds,
        curve=[CopyPoint(at=datetime.fromtimestamp(at, UTC), rows_copied=int(rows))
               for at, rows in (trail or {}).get("points", [])],
        tables=tables,
    )  # fmt: skip


def _rows_seconds_left(left: list[TableProgress], running: list[TableProgress]) -> float | None:
    """A table whose size nobody knows makes the whole unknown."""
    if not left:
        return 0.0
    rate = known_sum(table.rows_per_second for table in running)
    missing = Sum.of(
        None if table.rows_estimated is None else max(0, table.rows_estimated - table.rows_copied) for table in left
    ).exact
    return missing / rate if rate and missing is not None else None


def _index_bytes_left(tables: list[TableProgress]) -> int | None:
    """Each index reads its table once. A table that has not begun counts with the mean row of those that have."""
    rows, size = (sum(getattr(table, name) for table in tables) for name in ("rows_copied", "bytes_copied"))
    mean = size / rows if rows else None
    total = 0.0
    for table in tables:
        missing = max(0, table.indexes_total - table.indexes_built)
        if missing:
            whole = _whole_bytes(table, mean)
            if whole is None:
                return None
            total += missing * whole
    return round(total)


def _whole_bytes(table: TableProgress, mean: float | None) -> float | None:
    """The bytes of all rows of the table, including those that are still to come."""
    if _has_rows(table.state):
        return table.bytes_copied
    if table.rows_estimated is None:
        return None
    width = table.bytes_copied / table.rows_copied if table.rows_copied else mean
    return None if width is None else width * max(table.rows_estimated, table.rows_copied)


def _index_rate(trail: dict[str, Any] | None) -> float | None:
    """Measured in this copy. None before its first index of a table with rows is finished."""
    if trail is None or not trail["index_bytes"] or not trail["index_seconds"]:
        return None
    return float(trail["index_bytes"] / trail["index_seconds"])


def _index_seconds_left(left: int | None, rate: float | None) -> float | None:
    if left == 0:
        return 0.0
    return left / rate if left is not None and rate is not None else None


def _has_rows(state: str) -> bool:
    return state in HAS_ROWS


def _table_progress(table: dict[str, Any], *, runs: bool) -> TableProgress:
    seconds, rows = table["seconds"], table["rows_copied"]
    rate = rows / seconds if (runs or _has_rows(table["state"])) and seconds and rows else None
    estimate = table["rows_estimated"] if table["rows_estimated"] >= 0 else None
    return TableProgress(
        schema_name=table["schema"], table=table["table"], state=table["state"], rows_estimated=estimate,
        rows_copied=rows, bytes_copied=table["bytes_copied"], ranges_total=table["ranges_total"],
        ranges_copied=table["ranges_copied"], indexes_total=table.get("indexes_total", 0),
        indexes_built=table.get("indexes_built", 0), seconds=seconds, rows_per_second=rate,
        bytes_per_second=table["bytes_copied"] / seconds if rate else None,
        seconds_left=0.0 if _has_rows(table["state"]) else _left(estimate, rows, rate),
    )  # fmt: skip


def _left(total: int | None, done: int, rate: float | None) -> float | None:
    return max(0, total - done) / rate if total is not None and rate else None


def time_of(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
