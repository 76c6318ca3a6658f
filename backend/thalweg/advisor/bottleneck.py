"""One row of PATH_BOTTLENECK for each path: the least idle stage that is not in flow control.

The rule is Streams': idle and flow control must both be at or under their thresholds. Four things are added. A path
that keeps up has no bottleneck. Among
stages that are about equally busy, the one that holds the stage before it back most is named, where Streams names none.
Where a stage is held back but none after it is busy as a whole, one thread of it may be: work that cannot be shared.
And what keeps a path from working at all is a verdict of its own, not a bottleneck.
"""

from dataclasses import dataclass

from thalweg.advisor.load import rates_of
from thalweg.advisor.schemas import PathBottleneck, Thresholds, Verdict
from thalweg.advisor.shape import Path
from thalweg.advisor.shipping import shipment_in_words, stands_whatever_limits
from thalweg.advisor.stages import Stage, Thread
from thalweg.advisor.streams import Condition
from thalweg.engine_client.error_codes import ErrorCode, ErrorSide
from thalweg.kernel.lifecycle import DesiredStatus, ObservedStatus, StreamPhase
from thalweg.kernel.sums import Sum
from thalweg.kernel.words import capitalised, ended, grouped, listed, parked_in_words
from thalweg.live.schemas import ComponentType

BROKEN = {
    ErrorSide.SOURCE: Verdict.SOURCE_DOWN,
    ErrorSide.DESTINATION: Verdict.DESTINATION_DOWN,
    ErrorSide.LINK: Verdict.LINK_DOWN,
    ErrorSide.ENGINE: Verdict.ENGINE_TROUBLE,
}
ABOUT_EQUAL = 10.0
NOT_IDENTIFIED = "NO BOTTLENECK IDENTIFIED"
IDLE_LCRS_PER_SECOND = 0.05
SOURCE_IDLE_LAG_BYTES = 1 << 20
KEEPS_UP_LAG_BYTES, KEEPS_UP_AGE_SECONDS = 32 << 10, 0.25
"""Limits of the lag of a path that keeps up."""


def bottleneck_of(path: Path, stages: list[Stage], thresholds: Thresholds) -> PathBottleneck:
    found = _bottleneck_of(path, stages, thresholds)
    rest = path.past.rest if path.past is not None else None
    return found if rest is None else found.model_copy(update={"explanation": f"{found.explanation} {rest}"})


def _bottleneck_of(path: Path, stages: list[Stage], thresholds: Thresholds) -> PathBottleneck:
    verdict = _past_verdict_of(path) if path.past is not None else _verdict_of(path)
    if verdict is not None:
        return _none(path, *verdict)
    if not any(stage.mean is not None for stage in stages):
        return _none(path, Verdict.UNKNOWN, "There are no two samples yet: rates are not known.")
    parks = _parks(path, stages)
    if parks is not None and parks.grown:
        return _none(path, Verdict.PARKING, parks.explanation)
    busiest = _least_idle(stages, thresholds) or _serial(stages, thresholds)
    found = None if _keeps_up(path) else busiest
    shipment = shipment_in_words(path)
    if shipment is not None and (found is None or stands_whatever_limits(path) or _captures(found[0])):
        return _none(path, Verdict.HELD_UP, shipment)
    if path.full_backlogs and (found is None or path.is_own(path.full_backlogs[0])):
        limit = f" {_named(path, *found, thresholds).explanation}" if found is not None else ""
        return _none(path, Verdict.HELD_UP, f"{_held_up(path)}{limit}")
    if found is None and busiest is not None and parks is None:
        return _none(path, Verdict.NONE, "No bottleneck: changes arrive as fast as the source makes them.")
    if found is None:
        return _unlimited(path, stages, parks)
    return _named(path, *found, thresholds)


def _captures(stage: Stage) -> bool:
    return stage.component.component_type is ComponentType.CAPTURE


def _keeps_up(path: Path) -> bool:
    """Its stages may be busy, and wait for one another: nothing of it makes changes arrive late."""
    lags = [own.lag for own in path.own_samples]
    return bool(lags) and all(
        lag.bytes == 0
        or (
            lag.bytes is not None and lag.bytes < KEEPS_UP_LAG_BYTES
            and lag.age_seconds is not None and lag.age_seconds < KEEPS_UP_AGE_SECONDS
        )
        for lag in lags
    )  # fmt: skip


