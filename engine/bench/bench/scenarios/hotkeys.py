"""Updates of which 90 % fall on 1 % of the keys, drained with parallel appliers and with a single one."""

import argparse
import statistics

from bench.accounts import Accounts
from bench.drains import Measurement, Parameters, ThalwegDrain
from bench.report import Report
from bench.rig import Rig
from bench.staged_work import measure_all

METHOD = """The updates are staged in the source's WAL before any consumer reads it; every drain is a stream of its own,
made before. Rounds alternate between a stream with default parameters (parallel) and one with parallelism 1 (serial).
A drain's clock runs from the request that starts it until the workload's last transaction, a sentinel, and all before
it are seen at the destination. Both servers begin each drain with a checkpoint; afterwards every row is compared.
R = parallel's median rate / serial's. CPU: seconds for a million LCRs, of each server's or the engine's processes."""
STREAMS: dict[str, Parameters] = {"parallel": {}, "serial": {"parallelism": 1}}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--transactions", type=int, default=100_000)
    parser.add_argument("--rows", type=int, default=4, help="updates of a transaction")
    parser.add_argument("--accounts", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)


def run(arguments: argparse.Namespace) -> None:
    report = Report("hotkeys", arguments)
    workload = Accounts(arguments.transactions, arguments.rows, arguments.accounts)
    report.method(f"{arguments.transactions} transactions of {arguments.rows} updates of {arguments.accounts} rows, "
                  f"90 % of them of {workload.hot} rows.\n{METHOD}")
    with Rig(arguments.keep) as rig:
        measured = _drain(rig, report, workload, arguments.rounds)
    rates = {stream: statistics.median(measurement.rate for measurement in measured if measurement.method == stream)
             for stream in STREAMS}
    for stream, rate in rates.items():
        report.say(f"median {stream:<10} {rate:>12,.0f} LCR/s")
    report.ratio(rates["parallel"] / rates["serial"])


def _drain(rig: Rig, report: Report, workload: Accounts, rounds: int) -> list[Measurement]:
    workload.make_source(rig)
    drains = [(round_number, _prepared(rig, workload, stream, round_number))
              for round_number in range(1, rounds + 1)
              for stream in (STREAMS if round_number % 2 else reversed(STREAMS))]
    lcrs = workload.stage(rig)
    return measure_all(rig, report, workload, drains, lcrs)


def _prepared(rig: Rig, workload: Accounts, stream: str, round_number: int) -> ThalwegDrain:
    drain = ThalwegDrain(rig, f"{stream}_{round_number:03}", "thalweg", workload.tables, STREAMS[stream])
    drain.method = stream
    workload.make_destination(rig, drain.database)
    drain.prepare()
    return drain
