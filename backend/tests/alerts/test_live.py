"""The part of an engine's samples that the rules see."""

from datetime import UTC, datetime, timedelta

from thalweg.live.schemas import LatencySample, Sample
from thalweg.workers.alerts.facts import Live

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def sample(seconds_ago: float, p99_ms: float | None, at_least: bool = False) -> Sample:
    latency = LatencySample.model_construct(p50_ms=p99_ms, p99_ms=p99_ms, transactions=1, at_least=at_least)
    return Sample.model_construct(stream_id="s", at=NOW - timedelta(seconds=seconds_ago), latency=latency)


def test_latency_is_the_worst_of_all_samples() -> None:
    live = Live(NOW)
    live.put([sample(3, None)], NOW)
    assert live.latencies == {}
    for seconds_ago, p99_ms in ((2, 40.0), (1, 900.0), (0, 30.0)):
        live.put([sample(seconds_ago, p99_ms)], NOW)
    assert live.latencies == {"s": (900.0, False)}
    live.put([sample(0, 2000.0, at_least=True)], NOW)
    assert live.latencies == {"s": (2000.0, True)}


def test_a_sample_that_the_collector_came_too_late_for_counts_unless_it_is_old() -> None:
    live = Live(NOW)
    live.put([sample(0, 30.0)], NOW)
    live.put_missed([sample(60, 5000.0), sample(1.5, 900.0)], NOW)
    assert live.latencies == {"s": (900.0, False)}
    current = live.sample("s", NOW)
    assert current is not None and current.at == NOW  # not what was missed
