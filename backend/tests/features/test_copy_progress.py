"""How far an initial copy is: rates of what runs now, its curve over time, and no time that nobody knows."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from tests.features.test_streams import STREAMS, created
from tests.support.engine_double import EngineDouble, example
from tests.support.serving import eventually
from tests.test_collector import collector  # noqa: F401
from thalweg.db.models import EngineRow, OperationRow, StreamRow
from thalweg.engine_client.documents import StreamStatus
from thalweg.features.streams.copying import instantiation_of
from thalweg.features.streams.schemas import Instantiation
from thalweg.kernel.clock import now
from thalweg.workers.collector import Collector
from thalweg.workers.copy_trails import POINTS_MAX, follow_copies
from thalweg.workers.progress import advance

HOURS_AGO = "2026-11-21T00:00:01.000000Z"
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


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


class Watch:
    """The collector's looks at one copy, each after so many seconds."""

    def __init__(self) -> None:
        self.document: dict[str, Any] = {}
        self.at = NOON

    def look(self, seconds: float, *tables: dict[str, Any], finished_at: str | None = None) -> Instantiation:
        self.pass_by(seconds, *tables, finished_at=finished_at)
        [destination] = self.document["destinations"]
        copy = destination["instantiation"] or {"started_at": None, "finished_at": None, "tables": []}
        shown = instantiation_of(copy, runs=True, trail=destination["copy_trail"])
        assert shown is not None
        return shown

    def pass_by(self, seconds: float, *tables: dict[str, Any], finished_at: str | None = None) -> None:
        """Looks, but shows nothing."""
        self.at += timedelta(seconds=seconds)
        copy = {"started_at": HOURS_AGO, "finished_at": finished_at, "tables": list(tables)} if tables else None
        document = {"destinations": [{"id": "warehouse", "instantiation": copy}]}
        follow_copies(document, self.document, self.at)
        self.document = document


def indexed(name: str, state: str, built: int, rows: int = 1000) -> dict[str, Any]:
    return table(name, state, rows, rows) | {"indexes_built": built, "indexes_total": 4}


def test_the_curve_begins_with_the_copy_and_not_with_the_page() -> None:
    watch = Watch()
    for rows in (0, 100, 300):
        shown = watch.look(1, table("a", "COPYING", rows, 1500))
    points = [((point.at - NOON).total_seconds(), point.rows_copied) for point in shown.curve]
    assert points == [(1, 0), (2, 100), (3, 300)]
    watch.look(1)  # the engine was started again, and does not report the copy yet
    assert [point.rows_copied for point in watch.look(1, table("a", "COPYING", 250, 1500)).curve] == [0, 100, 300, 250]
    assert watch.look(1, table("a", "COPIED", 1500, 1500), finished_at=HOURS_AGO).curve == []
    assert len(watch.look(1, table("a", "COPYING", 10, 1500)).curve) == 1, "a copy that comes later begins anew"


def test_looks_that_come_in_another_order_do_not_turn_the_curve_back() -> None:
    watch = Watch()
    watch.look(5, table("a", "COPYING", 100, 1500))
    watch.look(5, table("a", "COPYING", 200, 1500))
    times = [point.at for point in watch.look(-3, table("a", "COPYING", 150, 1500)).curve]
    times += [point.at for point in watch.look(9, table("a", "COPYING", 300, 1500)).curve[len(times) :]]
    assert times == sorted(set(times)) and len(times) == 3


def test_the_curve_of_a_long_copy_stays_small_and_reaches_from_its_begin_to_now() -> None:
    watch = Watch()
    for second in range(20_000):
        watch.pass_by(1, table("a", "COPYING", second, 90_000))
    shown = watch.look(1, table("a", "COPYING", 20_000, 90_000))
    assert 100 < len(shown.curve) <= POINTS_MAX
    assert (shown.curve[0].rows_copied, shown.curve[-1].rows_copied) == (0, 20_000)
    times = [point.at for point in shown.curve]
    assert times == sorted(set(times))


def test_the_time_of_indexes_is_that_of_those_that_this_copy_has_built() -> None:
    """100 bytes a row, 4 indexes a table."""
    watch = Watch()
    shown = watch.look(1, indexed("a", "COPYING", 0), indexed("b", "WAITING", 0) | {"rows_copied": 0})
    assert (shown.index_bytes_per_second, shown.indexes_seconds_left, shown.seconds_left) == (None, None, None)
    shown = watch.look(20, indexed("a", "INDEXING", 0), indexed("b", "COPYING", 0, 500))
    assert shown.index_bytes_left == 4 * 100_000 + 4 * 50_000
    assert shown.indexes_seconds_left is None, "none is finished: nothing was measured"
    shown = watch.look(5, indexed("a", "INDEXING", 1), indexed("b", "COPYING", 0, 500))
    assert shown.index_bytes_per_second == pytest.approx(100_000 / 5)
    assert shown.indexes_seconds_left == pytest.approx((3 * 100_000 + 4 * 50_000) / 20_000)
    shown = watch.look(5, indexed("a", "INDEXING", 2), indexed("b", "INDEXING", 0, 500))
    assert (shown.rows_seconds_left, shown.stage) == (0, "indexes")
    assert shown.seconds_left == shown.indexes_seconds_left == pytest.approx(400_000 / 20_000)
    # For how long nobody looked, nobody knows how long the build took.
    shown = watch.look(3600, indexed("a", "INDEXING", 3), indexed("b", "INDEXING", 0, 500))
    assert shown.index_bytes_per_second == pytest.approx(20_000)


def test_indexes_of_rows_that_are_to_come_count_with_the_rows_that_are_expected() -> None:
    begun, waits = table("a", "COPYING", 500, 1500, seconds=10), table("b", "WAITING", 0, 600, seconds=0)
    assert progress(begun, waits).index_bytes_left == 2 * 150_000 + 2 * 60_000
    never = table("never analysed", "WAITING", 0, -1, seconds=0)
    assert progress(begun, never).index_bytes_left is None
    assert progress(waits).index_bytes_left is None, "nothing tells how wide a row is"
    assert progress(begun, waits | {"indexes_built": 5}).index_bytes_left == 2 * 150_000
    trail = {"points": [], "index_seconds": 5.0, "index_bytes": 100_000}
    document = {"started_at": HOURS_AGO, "finished_at": None, "tables": [begun]}
    still = instantiation_of(document, runs=False, trail=trail)
    assert still is not None and still.index_bytes_per_second is still.seconds_left is None


async def test_a_page_that_is_opened_later_has_the_curve_from_the_beginning(
    operator: httpx.AsyncClient, viewer: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble,
    collector: Collector,  # noqa: F811
) -> None:  # fmt: skip
    engine.phase, engine.copy_finished = "INSTANTIATING", False
    stream = await created(operator, registered)

    async def seen() -> list[dict[str, Any]] | None:
        shown = (await viewer.get(f"{STREAMS}/{stream['id']}")).json()["destinations"][0]["instantiation"]
        return shown["curve"] if shown is not None and len(shown["curve"]) > 2 else None

    early = await eventually(seen, 30)
    late = await eventually(seen, 30)
    assert late[:2] == early[:2]
    engine.copy_finished = True

    async def finished() -> bool:
        shown = (await viewer.get(f"{STREAMS}/{stream['id']}")).json()["destinations"][0]["instantiation"]
        return shown["stage"] == "finished" and shown["curve"] == []

    await eventually(finished, 30)
