"""A stream's latency is its slowest destination's, whichever way its sample goes: live, joined, history, roll-up."""

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.support.engine_double import example
from thalweg.engine_client.documents import EngineStats, StreamStatus
from thalweg.history.document import AT_LEAST, Stored, decode, document_of, encode
from thalweg.history.joining import join
from thalweg.history.rollup import roll_up
from thalweg.history.series import resample, spans_of
from thalweg.live.rates import UNKNOWN, Reading, sample_of
from thalweg.live.reports import joined_sample, with_bounds, with_least_latency
from thalweg.live.schemas import Backlog, Lag, LastLatency, LatencySample, Sample

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
FAST, SLOW = {1024: 1000}, {1024: 1, 8192: 9}
"""Transactions by the upper bound of their latency, in microseconds."""
CAPTURE = {"id": "capture", "type": "CAPTURE"}
STATUS = StreamStatus.model_validate(example("status.fanout"))


def reading(second: int, **buckets: dict[int, int]) -> Reading:
    """As much again of each destination's `buckets` in every second."""

    def histogram(*of: dict[int, int]) -> dict[str, Any]:
        bounds = sorted({bound for share in of for bound in share})
        counts = [[bound, second * sum(share.get(bound, 0) for share in of)] for bound in bounds]
        return {"unit": "us", "buckets": counts}

    stream = example("stats.fanout")
    pattern = stream["destinations"][0]
    stream["latency"] = histogram(*buckets.values())
    stream["destinations"] = [{**pattern, "id": id_, "latency": histogram(share)} for id_, share in buckets.items()]
    stats = EngineStats.model_validate({**example("stats"), "streams": [stream]})
    return Reading(NOON + timedelta(seconds=second), second * 10**9, stats.streams[0], STATUS)


def sample_at(second: int, **buckets: dict[int, int]) -> Sample:
    return sample_of(STATUS.id, reading(second - 1, **buckets), reading(second, **buckets), "abcdefgh")


def test_one_sample_has_one_latency_live_and_in_history() -> None:
    sample = sample_at(2, warehouse=FAST, reports=SLOW)
    slowest = sample.destinations[1].latency
    assert (slowest.p50_ms, slowest.p99_ms, slowest.transactions) == (8.192, 8.192, 10)
    assert sample.latency == slowest, "live, of one engine"
    assert joined_sample(sample, STATUS, {}).latency == slowest, "live, joined with what other engines say"
    row = Stored(sample.stream_id, "abcdefgh", sample.at, 1, encode(document_of(sample)))
    (span,) = spans_of([row])
    history = Sample.model_validate({**span.document, "stream_id": sample.stream_id})
    assert history.latency == slowest


def test_a_row_of_an_older_version_has_the_latency_of_all_destinations_and_reads_like_todays() -> None:
    sample = sample_at(2, warehouse=FAST, reports=SLOW)
    document = document_of(sample) | {"latency": {"p50_ms": 1.024, "p99_ms": 1.024, "transactions": 1010, "last": None}}
    (span,) = spans_of([Stored(sample.stream_id, "abcdefgh", sample.at, 1, encode(document))])
    assert span.document["latency"]["p99_ms"] == 8.192


def test_a_roll_up_has_the_latency_of_the_destination_that_was_the_slowest() -> None:
    """Each destination was the slower one for a second."""
    documents = [
        decode(encode(document_of(sample)))
        for sample in (sample_at(1, warehouse=FAST, reports=SLOW), sample_at(2, warehouse={16384: 1}, reports=FAST))
    ]
    rolled = roll_up(documents, NOON + timedelta(minutes=1))
    warehouse, _ = rolled["destinations"]
    assert rolled["latency"] == warehouse["latency"]
    assert rolled["latency"]["p99_ms"] == 16.384
    assert rolled["high"]["latency.p50_ms"] == rolled["high"]["destinations.warehouse.latency.p50_ms"] == 16.384


def test_what_no_destination_tells_is_the_streams_own() -> None:
    sample = sample_at(2, warehouse={1024: 0}, reports={1024: 0})
    assert (sample.latency.p99_ms, sample.latency.transactions) == (None, 0)


def test_the_slowest_known_does_not_hide_a_destination_where_nothing_arrives() -> None:
    """Reports has been dead for 5 minutes."""
    sample = sample_at(2, warehouse=FAST, reports={1024: 0})
    warehouse, reports = sample.destinations
    backlog = Backlog(state="ON DISK", bytes=9, lcrs=9, frames=9, age_seconds=300, limit_bytes=1 << 30)
    lag = Lag(bytes=1 << 20, seconds=None, age_seconds=300)
    last = LastLatency(p50_ms=5.9, p99_ms=5.9, at=NOON)
    dead = reports.model_copy(
        update={
            "phase": "RETRYING",
            "backlog": backlog,
            "lag": lag,
            "latency": UNKNOWN.model_copy(update={"last": last}),
        }
    )

    def told(**update: Any) -> LatencySample:
        other = dead.model_copy(update=update)
        return with_least_latency(sample.model_copy(update={"destinations": [warehouse, other]})).latency

    assert sample.latency.p99_ms == 1.024
    failed: tuple[dict[str, Any], ...] = ({}, {"status": "ABORTED", "phase": "STOPPED"})
    for update in failed:
        latency = told(**update)
        assert (latency.p50_ms, latency.p99_ms, latency.at_least, latency.last) == (None, 300_000, True, None)
    keeps_up: list[dict[str, Any]] = [
        {"status": "DISABLED", "phase": "STOPPED"},
        {"phase": "INSTANTIATING"},
        {"backlog": backlog.model_copy(update={"frames": 0})},
        {"lag": lag.model_copy(update={"age_seconds": 0.9})},
    ]
    for update in keeps_up:
        assert told(**update) == warehouse.latency
    whole = with_least_latency(sample.model_copy(update={"destinations": [warehouse, dead]}))
    row = Stored(sample.stream_id, "abcdefgh", sample.at, 1, encode(document_of(with_bounds(sample, whole))))
    names = ["latency.p99_ms", AT_LEAST, f"destinations.reports.{AT_LEAST}", f"destinations.warehouse.{AT_LEAST}"]

    def charted(document: Any) -> list[float | None]:
        stored = Stored(sample.stream_id, "abcdefgh", sample.at, 1, encode(document))
        begin = sample.at - timedelta(seconds=1)
        return [series.values[0] for series in resample(spans_of([stored]), names, begin, 1, 1)]

    # Arrived latencies stay apart from those of changes that wait.
    assert charted(decode(row.document)) == [1.024, 300_000, 300_000, None]
    quiet = decode(encode(document_of(sample)))
    assert charted(roll_up([decode(row.document), quiet], sample.at)) == [1.024, 300_000, 300_000, None]


def test_the_bound_of_one_engines_part_is_the_whole_samples() -> None:
    """The engine that receives tells what has arrived, the one that captures what waits."""
    document = decode(encode(document_of(sample_at(2, warehouse=FAST, reports={1024: 0}))))
    captures = {**document, AT_LEAST: 300_000.0, "components": [CAPTURE]}
    captures["destinations"] = [document["destinations"][0], {**document["destinations"][1], AT_LEAST: 300_000.0}]
    applies = {**document, "components": [CAPTURE | {"type": "APPLY"}], "destinations": [document["destinations"][1]]}
    whole = join([applies, captures])
    assert (whole[AT_LEAST], [destination[AT_LEAST] for destination in whole["destinations"]]) == (
        300_000,
        [None, 300_000],
    )
