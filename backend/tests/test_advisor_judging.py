"""Whether a cure has helped, from two runs of recorded paths."""

import pytest

from tests.test_advisor_analysis import analysed, recorded
from tests.test_advisor_findings import findings
from thalweg.features.advisor.judging import judge
from thalweg.features.advisor.presentation import path_lines
from thalweg.features.advisor.schemas import CureState, Run

PATH, CODE = "k3j2h1g4:destination", "apply_trigger"


def run(name: str, rate: float | None, *codes: str) -> Run:
    """Of a recorded path that carries `rate` LCR/s, with these findings instead of its own."""
    analysis, _ = analysed(recorded(name))
    (line,) = path_lines(analysis, [])
    line.messages_per_second, line.latency_p99_seconds = rate, None
    found = [findings("commit_order")[0].model_copy(update={"code": code, "path_id": PATH}) for code in codes]
    return Run.model_construct(analysis=analysis, paths=[line], findings_ranked=found)


def late(p99: float | None, at_least: float | None = None) -> Run:
    made = run("trigger", 40, CODE)
    made.paths[0].latency_p99_seconds, made.paths[0].latency_at_least_seconds = p99, at_least
    return made


@pytest.mark.parametrize(
    ("before", "after", "state", "words"),
    [
        (late(5), late(1), CureState.HELPED, "latency p99 5 s before, 1 s after"),
        (late(5, 240), late(1), CureState.HELPED, "latency p99 ≥ 240 s before, 1 s after"),
        (late(5), late(1, 240), CureState.WORSE, "latency p99 5 s before, ≥ 240 s after"),
        (late(5, 240), late(300), CureState.NO_DIFFERENCE, "≥ 240 s before, 300 s after"),
        (late(300), late(None, 240), CureState.NO_DIFFERENCE, "300 s before, ≥ 240 s after"),
    ],
)
def test_a_lower_bound_proves_only_what_it_can(before: Run, after: Run, state: CureState, words: str) -> None:
    judgement = judge(before, after, PATH, CODE)
    assert (judgement.state, words in judgement.outcome) == (state, True), judgement.outcome


@pytest.mark.parametrize(
    ("after", "state"),
    [
        (run("trigger", 82, CODE), CureState.HELPED),
        (run("trigger", 40), CureState.HELPED),
        (run("trigger", 40, CODE), CureState.NO_DIFFERENCE),
        (run("trigger", None), CureState.MEASURING),
        (run("trigger", 0), CureState.MEASURING),
        (run("idle_source", 0), CureState.MEASURING),
    ],
)
def test_a_path_that_carries_nothing_has_not_been_helped(after: Run, state: CureState) -> None:
    judgement = judge(run("trigger", 40, CODE), after, PATH, CODE)
    assert judgement.state is state, judgement.outcome
