"""CPU time and memory of process trees, from /proc."""

import os
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _children() -> dict[int, list[int]]:
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int(_stat(int(entry.name))[1])
            except (OSError, IndexError):
                continue  # ended meanwhile
            children.setdefault(parent, []).append(int(entry.name))
    return children


def cpu_seconds(root: int) -> float:
    """User and system time of a process, of its descendants and of those that it has waited for."""
    children = _children()
    pending, ticks = [root], 0
    while pending:
        pid = pending.pop()
        try:
            fields = _stat(pid)
        except OSError:
            continue
        ticks += sum(int(field) for field in fields[11:15])  # utime, stime, cutime, cstime
        pending += children.get(pid, [])
    return ticks / TICKS


def resident_bytes(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


def peak_resident_bytes(pid: int) -> int:
    """The most that was ever resident since the process began."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"process {pid} tells no peak")
