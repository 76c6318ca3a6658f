"""The initial copy of 300 mixed tables and one of 10 million rows: how long until all of it is there?"""

import argparse
import json
import os
import statistics
import time
from collections.abc import Iterator

from bench import copies
from bench.mixed_tables import MixedTables
from bench.report import Report
from bench.rig import SOURCE_DATABASE, Rig, used

METHODS = "dump-restore,dump-pipe,pgcopydb,native,thalweg"
METHOD = """{tables} small tables of {small_rows} rows (enums, domains, arrays, jsonb, ranges, identities, generated
columns, partitions, foreign keys, four kinds of indexes) and one of {rows} rows with three indexes, from one server
into an empty database of another. The clock runs until every row, index, constraint and foreign key is there and
every table is analysed; nothing writes meanwhile. All methods: two jobs, maintenance_work_mem {memory} at both
servers, a checkpoint before, rows and definitions compared afterwards. dump-restore: pg_dump -Fd -j2 -Z0, pg_restore
-j2, vacuumdb --analyze-only -j2. dump-pipe: schema first, rows through a pipe (pg_dump | pg_restore), the rest by
pg_restore -j2, then the same vacuumdb. pgcopydb: clone, two table and two index jobs, tables above {split} MiB in
parts. native: the bare tables, a subscription with {workers} sync workers (binary, which PostgreSQL 15 copies as text
nevertheless) until every table is ready, then keys, indexes and foreign keys by pg_restore -j2, then the same
vacuumdb. thalweg: a new stream until it replicates, default parameters. CPU: seconds of source, engine, destination
and client programs. The ratio is the fastest other's median time over Thalweg's."""
MEMORY = "256MB"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--methods", default=METHODS)
    parser.add_argument("--rows", type=int, default=10_000_000, help="of the big table")
    parser.add_argument("--tables", type=int, default=300, help="small ones, in groups of five")
    parser.add_argument("--small-rows", type=int, default=2000, help="of each small table")
    parser.add_argument("--parameters", type=json.loads, default={}, help="of the Thalweg stream, as JSON")


def run(arguments: argparse.Namespace) -> None:
    report = Report("copy", arguments)
    report.method(METHOD.format(tables=arguments.tables, small_rows=arguments.small_rows, rows=arguments.rows,
                                memory=MEMORY, split=copies.SPLIT_BYTES // 2**20, workers=copies.JOBS))
    seconds: dict[str, list[float]] = {}
    with Rig(arguments.keep, maintenance_work_mem=f"'{MEMORY}'",
             max_sync_workers_per_subscription=str(copies.JOBS)) as rig:
        workload = MixedTables(rig, arguments.tables, arguments.small_rows, arguments.rows)
        begun = time.monotonic()
        workload.make()
        report.say(f"made in {time.monotonic() - begun:.0f} s: {_size(rig):.0f} MiB")
        report.say(f"{'round':>5}  {'method':<14} {'seconds':>8}   CPU s: {'source':>6} {'engine':>6} "
                   f"{'destination':>11} {'clients':>7}")
        for round_number in range(1, arguments.rounds + 1):
            for copy in _copies(rig, workload, arguments, report):
                seconds.setdefault(copy.method, []).append(_measure(rig, report, workload, copy, round_number))
    medians = {method: statistics.median(times) for method, times in seconds.items()}
    for method, median in medians.items():
        report.finding(f"{method}: {median:.1f} s")
    others = [median for method, median in medians.items() if method != "thalweg"]
    if others and "thalweg" in medians:
        report.ratio(min(others) / medians["thalweg"])


def _copies(rig: Rig, workload: MixedTables, arguments: argparse.Namespace, report: Report) -> Iterator[copies.Copy]:
    for method in arguments.methods.split(","):
        if method == "dump-restore":
            yield copies.DumpAndRestore(rig)
        elif method == "dump-pipe":
            yield copies.DumpPipedToRestore(rig)
        elif method == "pgcopydb" and not copies.has_pgcopydb():
            report.finding("pgcopydb is not installed: left out")
        elif method == "pgcopydb":
            yield copies.PgCopyDb(rig)
        elif method == "native":
            yield copies.NativeSync(rig)
        elif method == "thalweg":
            yield copies.Thalweg(rig, workload, arguments.parameters)
        else:
            raise SystemExit(f"unknown method {method}: choose from {METHODS}")


def _measure(rig: Rig, report: Report, workload: MixedTables, copy: copies.Copy, round_number: int) -> float:
    database = f"{copy.method.replace('-', '')}{round_number:03}"
    rig.destination.make_database(database)
    rig.checkpoint()
    before, clients_before = rig.cpu(), _clients()
    begun = time.monotonic()
    copy.run(database)
    seconds = time.monotonic() - begun
    source, engine, destination = used(before, rig.cpu())
    clients = _clients() - clients_before
    workload.check(database)
    copy.clear(database)
    rig.destination.sql("postgres", f"DROP DATABASE {database} WITH (FORCE)")
    report.figure(f"{round_number:>5}  {copy.method:<14} {seconds:>8.2f} {'':>8} {source:>6.2f} {engine:>6.2f} "
                  f"{destination:>11.2f} {clients:>7.2f}  identical",
                  method=copy.method, round=round_number, seconds=round(seconds, 3), source_cpu=round(source, 2),
                  engine_cpu=round(engine, 2), destination_cpu=round(destination, 2), clients_cpu=round(clients, 2))
    return seconds


def _clients() -> float:
    """CPU seconds of the programs that were run and have ended."""
    times = os.times()
    return times.children_user + times.children_system


def _size(rig: Rig) -> float:
    return float(rig.source.value(SOURCE_DATABASE, "SELECT pg_database_size(current_database()) / 2.0 ^ 20"))
