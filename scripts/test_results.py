"""Reads a suite's output: JUnit files, 'totals: N passed, N failed' lines of what writes none, and steps that failed.

usage: test_results.py RESULTS-DIRECTORY LOG
prints 'PASSED FAILED SKIPPED', then a line for each failed test, or the lines that say why a step failed.
"""

import re
import sys
from pathlib import Path
from xml.etree import ElementTree

TOTALS = re.compile(r"^totals: (\d+) passed, (\d+) failed$", re.MULTILINE)
FAILED_STEP = re.compile(r"^✗ .*(?:\n  (?:──|│).*)*", re.MULTILINE)
LONGEST = 200
MOST = 8


def reason(case: ElementTree.Element) -> str | None:
    """The first line of what failed; None for a test that passed or was skipped."""
    for trouble in (*case.findall("failure"), *case.findall("error")):
        said = (trouble.get("message") or trouble.text or "").strip()
        return f"{case.get('classname')} {case.get('name')}: {said.splitlines()[0] if said else 'no message'}"[:LONGEST]
    return None


def main(results: Path, log: Path) -> None:
    passed = skipped = failed = 0
    reasons: list[str] = []
    for file in sorted(results.rglob("*.xml")):
        for case in ElementTree.parse(file).getroot().iter("testcase"):
            if said := reason(case):
                failed += 1
                reasons.append(said)
            elif case.find("skipped") is not None or case.get("status") == "notrun":
                skipped += 1
            else:
                passed += 1
    text = log.read_text(errors="replace")
    for match in TOTALS.finditer(text):
        passed += int(match[1])
        failed += int(match[2])
    for match in FAILED_STEP.finditer(text):
        head, *lines = match[0].splitlines()
        reasons += [line[:LONGEST] for line in (head, *lines[-MOST:])]
    print(passed, failed, skipped)
    print("\n".join(reasons[: 2 * MOST]))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
