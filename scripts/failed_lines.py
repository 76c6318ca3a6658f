"""Prints the lines of a suite's log that belong to what failed, and not those of what passed beside or after it.

usage: failed_lines.py RESULTS-DIRECTORY LOG
A failed test of a C++ program: its own output, from ctest's part of that program. A program that died: the test that
ran then, with the sanitizer's report. Other tests: what their JUnit file holds. Where nothing says what failed: the
log's end.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

LINES_OF_ONE = 60  # the first half and the last half of them
LINES = 400
LINES_OF_THE_END = 120
ANSI = re.compile(r"\x1b\[[0-9;]*m")
CTEST_RESULT = re.compile(r"^ *\d+/\d+ Test +#\d+: (?P<name>\S+) \.* *(?P<outcome>Passed|.*\*\*\*\S+)")
CTEST_NEXT = re.compile(r"^ *(?:Start +\d+:|\d+% tests passed)")
CTEST_TREE = re.compile(r"^Test project (?P<tree>.*)")
GTEST_BEGINS = re.compile(r"^\[ RUN      \] (?P<name>\S+)")
GTEST_ENDS = re.compile(r"^\[ +(?P<outcome>OK|FAILED|SKIPPED) +\] (?P<name>[\w/]+\.[\w/]+)")

Part = tuple[str, list[str]]  # what it is, its lines


def ctest_parts(lines: list[str]) -> Iterator[Part]:
    """Each failed program with its output, which stands behind its result."""
    tree, name, part = "", "", list[str]()
    for line in lines:
        result = CTEST_RESULT.match(line)
        if result or CTEST_NEXT.match(line):
            if name:
                yield f"{tree} {name}", part
            name, part = "", []
        if result and result["outcome"] != "Passed":
            name, part = result["name"], [line]
        elif name:
            part.append(line)
        elif found := CTEST_TREE.match(line):
            tree = Path(found["tree"]).name
    if name:
        yield f"{tree} {name}", part


def gtest_parts(program: str, lines: list[str]) -> Iterator[Part]:
    """Each failed test of a program; where the program has no such tests, or ended beside them, all of it."""
    name, part, found = "", list[str](), False
    for line in lines:
        if begins := GTEST_BEGINS.match(line):
            name, part = begins["name"], [line]
            continue
        part.append(line)
        if name and (ends := GTEST_ENDS.match(line)) and ends["name"] == name:
            if ends["outcome"] == "FAILED":
                found = True
                yield f"{program}: {name}", part
            name, part = "", []
    if name:
        yield f"{program}: {name}, during which it ended", part
    elif not found:
        yield program, lines


def junit_parts(results: Path) -> Iterator[Part]:
    for file in sorted(results.rglob("*.xml")):
        root = ElementTree.parse(file).getroot()
        for case in root.iter("testcase"):
            for trouble in (*case.findall("failure"), *case.findall("error")):
                text = trouble.text or trouble.get("message") or "no message"
                yield f"{case.get('classname')} {case.get('name')}", text.splitlines()


def shortened(lines: list[str]) -> list[str]:
    if len(lines) <= LINES_OF_ONE:
        return lines
    half = LINES_OF_ONE // 2
    return [*lines[:half], f"... {len(lines) - 2 * half} lines ...", *lines[-half:]]


def main(results: Path, log: Path) -> None:
    lines = ANSI.sub("", log.read_text(errors="replace")).splitlines()
    parts = [part for program, output in ctest_parts(lines) for part in gtest_parts(program, output)]
    # A test program's JUnit file says less than its output.
    parts = parts or list(junit_parts(results)) or [(f"the end of {log}", lines[-LINES_OF_THE_END:])]
    shown = [line for what, part in parts for line in (f"── {what}", *(shortened(part) if len(parts) > 1 else part))]
    print("\n".join(shown[:LINES]))
    if len(shown) > LINES:
        print(f"... {len(shown) - LINES} lines more, in {log}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
