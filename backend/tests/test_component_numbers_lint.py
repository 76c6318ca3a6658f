"""`make lint` finds counters and gauges that components send and the contract does not list, and names that are read
though no component sends them."""

from pathlib import Path

import pytest

LINT = Path(__file__).resolve().parents[2] / "scripts" / "lint"


def test_numbers_are_found_where_they_are_sent_and_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(LINT))
    lint = __import__("component_numbers")
    sent = """
    .counters = {{"lcrs", lcrs_.get()},
                 {"bytes", bytes_.get()}},
    .gauges = {{"depth", depth}}};
    out.gauges.emplace_back("latency_us", 3);
    Counts::counters() const { return {{"groups", groups.get()}}; }
    """
    numbers = [("counters", "lcrs"), ("counters", "bytes"), ("gauges", "depth"), ("counters", "groups")]
    assert list(lint.sent_in(sent)) == [*numbers, ("gauges", "latency_us")]
    backend = 'gauges.get("a"), gauges["b"], rate_of(loads[:1], "c"), clues.rate(load, "d", "RATE")'
    assert list(lint.read_in(".py", backend)) == ["a", "b", "c", "d"]
    assert list(lint.read_in(".py", '"e" in component.gauges')) == ["e"]
    console = 'gauges.a, component.counters.b, counter_rates?.c, "gauges.d"'
    assert list(lint.read_in(".tsx", console)) == ["a", "b", "c", "d"]


def test_a_number_that_is_sent_is_listed_and_the_other_way_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(LINT))
    lint = __import__("component_numbers")
    listed, sent = {"QUEUE": {"gauges": {"depth", "gone"}}}, {"QUEUE": {"gauges": {"depth", "new"}}}
    name = "engine/contract/component-numbers.json"
    assert list(lint.differences(listed, sent)) == [
        f"{name}: lacks QUEUE's new (gauges)", f"{name}: no source sends QUEUE's gone (gauges)",
    ]  # fmt: skip
