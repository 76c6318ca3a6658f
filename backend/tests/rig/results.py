"""docs/results/advisor.md from what the rig said: one row for each cause. usage: python -m tests.rig.results LINES"""

import json
import sys
from pathlib import Path
from typing import Any

from tests.rig.causes import CAUSES, Cause

TARGET = Path(__file__).resolve().parents[3] / "docs" / "results" / "advisor.md"
HEAD = """<!-- Written by backend/tests/rig/results.py from a run of `make advisor-rig`. Do not edit. -->

# Does the advisor name the cause?

`make advisor-rig` makes each stage of a path slow by a real cause, on real clusters and engines, takes an advisor run
of the last 4 s and compares what it says with what was done. A hit is the right stage **and** the right finding in the
first place.

| cause | how it is made | stage | first finding | LCR/s | |
|---|---|---|---|---|---|
"""
TAIL = """
A cause that is not slow enough limits nothing, so each is made the slowest stage by real means: a server or an engine
whose disk takes longer (a preloaded library), an engine that is stopped and continued by turns, a relay that passes so
many bytes a second, SQL. Two causes need an engine with a small share of the processors, because the source on the same
two cores is slower than a whole coordinator or receiver.

The choice of a stream's tables is a list in its publication and costs nothing. Rules can be slow because of their
conditions: capture evaluates them for each change.
"""


def main(path: str) -> int:
    said: dict[str, dict[str, Any]] = {}
    for text in Path(path).read_text().splitlines():
        line = json.loads(text)
        said[line["cause"]] = line
    rows = [_row(cause, said.get(cause.name)) for cause in CAUSES]
    hits = sum(line["hit"] for line in said.values())
    total = f"\n{hits} of {len(CAUSES)} causes were named.\n"
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(HEAD + "\n".join(rows) + "\n" + total + TAIL)
    print(f"{hits} of {len(CAUSES)} causes were named: wrote {TARGET.name}")
    return 0 if hits == len(CAUSES) else 1


def _row(cause: Cause, line: dict[str, Any] | None) -> str:
    if line is None:
        return f"| {cause.name} | {cause.how_it_is_made} | | | | miss: the test failed before the advisor was asked |"
    verdict, stage, code = line["said"]
    rate = "" if line["rate"] is None else f"{line['rate']:,.0f}"
    mark = (
        "hit" if line["hit"] else f"miss: expected {line['expected'][1] or line['expected'][0]}, {line['expected'][2]}"
    )
    finding = f"{line['title']} (`{code}`)" if code else "none"
    return f"| {line['cause']} | {line['how_it_is_made']} | {stage or verdict} | {finding} | {rate} | {mark} |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
