"""Did a change help? Two runs of one path, told in one sentence."""

from dataclasses import dataclass

from thalweg.advisor.comparison import bottleneck_in_words
from thalweg.advisor.findings.codes import FindingCode
from thalweg.advisor.schemas import Verdict
from thalweg.features.advisor.schemas import CureState, Run
from thalweg.kernel.words import figure

BETTER_RATE = 1.10
WORSE_RATE = 0.90
BETTER_LATENCY = 0.75
WORSE_LATENCY = 1.33
STARTING = (Verdict.UNKNOWN, Verdict.STOPPED, Verdict.PAUSED, Verdict.COPYING, Verdict.STARTING, Verdict.WAITING)


@dataclass(frozen=True)
class Judgement:
    """MEASURING: it cannot be told yet."""

    state: CureState
    outcome: str


@dataclass(frozen=True)
class _Figures:
    rate: float | None
    latency: float | None
    at_least: bool
    """The latency is a lower bound: nothing arrived for so long though changes waited."""
    lag: float | None
    verdict: Verdict
    bottleneck: str | None
    found: bool


def _figures(run: Run, path_id: str, code: FindingCode) -> _Figures | None:
    line = next((line for line in run.paths if line.path_id == path_id), None)
    if line is None:
        return None
    row = next(row for row in run.analysis.path_bottlenecks if row.path_id == path_id)
    found = any(finding.code == code and finding.path_id == path_id for finding in run.findings_ranked)
    p99, bound = line.latency_p99_seconds, line.latency_at_least_seconds
    at_least = bound is not None and bound > (p99 or 0.0)
    return _Figures(
        line.messages_per_second,
        bound if at_least else p99,
        at_least,
        line.lag_bytes,
        row.verdict,
        bottleneck_in_words(row),
        found,
    )


def judge(before: Run, after: Run, path_id: str, code: FindingCode) -> Judgement:
    """By throughput where there was a lag, else by latency; a finding that is gone counts as help too. A path that
    carries nothing says nothing: no trouble shows in it either."""
    first, second = _figures(before, path_id, code), _figures(after, path_id, code)
    if first is None or second is None:
        return Judgement(CureState.NOT_MEASURED, "The path is not in both snapshots.")
    if second.verdict in STARTING or not second.rate:
        return Judgement(CureState.MEASURING, "The path has carried nothing since the change.")
    words = _words(first, second)
    rate, latency = _ratio(first.rate, second.rate), _latency_ratio(first, second)
    if rate is not None and rate >= BETTER_RATE:
        return Judgement(CureState.HELPED, words)
    if latency is not None and latency <= BETTER_LATENCY:
        return Judgement(CureState.HELPED, words)
    if first.found and not second.found and (latency is None or latency < WORSE_LATENCY):
        return Judgement(CureState.HELPED, f"{words} The finding is gone.")
    drained = first.lag is not None and second.lag is not None and first.lag > second.lag
    if latency is not None and latency >= WORSE_LATENCY and not drained:
        return Judgement(CureState.WORSE, words)
    if rate is not None and rate <= WORSE_RATE and not drained and second.found:
        return Judgement(CureState.WORSE, words)
    return Judgement(CureState.NO_DIFFERENCE, words)


def _ratio(before: float | None, after: float | None) -> float | None:
    return None if not before or after is None else after / before


def _latency_ratio(first: _Figures, second: _Figures) -> float | None:
    """None where a lower bound leaves open which of both is longer."""
    ratio = _ratio(first.latency, second.latency)
    if ratio is None or (second.at_least if ratio < 1 else first.at_least):
        return None
    return ratio


def _words(first: _Figures, second: _Figures) -> str:
    def shown(value: float | None, unit: str) -> str:
        return "unknown" if value is None else f"{figure(value)} {unit}"

    def late(figures: _Figures) -> str:
        return ("≥ " if figures.at_least else "") + shown(figures.latency, "s")

    parts = [
        f"{shown(first.rate, 'LCR/s')} before, {shown(second.rate, 'LCR/s')} after",
        f"latency p99 {late(first)} before, {late(second)} after",
    ]
    if first.bottleneck != second.bottleneck:
        parts.append(f"the bottleneck was {first.bottleneck}, now {second.bottleneck}")
    return "; ".join(parts) + "."
