"""A workload that an engine has staged for a stream that mines, and the rate at which one core mines it again."""

import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from bench.drains import LIMIT_SECONDS, ThalwegDrain, Workload, make_drain
from bench.rig import SOURCE_DATABASE, Rig
from harness.engine import parse_lsn

STAGING_MB = 16_384
METHOD = """An engine stages the source's WAL for a stream whose destination holds it up, and is ended. mining_bench
mines the staged files on one core (taskset): it checks the records, follows the catalogs, builds the changes and
enqueues them, while a thread of the same core empties the queue. Its clock runs from the first change to the last."""


@dataclass(frozen=True)
class MinedOnce:
    changes: int
    seconds: float
    processor_seconds: float
    wal_mib: float

    @property
    def rate(self) -> float:
        """Changes a second."""
        return self.changes / self.seconds


def prepare_stream(rig: Rig, workload: Workload) -> ThalwegDrain:
    """Made before the workload, as a drain is."""
    drain = make_drain(rig, workload, "thalweg-wal", "mine", {})
    assert isinstance(drain, ThalwegDrain)
    drain.prepare()
    rig.engine.streams[drain.stream]["staging_limit_mb"] = STAGING_MB
    return drain


def stage_wal(rig: Rig, drain: ThalwegDrain) -> None:
    """Returns once all of the workload's WAL is on the engine's disk, nothing of it applied, and the engine ended."""
    with rig.destination.connect(drain.database) as holder, holder.transaction():
        for schema, table in drain.tables:
            holder.execute(f'LOCK TABLE "{schema}"."{table}" IN SHARE MODE')
        drain.start()
        limit = time.monotonic() + LIMIT_SECONDS
        while _staged(rig, drain) < drain.end:
            if time.monotonic() > limit:
                raise TimeoutError(f"the WAL was not staged within {LIMIT_SECONDS} s")
            time.sleep(0.1)
        rig.engine.kill()


def mine(rig: Rig, drain: ThalwegDrain, program: Path) -> MinedOnce:
    core = min(os.sched_getaffinity(0))
    (folder,) = rig.engine.directory.glob("**/mined-wal")
    printed = subprocess.run(
        ["taskset", "--cpu-list", str(core), str(program), rig.source.conninfo(SOURCE_DATABASE),
         f"thalweg_{drain.stream}", f"thalweg_{drain.stream}", str(folder), _as_lsn(drain.end)],
        check=True, stdout=subprocess.PIPE, text=True).stdout
    changes, seconds, processor_seconds, wal_mib = printed.splitlines()[-1].split()  # behind what the capture logs
    return MinedOnce(int(changes), float(seconds), float(processor_seconds), float(wal_mib))


def _staged(rig: Rig, drain: ThalwegDrain) -> int:
    """The position up to which the source may forget its WAL."""
    return parse_lsn(str(rig.source.value("postgres", "SELECT restart_lsn FROM pg_replication_slots "
                                          f"WHERE slot_name = 'thalweg_{drain.stream}'")))


def _as_lsn(position: int) -> str:
    return f"{position >> 32:X}/{position & 0xFFFFFFFF:X}"
