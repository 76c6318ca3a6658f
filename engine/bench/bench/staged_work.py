"""Stages a workload once and drains it by every method, round by round; prints drains, medians and the ratio."""

import argparse
import json
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

from bench.comparison import assert_identical
from bench.drains import METHODS, Drain, Measurement, Workload, make_drain, measure
from bench.report import Report
from bench.rig import SOURCE_DATABASE, Rig

METHOD = """The workload is staged in the source's WAL before any consumer reads it; every drain has a slot from before
it. Rounds alternate between the methods. A drain's clock runs from the request that starts it until the workload's last
transaction, a sentinel, and all before it are seen at the destination. Both servers begin each drain with a checkpoint,
and have touched all of their shared buffers; afterwards every row is compared. native: PostgreSQL's own subscription,
streaming on, wal_retrieve_retry_interval 10 ms; of binary and text the better median counts. CPU: seconds for a million
LCRs, of each server's or the engine's processes."""


@dataclass(frozen=True)
class Drained:
    lcrs: int
    stage_seconds: float
    measured: list[Measurement]

    def medians(self) -> dict[str, float]:
        """LCRs a second by method."""
        return {method: statistics.median(measurement.rate for measurement in self.measured
                                          if measurement.method == method)
                for method in dict.fromkeys(measurement.method for measurement in self.measured)}


def add_arguments(parser: argparse.ArgumentParser, rounds: int, methods: str = METHODS) -> None:
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--methods", default=methods,
                        help="native-binary, native-text, thalweg (through the data layer), thalweg-sets (in SQL), "
                             "thalweg-wal (mined WAL)")
    parser.add_argument("--parameters", type=json.loads, default={}, help="of the Thalweg stream, as JSON")


def stage_and_drain(rig: Rig, report: Report, workload: Workload, arguments: argparse.Namespace) -> Drained:
    """Leaves source and publication for more measurements."""
    workload.make_source(rig)
    drains = _prepare(rig, workload, arguments)
    wal_before = rig.wal()[0]
    begun = time.monotonic()
    lcrs = workload.stage(rig)
    staged = time.monotonic() - begun
    report.say(f"staged {lcrs} LCRs in {staged:.1f} s, {(rig.wal()[0] - wal_before) / 2**20:.0f} MiB of WAL")
    return Drained(lcrs, staged, measure_all(rig, report, workload, drains, lcrs))


def measure_all(rig: Rig, report: Report, workload: Workload, drains: Sequence[tuple[int, Drain]],
                lcrs: int) -> list[Measurement]:
    """Runs each drain of its round, compares its destination row by row, and drops it."""
    report.say(f"{'round':>5}  {'method':<14} {'LCR/s':>9} {'seconds':>8}   CPU s per million LCRs: "
               f"{'source':>6} {'engine':>6} {'destination':>11}")
    measured = []
    for round_number, drain in drains:
        measurement = measure(drain, rig, round_number, lcrs)
        drain.stop()
        assert_identical(rig.source, rig.destination, SOURCE_DATABASE, drain.database, workload.tables)
        rig.destination.sql("postgres", f"DROP DATABASE {drain.database} WITH (FORCE)")
        _print(report, measurement)
        measured.append(measurement)
    return measured


def _prepare(rig: Rig, workload: Workload, arguments: argparse.Namespace) -> list[tuple[int, Drain]]:
    drains: list[tuple[int, Drain]] = []
    for round_number in range(1, arguments.rounds + 1):
        for method in arguments.methods.split(","):
            drain = make_drain(rig, workload, method, f"{round_number:03}", arguments.parameters)
            drain.prepare()
            drains.append((round_number, drain))
    return drains


def _print(report: Report, measurement: Measurement) -> None:
    source, engine, destination = measurement.cpu_per_million
    report.figure(f"{measurement.round:>5}  {measurement.method:<14} {measurement.rate:>9,.0f} "
                  f"{measurement.seconds:>8.2f} {'':>25} "
                  f"{source:>6.2f} {engine:>6.2f} {destination:>11.2f}  rows identical",
                  method=measurement.method, round=measurement.round, lcr_per_second=round(measurement.rate),
                  seconds=round(measurement.seconds, 3), source_cpu=round(source, 2), engine_cpu=round(engine, 2),
                  destination_cpu=round(destination, 2))


def say_ratio(report: Report, drained: Drained, ours: str = "thalweg") -> None:
    """Our method's median rate over the better of native's."""
    medians = drained.medians()
    for method, rate in medians.items():
        report.say(f"median {method:<14} {rate:>12,.0f} LCR/s")
    native = max((rate for method, rate in medians.items() if method.startswith("native")), default=None)
    if native and ours in medians:
        report.ratio(medians[ours] / native)
