"""1, 2 and 4 streams of one source, each with a destination of its own: what each kind of capture costs the source."""

import argparse

from bench.drains import ThalwegDrain
from bench.report import Report
from bench.rig import Rig
from bench.scenarios import fanout
from bench.scenarios.fanout import COUNTS, ROWS, TABLES, Drains, NativeFan
from harness.engine import parse_lsn

METHOD = f"""The workload is staged in the source's WAL; then all destinations of a method drain it at once, with slots
from before it. Destinations discard: a BEFORE trigger of `entry` returns NULL; only the sentinel's row is written,
which must be seen in each. native: a subscription for each destination, binary, streaming on. thalweg: a stream for
each, logical decoding. thalweg-wal: a stream for each, whose engine mines the WAL. Rounds alternate between the
methods. The figure is the source's CPU time for a million LCRs of the workload. The ratio: what native takes for
{COUNTS[-1]} subscriptions over what {COUNTS[-1]} streams that mine take."""


class Streams(Drains):
    """`count` streams of one destination each."""

    def __init__(self, rig: Rig, name: str, count: int, method: str) -> None:
        self.rig = rig
        self.streams = [ThalwegDrain(rig, f"{name}_{count}_{number}", method, TABLES, {}) for number in range(count)]
        super().__init__(method, self.streams)

    def applied(self) -> bool:
        return all(parse_lsn(self.rig.engine.status(drain.stream)["positions"]["applied"]) >= drain.end
                   for drain in self.streams)


def logical(rig: Rig, name: str, count: int) -> Streams:
    return Streams(rig, name, count, "thalweg")


def mined(rig: Rig, name: str, count: int) -> Streams:
    return Streams(rig, name, count, "thalweg-wal")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--transactions", type=int, default=60_000)
    parser.add_argument("--rounds", type=int, default=2)


def run(arguments: argparse.Namespace) -> None:
    report = Report("streams", arguments)
    report.method(f"{arguments.transactions} transactions of {ROWS} inserts.\n{METHOD}")
    cpu = fanout.compare(report, arguments, (NativeFan, logical, mined))
    report.ratio(cpu["native", COUNTS[-1]] / cpu["thalweg-wal", COUNTS[-1]])
