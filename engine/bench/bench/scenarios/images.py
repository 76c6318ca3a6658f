"""WAL that checkpoints have filled with images of pages, mined by one core: changes a second, over WAL with few."""

import argparse
import statistics
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import mined
from bench.ledger import Ledger
from bench.report import Report
from bench.rig import Rig
from bench.scenarios.mine import mine_once
from bench.scenarios.staged import ROWS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--program", type=Path, required=True, help="mining_bench")
    parser.add_argument("--transactions", type=int, default=60_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--checkpoint-seconds", type=float, default=0.5, help="between two of them")


def run(arguments: argparse.Namespace) -> None:
    report = Report("images", arguments)
    report.method(f"{arguments.transactions} transactions of {ROWS} row changes, as in staged, written once without a "
                  f"checkpoint and once with one every {arguments.checkpoint_seconds} s, wal_compression off. "
                  f"{mined.METHOD}")
    report.say(f"{'round':>5}  {'method':<14} {'LCR/s':>9} {'seconds':>8}   CPU s per million LCRs, MiB of WAL")
    few = _rate(report, arguments, "few images", 0)
    many = _rate(report, arguments, "images", arguments.checkpoint_seconds)
    report.ratio(many / few)


def _rate(report: Report, arguments: argparse.Namespace, method: str, checkpoint_seconds: float) -> float:
    workload = Ledger(arguments.transactions, ROWS)
    with Rig(arguments.keep) as rig:
        workload.make_source(rig)
        stream = mined.prepare_stream(rig, workload)
        rig.source.sql("postgres", "CHECKPOINT")
        with _checkpoints(rig, checkpoint_seconds):
            workload.stage(rig)
        mined.stage_wal(rig, stream)
        return statistics.median(mine_once(report, rig, stream, arguments.program, number, method)
                                 for number in range(1, arguments.rounds + 1))


@contextmanager
def _checkpoints(rig: Rig, seconds: float) -> Iterator[None]:
    """One after the other, `seconds` apart; none where that is 0."""
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(seconds):
            rig.source.sql("postgres", "CHECKPOINT")
    thread = threading.Thread(target=run)
    if seconds:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        if seconds:
            thread.join()
