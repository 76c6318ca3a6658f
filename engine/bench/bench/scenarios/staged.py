"""Ten-row transactions staged in the WAL, then drained at full speed (Wong et al. 2009, VI.D)."""

import argparse

from bench import staged_work
from bench.ledger import Ledger
from bench.report import Report
from bench.rig import Rig

ROWS = 10


def add_arguments(parser: argparse.ArgumentParser, transactions: int = 200_000, rounds: int = 3) -> None:
    parser.add_argument("--transactions", type=int, default=transactions)
    staged_work.add_arguments(parser, rounds)


def run(arguments: argparse.Namespace, scenario: str = "staged", rows: int = ROWS) -> None:
    report = Report(scenario, arguments)
    report.method(f"{arguments.transactions} transactions of {rows} row changes, 60 % inserts, 30 % updates, "
                  f"10 % deletes, five columns.\n{staged_work.METHOD}")
    with Rig(arguments.keep) as rig:
        done = staged_work.stage_and_drain(rig, report, Ledger(arguments.transactions, rows), arguments)
    staged_work.say_ratio(report, done)
