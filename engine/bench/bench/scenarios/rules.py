"""The cost of rules: nanoseconds for a rule and LCR, and `staged` with a condition on its table beside `staged`."""

import argparse
import json
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from bench import program
from bench.drains import Drain, Measurement, ThalwegDrain
from bench.ledger import Ledger
from bench.report import Report
from bench.rig import SOURCE_DATABASE, Rig
from bench.staged_work import measure_all

ROWS = 10  # of a transaction, as staged has them
CONDITION = "account >= 0 AND note LIKE 'entry%'"
# The source sends only the key of a deleted row.
RULES: dict[str, Any] = {"positive": [{"name": "booked", "operations": ["INSERT", "UPDATE"], "condition": CONDITION},
                                      {"name": "others", "operations": ["DELETE", "TRUNCATE"]}]}
REPETITIONS = 7
JUDGED = {"judge/integer": "comparison of an integer", "judge/like": "LIKE on 20 characters",
          "judge/three": "three conditions with AND", "judge/integer_beside_1000": "beside 1 000 rules on others"}
LIMITS = {"judge/integer": 30, "judge/like": 100}  # ns
METHOD = f"""A rule: one thread judges one insert in memory again and again by a set with one rule for its table; median
of {REPETITIONS} repetitions that alternate, in nanoseconds of CPU time. The last has 1 000 rules on other tables beside
it. staged and ruled: streams of the same workload, which is staged in the source's WAL before any consumer reads it;
every drain is a stream of its own, made before, and rounds alternate. ruled judges every change of the table: inserts
and updates by `{CONDITION}`, deletes by a rule without a condition. All pass, and the engine has counted all. A drain's
clock runs from the request that starts it until the workload's last transaction, a sentinel, and all before it are seen
at the destination. Both servers begin each drain with a checkpoint; afterwards every row is compared. R = ruled's
median rate / staged's. CPU: seconds for a million LCRs, of each server's or the engine's processes."""


class RuledDrain(ThalwegDrain):
    """Its ledger has rules, which judge as many changes as `changes` says."""

    changes: int

    def define(self) -> None:
        super().define()
        for table in self.engine.streams[self.stream]["tables"]:
            if table["table"] == "ledger":
                table["rules"] = RULES

    def stop(self) -> None:
        (counts,) = self.engine.status(self.stream)["rule_counts"]["tables"]
        if (counts["passed"], counts["dropped"]) != (self.changes, 0):
            raise AssertionError(f"not all of {self.changes} changes were judged, and passed: {counts}")
        super().stop()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    program.add_arguments(parser)
    parser.add_argument("--transactions", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)


def run(arguments: argparse.Namespace) -> None:
    report = Report("rules", arguments)
    report.method(f"{arguments.transactions} transactions of {ROWS} row changes, 60 % inserts, 30 % updates, 10 % "
                  f"deletes, five columns.\n{METHOD}")
    _judge(report, arguments.program)
    workload = Ledger(arguments.transactions, ROWS)
    with Rig(arguments.keep) as rig:
        measured = _drain(rig, report, workload, arguments.rounds)
    rates = {method: statistics.median(drained.rate for drained in measured if drained.method == method)
             for method in ("staged", "ruled")}
    for method, rate in rates.items():
        report.say(f"median {method:<10} {rate:>12,.0f} LCR/s")
    report.ratio(rates["ruled"] / rates["staged"])


def _judge(report: Report, bench: Path) -> None:
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        subprocess.run([str(bench), f"--benchmark_repetitions={REPETITIONS}", "--benchmark_min_time=0.1",
                        "--benchmark_enable_random_interleaving=true", f"--benchmark_out={out.name}",
                        "--benchmark_out_format=json"], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        found = json.load(out)["benchmarks"]
    medians = {row["run_name"]: row["cpu_time"] for row in found if row.get("aggregate_name") == "median"}
    for name, words in JUDGED.items():
        report.figure(f"{words:<36} {medians[name]:>7.1f} ns", method=words, nanoseconds=round(medians[name], 1))
    for name, limit in LIMITS.items():
        if medians[name] >= limit:
            report.finding(f"{JUDGED[name]}: {medians[name]:.1f} ns, where the goal is less than {limit}.")


def _drain(rig: Rig, report: Report, workload: Ledger, rounds: int) -> list[Measurement]:
    workload.make_source(rig)
    methods = ("staged", "ruled")
    drains = [(round_number, _prepared(rig, workload, method, round_number))
              for round_number in range(1, rounds + 1)
              for method in (methods if round_number % 2 else reversed(methods))]
    lcrs = workload.stage(rig)
    report.say(f"staged {lcrs} LCRs in the WAL of {SOURCE_DATABASE}")
    return measure_all(rig, report, workload, drains, lcrs)


def _prepared(rig: Rig, workload: Ledger, method: str, round_number: int) -> Drain:
    kind = RuledDrain if method == "ruled" else ThalwegDrain
    drain = kind(rig, f"{method}_{round_number:03}", "thalweg", workload.tables, {})
    drain.method = method
    if isinstance(drain, RuledDrain):
        drain.changes = workload.transactions * workload.rows
    workload.make_destination(rig, drain.database)
    drain.prepare()
    return drain
