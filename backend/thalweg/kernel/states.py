"""The state of a stream and its destinations, and a stream's health, in one word each; the console's is
frontend/src/lib/states.ts."""

from collections.abc import Collection, Mapping
from typing import Any

from thalweg.kernel.lifecycle import REPLICATES, WORST_FIRST, DesiredStatus, ObservedStatus, ShownState


def destination_state(one: Mapping[str, Any], stream_desired_status: str) -> ShownState:
    """One that only parks, or stands still, does nothing, whatever its phase. One that rests with its stream is
    stopped, as that is."""
    if one["status"] == ObservedStatus.DISABLED:
        return ShownState.PAUSED if stream_desired_status == DesiredStatus.ENABLED else ShownState.STOPPED
    if one["status"] != ObservedStatus.ENABLED:
        return ShownState(one["status"])
    if one.get("parks_since"):
        return ShownState.PARKING
    stands = one.get("stalled_since") and one["phase"] in REPLICATES
    return ShownState.STALLED if stands else ShownState(one["phase"])


def stream_state(phase: str, destinations: Collection[ShownState]) -> ShownState:
    """Of several destinations the worst has the word."""
    return next((state for state in WORST_FIRST if state in destinations), ShownState(phase))


def in_words(state: str) -> str:
    """“PAUSED FOR FLOW CONTROL” → “Paused for flow control”."""
    words = state.replace("_", " ").lower().split(" ")
    known = {"wal": "WAL", "lcr": "LCR", "lcrs": "LCRs"}
    told = " ".join(known.get(word, word) for word in words)
    return told[:1].upper() + told[1:]


HEALTHS = {
    "ok": "Healthy", "stopped": "Stopped", "warning": "Attention", "error": "Failed", "unknown": "Unknown",
}  # fmt: skip


def health_in_words(level: str, status: str) -> str:
    """`status` is the engine's: what it has been asked to stop stops until the engine says that it has."""
    return (
        "Stopping" if level == "stopped" and status == ObservedStatus.ENABLED else HEALTHS.get(level, in_words(level))
    )
