"""The transition tables, each pair of them, and the check that states are spelt in one place."""

from collections.abc import Callable
from itertools import product
from pathlib import Path
from types import ModuleType

import pytest

from thalweg.db.models import OperationRow
from thalweg.db.operations import begin, finish
from thalweg.engine_client.documents import StreamStatus
from thalweg.kernel.clock import now
from thalweg.kernel.lifecycle import (
    OPERATION_TRANSITIONS,
    STAGE_TRANSITIONS,
    DesiredStatus,
    DestinationAction,
    ObservedStatus,
    OperationState,
    Refused,
    Stage,
    StageReport,
    StreamAction,
    StreamPhase,
    next_destination_status,
    next_stage,
    next_stream_status,
    offered_stream_actions,
)

LINT = Path(__file__).resolve().parents[2] / "scripts" / "lint"
STREAM = {
    "ENABLED": {"start": "ENABLED", "stop": "DISABLED", "retry": "ENABLED", "delete": "DROPPED"},
    "DISABLED": {"start": "ENABLED", "stop": "DISABLED", "retry": "is stopped: start it", "delete": "DROPPED"},
    "DROPPED": {
        "start": "is being deleted: it cannot start", "stop": "is being deleted: it cannot stop",
        "retry": "is being deleted: it cannot retry", "delete": "DROPPED",
    },
}  # fmt: skip
DESTINATION = {
    "ENABLED": {"start": "ENABLED", "stop": "DISABLED", "retry": "ENABLED", "drop": "DROPPED"},
    "DISABLED": {"start": "ENABLED", "stop": "DISABLED", "retry": "is paused", "drop": "DROPPED"},
    "DROPPED": {
        "start": "is being dropped", "stop": "is being dropped", "retry": "is being dropped", "drop": "DROPPED",
    },
}  # fmt: skip


def check(expected: str, change: Callable[[], DesiredStatus]) -> None:
    """`expected` is the next status, or words of the refusal."""
    if expected in list(DesiredStatus):
        assert change() == expected
        return
    with pytest.raises(Refused, match=expected) as refused:
        change()
    assert refused.value.cure


@pytest.mark.parametrize(("status", "action"), [*product(DesiredStatus, StreamAction)])
def test_stream(status: DesiredStatus, action: StreamAction) -> None:
    check(STREAM[status][action], lambda: next_stream_status(status, action))


@pytest.mark.parametrize(("status", "action"), [*product(DesiredStatus, DestinationAction)])
def test_destination(status: DesiredStatus, action: DestinationAction) -> None:
    check(DESTINATION[status][action], lambda: next_destination_status(status, action))


def test_a_paused_destination_is_resumed_and_not_started() -> None:
    with pytest.raises(Refused) as refused:
        next_destination_status(DesiredStatus.DISABLED, DestinationAction.RETRY)
    assert refused.value.cure == "Resume it instead."


@pytest.mark.parametrize(
    ("status", "observed", "offered"),
    [
        ("ENABLED", "ENABLED", ["stop", "delete"]),
        ("ENABLED", "ABORTED", ["stop", "retry", "delete"]),
        ("ENABLED", "UNKNOWN", ["stop", "delete"]),
        ("DISABLED", "DISABLED", ["start", "delete"]),
        ("DISABLED", "ABORTED", ["start", "delete"]),
        ("DROPPED", "ABORTED", ["delete"]),
    ],
)
def test_offered_actions_change_something(status: str, observed: str, offered: list[str]) -> None:
    assert offered_stream_actions(DesiredStatus(status), ObservedStatus(observed)) == offered


@pytest.mark.parametrize(("stage", "report", "received"), [*product(Stage, StageReport, [False, True])])
def test_stages_of_a_destination(stage: Stage, report: StageReport, received: bool) -> None:
    moved = {
        (Stage.NEW, StageReport.CAPTURE_HAS_IT): (Stage.CAPTURED, Stage.CAPTURED),
        (Stage.NEW, StageReport.CAPTURE_DROPPED_IT): (Stage.GONE, Stage.GONE),
        (Stage.CAPTURED, StageReport.CAPTURE_DROPPED_IT): (Stage.GONE, Stage.RELEASED),
        (Stage.RELEASED, StageReport.RECEIVER_DROPPED_IT): (Stage.GONE, Stage.GONE),
    }
    assert moved.keys() == STAGE_TRANSITIONS.keys()
    here = Stage.GONE if stage == Stage.RELEASED else stage  # only another engine needs a destination released
    assert next_stage(stage, report, received=received) == moved.get((stage, report), (here, stage))[received]


@pytest.mark.parametrize(("state", "target"), [*product(OperationState, OperationState)])
def test_an_operation_begins_once_and_ends_once(state: OperationState, target: OperationState) -> None:
    allowed = {
        ("pending", "running"), ("pending", "succeeded"), ("pending", "failed"),
        ("running", "succeeded"), ("running", "failed"),
    }  # fmt: skip
    assert OPERATION_TRANSITIONS.keys() == set(OperationState)
    operation = OperationRow(id="o1", kind="stream.start", state=state, done=0, total=1, unit="steps")

    def move() -> None:
        if target is OperationState.RUNNING:
            begin(operation, now())
        else:
            finish(operation, target)

    if (state, target) in allowed:
        move()
        assert operation.state is target
    else:
        with pytest.raises(ValueError, match=f"is {state}: it cannot become {target}"):
            move()
        assert operation.state is state


def test_a_state_that_only_a_newer_engine_knows_is_unknown() -> None:
    own = {"id": "s1", "status": "PAUSED", "phase": "REPACKING", "error": None, "retry_at": None, "positions": None}
    status = StreamStatus.model_validate(own)
    assert (status.status, status.phase) == (ObservedStatus.UNKNOWN, StreamPhase.UNKNOWN)


def test_lint_finds_states_that_are_spelt_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(LINT))
    states: ModuleType = __import__("states")
    known = states.states_of(states.LIFECYCLE.read_text())
    assert known["CATCHING UP"] == ["StreamPhase.CATCHING_UP", "ShownState.CATCHING_UP"]
    alert = 'class AlertState(StrEnum):\n    PENDING = "pending"\n'
    text = alert + 'if one.phase in ("CATCHING UP", "start"):\n    """ABORTED?"""\n'
    assert list(states.literals(text, known)) == [(3, "CATCHING UP")]
