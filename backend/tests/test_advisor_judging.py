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