def _verdict_of(path: Path) -> tuple[Verdict, str] | None:
    """The verdict of a path that does not work, or None."""
    condition = path.condition
    if condition.engine_silent is not None:
        return Verdict.ENGINE_DOWN, f"The engine {condition.engine_silent} does not answer."
    if condition.status == ObservedStatus.ABORTED:
        return Verdict.ABORTED, f"It has stopped with an error: {condition.error_message or 'unknown'}"
    if condition.paused:
        return Verdict.PAUSED, "It is paused."
    if condition.desired_status != DesiredStatus.ENABLED or condition.status == ObservedStatus.DISABLED:
        return Verdict.STOPPED, "It is stopped."
    if condition.waits:
        return Verdict.WAITING, " ".join(ended(wait.words) for wait in condition.waits)
    if condition.phase == StreamPhase.INITIALIZING and condition.error_message is None:
        return Verdict.STARTING, "It is starting."
    if condition.phase == StreamPhase.INSTANTIATING:
        return Verdict.COPYING, "The tables are being copied."
    if shipment_in_words(path) is not None or _only_fills(path):
        return None
    if condition.phase == StreamPhase.RETRYING or condition.error_message is not None:
        return _broken(condition)
    return None


def _past_verdict_of(path: Path) -> tuple[Verdict, str] | None:
    """The verdict of a path that did not work in a span that is over, or None."""
    condition = path.condition
    if condition.status == ObservedStatus.ABORTED:
        return Verdict.ABORTED, "It had stopped with an error."
    if condition.paused:
        return Verdict.PAUSED, "It was paused."
    if condition.status == ObservedStatus.DISABLED:
        return Verdict.STOPPED, "It was stopped."
    if condition.phase == StreamPhase.INITIALIZING:
        return Verdict.STARTING, "It was starting."
    if condition.phase == StreamPhase.INSTANTIATING:
        return Verdict.COPYING, "The tables were being copied."
    if condition.phase == StreamPhase.RETRYING:
        return Verdict.UNKNOWN, "It tried again after an error."
    return None


def _only_fills(path: Path) -> bool:
    """Its backlog is full, and nothing else is wrong: engines report that as an error of theirs."""
    full = path.condition.error_code == ErrorCode.SPILL_LIMIT_REACHED
    return full and any(path.is_own(destination) for destination in path.full_backlogs)


def _broken(condition: Condition) -> tuple[Verdict, str]:
    message = condition.error_message or "It tries again after an error."
    return Verdict.UNKNOWN if condition.error_side is None else BROKEN[condition.error_side], message


def _held_up(path: Path) -> str:
    full = path.full_backlogs
    names = listed([path.name_of(destination.destination_id) for destination in full])
    backlogs = "backlog" if len(full) == 1 else "backlogs"
    are = "is" if len(full) == 1 else "are"
    return f"The {backlogs} of {names} {are} full: until there is room, nothing more is captured, for any destination."


def _fits(idle: float, flow_control: float, thresholds: Thresholds) -> bool:
    return idle <= thresholds.idle and flow_control <= thresholds.flow_control


def _least_idle(stages: list[Stage], thresholds: Thresholds) -> tuple[Stage, Thread] | None:
    candidates = [
        (number, stage)
        for number, stage in enumerate(stages)
        if stage.mean is not None and _fits(stage.mean.idle, stage.mean.flow_control, thresholds)
    ]
    if not candidates:
        return None
    least = min(stage.mean.idle for _, stage in candidates if stage.mean is not None)
    equal = [
        (number, stage)
        for number, stage in candidates
        if stage.mean is not None and stage.mean.idle - least <= ABOUT_EQUAL
    ]
    _, stage = max(equal, key=lambda item: (_pressure_before(stages, item[0]), item[0]))
    busiest = stage.busiest
    return None if busiest is None else (stage, busiest)


def _pressure_before(stages: list[Stage], number: int) -> float:
    """How much the nearest preceding stage with threads is held back, in percent."""
    for stage in reversed(stages[:number]):
        if stage.mean is not None:
            return round(stage.mean.flow_control)
    return 0.0


def _serial(stages: list[Stage], thresholds: Thresholds) -> tuple[Stage, Thread] | None:
    """One busy thread among several, where what comes before it is held back."""
    for number in range(len(stages) - 1, 0, -1):
        stage, busiest = stages[number], stages[number].busiest
        if busiest is None or _pressure_before(stages, number) <= thresholds.flow_control:
            continue
        if _fits(busiest.occupancy.idle, busiest.occupancy.flow_control, thresholds):
            return stage, busiest
    return None


