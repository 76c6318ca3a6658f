"""Fifty light streams over five engines, twenty tabs: whether the console stays live, what the control plane costs."""

import argparse
import asyncio
import itertools
import re
import statistics
import threading
import time
from pathlib import Path
from typing import Any

from bench.console_browser import Browser
from bench.console_clients import Balancer, Seen, Tab
from bench.console_page import page_of
from bench.console_stack import Stack
from bench.console_usage import MIB, Usage, usage
from bench.report import Report

METHOD = """Store, source, destination, Redis, five engines, two API workers behind a relay that takes turns, and the
collector run as processes of their own on one machine, all settings as they come but the log level. Each stream
replicates one table; a writer commits one insert a second for each. Each tab but one is a client that holds an
event stream and reads the overview every 5 s and the alerts' counts every 15 s, opened one after another; the
last is Chromium with the console on the overview, logged in by password. After a pause everything is measured
for the given seconds: gaps between two samples of a stream as a tab sees them, the age of a sample when it
arrives, the time of a read of the overview (from connecting to the last byte), processor time and memory of
each part (children included, memory as proportional set size), the store's queries by pg_stat_statements. Then
one API worker is killed (-9): how long until each of its tabs has events again, and whether one was missed,
whether the browser is live and still logged in. R = the share of samples that came within 1.5 s of the one
before."""
LATE_SECONDS = 1.5
OPENING_SECONDS = 5
CLASSES_SHOWN = 12
WARM_UP_SECONDS = 10
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
        arguments.page.write_text(page_of(arguments, report, LATE_SECONDS))


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
    tabs = [Tab(balancer.port, stack.token) for _ in range(arguments.tabs - 1)]
    tasks = []
    for tab in tabs:
        tasks.append(asyncio.create_task(tab.run()))
        await asyncio.sleep(OPENING_SECONDS / len(tabs))
    browser = await Browser.open(balancer.port, stack.password, arguments.streams)
    try:
        return await _measured(stack, arguments, report, tabs, browser)
    finally:
        await browser.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await balancer.stop()


async def _measured(
    stack: Stack, arguments: argparse.Namespace, report: Report, tabs: list[Tab], browser: Browser
) -> float:
    await asyncio.sleep(WARM_UP_SECONDS)
    for tab in tabs:
        tab.seen = Seen()
    opened = await browser.tell("begin")
    report.figure(f"browser: the overview was live after {opened['opened_ms']} ms; {opened['requests']} requests, "
                  f"{opened['bytes'] / MIB:.1f} MiB so far", what="opened", **opened)
    stack.store.sql("thalweg", "SELECT pg_stat_statements_reset()")
    before, wal_before, began = _usages(stack), _wal(stack), time.monotonic()
    await asyncio.sleep(arguments.seconds)
    after, wal_after, seconds = _usages(stack), _wal(stack), time.monotonic() - began
    share = _say_live(report, tabs, arguments)
    _say_browser(report, "browser", await browser.tell("report"))
    _say_costs(report, before, after, seconds)
    _say_queries(report, stack, seconds, wal_after - wal_before)
    await browser.tell("begin")
    await _kill_one(report, stack, tabs)
    _say_browser(report, "browser after the kill", await browser.tell("report"))
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


def _say_browser(report: Report, what: str, seen: Figures) -> None:
    report.figure(f"{what}: {'live' if seen['live'] else 'NOT LIVE'}, gap between two changes of a row p50 "
                  f"{seen['gap_p50_ms']:.0f} ms, p99 {seen['gap_p99_ms']:.0f} ms, largest {seen['gap_max_ms']:.0f} ms; "
                  f"{seen['long_tasks']} tasks over 50 ms, the longest {seen['longest_task_ms']:.0f} ms; main thread "
                  f"{seen['cpu_percent']:.1f} %, heap {seen['heap_mib']:.0f} MiB", what=what, **seen)


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
        SELECT query, calls, total_exec_time, max_exec_time
          FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat_statements%'""")
    calls, total = sum(row[1] for row in rows), sum(row[2] for row in rows)
    classes: dict[str, tuple[int, float, float]] = {}
    for query, count, time_ms, longest in rows:
        known = classes.get(_class_of(query), (0, 0.0, 0.0))
        classes[_class_of(query)] = (known[0] + count, known[1] + time_ms, max(known[2], longest))
    report.figure(f"store: {calls / seconds:.0f} statements/s, {total / seconds / 10:.1f} % of a core executing, "
                  f"{wal_bytes / seconds / 1024:.0f} KiB of WAL/s", what="store", statements_per_second=calls / seconds,
                  executing_percent=total / seconds / 10, wal_kib_per_second=wal_bytes / seconds / 1024)
    for name, (count, time_ms, max_ms) in sorted(classes.items(), key=lambda item: -item[1][1])[:CLASSES_SHOWN]:
        report.figure(f"  {count / seconds:7.1f}/s  mean {time_ms / count:7.2f} ms  max {max_ms:7.1f} ms  "
                      f"{time_ms / seconds / 10:5.2f} %  {name}", what="query", query=name, per_second=count / seconds,
                      mean_ms=time_ms / count, max_ms=max_ms, executing_percent=time_ms / seconds / 10)


def _class_of(query: str) -> str:
    """The verb of a statement, and its first table."""
    verb = query.split(None, 1)[0].upper()
    table = re.search(r"\b(?:FROM|INTO|UPDATE)\s+(?:ONLY\s+)?([a-z_]+)", query, re.IGNORECASE)
    locks = " and lock it" if "FOR UPDATE" in query or "FOR NO KEY UPDATE" in query else ""
    return f"{verb} {table.group(1)}{locks}" if table else verb


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
