"""The page of the load of the console: docs/results/load.md."""

import argparse
from typing import Any

from bench.console_usage import MIB
from bench.report import Report

SURROUNDINGS = {"load": ("load", ""), "others_percent": ("other processes", " % of all cores"),
                "steal_percent": ("steal", " %"), "flush_ms": ("a flush", " ms")}
"""Surroundings of a figure: words and unit of each."""


def page_of(arguments: argparse.Namespace, report: Report, late_seconds: float) -> str:
    figures: list[dict[str, Any]] = report.document["figures"]
    of = {what: [figure for figure in figures if figure["what"] == what] for what in ("cost", "query")}
    figure_of = {figure["what"]: figure for figure in figures}
    store, kill, opened = figure_of["store"], figure_of["kill"], figure_of["opened"]
    browser, afterwards = figure_of["browser"], figure_of["browser after the kill"]
    lines = [
        "<!-- Written by engine/bench/bench/console_page.py from `make bench SCENARIO=console`. Do not edit. -->",
        "", "# The console under load", "",
        f"`make bench SCENARIO=console`, {report.document['date']}: {arguments.streams} streams over "
        f"{arguments.engines} engines, {arguments.tabs} tabs, {arguments.seconds} s. {report.document['machine']}.", "",
        f"**Method.** {report.document['method']}", "",
        f"**Live.** {100 * report.document['ratio']:.2f} % of the samples came within {late_seconds} s of the one "
        f"before ({figure_of['samples']['count']} samples, {figure_of['samples']['resets']} resets, "
        f"{figure_of['samples']['failed_reads']} failed reads).", "",
        "| | p50 | p99 | largest |", "|---|---|---|---|"]
    for what in ("gap between two samples of a stream", "age of a sample when a tab gets it", "read of the overview"):
        figure = figure_of[what]
        lines.append(f"| {what} | {figure['p50_ms']:.0f} ms | {figure['p99_ms']:.0f} ms | {figure['max_ms']:.0f} ms |")
    lines += ["", f"**Browser.** The overview was live {opened['opened_ms']} ms after it was opened; "
              f"{opened['requests']} requests and {opened['bytes'] / MIB:.1f} MiB by the measurement's begin. A row "
              f"changed every {browser['gap_p50_ms']:.0f} ms (p50), {browser['gap_p99_ms']:.0f} ms (p99), "
              f"{browser['gap_max_ms']:.0f} ms at most. Its main thread took {browser['cpu_percent']:.1f} % of a core, "
              f"with {browser['long_tasks']} tasks over 50 ms, the longest {browser['longest_task_ms']:.0f} ms; heap "
              f"{browser['heap_mib']:.0f} MiB."]
    lines += ["", "**Cost.**", "", "| part | processor, of one core | memory |", "|---|---|---|"]
    lines += [f"| {figure['part']} | {figure['cpu_percent']:.1f} % | {figure['memory_mib']:.0f} MiB |"
              for figure in of["cost"]]
    lines += ["", f"**Store.** {store['statements_per_second']:.0f} statements a second, executing "
              f"{store['executing_percent']:.1f} % of a core, {store['wal_kib_per_second']:.0f} KiB of WAL a second. "
              "Statements by class, the dearest first:", "", "| statement | a second | mean | longest | of a core |",
              "|---|---|---|---|---|"]
    lines += [f"| {figure['query']} | {figure['per_second']:.1f} | {figure['mean_ms']:.2f} ms | "
              f"{figure['max_ms']:.0f} ms | {figure['executing_percent']:.2f} % |" for figure in of["query"]]
    lines += ["", f"**One API worker killed.** {kill['moved']} tabs moved to the other one; they had events again "
              f"after {kill['longest_seconds']:.2f} s at most. {kill['missed']} samples were missed, "
              f"{kill['resets']} resets, {kill['failed_reads']} reads failed and were made again. The browser is "
              f"{'live again' if afterwards['live'] else 'not live'}, with the same login; its largest gap was "
              f"{afterwards['gap_max_ms']:.0f} ms.", "", *_surroundings(figures, report.document["busy"]), ""]
    return "\n".join(lines)


def _surroundings(figures: list[dict[str, Any]], busy: list[str]) -> list[str]:
    """Lines of what else the machine did, over all figures."""
    smallest = {name: min(figure[name] for figure in figures) for name in SURROUNDINGS}
    largest = {name: max(figure[name] for figure in figures) for name in SURROUNDINGS}
    said = ", ".join(f"{words} {smallest[name]:g} to {largest[name]:g}{unit}"
                     for name, (words, unit) in SURROUNDINGS.items())
    lines = [f"**The machine meanwhile.** {said}."]
    if busy:
        lines.append(f"It was busy with something else in {len(busy)} of the {len(figures)} measurements.")
    return lines
