"""How far an initial copy is: rates of what runs now, and no time that nobody knows."""

from datetime import timedelta
from typing import Any

import pytest

from tests.support.engine_double import example
from thalweg.db.models import EngineRow, OperationRow, StreamRow
from thalweg.engine_client.documents import StreamStatus
from thalweg.features.streams.presentation import instantiation_of
from thalweg.features.streams.schemas import Instantiation
from thalweg.kernel.clock import now
from thalweg.workers.progress import advance

HOURS_AGO = "2026-11-21T00:00:01.000000Z"


def table(name: str, state: str, copied: int, estimated: int, seconds: float = 10) -> dict[str, Any]:
    return {
        "schema": "public", "table": name, "state": state, "rows_estimated": estimated, "rows_copied": copied,
        "bytes_copied": 100 * copied, "ranges_total": 1, "ranges_copied": 0, "seconds": seconds,
        "indexes_total": 5, "indexes_built": 3,
    }  # fmt: skip


def progress(*tables: dict[str, Any], finished_at: str | None = None, runs: bool = True) -> Instantiation:
    shown = instantiation_of({"started_at": HOURS_AGO, "finished_at": finished_at, "tables": list(tables)}, runs=runs)
    assert shown is not None
    return shown


def test_the_rate_is_that_of_the_tables_that_are_being_copied() -> None:
    """Also long after the stream's first copy, which this one follows."""
    shown = progress(
        table("first", "REPLICATING", 1_000_000, 1_000_000), table("a", "COPYING", 500, 1500),
        table("b", "COPYING", 100, 600), table("c", "WAITING", 0, 300, seconds=0),
    )  # fmt: skip
    assert shown.stage == "rows"
    assert shown.rows_per_second == pytest.approx(60)
    assert shown.bytes_per_second == pytest.approx(6000)
    assert shown.rows_seconds_left == pytest.approx((1000 + 500 + 300) / 60)


def test_a_copy_that_is_interrupted_has_no_rate_and_no_end() -> None:
    shown = progress(table("first", "COPIED", 1000, 1000), table("a", "COPYING", 500, 1500), runs=False)
    assert (shown.rows_per_second, shown.bytes_per_second, shown.rows_seconds_left) == (None, None, None)
    assert [one.rows_per_second for one in shown.tables] == [100, None], "what is done has taken so long"
    assert shown.rows_copied == 1500


@pytest.mark.parametrize(
    "tables",
    [
        [table("a", "COPYING", 500, 1500), table("never analysed", "WAITING", 0, -1, seconds=0)],
        [table("a", "WAITING", 0, 1500, seconds=0)],
    ],
)
def test_what_cannot_be_told_is_not(tables: list[dict[str, Any]]) -> None:
    assert progress(*tables).rows_seconds_left is None


def test_the_rows_of_all_tables_are_those_of_the_tables_that_were_analysed() -> None:
    analysed, never = table("a", "COPYING", 500, 1500), table("never analysed", "WAITING", 0, -1, seconds=0)
    assert progress(analysed, never).rows_estimated == 1500
    assert progress(never).rows_estimated is None


@pytest.mark.parametrize(("estimates", "total"), [([1500, 700], 2200), ([1500, -1], None), ([-1, -1], None)])
def test_an_operation_has_no_total_of_rows_that_nobody_has_counted(estimates: list[int], total: int | None) -> None:
    document = example("status")["streams"][0]
    for table, estimate in zip(document["destinations"][0]["instantiation"]["tables"], estimates, strict=True):
        table |= {"rows_estimated": estimate, "rows_copied": 5}
    operation = OperationRow(kind="stream.create", state="running", unit="rows", revision=1, created_at=now())
    engine, row = EngineRow(acknowledged_revision=1), StreamRow(desired_status="ENABLED")
    advance(operation, row, StreamStatus.model_validate(document), now() + timedelta(seconds=1), engine)
    assert (operation.done, operation.total) == (10, total)


def test_with_all_rows_there_indexes_and_foreign_keys_follow() -> None:
    shown = progress(table("a", "COPIED", 1500, 1400), table("b", "INDEXING", 100, 90))
    assert (shown.indexes_built, shown.indexes_total) == (6, 10)
    assert shown.tables[1].seconds_left == 0
    assert (shown.stage, shown.rows_seconds_left, shown.rows_per_second) == ("indexes", 0.0, None)
    assert progress(table("a", "COPIED", 1500, 1400), finished_at=HOURS_AGO).stage == "finished"
