"""Report of a benchmark: its method, its figures as lines and as JSON, and the ratio as its last line."""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.surroundings import Surroundings, Watch, before_a_run
from harness.cluster import server_programs

Figure = Mapping[str, Any]


class Report:
    """Prints as it goes; with --out everything is also in that file, which bench.results reads.

    Beside each figure stands what else the machine did meanwhile. On a busy one it does not begin, unless with --force;
    then, and where the machine became busy on the way, the document says so.
    """

    def __init__(self, scenario: str, arguments: argparse.Namespace) -> None:
        self.scenario = scenario
        self.out: Path | None = arguments.out
        self.document: dict[str, Any] = {"scenario": scenario, "machine": machine(), "figures": [], "findings": [],
                                         "series": {}, "date": time.strftime("%Y-%m-%d", time.gmtime()),
                                         "busy": []}
        disk = Path(os.environ.get("THALWEG_TEST_DIR") or tempfile.gettempdir())
        found = before_a_run(disk)
        self.say(f"machine: {found}")
        if found.is_busy and not arguments.force:
            sys.exit("The machine is busy, and figures from here would say nothing. Wait until it is quiet, or give "
                     "--force: the results are then marked.")
        self._note("before the run", found)
        self.watch = Watch(disk)

    def method(self, text: str) -> None:
        self.document["method"] = " ".join(text.split())
        self.say(f"method: {text}")

    def say(self, line: str) -> None:
        print(line, flush=True)

    def figure(self, line: str, **values: Any) -> None:
        """One measurement: a line for people, its values for the file."""
        found = self.watch.look()
        self.document["figures"].append({**values, **found.figures()})
        self.say(f"{line}   [{found}]")
        self._note(f"figure {len(self.document['figures'])}", found)

    def _note(self, when: str, found: Surroundings) -> None:
        if found.is_busy:
            self.document["busy"].append(f"{when}: {found}")

    def finding(self, line: str) -> None:
        """Adds a conclusion from several figures; the page repeats it."""
        self.document["findings"].append(line)
        self.say(line)

    def series(self, name: str, values: list[Any]) -> None:
        self.document["series"][name] = values

    def ratio(self, value: float) -> None:
        self.document["ratio"] = round(value, 3)
        if self.out:
            self.out.parent.mkdir(parents=True, exist_ok=True)
            self.out.write_text(json.dumps(self.document, indent=1) + "\n")
        if self.document["busy"]:
            self.say("THE MACHINE WAS BUSY: " + "; ".join(self.document["busy"]))
        self.say(f"{self.scenario} ratio: {value:.2f}")


def machine() -> str:
    model = next((line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), platform.machine())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    server = subprocess.run([str(server_programs() / "postgres"), "--version"], capture_output=True, text=True,
                            check=True).stdout.split()[2]
    return (f"{os.cpu_count()} cores of {model}, {memory:.0f} GiB, Linux {platform.release().split('-')[0]}, "
            f"PostgreSQL {server}; source, engine and destination share it")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, help="write the figures to this file, as JSON")
    parser.add_argument("--force", action="store_true", help="run on a busy machine too, and mark the results")
    parser.add_argument("--keep", action="store_true", help="keep the clusters' directory")
