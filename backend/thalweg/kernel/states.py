"""The state of a stream and its destinations that all users see, and words for it and for a stream's health; the
console's words are in frontend/src/lib/states.ts."""

from collections.abc import Collection

from thalweg.kernel.lifecycle import REPLICATES, WORST_FIRST, DesiredStatus, ObservedStatus, ShownState


def destination_state(
    status: str, phase: str, *, parks: bool, stalls: bool, stream_desired_status: str
) -> ShownState:  # fmt: skip
    """One that only parks, or stands still, does nothing, whatever its phase. Nothing reaches one that is held up by
    another's full backlog: it stalls, too. One that rests with its stream is stopped, as that is."""
    if status == ObservedStatus.DISABLED:
        return ShownState.PAUSED if stream_desired_status == DesiredStatus.ENABLED else ShownState.STOPPED
    if status != ObservedStatus.ENABLED:
        return ShownState(status)
    if parks:
        return ShownState.PARKING
    return ShownState.STALLED if stalls and phase in REPLICATES else ShownState(phase)


def stream_state(phase: str, destinations: Collection[ShownState]) -> ShownState:
    """The worst state of its destinations. A stream that applies nowhere on purpose is paused, whether or not it
    captures."""
    staying = {state for state in destinations if state is not ShownState.DROPPED}
    if staying == {ShownState.PAUSED}:
        return ShownState.PAUSED
    return next((state for state in WORST_FIRST if state in destinations), ShownState(phase))


def in_words(state: str) -> str:
    """“PAUSED FOR FLOW CONTROL” → “Paused for flow control”."""
    words = state.replace("_", " ").lower().split(" ")
    known = {"wal": "WAL", "lcr": "LCR", "lcrs": "LCRs"}
    text = " ".join(known.get(word, word) for word in words)
    return text[:1].upper() + text[1:]


HEALTHS = {
    "ok": "Healthy", "stopped": "Stopped", "warning": "Attention", "error": "Failed", "unknown": "Unknown",
}  # fmt: skip


def health_in_words(level: str, status: str, state: str) -> str:
    """`status` is the engine's: what it has been asked to stop stops until the engine says that it has. `state` is the
    stream's."""
    if level == "stopped" and state == ShownState.PAUSED:
        return in_words(state)
    return (
        "Stopping" if level == "stopped" and status == ObservedStatus.ENABLED else HEALTHS.get(level, in_words(level))
    )
