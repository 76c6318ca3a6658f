"""The growth on which a time until something is full rests."""

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from thalweg.kernel.time_to_full import seconds_to_full
from thalweg.live.lag import Growth
from thalweg.live.steady_growth import SPAN_MIN, WINDOW, SteadyGrowth

AT = datetime(2026, 1, 1, tzinfo=UTC)
MIB = 1 << 20


def forecasts(value: Callable[[int], float], seconds: int, growth: Growth | SteadyGrowth) -> list[float | None]:
    """At each poll, one a second: until it is full at 4 GiB."""
    rates = [growth.per_second("a", AT + timedelta(seconds=second), value(second)) for second in range(seconds)]
    return [seconds_to_full(4096 * MIB - value(second), rate) for second, rate in enumerate(rates)]


def leaps(told: list[float | None]) -> float:
    """The most by which a forecast differs from that of the poll before, as a factor."""
    return max(max(a, b) / min(a, b) for a, b in pairwise(told) if a is not None and b is not None)


def test_what_grows_steadily_has_a_forecast_after_a_while() -> None:
    told = forecasts(lambda second: second * MIB, 400, SteadyGrowth())
    first = int(SPAN_MIN.total_seconds())
    assert told[:first] == [None] * first
    assert told[first:] == [pytest.approx(4096 - second) for second in range(first, 400)]


def test_batches_make_a_forecast_leap_no_more() -> None:
    """A backlog of which 16 MiB are written at once, every eight seconds or so."""
    chance, sizes, written = random.Random(7), [], 0.0  # noqa: S311
    for second in range(600):
        written += 16 * MIB if chance.random() < 1 / 8 else 0.0
        sizes.append(written if second else 0.0)
    told = forecasts(sizes.__getitem__, 600, SteadyGrowth())
    assert sum(full is not None for full in told) > 200
    assert leaps(told) < 1.1


def test_a_burst_in_a_trickle_makes_a_forecast_pause_not_leap() -> None:
    def size(second: int) -> float:
        return second * 0.02 * MIB + 64 * MIB * (second // 250)

    told = forecasts(size, 600, SteadyGrowth())
    assert leaps(told) < 1.1
    assert None in told[250:300]
    assert leaps(forecasts(size, 600, Growth())) > 50, "by the ends of a minute alone"


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (lambda second: 100.0 * MIB, "it does not grow"),
        (lambda second: (400 - second) * MIB, "it shrinks"),
        (lambda second: min(second, 60) * MIB, "it has grown, and stands"),
        (lambda second: max(0, second - 300) ** 2 * MIB, "it grows faster and faster"),
        (lambda second: 64 * MIB if second >= 320 else 0, "a single leap"),
    ],
)
def test_what_does_not_grow_steadily_has_none(value: Callable[[int], float], why: str) -> None:
    growth = SteadyGrowth()
    for second in range(330):
        last = growth.per_second("a", AT + timedelta(seconds=second), value(second))
    assert last is None, why


def test_few_points_say_nothing() -> None:
    growth = SteadyGrowth()
    rates = [growth.per_second("a", AT + timedelta(seconds=10 * number), number) for number in range(5)]
    assert rates == [None, None, None, None, pytest.approx(0.1)]
    growth.forget("a")
    assert growth.per_second("a", AT + timedelta(seconds=50), 5) is None
    growth.forget_before(AT + timedelta(seconds=51) + WINDOW)
    assert growth.seen == {}


def test_memory_is_bounded_at_any_pace() -> None:
    growth = SteadyGrowth()
    for number in range(10_000):
        growth.per_second("a", AT + timedelta(seconds=number / 20), number)
    assert len(growth.seen["a"]) <= WINDOW.total_seconds() + 2
