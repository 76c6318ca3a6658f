"""The preflight of 300 mixed tables: how long until it is known whether a stream of them can begin?"""

import argparse
import statistics
import time
from collections.abc import Mapping

from bench.console_stack import Stack
from bench.mixed_tables import MixedTables
from bench.report import Report
from bench.rig import SOURCE_DATABASE
from harness.processes import cpu_seconds

METHOD = """POST /preflights of {tables} small tables (enums, domains, arrays, jsonb, ranges, identities, generated
columns, partitions, foreign keys, four kinds of indexes) and a big one, from one server into an empty database of
another: API, engine, store and both servers on this machine. The clock runs from the request to its answer, which says
that all is ready; the engine has then made every table, key, index and foreign key at the destination, and taken them
back. CPU: seconds of source, engine, destination and API. Statements: those that the clients sent to source and
destination (pg_stat_statements, top level). The ratio is 2 s over the median."""
BOUND_SECONDS = 2.0
SENT = "SELECT sum(calls) FROM pg_stat_statements"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tables", type=int, default=300, help="small ones, in groups of five")


def run(arguments: argparse.Namespace) -> None:
    report = Report("preflight", arguments)
    report.method(METHOD.format(tables=arguments.tables))
    with Stack(1, 0, arguments.keep, shared_preload_libraries="'pg_stat_statements'") as stack:
        MixedTables(stack, arguments.tables, 20, 1000).make()
        stack.destination.make_database("empty")
        for cluster in (stack.source, stack.destination):
            cluster.sql("postgres", "CREATE EXTENSION pg_stat_statements")
        engine = stack.enrol("engine", stack.engines[0])
        wanted = {
            "source_id": stack.register("source", stack.source, SOURCE_DATABASE), "capture_engine_id": engine,
            "destinations": [{"database_id": stack.register("destination", stack.destination, "empty"),
                              "engine_id": engine}],
            "rules": {"include": [{"schema": "public", "table": "*"}]}, "accept": ["left_out"]}
        report.say(f"{'round':>5} {'seconds':>8}   CPU s: {'source':>6} {'engine':>6} {'destination':>11} {'API':>6}"
                   f"   statements: {'source':>6} {'destination':>11}")
        times = [_measure(report, stack, wanted, number) for number in range(1, arguments.rounds + 1)]
    report.finding(f"{arguments.tables} tables: {statistics.median(times):.2f} s")
    report.ratio(BOUND_SECONDS / statistics.median(times))


def _measure(report: Report, stack: Stack, wanted: Mapping[str, object], number: int) -> float:
    for cluster in (stack.source, stack.destination):
        cluster.sql("postgres", "SELECT pg_stat_statements_reset()")
    before, begun = _cpu(stack), time.monotonic()
    answer = stack.call("POST", "/preflights", wanted)
    seconds = time.monotonic() - begun
    source, engine, destination, api = (now - then for now, then in zip(_cpu(stack), before, strict=True))
    if not answer["ready"]:
        raise AssertionError([check for check in answer["checks"] if check["status"] == "failed"])
    sent = [int(cluster.value("postgres", SENT)) for cluster in (stack.source, stack.destination)]
    report.figure(f"{number:>5} {seconds:>8.2f} {'':>8} {source:>6.2f} {engine:>6.2f} {destination:>11.2f} {api:>6.2f}"
                  f" {'':>13} {sent[0]:>6} {sent[1]:>11}",
                  round=number, seconds=round(seconds, 3), source_cpu=round(source, 2), engine_cpu=round(engine, 2),
                  destination_cpu=round(destination, 2), api_cpu=round(api, 2), source_statements=sent[0],
                  destination_statements=sent[1])
    return seconds


def _cpu(stack: Stack) -> tuple[float, ...]:
    """Of source, engine, destination and the API that is asked. A session that has ended counts with its server."""
    return (cpu_seconds(stack.source.postmaster()), cpu_seconds(stack.engines[0].pid),
            cpu_seconds(stack.destination.postmaster()), cpu_seconds(stack.apis[-1].process.pid))
