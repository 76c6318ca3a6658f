"""A path in a span that is over: the samples in which it ran, and in words for how long it did not."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta

from thalweg.advisor.streams import Condition
from thalweg.kernel.lifecycle import REPLICATES, DesiredStatus, ObservedStatus, StreamPhase
from thalweg.kernel.words import duration, listed
from thalweg.live.schemas import DestinationSample, Sample

RAN_SHARE_MIN = 0.01
"""A path that ran for less of its time has no figures of its own."""
WORDS = {
    ObservedStatus.ABORTED: "stopped by an error",
    ObservedStatus.DISABLED: "stopped",
    StreamPhase.INITIALIZING: "starting",
    StreamPhase.INSTANTIATING: "copying tables",
    StreamPhase.RETRYING: "trying again after an error",
}
PAUSED = "paused"
RUNS = ""


@dataclass(frozen=True)
class Past:
    """`samples`: those in which the path ran, or all of them if it never did. `rest` is a sentence on the time in which
    it did not run; None: it always ran, or never."""

    samples: list[Sample]
    condition: Condition
    rest: str | None


@dataclass(frozen=True)
class _Report:
    sample: Sample
    part: Sample | DestinationSample
    word: str
    seconds: float

    @property
    def begin(self) -> datetime:
        return self.sample.at - timedelta(seconds=self.seconds)


def past_of(samples: list[Sample], destination: str) -> Past:
    """A destination that began within the span is judged from its first sample on."""
    reports = _reports(samples, destination)
    spent: dict[str, float] = defaultdict(float)
    for report in reports:
        spent[report.word] += report.seconds
    if not reports:
        return Past([], Condition(DesiredStatus.ENABLED, ObservedStatus.UNKNOWN, StreamPhase.UNKNOWN), None)
    ran = [report for report in reports if report.word == RUNS]
    if ran and spent[RUNS] >= RAN_SHARE_MIN * sum(spent.values()):
        return Past([report.sample for report in ran], _condition(ran[-1]), _rest(reports, spent))
    longest = max(spent, key=lambda word: spent[word] if word != RUNS else -1.0)
    return Past(
        [report.sample for report in reports],
        _condition([report for report in reports if report.word == longest][-1]),
        None,
    )


def _reports(samples: list[Sample], destination: str) -> list[_Report]:
    found: list[_Report] = []
    for sample in samples:
        known = next((part for part in sample.destinations if part.destination_id == destination), None)
        if known is None and sample.destinations:
            continue
        part = known or sample
        found.append(_Report(sample, part, _word(sample, part), sample.interval_seconds or _since(found, sample)))
    return found


def _since(before: list[_Report], sample: Sample) -> float:
    """A first sample after a start has no interval: the time since the one before it."""
    return (sample.at - before[-1].sample.at).total_seconds() if before else 0.0


def _word(sample: Sample, part: Sample | DestinationSample) -> str:
    if part.status == ObservedStatus.ENABLED and part.phase in REPLICATES:
        return RUNS
    if part.status == ObservedStatus.DISABLED and sample.status == ObservedStatus.ENABLED:
        return PAUSED
    return WORDS.get(part.status) or WORDS.get(part.phase) or "in an unknown state"


def _condition(report: _Report) -> Condition:
    rests = report.part.status == ObservedStatus.DISABLED and report.word != PAUSED
    return Condition(
        desired_status=DesiredStatus.DISABLED if rests else DesiredStatus.ENABLED,
        status=report.part.status, phase=report.part.phase, paused=report.word == PAUSED,
    )  # fmt: skip


def _rest(reports: list[_Report], spent: dict[str, float]) -> str | None:
    """Such as: It was stopped for 12 s of this time, at the end since 12:03:27 UTC."""
    rests = [f"{word} for {duration(round(spent[word]))}" for word in spent if word != RUNS and spent[word] >= 1]
    if not rests:
        return None
    number = len(reports)
    while number > 0 and reports[number - 1].word != RUNS:
        number -= 1
    still = f", at its end since {reports[number].begin:%Y-%m-%d %H:%M:%S} UTC" if number < len(reports) else ""
    return f"In this range it was {listed(rests)}{still}."
