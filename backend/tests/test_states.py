"""The same cases as the console's states: shown_states.json."""

import json
from pathlib import Path
from typing import Any

import pytest

from thalweg.kernel.lifecycle import ObservedStatus, ShownState, StreamPhase
from thalweg.kernel.states import HEALTHS, destination_state, health_in_words, in_words, stream_state
from thalweg.live.schemas import HealthLevel

CASES = json.loads(Path(__file__).with_name("shown_states.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=lambda case: "+".join(case["states"]))
def test_what_a_stream_does_is_what_the_worst_of_its_destinations_does(case: dict[str, Any]) -> None:
    states = [destination_state(one, case["desired_status"]) for one in case["destinations"]]
    assert states == case["states"]
    assert stream_state(case["phase"], states) == case["stream"]


def test_every_status_and_phase_is_shown_as_itself() -> None:
    shown = {state.value for state in ShownState}
    others = {ObservedStatus.ENABLED, ObservedStatus.DISABLED}
    assert shown >= {state.value for state in (*ObservedStatus, *StreamPhase)} - others
    assert destination_state({"status": "ENABLED", "phase": "DREAMING"}, "ENABLED") is ShownState.UNKNOWN


def test_states_in_words() -> None:
    assert in_words("PAUSED FOR FLOW CONTROL") == "Paused for flow control"
    assert in_words("WAITING FOR WAL") == "Waiting for WAL"
    assert in_words("SENDING LCRS") == "Sending LCRs"


def test_every_health_has_its_word() -> None:
    assert set(HEALTHS) == set(HealthLevel)
    assert health_in_words("ok", "ENABLED") == "Healthy"
    assert [health_in_words("stopped", status) for status in ("ENABLED", "DISABLED")] == ["Stopping", "Stopped"]
