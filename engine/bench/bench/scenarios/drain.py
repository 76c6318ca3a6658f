"""pgbench's TPC-B with the consumer off, then the catch-up: does draining take less time than producing did?"""

import argparse
import statistics
import subprocess

from bench import staged_work
from bench.report import Report
from bench.rig import SOURCE_DATABASE, Rig
from harness.cluster import Cluster, server_programs
from harness.compare import Table

TEMPLATE = "tpcb"  # the destination's database that the others are copies of
SENTINEL = "CREATE TABLE sentinel (id integer PRIMARY KEY)"
LCRS_PER_TRANSACTION = 4  # three updates and an insert
RATIO = "The ratio is the better of native's median drain times over Thalweg's."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    staged_work.add_arguments(parser, rounds=1)
    parser.add_argument("--scale", type=int, default=50)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=int, default=120)


def run(arguments: argparse.Namespace) -> None:
    report = Report("drain", arguments)
    report.method(f"pgbench TPC-B, scale {arguments.scale}, {arguments.clients} clients, {arguments.seconds} s.\n"
                  f"{staged_work.METHOD}\n{RATIO}")
    with Rig(arguments.keep) as rig:
        tpcb = TpcB(arguments.scale, arguments.clients, arguments.seconds)
        done = staged_work.stage_and_drain(rig, report, tpcb, arguments)
    times = {method: statistics.median(measurement.seconds for measurement in done.measured
                                       if measurement.method == method)
             for method in done.medians()}
    for method, seconds in times.items():
        report.finding(f"{method}: produced in {arguments.seconds} s, drained in {seconds:.1f} s, "
                       f"produce / drain {arguments.seconds / seconds:.1f}")
    native = [seconds for method, seconds in times.items() if method.startswith("native")]
    if native and "thalweg" in times:
        report.ratio(min(native) / times["thalweg"])


class TpcB:
    """Implements drains.Workload."""

    def __init__(self, scale: int, clients: int, seconds: int) -> None:
        self.scale = scale
        self.clients = clients
        self.seconds = seconds
        self.has_template = False

    @property
    def tables(self) -> list[Table]:
        return [("public", name) for name in ("pgbench_accounts", "pgbench_branches", "pgbench_history",
                                              "pgbench_tellers", "sentinel")]

    def make_source(self, rig: Rig) -> None:
        self._make(rig.source, SOURCE_DATABASE)
        rig.source.sql(SOURCE_DATABASE, "CREATE PUBLICATION native FOR ALL TABLES")

    def make_destination(self, rig: Rig, database: str) -> None:
        if not self.has_template:
            self._make(rig.destination, TEMPLATE)
            self.has_template = True
        rig.destination.sql("postgres", f"CREATE DATABASE {database} TEMPLATE {TEMPLATE} STRATEGY file_copy")

    def stage(self, rig: Rig) -> int:
        rig.checkpoint()
        _pgbench(rig.source, "--no-vacuum", f"--client={self.clients}", "--jobs=2", f"--time={self.seconds}",
                 "--random-seed=20261121")
        rig.source.sql(SOURCE_DATABASE, "INSERT INTO sentinel VALUES (1)")
        made = int(rig.source.value(SOURCE_DATABASE, "SELECT count(*) FROM pgbench_history"))
        return made * LCRS_PER_TRANSACTION + 1

    def _make(self, cluster: Cluster, database: str) -> None:
        cluster.make_database(database)
        _pgbench(cluster, "--initialize", "--quiet", f"--scale={self.scale}", database=database)
        cluster.sql(database, SENTINEL, "ALTER TABLE pgbench_history REPLICA IDENTITY FULL")


def _pgbench(cluster: Cluster, *arguments: str, database: str = SOURCE_DATABASE) -> None:
    done = subprocess.run([str(server_programs() / "pgbench"), *arguments, cluster.conninfo(database)],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"pgbench ended with {done.returncode}: {done.stderr[-1000:]}")
