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


@dataclass(frozen=True)
class Scenario:
    name: str
    title: str
    goal: str
    paper: str
    plot: Callable[[Document], str]


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


def _lines(x: str, *ys: tuple[str, str]) -> Callable[[Document], str]:
    def plot(document: Document) -> str:
        return svg.lines(f"{document['scenario']}: by number of {x}", x, "per second",
                         [(name, [(figure[x], figure[column]) for figure in document["figures"]])
                          for name, column in ys])
    return plot


SCENARIOS = [
    Scenario("staged", "End to end, staged", "2.2 or more",
             "Seed 000, VI.D and figure 16: the same experiment went from 5 100 LCR/s to over 20 000 with latch-free "
             "queues, the data layer and the metadata cache together; its yardstick was the product before them.",
             _rates),
    Scenario("staged1", "One row a transaction", "1.5 or more",
             "Not in the paper: what a commit costs when it cannot be shared by ten rows.", _rates),
    Scenario("bigtx", "One transaction of 428 400 rows", "1.5 or more",
             "Seed 003: such a transaction was applied at 2 700 LCR/s on average; seed 000, I promises that streaming "
             "makes latency independent of a transaction's size.", _bigtx),
    Scenario("drain", "Catching up after TPC-B", "1.5 or more",
             "Seed 000, VI.D stages its workload for the same reason: source and replication do not compete.", _drain),
    Scenario("latency", "Latency at 20 000 LCR/s", "1 or more, and below one second throughout",
             "Seed 000, figure 18: sub-second latency in a LAN, with a clock of one second.", _latency),
    Scenario("wan", "A far link", "0.9 or more",
             "Seed 000, VI.E and figures 17 and 18: 50 ms between California and Texas; propagation filled a line "
             "that varied between 4.5 and 5.2 MB/s, with acknowledgements by time.", _wan),
    Scenario("spill", "A transaction that is spilled", "about what native needs, far from 12",
             "Seed 003: 428 400 rows in one commit made 12 times the source's redo at the destination, because LCRs "
             "were spilled into a table; as 7 binary objects the redo was 45 MB to 66 MB.", _spill),
    Scenario("hotkeys", "Hot keys", "1 or more; parallel over serial Thalweg",
             "Seed 000, II: appliers run independent transactions concurrently; what is not independent must not be "
             "slower for it.", _rates),
    Scenario("queue", "The queue", "above 1",
             "Seed 000, figure 14: 5 500 LCR/s with the latch-based queue, 21 000 to 25 000 with the latch-free one.",
             _lines("consumers", ("wait-free", "spmc_per_second"), ("mutex", "mutex_per_second"))),
    Scenario("metadata", "The metadata cache", "above 1",
             "Seed 000, figure 15: with latches, more appliers mean less throughput; with the cache the contention is "
             "gone.", _lines("readers", ("latch-free", "free_per_second"), ("shared mutex", "mutex_per_second"))),
]

HEAD = """# Results

Made by `make bench SCENARIO=all` (about 25 minutes on an otherwise idle machine), which runs every scenario, writes its
figures here as JSON and draws the plots. `make bench SCENARIO=results` only draws. R is Thalweg over PostgreSQL's own
subscription at its best setting in the same run, unless said otherwise.

| scenario | R | goal |
|---|---|---|
"""


def main() -> None:
    directory = Path(sys.argv[1])
    found = [(scenario, json.loads(file.read_text())) for scenario in SCENARIOS
             if (file := directory / f"{scenario.name}.json").exists()]
    if not found:
        sys.exit(f"{directory}: no results")
    page = HEAD + "".join(f"| [{scenario.name}](#{_anchor(scenario.title)}) | {document['ratio']:.2f} | "
                          f"{scenario.goal} |\n" for scenario, document in found)
    for scenario, document in found:
        (directory / f"{scenario.name}.svg").write_text(scenario.plot(document))
        page += _section(scenario, document)
    (directory / "README.md").write_text(page)


def _section(scenario: Scenario, document: Document) -> str:
    return (f"\n## {scenario.title}\n\n![{scenario.title}]({scenario.name}.svg)\n\n"
            f"**R = {document['ratio']:.2f}** (goal: {scenario.goal}). {scenario.paper}\n\n"
            f"Method: {document['method']}\n{_cpu(document)}\n"
            f"`make bench SCENARIO={scenario.name}`, {document['date']}: {document['machine']}.\n")


def _cpu(document: Document) -> str:
    """CPU seconds for a million LCRs, where the scenario measures them by method."""
    methods = dict.fromkeys(figure["method"] for figure in document["figures"]
                            if "destination_cpu" in figure and "method" in figure)
    if not methods:
        return ""
    rows = [[f"{dict(_by_method(document, f'{part}_cpu'))[method]:.2f}" for part in ("source", "engine", "destination")]
            for method in methods]
    return ("\n| CPU s per million LCRs | source | engine | destination |\n|---|---|---|---|\n"
            + "".join(f"| {method} | {' | '.join(row)} |\n" for method, row in zip(methods, rows, strict=True)))


def _anchor(title: str) -> str:
    return "".join(letter for letter in title.lower().replace(" ", "-") if letter.isalnum() or letter == "-")


if __name__ == "__main__":
    main()
