"""Puts the last run of one part of the soak into docs/results/soak.md; the other parts keep theirs.

usage: soak_results.py PART MARK SECONDS SEED DID
"""

import os
import sys
from datetime import UTC, datetime
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "results" / "soak.md"
PARTS = {
    "sanitizers": "the engine's tests under sanitizers: address and undefined-behaviour all, thread those with threads",
    "worlds": "simulated worlds of the engine, also under the address sanitizer",
    "values": "random values of every type, mined from the WAL and decoded by PostgreSQL",
    "rules": "conditions of rules, evaluated by the engine and by PostgreSQL",
    "fuzz": "libFuzzer on each parser, from its corpus",
    "kills": "whole engines on real servers, killed, cut off, and compared row by row",
    "slow": "suites with half of one core and a disk that takes 50 ms for a flush",
    "rig": "[the advisor](advisor.md) against real causes",
    "upgrade": "the whole product of an earlier commit, then this one's, over the same data and under load",
}
HEAD = """<!-- Written by scripts/soak_results.py from `make soak`. Do not edit. -->

# The last soak

`make soak` runs what is too long for each change: for hours before a release, with new seeds. A part that failed says
so here until it has passed again. Each part runs on a day of its own, and its row describes the run of that day: tests
and causes that are younger are not in it.

| part | what runs | last run | took | first seed | did | result |
|---|---|---|---|---|---|---|
"""


def row_of(part: str, mark: str, seconds: int, seed: str, did: str) -> str:
    day, cores = datetime.now(UTC).date(), os.cpu_count()
    did = did.replace("|", "/") or "nothing"
    took = f"{seconds // 60} min {seconds % 60} s, {cores} cores"
    return f"| {part} | {PARTS[part]} | {day} | {took} | {seed} | {did} | {'passed' if mark == '✓' else '**failed**'} |"


def with_row(page: str, part: str, row: str) -> str:
    """The page's text with this row in place of the part's former one, in the order of PARTS."""
    rows = {name: line for line in page.splitlines() for name in PARTS if line.startswith(f"| {name} |")}
    rows[part] = row
    return HEAD + "".join(f"{rows[name]}\n" for name in PARTS if name in rows)


def main(part: str, mark: str, seconds: str, seed: str, did: str) -> None:
    page = PAGE.read_text() if PAGE.exists() else ""
    PAGE.write_text(with_row(page, part, row_of(part, mark, int(seconds), seed, did)))


if __name__ == "__main__":
    main(*sys.argv[1:])
