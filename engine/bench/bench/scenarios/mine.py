"""Staged WAL is mined by one core into a queue that is emptied: changes a second, over native's drain."""

import argparse
import statistics
from pathlib import Path

from bench import mined, staged_work
from bench.drains import ThalwegDrain, make_drain
from bench.ledger import Ledger
from bench.report import Report
from bench.rig import Rig
from bench.scenarios.staged import ROWS

NATIVE = ("native-binary", "native-text")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--program", type=Path, required=True, help="mining_bench")
    parser.add_argument("--transactions", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)


def run(arguments: argparse.Namespace) -> None:
    report = Report("mine", arguments)
    report.method(f"{arguments.transactions} transactions of {ROWS} row changes, as in staged. {mined.METHOD}\nNative "
                  f"drains the same workload, apply included, on all cores; the better median of binary and text "
                  f"counts.\n{staged_work.METHOD}")
    workload = Ledger(arguments.transactions, ROWS)
    with Rig(arguments.keep) as rig:
        workload.make_source(rig)
        rounds = range(1, arguments.rounds + 1)
        drains = [(number, make_drain(rig, workload, method, f"{number:03}", {}))
                  for number in rounds for method in NATIVE]
        for _, drain in drains:
            drain.prepare()
        stream = mined.prepare_stream(rig, workload)
        lcrs = workload.stage(rig)
        mined.stage_wal(rig, stream)
        report.say(f"{'round':>5}  {'method':<14} {'LCR/s':>9} {'seconds':>8}   CPU s per million LCRs, MiB of WAL")
        rates = [mine_once(report, rig, stream, arguments.program, number) for number in rounds]
        rig.engine.start()
        native = staged_work.measure_all(rig, report, workload, drains, lcrs)
    done = staged_work.Drained(lcrs, 0, native)
    report.ratio(statistics.median(rates) / max(done.medians().values()))


def mine_once(report: Report, rig: Rig, stream: ThalwegDrain, program: Path, number: int,
              method: str = "thalweg-wal") -> float:
    found = mined.mine(rig, stream, program)
    cpu = found.processor_seconds * 1e6 / found.changes
    report.figure(f"{number:>5}  {method:<14} {found.rate:>9,.0f} {found.seconds:>8.2f}   {cpu:.2f} "
                  f"{found.wal_mib:.0f}",
                  method=method, round=number, lcr_per_second=round(found.rate), seconds=round(found.seconds, 3),
                  engine_cpu=round(cpu, 3), wal_mib=round(found.wal_mib))
    return found.rate
