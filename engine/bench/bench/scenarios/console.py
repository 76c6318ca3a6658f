"""Fifty light streams over five engines, twenty tabs: whether the console stays live, what the control plane costs."""

import argparse
import asyncio
import itertools
import statistics
import threading
import time
from pathlib import Path
from typing import Any

from bench.console_clients import Balancer, Seen, Tab
from bench.console_stack import Stack
from bench.console_usage import MIB, Usage, usage
from bench.report import Report

METHOD = """Store, source, destination, Redis, five engines, two API workers behind a relay that takes turns, and the
collector run as processes of their own on one machine, all settings as they come but log level and polls a
second as stated. Each stream replicates one table; a writer commits one insert a second for each. Each tab
holds an event stream and reads the overview every 5 s and the alerts' counts every 15 s. After a pause
everything is measured for the given seconds: gaps between two samples of a stream as a tab sees them, the age
of a sample when it arrives, the time of a read of the overview (from connecting to the last byte), processor
time and memory of each part (children included, memory as proportional set size), the store's queries by
pg_stat_statements. Then one API worker is killed (-9): how long until each of its tabs has events again, and
whether one was missed. R = the share of samples that came within 1.5 s of the one before."""
LATE_SECONDS = 1.5
WARM_UP_SECONDS = 15
AFTER_KILL_SECONDS = 12
Figures = dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--engines", type=int, default=5)
    parser.add_argument("--streams", type=int, default=50)
    parser.add_argument("--tabs", type=int, default=20)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--page", type=Path, help="also write the results' page to this file")


def run(arguments: argparse.Namespace) -> None:
    report = Report("console", arguments)
    report.method(METHOD)
    with Stack(arguments.engines, arguments.streams, arguments.keep) as stack:
        began = time.monotonic()
        stack.make_streams()
        report.say(f"{arguments.streams} streams replicate after {time.monotonic() - began:.0f} s")
        with _Writer(stack):
            share = asyncio.run(_measure(stack, arguments, report))
    report.ratio(share)
    if arguments.page:
        arguments.page.write_text(_page(arguments, report))


class _Writer:
    """One transaction a second for each stream, from a thread of its own."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._run)

    def __enter__(self) -> None:
        self.thread.start()

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.thread.join()

    def _run(self) -> None:
        connections = [self.stack.source.connect(f"shop_{number}") for number in range(len(self.stack.engines))]
        while not self.ended.wait(1.0):
            self.stack.write_once(connections)
        for connection in connections:
            connection.close()


async def _measure(stack: Stack, arguments: argparse.Namespace, report: Report) -> float:
    balancer = Balancer(stack.api_ports)
    await balancer.start()
    tabs = [Tab(balancer.port, stack.token) for _ in range(arguments.tabs)]
    tasks = [asyncio.create_task(tab.run()) for tab in tabs]
    await asyncio.sleep(WARM_UP_SECONDS)
    for tab in tabs:
        tab.seen = Seen()
    stack.store.sql("thalweg", "SELECT pg_stat_statements_reset()")
    before, wal_before, began = _usages(stack), _wal(stack), time.monotonic()
    await asyncio.sleep(arguments.seconds)
    after, wal_after, seconds = _usages(stack), _wal(stack), time.monotonic() - began
    share = _say_live(report, tabs, arguments)
    _say_costs(report, before, after, seconds)
    _say_queries(report, stack, seconds, wal_after - wal_before)
    await _kill_one(report, stack, tabs)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await balancer.stop()
    return share


def _usages(stack: Stack) -> dict[str, Usage]:
    assert stack.collector and stack.redis
    roots = {"collector": [stack.collector.process.pid], "API worker 1": [stack.apis[0].process.pid],
             "API worker 2": [stack.apis[1].process.pid], "store": [stack.store.postmaster()],
             "Redis": [stack.redis.pid], "five engines": [engine.pid for engine in stack.engines]}
    found = {}
    for name, processes in roots.items():
        parts = [usage(process) for process in processes]
        found[name] = Usage(sum(part.cpu_seconds for part in parts), sum(part.memory_bytes for part in parts))
    return found


def _wal(stack: Stack) -> int:
    return int(stack.store.value("thalweg", "SELECT (pg_current_wal_insert_lsn() - '0/0')::int8"))


def _say_live(report: Report, tabs: list[Tab], arguments: argparse.Namespace) -> float:
    gaps = [later[0] - earlier[0] for tab in tabs for seen in tab.seen.samples.values()
            for earlier, later in itertools.pairwise(seen)]
    lags = [lag for tab in tabs for lag in tab.seen.lags]
    reads = [read for tab in tabs for read in tab.seen.reads["/overview"]]
    streams = min(len(tab.seen.samples) for tab in tabs)
    resets = sum(tab.seen.resets for tab in tabs)
    failed = sum(tab.seen.failed_reads for tab in tabs)
    report.figure(f"samples: {len(lags)} in {arguments.tabs} tabs, {streams} streams in each, resets {resets}, "
                  f"failed reads {failed}", what="samples", count=len(lags), resets=resets, failed_reads=failed)
    for what, values in (("gap between two samples of a stream", gaps), ("age of a sample when a tab gets it", lags),
                         ("read of the overview", reads)):
        report.figure(f"{what:<36} p50 {_ms(values, 50)}, p99 {_ms(values, 99)}, largest {max(values) * 1000:.0f} ms",
                      what=what, p50_ms=_quantile(values, 50), p99_ms=_quantile(values, 99),
                      max_ms=max(values) * 1000)
    return sum(gap <= LATE_SECONDS for gap in gaps) / len(gaps)


def _quantile(values: list[float], percent: int) -> float:
    return statistics.quantiles(values, n=100)[percent - 1] * 1000


def _ms(values: list[float], percent: int) -> str:
    return f"{_quantile(values, percent):.0f} ms"


def _say_costs(report: Report, before: dict[str, Usage], after: dict[str, Usage], seconds: float) -> None:
    for name, now in after.items():
        percent = 100 * (now.cpu_seconds - before[name].cpu_seconds) / seconds
        report.figure(f"{name:<14} {percent:6.1f} % of a core, {now.memory_bytes / MIB:7.1f} MiB", what="cost",
                      part=name, cpu_percent=percent, memory_mib=now.memory_bytes / MIB)


def _say_queries(report: Report, stack: Stack, seconds: float, wal_bytes: int) -> None:
    rows = stack.store.sql("thalweg", """
        SELECT left(regexp_replace(query, '\\s+', ' ', 'g'), 90), calls, total_exec_time, mean_exec_time, max_exec_time
          FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat_statements%' ORDER BY total_exec_time DESC""")
    calls, total = sum(row[1] for row in rows), sum(row[2] for row in rows)
    report.figure(f"store: {calls / seconds:.0f} statements/s, {total / seconds / 10:.1f} % of a core executing, "
                  f"{wal_bytes / seconds / 1024:.0f} KiB of WAL/s", what="store", statements_per_second=calls / seconds,
                  executing_percent=total / seconds / 10, wal_kib_per_second=wal_bytes / seconds / 1024)
    for query, count, time_ms, mean_ms, max_ms in rows[:10]:
        report.figure(f"  {count / seconds:7.1f}/s  mean {mean_ms:7.2f} ms  max {max_ms:7.1f} ms  "
                      f"{time_ms / seconds / 10:5.1f} %  {query}", what="query", query=query,
                      per_second=count / seconds, mean_ms=mean_ms, max_ms=max_ms)


