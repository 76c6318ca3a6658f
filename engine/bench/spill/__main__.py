"""make bench SCENARIO=spill: one commit of 428 400 rows, the same payload as objects, and 5 million rows in 256 MB."""

import argparse
import time
from dataclasses import dataclass
from typing import Any

from harness.cluster import Cluster
from harness.compare import assert_same
from harness.engine import Engine
from harness.processes import cpu_seconds, peak_resident_bytes
from harness.workspace import make_workspace, remove_workspace
from spill.workload import BINARY, ROWS, SCHEMA, TABLES, Workload, wide

DATABASE = "spill"
NATIVE = "native"  # the destination's database of PostgreSQL's own subscription
MIB = 2**20
LIMIT_SECONDS = 900
POLL_SECONDS = 0.01
OVERHEAD_MIB = 96  # beside the budget and the queue: see docs/decisions/spill-segments.md
QUEUE_MIB = 64
# The same for both servers. Checkpoints are rare and each workload begins with one, so both sides write the same
# full-page images: none after a page's first change.
SETTINGS = {
    "wal_level": "logical", "shared_buffers": "'512MB'", "max_wal_size": "'16GB'", "checkpoint_timeout": "'30min'",
    "wal_retrieve_retry_interval": "'10ms'", "autovacuum": "off",
}
METHOD = f"""method: one transaction at the source. begin: its first statement is sent; commit: its COMMIT has returned;
visible: its last row, a sentinel's, is seen at the destination over one connection; then its rows are counted.
LCR/s = rows / (visible - begin). WAL: bytes of pg_current_wal_insert_lsn from before the transaction until it is
visible, each server by itself, a checkpoint before. Every row is compared afterwards.
native: PostgreSQL's own subscription, binary, streaming on, in a run of its own. thalweg: default parameters;
memory: the budget alone makes it spill; peak = VmHWM of the engine, to stay within budget + queue ({QUEUE_MIB} MiB)
+ {OVERHEAD_MIB} MiB."""


@dataclass(frozen=True)
class Result:
    seconds: float
    after_commit: float
    source_wal: int
    destination_wal: int

    @property
    def ratio(self) -> float:
        return self.destination_wal / self.source_wal


def main() -> None:
    arguments = _arguments()
    workspace = make_workspace("thalweg-bench")
    source = Cluster(workspace, "source", SETTINGS)
    destination = Cluster(workspace, "destination", SETTINGS)
    engine = Engine(workspace / "engine")
    try:
        for cluster in (source, destination):
            cluster.initialise()
            cluster.start()
        engine.start()
        print(METHOD)
        print(f"{'method':<8} {'workload':<8} {'LCRs':>8} {'seconds':>8} {'after commit':>12} {'LCR/s':>8} "
              f"{'spilled':>8} {'WAL MiB: source':>16} {'destination':>11} {'ratio':>6}  "
              "CPU s: source engine destination", flush=True)
        bench = Bench(source, destination, engine)
        bench.make()
        if arguments.native:
            bench.native(ROWS)
            bench.native(BINARY)
        bench.start_stream({})
        rows = bench.thalweg(ROWS)
        bench.thalweg(BINARY)
        bench.stop_stream()
        if arguments.memory_rows:
            bench.memory(arguments.memory_rows, arguments.memory_budget_mb)
        print(f"spill ratio: {rows.ratio:.2f}")
    finally:
        engine.stop()
        for cluster in (destination, source):
            cluster.stop("immediate")
        if not arguments.keep:
            remove_workspace(workspace)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="spill", description=__doc__)
    parser.add_argument("--memory-rows", type=int, default=5_000_000, help="of the proof of bounded memory; 0: none")
    parser.add_argument("--memory-budget-mb", type=int, default=256)
    parser.add_argument("--no-native", dest="native", action="store_false")
    parser.add_argument("--keep", action="store_true", help="keep the clusters' directory")
    return parser.parse_args()


