"""Native, logical and mined capture drain the same staged workload: what each costs, and mined over native."""

import argparse

from bench import staged_work
from bench.ledger import Ledger
from bench.report import Report
from bench.rig import Rig
from bench.scenarios.staged import ROWS

METHODS = "native-binary,native-text,thalweg,thalweg-wal"


def add_arguments(parser: argparse.ArgumentParser, transactions: int = 200_000, rounds: int = 3) -> None:
    parser.add_argument("--transactions", type=int, default=transactions)
    staged_work.add_arguments(parser, rounds, METHODS)


def run(arguments: argparse.Namespace) -> None:
    report = Report("wal", arguments)
    report.method(f"{arguments.transactions} transactions of {ROWS} row changes, as in staged; thalweg captures by "
                  f"logical decoding, thalweg-wal mines the WAL, which the engine receives and stages.\n"
                  f"{staged_work.METHOD}")
    with Rig(arguments.keep) as rig:
        done = staged_work.stage_and_drain(rig, report, Ledger(arguments.transactions, ROWS), arguments)
    staged_work.say_ratio(report, done, "thalweg-wal")
