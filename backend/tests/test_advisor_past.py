"""The analysis of a span that is over: what ran in it is judged, and what did not is told beside it."""

from datetime import timedelta
from typing import Any

import pytest

from tests.test_advisor_analysis import recorded
from thalweg.advisor.analysis import PathView, analyse
from thalweg.advisor.schemas import Analysis, Thresholds
from thalweg.advisor.streams import Condition, DatabaseFacts, StreamInput
from thalweg.features.advisor.presentation import path_lines
from thalweg.kernel.clock import now
from thalweg.live.schemas import Sample

STOPPED = {"status": "DISABLED", "phase": "STOPPED"}
ABORTED = {"status": "ABORTED", "phase": "STOPPED"}
COPYING = {"status": "ENABLED", "phase": "INSTANTIATING"}
NOTHING: dict[str, Any] = {"components": [], "interval_seconds": 1.0}


def after(
    samples: list[Sample], seconds: int, state: dict[str, str], whole: dict[str, str] | None = None
) -> list[Sample]:  # fmt: skip
    """The samples of so many seconds more in which the destination, or the stream too, is in another state."""
    last = samples[-1]
    parts = [part.model_copy(update={**state, "lcrs_per_second": None}) for part in last.destinations]
    return [
        last.model_copy(
            update={**NOTHING, **(whole or state), "destinations": parts, "at": last.at + timedelta(seconds=second)}
        )
        for second in range(1, seconds + 1)
    ]


def past(samples: list[Sample], *names: str) -> tuple[Analysis, list[PathView]]:
    """Of a stream that is stopped now, which says nothing of then."""
    stream = StreamInput(
        "k3j2h1g4", "orders", samples, DatabaseFacts("shop", "a:1/shop", "15.1"),
        {name: DatabaseFacts(name, "b:1/warehouse", "15.1") for name in names or ("destination",)}, {},
        Condition("DISABLED", "DISABLED", "STOPPED"), is_past=True,
    )  # fmt: skip
    return analyse([stream], Thresholds(), now())


def test_a_stop_at_the_end_of_a_range_does_not_hide_what_ran_in_it() -> None:
    ran = recorded("trigger")
    analysis, (view,) = past([*ran, *after(ran, 12, STOPPED)])
    (line,), row = path_lines(analysis, []), view.bottleneck
    assert (row.verdict, row.top_event) == ("BOTTLENECK", "EXECUTE"), row.explanation
    since = f"at its end since {ran[-1].at:%Y-%m-%d %H:%M:%S} UTC."
    assert row.explanation.endswith(f"In this range it was stopped for 12 s, {since}")
    assert line.messages_per_second == path_lines(past(ran)[0], [])[0].messages_per_second
    assert line.messages_per_second is not None
    assert view.path.samples == ran


def test_a_stop_within_a_range_has_no_end_of_its_own() -> None:
    ran = recorded("trigger")
    half = len(ran) // 2
    shift = timedelta(seconds=20)
    later = [sample.model_copy(update={"at": sample.at + shift}) for sample in ran[half:]]
    _, (view,) = past([*ran[:half], *after(ran[:half], 20, ABORTED), *later])
    assert view.bottleneck.verdict == "BOTTLENECK"
    assert view.bottleneck.explanation.endswith("In this range it was stopped by an error for 20 s.")


@pytest.mark.parametrize(
    ("state", "whole", "verdict", "words"),
    [
        (STOPPED, None, "STOPPED", "It was stopped."),
        (ABORTED, None, "ABORTED", "It had stopped with an error."),
        (STOPPED, {"status": "ENABLED", "phase": "REPLICATING"}, "PAUSED", "It was paused."),
        (COPYING, None, "COPYING", "The tables were being copied."),
    ],
)
def test_only_what_practically_never_ran_has_the_verdict_of_its_rest(
    state: dict[str, str], whole: dict[str, str] | None, verdict: str, words: str
) -> None:
    (one,) = recorded("trigger")[-1:]
    never = after([one], 600, state, whole)
    for samples in (never, [one, *never]):
        _, (view,) = past(samples)
        assert (view.bottleneck.verdict, view.bottleneck.explanation) == (verdict, words)


def test_a_destination_that_began_within_the_range_is_judged_by_its_own_time() -> None:
    ran = recorded("trigger")
    before = after(ran[:1], 100, STOPPED)
    one = ran[-1].destinations[0].model_copy(update={"destination_id": "late"})
    both = [
        sample.model_copy(
            update={"at": sample.at + timedelta(seconds=100), "destinations": [*sample.destinations, one]}
        )
        for sample in ran
    ]
    _, (first, late) = past([*before, *both], "destination", "late")
    assert "stopped for 100 s" in first.bottleneck.explanation
    assert "In this range" not in late.bottleneck.explanation
    assert late.path.samples == both


def test_a_destination_that_did_not_exist_yet_is_left_out() -> None:
    _, views = past(recorded("trigger"), "destination", "late")
    assert [view.path.path.destination_id for view in views] == ["destination"]


def test_nothing_is_known_of_a_range_without_samples() -> None:
    _, (view,) = past([])
    assert view.bottleneck.verdict == "UNKNOWN"
