"""Where the time of a run of suites went: the tests that took longest, from their JUnit files.

usage: longest_tests.py RESULTS-DIRECTORY
"""

import sys
from pathlib import Path
from xml.etree import ElementTree

SHOWN = 15


def name_of(case: ElementTree.Element) -> str:
    return f"{case.get('classname')} {case.get('name')}"


def main(results: Path) -> None:
    tests = [
        (float(case.get("time") or 0), file.relative_to(results).parts[0], name_of(case))
        for file in results.rglob("*.xml")
        for case in ElementTree.parse(file).getroot().iter("testcase")
    ]
    for seconds, suite, name in sorted(tests, reverse=True)[:SHOWN]:
        print(f"{seconds:7.1f} s  {suite:10} {name[:120]}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
