"""The states that users see, and the words of the command line."""

from typing import Any

import pytest

from tests.test_last_latency import AT, sample_at
from thalweg.history.document import document_of
from thalweg.kernel.lifecycle import ObservedStatus, ShownState, StreamPhase
from thalweg.kernel.states import HEALTHS, destination_state, health_in_words, in_words, stream_state
from thalweg.live.rates import UNKNOWN
from thalweg.live.schemas import Backlog, HealthLevel
from thalweg.live.shown_states import with_states

WELL, RETRIES = ("ENABLED", "REPLICATING"), ("ENABLED", "RETRYING")
FAILED, RESTS, SILENT = ("ABORTED", "STOPPED"), ("DISABLED", "STOPPED"), ("UNKNOWN", "UNKNOWN")


def state(status: str, phase: str, parks: bool = False, stalls: bool = False, wanted: str = "ENABLED") -> ShownState:
    return destination_state(status, phase, parks=parks, stalls=stalls, stream_desired_status=wanted)


@pytest.mark.parametrize(
    ("phase", "destinations", "states", "stream"),
    [
        ("REPLICATING", [WELL], ["REPLICATING"], "REPLICATING"),
        ("REPLICATING", [WELL, RETRIES], ["REPLICATING", "RETRYING"], "RETRYING"),
        ("REPLICATING", [RETRIES, FAILED], ["RETRYING", "ABORTED"], "ABORTED"),
        ("REPLICATING", [RESTS, WELL], ["PAUSED", "REPLICATING"], "REPLICATING"),
        ("REPLICATING", [RESTS, RESTS], ["PAUSED", "PAUSED"], "PAUSED"),
        ("STOPPED", [RESTS], ["PAUSED"], "PAUSED"),
        ("STOPPED", [RESTS, ("DROPPED", "STOPPED")], ["PAUSED", "DROPPED"], "PAUSED"),
        ("STOPPED", [(*RESTS, False, False, "DISABLED")], ["STOPPED"], "STOPPED"),
        ("REPLICATING", [(*WELL, True, True)], ["PARKING"], "PARKING"),
        ("CATCHING UP", [("ENABLED", "CATCHING UP", False, True)], ["STALLED"], "STALLED"),
        ("RETRYING", [(*RETRIES, False, True)], ["RETRYING"], "RETRYING"),
        ("UNKNOWN", [SILENT], ["UNKNOWN"], "UNKNOWN"),
    ],
)
def test_what_a_stream_does_is_what_the_worst_of_its_destinations_does(
    phase: str, destinations: list[Any], states: list[str], stream: str
) -> None:
    shown = [state(*destination) for destination in destinations]
    assert shown == states
    assert stream_state(phase, shown) == stream


def test_a_sample_has_the_states_of_its_stream_and_its_destinations() -> None:
    sample = sample_at(AT, UNKNOWN)
    paused = sample.destinations[0].model_copy(update={"destination_id": "b", "status": ObservedStatus.DISABLED})
    stalled = sample.destinations[0].model_copy(update={"stalled_since": AT})
    told = with_states(sample.model_copy(update={"destinations": [stalled, paused]}), "ENABLED")
    assert (told.state, [destination.state for destination in told.destinations]) == ("STALLED", ["STALLED", "PAUSED"])
    document = document_of(told)
    assert "state" not in document and "state" not in document["destinations"][0], "history keeps status and phase"


def test_destinations_beside_a_full_backlog_that_nothing_leaves_stall() -> None:
    sample = sample_at(AT, UNKNOWN)
    backlog = Backlog(state="FULL", bytes=16, lcrs=1, frames=1, age_seconds=60, limit_bytes=16)
    well = sample.destinations[0].model_copy(update={"destination_id": "b"})

    def states(**of_full: Any) -> list[Any]:
        full = sample.destinations[0].model_copy(update={"backlog": backlog, **of_full})
        told = with_states(sample.model_copy(update={"destinations": [full, well]}), "ENABLED")
        return [told.state, *(destination.state for destination in told.destinations)]

    assert states(status=ObservedStatus.DISABLED, phase="STOPPED") == ["STALLED", "PAUSED", "STALLED"]
    assert states(phase="RETRYING") == ["RETRYING", "RETRYING", "STALLED"]
    assert states(stalled_since=AT) == ["STALLED", "STALLED", "STALLED"]
    assert states() == ["REPLICATING", "REPLICATING", "REPLICATING"], "it applies: the others only wait for it"


def test_every_status_and_phase_is_shown_as_itself() -> None:
    shown = {state.value for state in ShownState}
    others = {ObservedStatus.ENABLED, ObservedStatus.DISABLED}
    assert shown >= {state.value for state in (*ObservedStatus, *StreamPhase)} - others
    assert state("ENABLED", "DREAMING") is ShownState.UNKNOWN


def test_states_in_words() -> None:
    assert in_words("PAUSED FOR FLOW CONTROL") == "Paused for flow control"
    assert in_words("WAITING FOR WAL") == "Waiting for WAL"
    assert in_words("SENDING LCRS") == "Sending LCRs"


def test_every_health_has_its_word() -> None:
    assert set(HEALTHS) == set(HealthLevel)
    assert health_in_words("ok", "ENABLED", "REPLICATING") == "Healthy"
    assert health_in_words("stopped", "ENABLED", "DRAINING") == "Stopping"
    assert health_in_words("stopped", "DISABLED", "STOPPED") == "Stopped"
    assert health_in_words("stopped", "DISABLED", "PAUSED") == "Paused", "its only destination is"
    assert health_in_words("stopped", "ENABLED", "PAUSED") == "Paused", "all of several are"
