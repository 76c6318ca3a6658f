"""One transaction of 428 400 inserts (WLCG 2007): drained from the WAL, and live with streaming."""

import argparse

from bench import staged_work
from bench.comparison import assert_identical
from bench.drains import make_drain
from bench.live import run_transaction
from bench.objects import ROWS, TABLES, Objects
from bench.report import Report
from bench.rig import SOURCE_DATABASE, Rig

LIVE_METHOD = """Live: the same transaction while its consumer runs, streamed. begin: its first statement is sent;
commit: its COMMIT has returned; visible: its last row, a sentinel's, is seen at the destination, and then all rows are
counted. The ratio is the staged drain's."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    staged_work.add_arguments(parser, rounds=3)
    parser.add_argument("--live-rounds", type=int, default=2)


def run(arguments: argparse.Namespace) -> None:
    report = Report("bigtx", arguments)
    report.method(f"one transaction of {ROWS.lcrs} inserts, eight columns.\n{staged_work.METHOD}\n{LIVE_METHOD}")
    with Rig(arguments.keep) as rig:
        done = staged_work.stage_and_drain(rig, report, Objects(), arguments)
        report.say(f"{'round':>5}  {'method':<14} {'begin to visible':>16} {'commit to visible':>17} {'LCR/s':>9}   "
                   f"CPU s per million LCRs: {'source':>6} {'engine':>6} {'destination':>11}")
        for round_number in range(1, arguments.live_rounds + 1):
            for method in arguments.methods.split(","):
                _live(rig, report, method, round_number, arguments)
    staged_work.say_ratio(report, done)


def _live(rig: Rig, report: Report, method: str, round_number: int, arguments: argparse.Namespace) -> None:
    rig.source.sql(SOURCE_DATABASE, "TRUNCATE pedestal_item, sentinel")
    drain = make_drain(rig, Objects(), method, f"live{round_number:03}", arguments.parameters)
    drain.prepare()
    drain.start()
    # A first small transaction: what follows finds a consumer that runs.
    run_transaction(rig, drain.database, "INSERT INTO wide VALUES (0, 0, 0, '')", "wide", "first")
    live = run_transaction(rig, drain.database, ROWS.statement, ROWS.table, "last")
    rig.source.sql(SOURCE_DATABASE, "DELETE FROM wide")
    drain.stop()
    assert_identical(rig.source, rig.destination, SOURCE_DATABASE, drain.database,
                     [table for table in TABLES if table[1] in (ROWS.table, "sentinel")])
    source, engine, destination = (seconds * 1e6 / ROWS.lcrs for seconds in live.cpu)
    report.figure(f"{round_number:>5}  {method:<14} {live.seconds:>14.2f} s {live.after_commit:>15.2f} s "
                  f"{ROWS.lcrs / live.seconds:>9,.0f} {'':>26} {source:>6.2f} {engine:>6.2f} {destination:>11.2f}  "
                  "rows identical", method=method, round=round_number, live=True, seconds=round(live.seconds, 3),
                  after_commit_seconds=round(live.after_commit, 3), source_cpu=round(source, 2),
                  engine_cpu=round(engine, 2), destination_cpu=round(destination, 2))
