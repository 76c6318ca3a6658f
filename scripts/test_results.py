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
ANSI = re.compile(r"\x1b\[[0-9;]*m")
# Lines of a browser's assertion and of pytest's that tell the wanted value, the actual one, and the place.
TELLING = re.compile(r"^(?:E  |Locator:|Expected|Received|> *\d+ \||at .*\.spec\.ts:)")


def reasons_of(case: ElementTree.Element) -> list[str]:
    """The first line of what failed, and what the log says it wanted and got; none where nothing failed."""
    for trouble in (*case.findall("failure"), *case.findall("error")):
        text = ANSI.sub("", trouble.text or "")
        said = (trouble.get("message") or text).strip().splitlines() or ["no message"]
        telling = [f"  {line.strip()}" for line in text.splitlines() if TELLING.match(line.strip())]
        return [line[:LONGEST] for line in (f"{case.get('classname')} {case.get('name')}: {said[0]}", *telling[:MOST])]
    return []


def main(results: Path, log: Path) -> None:
    passed = skipped = failed = 0
    reasons: list[str] = []
    for file in sorted(results.rglob("*.xml")):
        for case in ElementTree.parse(file).getroot().iter("testcase"):
            if said := reasons_of(case):
                failed += 1
                reasons += said
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
    print("\n".join(reasons[: 3 * MOST]))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
