"""python -m bench.results DIRECTORY: a plot of each NAME.json there and a page that puts them beside the paper's."""

import json
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import svg

Document = dict[str, Any]
# Of a figure: what it was measured of. Everything else that is a number was measured.
LABELS = ("method", "workload", "compression", "live", "destinations", "consumers", "readers")


@dataclass(frozen=True)
class Scenario:
    name: str
    title: str
    goal: str
    paper: str
    plot: Callable[[Document], str]
    versus_native: bool = False  # R is Thalweg over PostgreSQL's own subscription
    least: float = 0  # R that is wanted; 0: no such number


def _by_method(document: Document, value: str, **wanted: Any) -> list[tuple[str, float]]:
    """Medians of a value of all figures that hold it and what is wanted."""
    found: dict[str, list[float]] = {}
    for figure in document["figures"]:
        if value in figure and all(figure.get(name) == wish for name, wish in wanted.items()):
            found.setdefault(figure["method"], []).append(figure[value])
    return [(method, statistics.median(values)) for method, values in found.items()]


def _rates(document: Document) -> str:
    return svg.bars(f"{document['scenario']}: drained", "LCR/s, median", _by_method(document, "lcr_per_second"))


def _drain(document: Document) -> str:
    return svg.bars("drain: time to catch up", "seconds", _by_method(document, "seconds"))


def _copy(document: Document) -> str:
    return svg.bars("copy: until all of it is there", "seconds", _by_method(document, "seconds"))


def _bigtx(document: Document) -> str:
    drained = _by_method(document, "seconds", live=None)
    live = _by_method(document, "after_commit_seconds", live=True)
    return svg.bars("bigtx: drained from the WAL, and live from commit to visible", "seconds",
                    [*((f"{name}, drained", value) for name, value in drained),
                     *((f"{name}, live", value) for name, value in live)])


def _latency(document: Document) -> str:
    return svg.lines("latency: slowest commit of each second", "seconds", "ms to visible",
                     [(name, [(row[0], row[3]) for row in rows]) for name, rows in document["series"].items()],
                     logarithmic=True)


def _wan(document: Document) -> str:
    return svg.bars("wan: LCR bytes through 50 ms and 40 Mbit/s", "MB/s",
                    [(figure["compression"] if figure["compression"] == "plain TCP"
                      else f"thalweg, {figure['compression']}", figure["mb_per_second"])
                     for figure in document["figures"]])


def _spill(document: Document) -> str:
    return svg.bars("spill: destination WAL / source WAL", "ratio",
                    [(f"{figure['method']}, {figure['workload']}", figure["wal_ratio"])
                     for figure in document["figures"] if "wal_ratio" in figure])


def _fanout(document: Document) -> str:
    methods = dict.fromkeys(figure["method"] for figure in document["figures"])
    found: list[svg.Line] = []
    for method in methods:
        by_count: dict[int, list[float]] = {}
        for figure in document["figures"]:
            if figure["method"] == method:
                by_count.setdefault(figure["destinations"], []).append(figure["source_cpu"])
        found.append((method, [(count, statistics.median(values)) for count, values in sorted(by_count.items())]))
    return svg.lines(f"{document['scenario']}: the source's CPU", "destinations", "seconds per million LCRs", found)


def _lines(x: str, *ys: tuple[str, str]) -> Callable[[Document], str]:
    def plot(document: Document) -> str:
        return svg.lines(f"{document['scenario']}: by number of {x}", x, "per second",
                         [(name, [(figure[x], figure[column]) for figure in document["figures"]])
                          for name, column in ys])
    return plot


def _preflight(document: Document) -> str:
    return svg.bars("preflight: 300 tables", "seconds", [("thalweg", statistics.median(figure["seconds"]
                                                                                 for figure in document["figures"]))])


def _table1(document: Document) -> str:
    ways = ("a_statement_a_row", "prepared_pipelined", "sets", "data_layer")
    return svg.bars("table1: instructions of the backend for a row", "instructions",
                    [(f"{figure['workload']}: {way.replace('_', ' ')}", figure[way])
                     for figure in document["figures"] for way in ways])


def _charts(document: Document) -> str:
    return svg.bars("charts: main thread for an update", "ms, median", _by_method(document, "main_thread_p50_ms"))


