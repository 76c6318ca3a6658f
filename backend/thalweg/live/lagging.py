"""How far destinations are behind, the worst first, and which apply nothing, in words."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from thalweg.kernel.words import duration, listed, size
from thalweg.live.schemas import DestinationSample, Lag, LatencySample

BEHIND_WARNING_SECONDS = 60
"""The age of WAL that may hold no change for the destination. An idle stream's position moves with heartbeats."""
WORK_WARNING_SECONDS = 60
LATENCY_WARNING_MS = 10_000
"""The latency of transactions that have arrived, and the age of changes that wait."""
STALL_CURE = (
    "Look for a lock at the destination, or for a statement that runs long: the advisor shows what it waits for."
)
LAST_COUNTS_SECONDS = 60
"""For so long the last latency speaks where nothing has arrived since."""


@dataclass(frozen=True)
class Behind:
    """`name` is empty for the only destination of a stream that runs: there the stream itself is behind."""

    name: str
    lag: Lag
    latency: LatencySample | None = None
    waiting_seconds: float | None = None
    """The age of the oldest change that is known to wait for it."""
    paused: bool = False
    stands: bool = False
    """It catches up, applies nothing and falls further behind: what it has not read may wait, too."""

    @property
    def behind_seconds(self) -> float:
        """0: it keeps up."""
        age = (self.lag.age_seconds or 0.0) if self.lag.bytes else 0.0
        waiting = self.waiting_seconds or 0.0
        waits = max(waiting, age if self.stands else 0.0) > LATENCY_WARNING_MS / 1000
        return max(age, waiting) if waits or age > BEHIND_WARNING_SECONDS else 0.0

    def p99_ms(self, at: datetime) -> float:
        """0: not known, or long ago."""
        if self.latency is None:
            return 0.0
        last = self.latency.last
        if self.latency.p99_ms is None and last is not None and (at - last.at).total_seconds() <= LAST_COUNTS_SECONDS:
            return last.p99_ms
        return self.latency.p99_ms or 0.0


def behind_in_words(destinations: Iterable[Behind], at: datetime) -> str | None:
    """The worst destination, and who else is behind. None: all keep up."""
    ranked = sorted(destinations, key=lambda destination: -destination.behind_seconds)
    behind = [destination for destination in ranked if destination.behind_seconds > 0]
    return _behind(behind) if behind else _works(ranked) or _slow(ranked, at)


def _behind(behind: list[Behind]) -> str:
    worst, *others = behind
    who = f"{worst.name} is {'paused and ' if worst.paused else ''}" if worst.name else ""
    sentence = f"{who}{duration(worst.behind_seconds)} behind its source"
    sentence += f": {size(worst.lag.bytes)} of WAL are not applied." if worst.lag.bytes else "."
    if others:
        named = [
            f"{destination.name} ({'paused, ' if destination.paused else ''}{duration(destination.behind_seconds)})"
            for destination in others
        ]
        sentence += f" Also behind: {listed(named)}."
    return sentence


def _works(destinations: list[Behind]) -> str | None:
    worst = max(destinations, key=lambda destination: destination.lag.seconds or 0.0, default=None)
    if worst is None or (worst.lag.seconds or 0.0) <= WORK_WARNING_SECONDS:
        return None
    before = f" before {worst.name}" if worst.name else ""
    return f"{duration(worst.lag.seconds or 0.0)} of work lie ahead{before} at the present rate."


def _slow(destinations: list[Behind], at: datetime) -> str | None:
    worst = max(destinations, key=lambda destination: destination.p99_ms(at), default=None)
    if worst is None or worst.p99_ms(at) <= LATENCY_WARNING_MS:
        return None
    who = f"{worst.name} is slow" if worst.name else "Slow"
    past = worst.latency is not None and worst.latency.p99_ms is None
    arrive = "last transactions arrived" if past else "transactions arrive"
    return f"{who}: 99 % of the {arrive} within {worst.p99_ms(at) / 1000:.0f} s."


def stalls_in_words(stalled: list[tuple[str, DestinationSample]], go_on: str, at: datetime) -> str:
    """One sentence for all that apply nothing; each with its name, the one that has stood longest first."""
    ranked = sorted(stalled, key=lambda pair: pair[1].stalled_since or at)
    times = [duration(max(0.0, (at - (destination.stalled_since or at)).total_seconds())) for _, destination in ranked]
    if len(ranked) == 1:
        return f"{ranked[0][0]} has applied nothing for {times[0]} though changes wait for it{go_on}. {STALL_CURE}"
    named = listed([f"{name} (for {time})" for (name, _), time in zip(ranked, times, strict=True)])
    return f"{named} have applied nothing though changes wait for them{go_on}. {STALL_CURE}"