class Bench:
    def __init__(self, source: Cluster, destination: Cluster, engine: Engine) -> None:
        self.source = source
        self.destination = destination
        self.engine = engine
        self.stream = ""
        self.streams = 0

    def make(self) -> None:
        for cluster, databases in ((self.source, [DATABASE]), (self.destination, [DATABASE, NATIVE])):
            for database in databases:
                cluster.make_database(database)
                cluster.run_script(database, SCHEMA)
        self.source.sql(DATABASE, "CREATE PUBLICATION native FOR ALL TABLES")

    def start_stream(self, parameters: dict[str, int | str | bool]) -> None:
        self.streams += 1
        self.stream = f"spill00{self.streams}"
        self.engine.add_stream(self.stream, self.source.conninfo(DATABASE), self.destination.conninfo(DATABASE), TABLES,
                               initial_copy=False, **parameters)
        self.engine.wait_phase(self.stream, "REPLICATING")

    def stop_stream(self) -> None:
        self.engine.drop_stream(self.stream)

    def native(self, workload: Workload) -> None:
        self.destination.sql(NATIVE, f"""
            CREATE SUBSCRIPTION native CONNECTION '{self.source.conninfo(DATABASE)}' PUBLICATION native
              WITH (copy_data = false, binary = true, streaming = on)""")
        self._run("native", workload, NATIVE)
        self.destination.sql(NATIVE, "DROP SUBSCRIPTION native", f"TRUNCATE {workload.table}")
        self.source.sql(DATABASE, f"TRUNCATE {workload.table}")

    def thalweg(self, workload: Workload) -> Result:
        return self._run("thalweg", workload, DATABASE)

    def memory(self, rows: int, budget_mb: int) -> None:
        """A fresh engine, whose peak is this transaction's."""
        self.engine.stop()
        self.engine.start()
        self.start_stream({"memory_budget_mb": budget_mb, "txn_lcr_spill_threshold": 100_000_000,
                           "queue_memory_mb": QUEUE_MIB})
        before = peak_resident_bytes(self.engine.pid)
        self._run("thalweg", wide(rows), DATABASE)
        peak = peak_resident_bytes(self.engine.pid)
        bound = (budget_mb + QUEUE_MIB + OVERHEAD_MIB) * MIB
        print(f"memory: {rows} rows in one transaction, budget {budget_mb} MiB: peak {peak / MIB:.0f} MiB resident "
              f"(idle: {before / MIB:.0f} MiB), bound {bound / MIB:.0f} MiB", flush=True)
        if peak > bound:
            raise SystemExit("memory: the bound is exceeded")

    def _reader(self, counter: str) -> int:
        return sum(int(component["counters"][counter]) for component in self.engine.components(self.stream)
                   if component["sub_component"] == "APPLY READER")

    def _cpu(self) -> tuple[float, float, float]:
        return (cpu_seconds(self.source.postmaster()), cpu_seconds(self.engine.pid),
                cpu_seconds(self.destination.postmaster()))

    def _run(self, method: str, workload: Workload, database: str) -> Result:
        for cluster in (self.source, self.destination):
            cluster.sql("postgres", "CHECKPOINT")
        spilled_before = self._reader("spilled_lcrs") if self.stream else 0
        cpu_before = self._cpu()
        wal_before = [_wal(cluster) for cluster in (self.source, self.destination)]
        with self.source.connect(DATABASE) as writer, self.destination.connect(database) as watch:
            begun = time.monotonic()
            run = f"{method} {workload.name}"
            with writer.transaction():
                writer.execute(workload.statement)
                writer.execute("INSERT INTO sentinel VALUES (%s)", (run,))
            committed = time.monotonic()
            source_wal = _wal(self.source) - wal_before[0]
            _await(watch, run)
            visible = time.monotonic()
            _count(watch, workload)
        result = Result(visible - begun, visible - committed, source_wal, _wal(self.destination) - wal_before[1])
        used = [after - before for before, after in zip(cpu_before, self._cpu(), strict=True)]
        spilled = str(self._reader("spilled_lcrs") - spilled_before) if method == "thalweg" else "-"
        assert_same(self.source, self.destination, DATABASE, database, [("public", workload.table)])
        print(f"{method:<8} {workload.name:<8} {workload.lcrs:>8} {result.seconds:>8.2f} {result.after_commit:>12.2f} "
              f"{workload.lcrs / result.seconds:>8,.0f} {spilled:>8} {result.source_wal / MIB:>16.1f} "
              f"{result.destination_wal / MIB:>11.1f} {result.ratio:>6.2f}         {used[0]:>6.2f} {used[1]:>6.2f} "
              f"{used[2]:>11.2f}  rows identical", flush=True)
        return result


def _wal(cluster: Cluster) -> int:
    return int(cluster.value("postgres", "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')"))


def _await(watch: Any, run: str) -> None:
    end = time.monotonic() + LIMIT_SECONDS
    while not watch.execute("SELECT EXISTS (SELECT FROM sentinel WHERE run = %s)", (run,)).fetchone()[0]:
        if time.monotonic() > end:
            raise TimeoutError(f"{run}: not visible within {LIMIT_SECONDS} s")
        time.sleep(POLL_SECONDS)


def _count(watch: Any, workload: Workload) -> None:
    found = watch.execute(f"SELECT count(*) FROM {workload.table}").fetchone()[0]
    if found != workload.lcrs:
        raise AssertionError(f"{workload.name}: {found} rows are visible, not {workload.lcrs}")


if __name__ == "__main__":
    main()
