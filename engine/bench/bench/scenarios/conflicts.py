"""The cost of conflict detection: `staged` with the old values of its table compared beside `staged` without."""

import argparse
import statistics
from typing import Any

from bench.drains import Drain, Parameters, ThalwegDrain
from bench.ledger import Ledger
from bench.report import Report
from bench.rig import SOURCE_DATABASE, Rig
from bench.staged_work import measure_all

ROWS = 10  # of a transaction, as staged has them
DETECTION: list[dict[str, Any]] = [{"schema": "public", "table": "ledger"}]
METHOD = f"""staged and compared: streams of the same workload, which is staged in the source's WAL before any consumer
reads it, with whole old rows (REPLICA IDENTITY FULL) for both; every drain is a stream of its own, made before, and
rounds alternate. compared has {DETECTION} as conflict_detection: every update and delete compares the old values of all
columns with the destination's row. There is no conflict. A drain's clock runs from the request that starts it until the
workload's last transaction, a sentinel, and all before it are seen at the destination. Both servers begin each drain
with a checkpoint; afterwards every row is compared. R = compared's median rate / staged's. CPU: seconds for a million
LCRs, of each server's or the engine's processes."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--transactions", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)


def run(arguments: argparse.Namespace) -> None:
    report = Report("conflicts", arguments)
    report.method(f"{arguments.transactions} transactions of {ROWS} row changes, 60 % inserts, 30 % updates, 10 % "
                  f"deletes, five columns.\n{METHOD}")
    workload = Ledger(arguments.transactions, ROWS)
    with Rig(arguments.keep) as rig:
        workload.make_source(rig)
        rig.source.sql(SOURCE_DATABASE, "ALTER TABLE ledger REPLICA IDENTITY FULL")
        methods = ("staged", "compared")
        drains = [(round_number, _prepared(rig, workload, method, round_number))
                  for round_number in range(1, arguments.rounds + 1)
                  for method in (methods if round_number % 2 else reversed(methods))]
        lcrs = workload.stage(rig)
        report.say(f"staged {lcrs} LCRs in the WAL of {SOURCE_DATABASE}")
        measured = measure_all(rig, report, workload, drains, lcrs)
    rates = {method: statistics.median(drained.rate for drained in measured if drained.method == method)
             for method in methods}
    for method, rate in rates.items():
        report.say(f"median {method:<10} {rate:>12,.0f} LCR/s")
    report.ratio(rates["compared"] / rates["staged"])


def _prepared(rig: Rig, workload: Ledger, method: str, round_number: int) -> Drain:
    parameters: Parameters = {"conflict_detection": DETECTION} if method == "compared" else {}
    drain = ThalwegDrain(rig, f"{method}_{round_number:03}", "thalweg", workload.tables, parameters)
    drain.method = method
    workload.make_destination(rig, drain.database)
    drain.prepare()
    return drain
