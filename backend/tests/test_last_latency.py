"""An idle stream's latency is that of its last heartbeat, with its age."""

from datetime import UTC, datetime, timedelta

from thalweg.live.lag import UNKNOWN_LAG
from thalweg.live.rates import UNKNOWN
from thalweg.live.schemas import DestinationSample, LatencySample, Sample
from thalweg.workers.last_latency import FORGET_AFTER, LastLatencies

AT = datetime(2026, 11, 23, tzinfo=UTC)
EMPTY = LatencySample(p50_ms=None, p99_ms=None, transactions=0)


def sample_at(at: datetime, latency: LatencySample) -> Sample:
    rates = {"lcrs_per_second": 0.0, "transactions_per_second": 0.0, "bytes_per_second": 0.0}
    told = {"status": "ENABLED", "phase": "REPLICATING", "error_queue_transactions": 0, "lag": UNKNOWN_LAG}
    destination = DestinationSample(destination_id="a", latency=latency, backlog=None, **rates, **told)
    return Sample(
        stream_id="stream01", at=at, interval_seconds=1.0, latency=latency, components=[], destinations=[destination],
        **rates, **told,
    )  # fmt: skip


def test_an_interval_without_any_has_the_one_before() -> None:
    latencies = LastLatencies()
    assert latencies.with_last_latency(sample_at(AT, UNKNOWN)).latency.last is None
    heartbeat = LatencySample(p50_ms=1.5, p99_ms=1.5, transactions=1)
    latencies.with_last_latency(sample_at(AT, heartbeat))
    told = latencies.with_last_latency(sample_at(AT + timedelta(seconds=7), EMPTY))
    assert told.latency.p50_ms is None
    assert told.latency.last is not None
    assert (told.latency.last.p50_ms, told.latency.last.at) == (1.5, AT)
    assert told.destinations[0].latency.last == told.latency.last


def test_it_is_forgotten_when_no_heartbeat_can_be_due() -> None:
    latencies = LastLatencies()
    latencies.with_last_latency(sample_at(AT, LatencySample(p50_ms=1.5, p99_ms=1.5, transactions=1)))
    later = AT + FORGET_AFTER + timedelta(seconds=1)
    latencies.forget_before(later)
    assert latencies.with_last_latency(sample_at(later, EMPTY)).latency.last is None
