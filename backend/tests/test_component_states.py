"""The check that the engine's sources, its contract and the console name the same states of components."""

from pathlib import Path
from types import ModuleType

import pytest

LINT = Path(__file__).resolve().parents[2] / "scripts" / "lint"


@pytest.fixture
def lint(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(LINT))
    return __import__("component_states")


@pytest.mark.parametrize(
    ("text", "states"),
    [
        ('telemetry::StateText state_{"INITIALIZING"};', {"INITIALIZING"}),
        ('  state_.set(!any ? "IDLE" : ends ? "SHUTTING DOWN" : "APPLYING");', {"IDLE", "SHUTTING DOWN", "APPLYING"}),
        ('    shared_.packer_state.set(paused ? "PAUSED FOR FLOW CONTROL" : "WAITING FOR NETWORK");',
         {"PAUSED FOR FLOW CONTROL", "WAITING FOR NETWORK"}),
        ('.state = full ? "IN FLOW CONTROL: FULL" : "NORMAL",\n  .time_ns = {},',
         {"IN FLOW CONTROL: FULL", "NORMAL"}),
        ('marker.state = "PLACED";', set()),
    ],
)  # fmt: skip
def test_states_are_found_where_sources_set_them(lint: ModuleType, text: str, states: set[str]) -> None:
    assert lint.states_in(text) == states


def test_a_state_that_only_one_side_knows_is_named(lint: ModuleType) -> None:
    (lacking, unset) = lint.differences("CAPTURE", {"IDLE", "DREAMING"}, {"IDLE", "READING"})
    assert lacking.endswith("lacks CAPTURE's READING")
    assert unset.endswith("no source sets CAPTURE's DREAMING")


def test_the_console_has_words_for_each_state_and_for_no_other(lint: ModuleType) -> None:
    console = (
        'const ofComponents = {\n  IDLE: ["quiet", ""],\n  "OLD STATE": ["busy", ""],\n};\nconst ofApi = {\n  FULL: [\n'
    )
    unworded, unsent = lint.unworded({"IDLE", "FULL", "READING"}, console)
    assert unworded.endswith("no words for READING")
    assert unsent.endswith("no component has the state OLD STATE")
