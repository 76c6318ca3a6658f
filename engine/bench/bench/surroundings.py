"""The machine's other load while a figure was measured: others' CPU, the hypervisor's share, the disk's flush."""

import os
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from harness.processes import TICKS, cpu_seconds

FLUSHES = 20
FLUSH_BYTES = 8192  # a page of WAL
QUIET_SECONDS = 2.0  # that the machine is looked at before a run
OTHERS_PERCENT_MAX = 10.0  # of all cores
STEAL_PERCENT_MAX = 5.0
WINDOW_SECONDS_MIN = 1.0  # a share of fewer ticks says nothing


@dataclass(frozen=True)
class Surroundings:
    load: float  # runnable tasks over the last minute, the run's own with them
    others_percent: float  # CPU of all cores that processes beside the run's used
    steal_percent: float
    flush_ms: float  # median of a page written and flushed

    @property
    def is_busy(self) -> bool:
        return self.others_percent > OTHERS_PERCENT_MAX or self.steal_percent > STEAL_PERCENT_MAX

    def figures(self) -> dict[str, float]:
        return {"load": round(self.load, 2), "others_percent": round(self.others_percent, 1),
                "steal_percent": round(self.steal_percent, 1), "flush_ms": round(self.flush_ms, 3)}

    def __str__(self) -> str:
        return (f"load {self.load:.2f}, others {self.others_percent:.1f} % of all cores, steal "
                f"{self.steal_percent:.1f} %, flush {self.flush_ms:.2f} ms")


class Watch:
    """From one look to the next. `directory`: on the disk that the run's servers write to."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._before = _Ticks.now()
        self._seen: Surroundings | None = None
        self._seen_at = time.monotonic()

    def look(self) -> Surroundings:
        """Since the last look, or since it was made; figures of one moment share a look. Takes as long as twenty
        flushes."""
        if self._seen is not None and time.monotonic() - self._seen_at < WINDOW_SECONDS_MIN:
            return self._seen
        now = _Ticks.now()
        before, self._before = self._before, now
        total = max(now.total - before.total, 1)
        others = (now.busy - before.busy) - (now.own - before.own)
        seen = Surroundings(os.getloadavg()[0], max(0.0, 100 * others / total),
                            100 * (now.steal - before.steal) / total, flush_milliseconds(self.directory))
        self._before = _Ticks.now()  # the flushes are nobody's
        self._seen, self._seen_at = seen, time.monotonic()
        return seen


@dataclass(frozen=True)
class _Ticks:
    busy: float  # of all cores: user, system, interrupts; steal is not among them
    steal: float
    total: float
    own: float

    @classmethod
    def now(cls) -> "_Ticks":
        # user nice system idle iowait irq softirq steal; guests' time is in the first two
        fields = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        # The guard above this process has every server that lost its parent: scripts/guard.py.
        return cls(sum(fields) - fields[3] - fields[4] - fields[7], fields[7], sum(fields),
                   cpu_seconds(os.getppid()) * TICKS)


def flush_milliseconds(directory: Path) -> float:
    page = b"\0" * FLUSH_BYTES
    times = []
    with tempfile.TemporaryFile(dir=directory) as file:
        for _ in range(FLUSHES):
            file.write(page)
            file.flush()
            begun = time.monotonic()
            os.fdatasync(file.fileno())
            times.append(time.monotonic() - begun)
    return 1000 * statistics.median(times)


def before_a_run(directory: Path) -> Surroundings:
    watch = Watch(directory)
    time.sleep(QUIET_SECONDS)
    return watch.look()
