"""History: what the collector writes comes back as charts without holes, at every resolution, and goes in time."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from sqlalchemy import text

from tests.features.test_streams import STREAMS, created
from tests.support.engine_double import EngineDouble, example
from tests.support.full_disk import fill_disk, free_disk
from tests.support.serving import eventually
from tests.test_collector import collector  # noqa: F401
from tests.test_units import ONLY
from thalweg.engine_client.documents import (
    ComponentStats,
    EnginePositions,
    EngineStats,
    EngineStatus,
    HistorySample,
)
from thalweg.history import partitions
from thalweg.history.document import Json, Stored, decode, document_of, encode
from thalweg.history.joining import join
from thalweg.history.reading import sample_from, samples_between
from thalweg.history.rollup import roll_up
from thalweg.history.series import resample, spans_of
from thalweg.history.tiers import HOURS, MINUTES, SECONDS, choose_step, choose_tier, floor
from thalweg.kernel.context import Resources
from thalweg.kernel.settings import Settings
from thalweg.kernel.tasks import stop_task
from thalweg.live.rates import Reading, sample_of
from thalweg.live.schemas import ComponentSample, Sample
from thalweg.workers.backfill import samples_of
from thalweg.workers.collector import Collector
from thalweg.workers.history import HistoryWriter

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def sample_at(at: datetime, rate: float | None, *, stream_id: str = "k3j2h1g4", seconds: float = 1.0) -> Sample:
    """As live: `rate` LCRs a second, all of them by server-1, or unknown."""
    stats = EngineStats.model_validate(example("stats"))
    status = EngineStatus.model_validate(example("status")).streams[0]
    now = Reading(at, 0, stats.streams[0], status)
    known = None if rate is None else seconds
    first = sample_of(stream_id, None, now, "abcdefgh")
    rates = None if rate is None else {"lcrs": rate}
    components = [
        part.model_copy(update={"lcrs_per_second": rate, "counter_rates": rates}) for part in first.components
    ]
    return first.model_copy(update={"interval_seconds": known, "lcrs_per_second": rate, "components": components})


def row_of(sample: Sample, engine_id: str = "abcdefgh") -> Stored:
    return Stored(sample.stream_id, engine_id, sample.at, 1, encode(document_of(sample)))


def share_of(sample: Sample, wanted: set[str]) -> Sample:
    parts: list[ComponentSample] = [part for part in sample.components if part.id.rsplit(":", 1)[-1] in wanted]
    return sample.model_copy(update={"components": parts})


def test_what_is_stored_is_the_sample() -> None:
    sample = sample_at(NOON, 1234.5)
    document = decode(encode(document_of(sample)))
    lag = sample.lag.model_copy(update={"applied": None})
    destinations = [share.model_copy(update={"lag": lag}) for share in sample.destinations]
    lasting = sample.model_copy(update={"lag": lag, "destinations": destinations})
    assert Sample.model_validate({**document, "stream_id": sample.stream_id}) == lasting


def test_history_of_a_stream_from_before_components_carried_their_only_destination_reads_like_todays() -> None:
    sample = sample_at(NOON + timedelta(seconds=1), 1234.5)
    document = {**document_of(sample), "high": {f"components.{ONLY}:reader.gauges.depth": 7.0, "lcrs_per_second": 2e3}}
    old = {
        **document,
        "components": [
            {**part, "id": part["id"].removeprefix(f"{ONLY}:"), "destination_id": None}
            for part in document["components"]
        ],
        "high": {"components.reader.gauges.depth": 7.0, "lcrs_per_second": 2e3},
    }
    assert decode(encode(old)) == decode(encode(document))
    (series,) = resample(spans_of([row_of(sample)]), [f"components.{ONLY}:server-1.lcrs_per_second"], NOON, 1, 1)
    old_row = Stored(sample.stream_id, "abcdefgh", sample.at, 1, encode(old))
    assert resample(spans_of([old_row]), [series.name], NOON, 1, 1)[0].values == series.values == [1234.5]


def test_a_chart_has_no_hole_where_samples_are_late_and_null_where_there_are_none() -> None:
    rows = [row_of(sample_at(NOON + timedelta(seconds=1.1 * number), 100.0 * number, seconds=1.1))
            for number in range(1, 10)]  # fmt: skip
    series = resample(spans_of(rows), ["lcrs_per_second", "latency.p50_ms", "nonsense"], NOON, 1, 15)
    rates = series[0].values
    assert None not in rates[:9]
    assert rates[0] == pytest.approx(100)
    assert rates[1] == pytest.approx(0.1 * 100 + 0.9 * 200)
    assert rates[10:] == [None] * 5
    assert series[0].highs[1] == pytest.approx(200)
    assert series[1].values == series[2].values == [None] * 15


def test_a_roll_up_reads_as_a_sample_though_its_counts_are_means() -> None:
    documents = [document_of(sample_at(NOON + timedelta(seconds=n), 1.0)) for n in (1, 2)]
    for document, count in zip(documents, (100, 103), strict=True):
        document["lag"]["bytes"] = count
        for destination in document["destinations"]:
            destination["lag"]["bytes"] = count
    rolled = roll_up(documents, NOON + timedelta(minutes=1))
    assert rolled["lag"]["bytes"] == 101.5
    sample = sample_from(rolled, "k3j2h1g4")
    assert {sample.lag.bytes, *(destination.lag.bytes for destination in sample.destinations)} == {102}


def test_a_roll_up_has_means_highs_and_the_last_counters_and_keeps_the_unknown_unknown() -> None:
    documents = [document_of(sample_at(NOON + timedelta(seconds=n), rate))
                 for n, rate in enumerate([None, 100.0, 300.0], 1)]  # fmt: skip
    documents[2]["components"][0]["state"] = "PAUSED FOR FLOW CONTROL"
    documents[2]["components"][0]["counters"]["lcrs"] = 7777
    rolled = roll_up(documents, NOON + timedelta(minutes=1))
    sample = Sample.model_validate({**rolled, "stream_id": "k3j2h1g4"})
    assert (sample.lcrs_per_second, sample.interval_seconds) == (200, 2)
    assert rolled["high"]["lcrs_per_second"] == 300
    assert rolled["high"]["components.capture.lcrs_per_second"] == 300
    capture = sample.components[0]
    assert (capture.state, capture.counters["lcrs"]) == ("CAPTURING CHANGES", 7777)
    assert (sample.latency.p50_ms, sample.bytes_per_second, capture.time_percent) == (None, None, None)
    twice = roll_up([rolled, roll_up(documents[:2], NOON)], NOON)
    assert (twice["interval_seconds"], twice["high"]["lcrs_per_second"]) == (3, 300)


def test_samples_of_two_engines_become_whole_samples() -> None:
    rows = []
    for second in range(3):
        whole = sample_at(NOON + timedelta(seconds=second), 10.0)
        rows.append(row_of(share_of(whole, {"capture", "queue"}), "zzzzzzzz"))
        later = whole.model_copy(update={"at": whole.at + timedelta(seconds=0.4)})
        rows.append(row_of(share_of(later, {"reader", "coordinator", "server-1"}), "aaaaaaaa"))
    spans = spans_of(rows)
    assert [part["id"] for part in spans[-1].document["components"]] == [
        "capture", "queue", f"{ONLY}:reader", f"{ONLY}:coordinator", f"{ONLY}:server-1",
    ]  # fmt: skip
    assert len(spans) == 3
    assert join([decode(row.document) for row in rows[:2]])["lcrs_per_second"] == 10


def destination(identifier: str, rate: float | None, p50: float | None, transactions: int, on_disk: int | None) -> Json:
    backlog = {"state": "ON DISK", "bytes": on_disk, "lcrs": 1, "frames": 1, "age_seconds": 1.0, "limit_bytes": 99}
    return {
        "destination_id": identifier, "status": "ENABLED", "phase": "REPLICATING", "lcrs_per_second": rate,
        "transactions_per_second": rate, "bytes_per_second": rate, "error_queue_transactions": 0,
        "latency": {"p50_ms": p50, "p99_ms": p50, "transactions": transactions},
        "lag": {"bytes": 7, "seconds": None}, "backlog": None if on_disk is None else backlog,
    }  # fmt: skip


def test_each_destination_is_charted_and_rolled_up_by_itself() -> None:
    documents = []
    for second, (east, west) in enumerate(((10.0, 30.0), (20.0, None)), 1):
        document = document_of(sample_at(NOON + timedelta(seconds=second), east + (west or 0.0)))
        shared, of_apply = document["components"][:2], document["components"][2:]
        document["components"] = [
            *shared, *({**part, "id": part["id"].replace(ONLY, name)} for name in ("east", "west") for part in of_apply)
        ]  # fmt: skip
        document["destinations"] = [
            destination("east", east, 2.0 * second, second, None),
            destination("west", west, None, 0, 512 if west else None),
        ]  # fmt: skip
        documents.append(document)
    rolled = roll_up(documents, NOON + timedelta(minutes=1))
    whole = Sample.model_validate({**rolled, "stream_id": "k3j2h1g4"})
    assert [
        (share.lcrs_per_second, share.latency.p50_ms, share.latency.transactions) for share in whole.destinations
    ] == [
        (15, pytest.approx(10 / 3), 3), (30, None, 0),
    ]  # fmt: skip
    assert whole.destinations[1].backlog is not None
    assert (whole.destinations[1].backlog.bytes, rolled["high"]["destinations.east.lcrs_per_second"]) == (512, 20)
    rows = [Stored("k3j2h1g4", "abcdefgh", NOON + timedelta(seconds=n), 1, encode(document))
            for n, document in enumerate(documents, 1)]  # fmt: skip
    names = ["lcrs_per_second", "destinations.*.lcrs_per_second", "components.west:reader.lcrs_per_second"]
    charted = {series.name: series.values for series in resample(spans_of(rows), names, NOON, 1, 2)}
    assert charted["components.west:reader.lcrs_per_second"] == [40, 20]
    assert charted["destinations.west.lcrs_per_second"] == [30, None]
    for point, total in enumerate(charted["lcrs_per_second"]):
        destinations = [charted[f"destinations.{name}.lcrs_per_second"][point] or 0 for name in ("east", "west")]
        assert total == sum(destinations)


def test_who_applies_at_a_destination_tells_its_rates_and_who_captures_its_lag() -> None:
    whole = sample_at(NOON, 10.0)
    captures, receives = document_of(share_of(whole, {"capture", "queue"})), document_of(share_of(whole, {"reader"}))
    captures["destinations"] = [destination("far", None, None, 0, 512)]
    receives["destinations"] = [{**destination("far", 10.0, 3.0, 4, None), "lag": {"bytes": 2, "seconds": 5}}]
    (far,) = join([receives, captures])["destinations"]
    assert (far["lcrs_per_second"], far["latency"]["p50_ms"], far["backlog"]["bytes"]) == (10, 3, 512)
    assert far["lag"] == {"bytes": 7, "seconds": 5}


def test_a_range_of_any_length_has_at_most_600_points(settings: Settings) -> None:
    resolutions = {}
    for seconds in (60, 600, 3600, 6 * 3600, 86400, 7 * 86400, 30 * 86400, 90 * 86400):
        span = timedelta(seconds=seconds)
        step = choose_step(span, 600)
        assert seconds / step <= 600
        resolutions[seconds] = (choose_tier(NOON - span, NOON, step, NOON, settings), step)
    assert resolutions[60] == resolutions[600] == (SECONDS, 1)
    assert resolutions[3600] == (SECONDS, 10)
    assert resolutions[86400] == (MINUTES, 300)
    assert resolutions[90 * 86400] == (HOURS, 21600)
    assert choose_tier(
        NOON - timedelta(days=2), NOON - timedelta(days=2) + timedelta(minutes=1), 1, NOON, settings
    ) is (MINUTES)


async def test_a_store_that_takes_nothing_loses_nothing(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, resources: Resources,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    stream_id = (await created(operator, registered))["id"]
    lost: list[int] = []
    writer = HistoryWriter(resources, lambda: lost.append(1))
    running = asyncio.create_task(writer.run())
    await fill_disk(resources, SECONDS.table)
    samples = [sample_at(datetime.now(UTC), 1.0, stream_id=stream_id)]
    writer.offer("abcdefgh", samples, missed=True)
    await eventually(lambda: _is(bool(lost)))
    assert writer.failing_since is not None
    assert "history caught up" not in capsys.readouterr().out
    await free_disk(resources, SECONDS.table)
    writer.offer("abcdefgh", samples, missed=True)
    await eventually(lambda: _is(writer.failing_since is None))
    assert "history caught up" in capsys.readouterr().out
    await stop_task(running)
    async with resources.sessions() as session:
        assert (await session.execute(text(f"SELECT count(*) FROM {SECONDS.table}"))).scalar_one() == 1


async def _is(value: bool) -> bool:
    return value


async def test_what_a_full_disk_cost_is_fetched_from_the_engine(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, resources: Resources,
    collector: Collector, monkeypatch: pytest.MonkeyPatch,  # noqa: F811
) -> None:  # fmt: skip
    """No sample that the engine remembers is missing afterwards, though the store refused many of them."""
    engine.recorded = remembered = []
    made, status = engine._sample, example("stats-history")["samples"][0]["streams"][0]

    def sample(at: datetime) -> dict[str, Any]:
        document = made(at)
        for stream in document["streams"]:
            stream |= {name: status[name] for name in ("status", "phase", "positions")}
        remembered.append(document)
        return document

    monkeypatch.setattr(engine, "_sample", sample)
    stream = await created(operator, registered)

    async def stored() -> list[datetime]:
        found = (await operator.get(f"{STREAMS}/{stream['id']}/history/samples")).json()["samples"]
        return [datetime.fromisoformat(one["at"]) for one in found]

    async def more_than(count: int) -> bool:
        return len(await stored()) > count

    await eventually(lambda: more_than(2))
    await fill_disk(resources, SECONDS.table)
    failing = collector._history
    await eventually(lambda: _is(failing.failing_since is not None))
    before, told = len(await stored()), len(remembered)
    await eventually(lambda: _is(len(remembered) > told + 10))
    assert len(await stored()) == before
    await free_disk(resources, SECONDS.table)
    await eventually(lambda: more_than(before + 12))
    kept = await stored()
    taken = [datetime.fromisoformat(one["sampled_at"]) for one in remembered]
    assert kept == [at for at in taken if kept[0] <= at <= kept[-1]]


async def test_seconds_become_minutes_and_hours_and_old_partitions_go(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, resources: Resources
) -> None:
    stream_id = (await created(operator, registered))["id"]
    writer, begin = (
        HistoryWriter(resources, lambda: None),
        floor(datetime.now(UTC), timedelta(hours=1)) - timedelta(hours=2),
    )
    at = begin
    while at < begin + timedelta(minutes=61):
        at += timedelta(seconds=10)
        minute = (at - begin - timedelta(seconds=1)) // timedelta(minutes=1)
        writer.offer("abcdefgh", [sample_at(at, float(minute), stream_id=stream_id, seconds=10)])
        if at.second == 20:
            await writer.turn(at)
    resolution = {}
    for tier in (MINUTES, HOURS):
        async with resources.sessions() as session:
            query = text(f"SELECT at, samples, document FROM {tier.table} ORDER BY at")
            resolution[tier] = list(await session.execute(query))
    assert [row.at for row in resolution[MINUTES]] == [begin + timedelta(minutes=n) for n in range(60)]
    assert {row.samples for row in resolution[MINUTES][1:]} == {6}
    assert [row.at for row in resolution[HOURS]] == [begin]
    hour = decode(resolution[HOURS][0].document)
    assert hour["lcrs_per_second"] == pytest.approx(29.5, abs=0.6)
    assert hour["high"]["lcrs_per_second"] == 59

    # Late samples of a minute that is rolled up already: it is rolled up again, and none is there twice.
    late = sample_at(begin + timedelta(minutes=60, seconds=5), 60.0, stream_id=stream_id)
    again = sample_at(begin + timedelta(minutes=60, seconds=20), 60.0, stream_id=stream_id)
    writer.offer("abcdefgh", [late, again])
    await writer.turn(begin + timedelta(minutes=62, seconds=20))
    async with resources.sessions() as session:
        count = text("SELECT samples FROM history_minutes WHERE at = :at")
        assert (await session.execute(count, {"at": begin + timedelta(minutes=60)})).scalar_one() == 7

        settings, now = resources.settings, datetime.now(UTC)
        past = await samples_between(session, settings, stream_id, begin, begin + timedelta(minutes=30), now)
        assert [sample.lcrs_per_second for sample in past[1:]] == pytest.approx(
            [float(n) for n in range(1, 30)], abs=0.2
        )
        before = await partitions.present(session, SECONDS)
    await writer.turn(begin + timedelta(hours=4))
    async with resources.sessions() as session:
        after = await partitions.present(session, SECONDS)
    assert partitions.begin_of(SECONDS, before[0]) <= begin
    assert partitions.begin_of(SECONDS, after[0]) == begin + timedelta(hours=3)
    assert len(after) == len(before)
    chart = (await operator.get(
        f"{STREAMS}/{stream_id}/history", params={"since": begin.isoformat(), "statistic": "lcrs_per_second"}
    )).json()  # fmt: skip
    assert chart["resolution"] == "minute"
    values = dict(zip(chart["times"], chart["series"][0]["values"], strict=True))
    assert values[int(begin.timestamp()) + 600] == pytest.approx(10, abs=0.2)


async def test_what_the_collector_saw_is_charted(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Collector,  # noqa: F811
) -> None:
    stream = await created(operator, registered)
    path = f"{STREAMS}/{stream['id']}/history"

    async def three() -> list[dict[str, Any]] | None:
        samples = (await operator.get(f"{path}/samples")).json()["samples"]
        return list(samples) if len(samples) >= 3 else None

    stored = await eventually(three)
    live = (await operator.get(f"{STREAMS}/{stream['id']}/samples")).json()["samples"]
    assert [sample["at"] for sample in stored] == [sample["at"] for sample in live][: len(stored)]
    assert stored[0]["lcrs_per_second"] is None
    assert stored[2]["components"][-1]["time_percent"]["execute"] == pytest.approx(100 * 5 / 9, abs=0.01)
    names = (await operator.get(f"{path}/statistics")).json()["statistics"]
    assert {"name": "components.queue.gauges.depth", "component": "queue", "unit": "LCRs"} in names
    query = {"statistic": ["components.*.time_percent.execute", "components.queue.gauges.depth"]}
    first = datetime.fromisoformat(stored[0]["at"])
    span = {"since": (first - timedelta(seconds=10)).isoformat(), "until": (first + timedelta(seconds=20)).isoformat()}
    chart = (await operator.get(path, params={**query, **span})).json()
    assert (chart["resolution"], chart["step_seconds"]) == ("second", 1)
    depth = next(series for series in chart["series"] if series["statistic"].endswith("depth"))
    assert {value for value in depth["values"] if value is not None} == {4.0}
    assert depth["values"][0] is None
    assert len([series for series in chart["series"] if series["unit"] == "%"]) == 5
    wrong = await operator.get(path, params={"since": "2999-01-01T00:00:00Z"})
    assert (wrong.status_code, wrong.json()["errors"][0]["pointer"]) == (422, "/since")
    tiers = (await operator.get("/api/v1/history")).json()["tiers"]
    assert [tier["resolution"] for tier in tiers] == ["second", "minute", "hour"]
    assert tiers[0]["bytes"] > 0


async def test_a_collector_that_was_away_asks_the_engine_for_what_it_missed(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, resources: Resources
) -> None:
    engine.recorded = []
    stream = await created(operator, registered)
    path = f"{STREAMS}/{stream['id']}/history"

    async def stored() -> list[dict[str, Any]]:
        return list((await operator.get(f"{path}/samples")).json()["samples"])

    async def run_until(count: int) -> list[dict[str, Any]]:
        task = asyncio.create_task(Collector(resources).run())

        async def enough() -> list[dict[str, Any]] | None:
            samples = await stored()
            return samples if len(samples) >= count else None

        try:
            return list(await eventually(enough))
        finally:
            await stop_task(task)

    await run_until(3)
    before = await stored()
    last = datetime.fromisoformat(before[-1]["at"])
    # Nobody listens for 19 samples; one of them had been seen, others come while the next collector starts.
    for number in range(-1, 19):
        engine.record(last + timedelta(milliseconds=100 * number))
    await asyncio.sleep(2)
    assert len(await stored()) == len(before)

    after = await run_until(len(before) + 20)
    times = [sample["at"] for sample in after]
    assert times == sorted(set(times))
    missed = after[len(before) : len(before) + 18]
    assert [sample["at"] for sample in missed] == [
        (last + timedelta(milliseconds=100 * number)).isoformat().replace("+00:00", "Z") for number in range(1, 19)
    ]
    # Rates from one to the next, and from the last missed one to the first live one: none is unknown.
    assert [sample["lcrs_per_second"] for sample in missed] == pytest.approx([1190.0] * 18)
    assert after[len(before) + 18]["lcrs_per_second"] == pytest.approx(1190.0)


def test_what_was_missed_of_an_only_destination_with_a_backlog_counts_what_lies_in_that_as_not_done() -> None:
    history = HistorySample.model_validate(example("stats-history")["samples"][0])
    positions = {"captured": "0/5000", "applied": "0/1000", "confirmed": "0/4000", "source_end": "0/5000"}
    (stream,) = history.streams
    stream = stream.model_copy(update={"positions": EnginePositions(**positions)})
    queue = ComponentStats.model_validate({**example("stats.fanout")["components"][-1], "destination": ONLY})
    backlog = stream.model_copy(update={"components": [*stream.components, queue]})
    for told, behind in ((stream, 0x1000), (backlog, 0x4000)):
        missed = history.model_copy(update={"streams": [told]})
        (missed_sample,) = samples_of([missed], "abcdefgh", {}, {})
        assert (missed_sample.lag.bytes, missed_sample.destinations[0].lag.bytes) == (behind, behind)
