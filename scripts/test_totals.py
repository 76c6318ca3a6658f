"""Counts the tests in a suite's output: JUnit files, and 'totals: N passed, N failed' lines of what writes none.

usage: test_totals.py RESULTS-DIRECTORY LOG      prints: PASSED FAILED SKIPPED
"""

import re
import sys
from pathlib import Path
from xml.etree import ElementTree

TOTALS = re.compile(r"^totals: (\d+) passed, (\d+) failed$", re.MULTILINE)


def main(results: Path, log: Path) -> None:
    passed = failed = skipped = 0
    for file in sorted(results.rglob("*.xml")):
        for case in ElementTree.parse(file).getroot().iter("testcase"):
            if case.find("failure") is not None or case.find("error") is not None:
                failed += 1
            elif case.find("skipped") is not None or case.get("status") == "notrun":
                skipped += 1
            else:
                passed += 1
    for match in TOTALS.finditer(log.read_text(errors="replace")):
        passed += int(match[1])
        failed += int(match[2])
    print(passed, failed, skipped)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