def _named(path: Path, stage: Stage, thread: Thread, thresholds: Thresholds) -> PathBottleneck:
    assert stage.mean is not None  # noqa: S101
    event, share = stage.mean.top
    if len(stage.threads) > 1 and stage.mean.idle > thresholds.idle:
        event, share = thread.occupancy.top
    named = share > thresholds.event
    component, several = stage.component, len(stage.threads) > 1
    explanation = f"{stage.title} is {100 - stage.mean.idle:.0f} % occupied"
    if several:
        explanation += f" over {len(stage.threads)} threads, {thread.load.last.id} {100 - thread.occupancy.idle:.0f} %"
    explanation += f": {share:.0f} % {event}." if named else "."
    return PathBottleneck(
        path_id=path.path.path_id, bottleneck_identified=True, component_id=component.component_id,
        component_name=component.component_name, component_db=component.component_db,
        component_type=component.component_type, sub_component_type=stage.sub_component,
        top_thread=thread.load.last.server, action_name=thread.load.last.id,
        top_event=event if named else None, top_event_percent=round(share, 1) if named else None,
        idle_percent=round(stage.mean.idle, 1), flow_control_percent=round(stage.mean.flow_control, 1),
        advisor_run_reason=None, verdict=Verdict.BOTTLENECK, explanation=explanation,
    )  # fmt: skip


@dataclass(frozen=True)
class _Parks:
    """Transactions in the error queue of a destination that parks what comes; `grown` within the span."""

    parked: int
    grown: int

    @property
    def explanation(self) -> str:
        if self.grown:
            queued = f"{parked_in_words(Sum(self.parked))}, {grouped(self.grown)} of them new"
            return f"It applies nothing and parks what comes: {queued}."
        return f"Nothing is applied, and {parked_in_words(Sum(self.parked))}."


def _parks(path: Path, stages: list[Stage]) -> _Parks | None:
    """None, too, where transactions lie parked from before and the source is quiet: nothing is held up by that. An
    error queue that is unknown now says nothing; one that was unknown has grown only since it has been known."""
    applied = _rates_applied(stages)
    if not path.own_samples or not applied or any(rate is None or rate >= IDLE_LCRS_PER_SECOND for rate in applied):
        return None
    last = path.own_samples[-1]
    known = [count for own in path.own_samples if (count := own.error_queue_transactions) is not None]
    parked = last.error_queue_transactions
    if parked is None:
        return None
    grown = max(0, parked - known[0])
    return _Parks(parked, grown) if grown or (parked and last.parks_since is not None) else None


def _rates_applied(stages: list[Stage]) -> list[float | None]:
    """None for a stage of which an applier's rate is unknown: that the others stand still says nothing of all."""
    return [rates_of(stage.loads, "lcrs").exact for stage in stages if stage.sub_component == "APPLY SERVER"]


def _unlimited(path: Path, stages: list[Stage], parks: _Parks | None) -> PathBottleneck:
    if parks is not None:
        return _none(path, Verdict.PARKING, parks.explanation)
    capture = next((stage for stage in stages if stage.component.component_type is ComponentType.CAPTURE), None)
    rates = [stage.loads[0].rates.get("lcrs") for stage in stages if stage is capture]
    rates += _rates_applied(stages)
    lag = path.own_samples[-1].lag.bytes if path.own_samples else None
    still = rates and all(rate is not None and rate < IDLE_LCRS_PER_SECOND for rate in rates)
    parked = path.own_samples[-1].error_queue_transactions if path.own_samples else 0
    beside = f" {capitalised(parked_in_words(Sum(parked)))}." if parked else ""
    if still and lag is not None and lag < SOURCE_IDLE_LAG_BYTES:
        return _none(path, Verdict.SOURCE_IDLE, f"The source has no new changes of these tables.{beside}")
    least = min((stage for stage in stages if stage.mean), key=lambda stage: stage.mean.idle if stage.mean else 100)
    assert least.mean is not None  # noqa: S101
    return _none(
        path, Verdict.NONE,
        f"No bottleneck: the least idle stage, {least.title}, is idle {least.mean.idle:.0f} % of the time.{beside}",
    )  # fmt: skip


def _none(path: Path, verdict: Verdict, explanation: str) -> PathBottleneck:
    blank = dict.fromkeys(PathBottleneck.model_fields)
    return PathBottleneck.model_validate(
        {
            **blank, "path_id": path.path.path_id, "bottleneck_identified": False,
            "advisor_run_reason": NOT_IDENTIFIED, "verdict": verdict, "explanation": explanation,
        }
    )  # fmt: skip
