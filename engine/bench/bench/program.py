"""A benchmark that is a program of the engine: run, shown as it prints, its table's figures kept."""

import argparse
import re
import subprocess
from pathlib import Path

from bench.report import Report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--program", type=Path, required=True, help="the benchmark's executable")


def run(arguments: argparse.Namespace, scenario: str, columns: list[str]) -> None:
    """`columns`: what the numbers of one of the table's lines are. Its method ends with an empty line."""
    report = Report(scenario, arguments)
    ratio = 0.0
    method: list[str] = []
    with subprocess.Popen([str(arguments.program)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        in_method = True
        for line in map(str.rstrip, process.stdout):
            words = line.split()
            in_method = in_method and bool(words)
            last = re.fullmatch(rf"{scenario} ratio: ([\d.]+)", line)
            if last:
                ratio = float(last[1])
            elif in_method:
                method.append(line.removeprefix("method: "))
            elif len(words) == len(columns) and all(re.fullmatch(r"[\d.]+", word) for word in words):
                report.figure(line, **dict(zip(columns, map(float, words), strict=True)))
            elif words:
                report.say(line)
            elif method:
                report.method("\n".join(method))
    if process.returncode != 0 or not report.document["figures"]:
        raise SystemExit(f"{arguments.program.name} ended with {process.returncode}")
    report.ratio(ratio)
