"""Processor time and memory of processes and their children, from /proc."""

import os
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
MIB = 1 << 20


@dataclass(frozen=True)
class Usage:
    """`cpu_seconds` since they started; `memory_bytes` is the sum of what each has for itself and its share of the rest
    (proportional set size)."""

    cpu_seconds: float
    memory_bytes: int


def tree(root: int) -> list[int]:
    """A process and its descendants."""
    parents: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(fields[1]), []).append(int(path.parent.name))
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        waiting += parents.get(pid, [])
    return found


def usage(root: int) -> Usage:
    """A child that has ended counts with its parent's children's time."""
    ticks = memory = 0
    for process in tree(root):
        try:
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
        except OSError:
            continue
        ticks += int(fields[11]) + int(fields[12]) + (int(fields[13]) + int(fields[14]) if process == root else 0)
        memory += next(int(line.split()[1]) * 1024 for line in rollup.splitlines() if line.startswith("Pss:"))
    return Usage(ticks / TICKS, memory)