SCENARIOS = [
    Scenario("staged", "End to end, staged", "2.2 or more",
             "Wong et al. 2009, VI.D and figure 16: the same experiment went from 5 100 LCR/s to over "
             "20 000 with latch-free "
             "queues, the data layer and the metadata cache together; its yardstick was the product before them.",
             _rates, versus_native=True, least=2.2),
    Scenario("staged1", "One row a transaction", "1.5 or more",
             "Not in the paper: the cost of a commit that ten rows cannot share.", _rates,
             versus_native=True, least=1.5),
    Scenario("bigtx", "One transaction of 428 400 rows", "1.5 or more",
             "WLCG 2007: such a transaction was applied at 2 700 LCR/s on average; Wong et al. 2009, I "
             "promises that streaming "
             "makes latency independent of a transaction's size.", _bigtx, versus_native=True, least=1.5),
    Scenario("drain", "Catching up after TPC-B", "1.5 or more",
             "Wong et al. 2009, VI.D stages its workload for the same reason: source and replication do "
             "not compete.", _drain,
             versus_native=True, least=1.5),
    Scenario("wal", "Log mining", "3.2 or more, and at most 0.2 s of the source's processors",
             "Wong et al. 2009, III: capture mines the redo log, on another host too: the source decodes nothing.",
             _rates, versus_native=True, least=3.2),
    Scenario("mine", "Mining alone", "15 or more, on one core, over native's drain on all of them",
             "Wong et al. 2009, III: readers, preparers and a builder turn redo into LCRs.", _rates, least=15),
    Scenario("images", "Images of pages after checkpoints", "near 1: the same changes, mined beside many images",
             "Not in the paper: its redo has no images of pages.", _rates),
    Scenario("streams", "Several streams of one source", "above 1: what native's walsenders cost the source, over ours",
             "Wong et al. 2009, III: a downstream capture takes its work from the source.", _fanout, least=1),
    Scenario("table1", "Instructions for a row", "5 or more: a statement a row over the data layer",
             "Wong et al. 2009, table I: 28 % fewer instructions for an insert into a table of 5 columns, 74 % "
             "fewer for an update of one of 100.", _table1, least=5),
    Scenario("latency", "Latency at 20 000 LCR/s", "1 or more, and below one second throughout",
             "Wong et al. 2009, figure 18: sub-second latency in a LAN, with a clock of one second.", _latency,
             versus_native=True, least=1),
    Scenario("wan", "A far link", "0.9 or more",
             "Wong et al. 2009, VI.E and figures 17 and 18: 50 ms between California and Texas; "
             "propagation filled a line "
             "that varied between 4.5 and 5.2 MB/s, with acknowledgements by time.", _wan, least=0.9),
    Scenario("spill", "A transaction that is spilled", "about what native needs, far from 12",
             "WLCG 2007: 428 400 rows in one commit made 12 times the source's redo at the destination, because LCRs "
             "were spilled into a table; as 7 binary objects the redo was 45 MB to 66 MB.", _spill),
    Scenario("hotkeys", "Hot keys", "1 or more; parallel over serial Thalweg",
             "Wong et al. 2009, II: appliers run independent transactions concurrently; "
             "dependent ones must not be slower for it.", _rates, least=1),
    Scenario("fanout", "Several destinations", "above 1: Thalweg's source CPU stays flat, native's walsenders multiply",
             "Wong et al. 2009, figure 4: one capture feeds many propagations and applies, so the "
             "source is decoded once.",
             _fanout, versus_native=True, least=1),
    Scenario("copy", "The initial copy", "1.25 or more over the fastest of the others",
             "Not in the paper, whose instantiation was an export and an import.", _copy, least=1.25),
    Scenario("preflight", "The check before a start", "1 or more: two seconds over its time, for 300 tables",
             "Not in the paper.", _preflight, least=1),
    Scenario("rules", "Row rules", "0.95 or more; with a condition over without",
             "Not in the paper: the cost of judging every change of a table, end to end.", _rates, least=0.95),
    Scenario("conflicts", "Conflict detection", "0.8 or more; with old values compared over without",
             "Not in the paper: the cost of comparing every update and delete with its row, end to end.",
             _rates, least=0.8),
    Scenario("queue", "The queue", "above 1",
             "Wong et al. 2009, figure 14: 5 500 LCR/s with the latch-based queue, 21 000 to 25 000 "
             "with the latch-free one.",
             _lines("consumers", ("wait-free", "spmc_per_second"), ("mutex", "mutex_per_second")), least=1),
    Scenario("metadata", "The metadata cache", "above 1",
             "Wong et al. 2009, figure 15: with latches, more appliers mean less throughput; with the "
             "cache the contention is "
             "gone.", _lines("readers", ("latch-free", "free_per_second"), ("shared mutex", "mutex_per_second")),
             least=1),
    Scenario("charts", "The console's chart", "near 1, and no frame beside it above 50 ms",
             "Not in the paper, whose console drew on the server: ten updates a second of eight lines.", _charts),
]

