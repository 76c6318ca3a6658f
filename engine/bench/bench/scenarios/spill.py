"""WLCG 2007's experiment: one commit of 428 400 rows, the same payload as objects, and 5 million rows in 256 MB."""

import argparse

from bench.comparison import assert_identical
from bench.live import LiveTransaction, run_transaction
from bench.objects import BINARY, ROWS, TABLES, Objects, Transaction, wide
from bench.report import Report
from bench.rig import SOURCE_DATABASE, Rig
from harness.processes import peak_resident_bytes

DESTINATION = "thalweg"
NATIVE = "native"  # the destination's database of PostgreSQL's own subscription
MIB = 2**20
OVERHEAD_MIB = 96  # beside the budget and the queue: see docs/decisions/spill-segments.md
QUEUE_MIB = 64
METHOD = f"""one transaction at the source. begin: its first statement is sent; commit: its COMMIT has returned;
visible: its last row, a sentinel's, is seen at the destination over one connection; then its rows are counted.
LCR/s = rows / (visible - begin). WAL: bytes of pg_current_wal_insert_lsn from before the transaction until it is
visible, each server by itself, a checkpoint before. Every row is compared afterwards.
native: PostgreSQL's own subscription, binary, streaming on, in a run of its own. thalweg: default parameters;
memory: the budget alone makes it spill; peak = VmHWM of the engine, to stay within budget + queue ({QUEUE_MIB} MiB)
+ {OVERHEAD_MIB} MiB. The ratio is destination WAL / source WAL of the rows."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--memory-rows", type=int, default=5_000_000, help="of the proof of bounded memory; 0: none")
    parser.add_argument("--memory-budget-mb", type=int, default=256)
    parser.add_argument("--no-native", dest="native", action="store_false")


def run(arguments: argparse.Namespace) -> None:
    report = Report("spill", arguments)
    report.method(METHOD)
    report.say(f"{'method':<8} {'workload':<8} {'LCRs':>8} {'seconds':>8} {'after commit':>12} {'LCR/s':>8} "
               f"{'spilled':>8} {'WAL MiB: source':>16} {'destination':>11} {'ratio':>6}  "
               "CPU s: source engine destination")
    with Rig(arguments.keep) as rig:
        objects = Objects()
        objects.make_source(rig)
        for database in (DESTINATION, NATIVE):
            objects.make_destination(rig, database)
        bench = Bench(rig, report)
        if arguments.native:
            bench.native(ROWS)
            bench.native(BINARY)
        bench.start_stream("spill001", {})
        rows = bench.thalweg(ROWS)
        bench.thalweg(BINARY)
        rig.engine.drop_stream("spill001")
        if arguments.memory_rows:
            bench.memory(arguments.memory_rows, arguments.memory_budget_mb)
    report.ratio(rows.wal_ratio)


class Bench:
    def __init__(self, rig: Rig, report: Report) -> None:
        self.rig = rig
        self.report = report
        self.stream = ""

    def start_stream(self, stream: str, parameters: dict[str, int | str | bool]) -> None:
        self.stream = stream
        self.rig.engine.add_stream(stream, self.rig.source.conninfo(SOURCE_DATABASE),
                                   self.rig.destination.conninfo(DESTINATION), TABLES, initial_copy=False, **parameters)
        self.rig.engine.wait_phase(stream, "REPLICATING")

    def native(self, transaction: Transaction) -> None:
        self.rig.destination.sql(NATIVE, f"""
            CREATE SUBSCRIPTION native CONNECTION '{self.rig.source.conninfo(SOURCE_DATABASE)}' PUBLICATION native
              WITH (copy_data = false, binary = true, streaming = on)""")
        self._run("native", transaction, NATIVE)
        self.rig.destination.sql(NATIVE, "DROP SUBSCRIPTION native", f"TRUNCATE {transaction.table}")
        self.rig.source.sql(SOURCE_DATABASE, f"TRUNCATE {transaction.table}")

    def thalweg(self, transaction: Transaction) -> LiveTransaction:
        return self._run("thalweg", transaction, DESTINATION)

    def memory(self, rows: int, budget_mb: int) -> None:
        """A fresh engine, whose peak is this transaction's."""
        engine = self.rig.engine
        engine.stop()
        engine.start()
        self.start_stream("spill002", {"memory_budget_mb": budget_mb, "txn_lcr_spill_threshold": 100_000_000,
                                       "queue_memory_mb": QUEUE_MIB})
        before = peak_resident_bytes(engine.pid)
        self._run("thalweg", wide(rows), DESTINATION)
        peak = peak_resident_bytes(engine.pid)
        bound = (budget_mb + QUEUE_MIB + OVERHEAD_MIB) * MIB
        self.report.figure(
            f"memory: {rows} rows in one transaction, budget {budget_mb} MiB: peak {peak / MIB:.0f} MiB resident "
            f"(idle: {before / MIB:.0f} MiB), bound {bound / MIB:.0f} MiB", workload="peak", method="thalweg",
            rows=rows, budget_mib=budget_mb, peak_mib=round(peak / MIB), bound_mib=round(bound / MIB))
        if peak > bound:
            raise SystemExit("memory: the bound is exceeded")

    def _spilled(self) -> int:
        return sum(int(component["counters"]["spilled_lcrs"])
                   for component in self.rig.engine.components(self.stream)
                   if component["sub_component"] == "APPLY READER")

    def _run(self, method: str, transaction: Transaction, database: str) -> LiveTransaction:
        spilled_before = self._spilled() if self.stream else 0
        live = run_transaction(self.rig, database, transaction.statement, transaction.table,
                               f"{method} {transaction.name}")
        spilled = str(self._spilled() - spilled_before) if method == "thalweg" else "-"
        assert_identical(self.rig.source, self.rig.destination, SOURCE_DATABASE, database,
                         [("public", transaction.table)])
        rate = transaction.lcrs / live.seconds
        self.report.figure(
            f"{method:<8} {transaction.name:<8} {transaction.lcrs:>8} {live.seconds:>8.2f} {live.after_commit:>12.2f} "
            f"{rate:>8,.0f} {spilled:>8} {live.source_wal / MIB:>16.1f} {live.destination_wal / MIB:>11.1f} "
            f"{live.wal_ratio:>6.2f}         {live.cpu[0]:>6.2f} {live.cpu[1]:>6.2f} {live.cpu[2]:>11.2f}  "
            "rows identical", method=method, workload=transaction.name, lcr_per_second=round(rate),
            source_wal_mib=round(live.source_wal / MIB, 1), destination_wal_mib=round(live.destination_wal / MIB, 1),
            wal_ratio=round(live.wal_ratio, 2), seconds=round(live.seconds, 2),
            after_commit_seconds=round(live.after_commit, 2), spilled_lcrs=0 if spilled == "-" else int(spilled))
        return live