async def _kill_one(report: Report, stack: Stack, tabs: list[Tab]) -> None:
    for tab in tabs:
        tab.seen = Seen()
    await asyncio.sleep(3)
    stack.apis[0].kill()
    await asyncio.sleep(AFTER_KILL_SECONDS)
    moved = [tab for tab in tabs if tab.seen.reconnects]
    outages = [outage for tab in moved for outage in tab.seen.reconnects]
    failed = sum(tab.seen.failed_reads for tab in tabs)
    # The same samples in each tab: one that another tab has, between its own first and last, was missed.
    missed = sum(_missed(tab, tabs) for tab in tabs)
    resets = sum(tab.seen.resets for tab in tabs)
    longest = max(outages) if outages else 0.0
    report.figure(f"one API worker killed: {len(moved)} tabs moved to the other, events again after {longest:.2f} s at "
                  f"most, {missed} samples missed, {resets} resets, {failed} reads failed", what="kill",
                  moved=len(moved), longest_seconds=longest, missed=missed, resets=resets, failed_reads=failed)


def _missed(tab: Tab, tabs: list[Tab]) -> int:
    missed = 0
    for stream, own in tab.seen.samples.items():
        known = {at for _, at in own}
        first, last = min(known), max(known)
        everybodys = {at for other in tabs for _, at in other.seen.samples.get(stream, [])}
        missed += sum(first <= at <= last for at in everybodys - known)
    return missed


def _page(arguments: argparse.Namespace, report: Report) -> str:
    figures: list[Figures] = report.document["figures"]
    of = {what: [figure for figure in figures if figure["what"] == what] for what in ("cost", "query")}
    one = {figure["what"]: figure for figure in figures}
    store, kill = one["store"], one["kill"]
    lines = [
        "# The console under load", "",
        f"`make bench SCENARIO=console`, {report.document['date']}: {arguments.streams} streams over "
        f"{arguments.engines} engines, {arguments.tabs} tabs, {arguments.seconds} s. {report.document['machine']}.", "",
        f"**Method.** {report.document['method']}", "",
        f"**Live.** {100 * report.document['ratio']:.2f} % of the samples came within {LATE_SECONDS} s of the one "
        f"before ({one['samples']['count']} samples, {one['samples']['resets']} resets, "
        f"{one['samples']['failed_reads']} failed reads).", "",
        "| | p50 | p99 | largest |", "|---|---|---|---|"]
    for what in ("gap between two samples of a stream", "age of a sample when a tab gets it", "read of the overview"):
        figure = one[what]
        lines.append(f"| {what} | {figure['p50_ms']:.0f} ms | {figure['p99_ms']:.0f} ms | {figure['max_ms']:.0f} ms |")
    lines += ["", "**Cost.**", "", "| part | processor, of one core | memory |", "|---|---|---|"]
    lines += [f"| {figure['part']} | {figure['cpu_percent']:.1f} % | {figure['memory_mib']:.0f} MiB |"
              for figure in of["cost"]]
    lines += ["", f"**Store.** {store['statements_per_second']:.0f} statements a second, executing "
              f"{store['executing_percent']:.1f} % of a core, {store['wal_kib_per_second']:.0f} KiB of WAL a second. "
              "The dearest:", "", "| statement | a second | mean | longest |", "|---|---|---|---|"]
    lines += [f"| `{figure['query'].replace('|', '¦')}` | {figure['per_second']:.1f} | {figure['mean_ms']:.2f} ms | "
              f"{figure['max_ms']:.0f} ms |" for figure in of["query"]]
    lines += ["", f"**One API worker killed.** {kill['moved']} tabs moved to the other one; they had events again "
              f"after {kill['longest_seconds']:.2f} s at most. {kill['missed']} samples were missed, "
              f"{kill['resets']} resets, {kill['failed_reads']} reads failed and were made again.", ""]
    return "\n".join(lines)