HEAD = """# Results

Made by `make bench SCENARIO=all` (about 35 minutes on an otherwise idle machine), which runs every scenario, writes its
figures here as JSON and draws the plots. A scenario can be measured alone, so each figure is of the day that stands
beside it. `make bench SCENARIO=results` only draws. Tables hold medians of rounds;
`source cpu`, `engine cpu` and `destination cpu` are CPU seconds for a million LCRs. R is Thalweg over PostgreSQL's own
subscription at its best setting in the same run, unless said otherwise.

Beside each figure stands what else the machine did meanwhile: `load`, the runnable tasks of the last minute, the run's
own with them; `others percent`, the CPU of all cores that other processes used; `steal percent`, the hypervisor's
share; `flush ms`, how long the disk takes for a page. A run does not begin where others use more than 10 % or 5 % are
stolen, unless it is forced; it is marked as *busy* then, and where the machine became so on the way. *Not recorded*:
the figures are of before this was looked at.

| scenario | R | measured | machine | goal |
|---|---|---|---|---|
"""


def main() -> None:
    directory = Path(sys.argv[1])
    found = [(scenario, json.loads(file.read_text())) for scenario in SCENARIOS
             if (file := directory / f"{scenario.name}.json").exists()]
    if not found:
        sys.exit(f"{directory}: no results")
    page = HEAD + "".join(
        f"| [{scenario.name}](#{_anchor(scenario.title)}) | {document['ratio']:.2f} | {document['date']} | "
        f"{_machine(document)} | "
        f"{scenario.goal} |\n" for scenario, document in found)
    page += _where_native_is_ahead(found) + _below_the_goal(found) + _not_measured([name for name, _ in found])
    for scenario, document in found:
        (directory / f"{scenario.name}.svg").write_text(scenario.plot(document))
        page += _section(scenario, document)
    (directory / "README.md").write_text(page)


def _machine(document: Document) -> str:
    if "busy" not in document:
        return "not recorded"
    return "**busy**" if document["busy"] else "quiet"


def _where_native_is_ahead(found: list[tuple[Scenario, Document]]) -> str:
    ahead = [f"* **{scenario.name}**: R = {document['ratio']:.2f}." for scenario, document in found
             if scenario.versus_native and document["ratio"] < 1]
    if not ahead:
        return ""
    return "\n## Where PostgreSQL's own replication is ahead\n\n" + "\n".join(ahead) + "\n"


def _below_the_goal(found: list[tuple[Scenario, Document]]) -> str:
    below = [f"* **{scenario.name}**: R = {document['ratio']:.2f}, wanted: {scenario.goal}."
             for scenario, document in found if document["ratio"] < scenario.least]
    if not below:
        return ""
    reasons = "The reasons are in [docs/decisions](../decisions/README.md)."
    return "\n## Below the goal\n\n" + "\n".join(below) + f"\n\n{reasons}\n"


def _not_measured(found: list[Scenario]) -> str:
    missing = [f"* **{scenario.name}**, wanted: {scenario.goal}." for scenario in SCENARIOS if scenario not in found]
    return "\n## Not measured\n\n" + "\n".join(missing) + "\n" if missing else ""


def _section(scenario: Scenario, document: Document) -> str:
    return (f"\n## {scenario.title}\n\n![{scenario.title}]({scenario.name}.svg)\n\n"
            f"**R = {document['ratio']:.2f}** (goal: {scenario.goal}). {scenario.paper}\n\n"
            + "".join(f"**Measured on a busy machine**: {line}.\n\n" for line in document.get("busy", [])[:3]) +
            f"Method: {document['method']}\n\n{_table(document)}\n"
            + "".join(f"* {line}\n" for line in document["findings"]) + "\n" * bool(document["findings"]) +
            f"`make bench SCENARIO={scenario.name}`, {document['date']}: {document['machine']}.\n")


def _table(document: Document) -> str:
    """Every figure: those that differ only in their numbers, rounds, as their median."""
    rows: dict[str, dict[str, list[float]]] = {}
    for figure in document["figures"]:
        row = rows.setdefault(_label(figure), {})
        for name, value in figure.items():
            if name not in LABELS and isinstance(value, int | float):
                row.setdefault(name, []).append(value)
    columns = list(dict.fromkeys(name for row in rows.values() for name in row if name != "round"))
    return (f"| | {' | '.join(name.replace('_', ' ') for name in columns)} |\n|---|{'---|' * len(columns)}\n"
            + "".join(f"| {label} | " + " | ".join(svg.spoken(statistics.median(row[name])) if name in row else ""
                                                   for name in columns) + " |\n" for label, row in rows.items()))


def _label(figure: Document) -> str:
    words = [value if isinstance(value, str) else name if value is True else f"{value:.0f} {name}"
             for name, value in figure.items() if name in LABELS or isinstance(value, str)]
    return ", ".join(words)


def _anchor(title: str) -> str:
    return "".join(letter for letter in title.lower().replace(" ", "-") if letter.isalnum() or letter == "-")


if __name__ == "__main__":
    main()
