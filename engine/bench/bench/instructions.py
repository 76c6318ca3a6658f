"""A server whose sessions are counted: callgrind tells how many instructions each of its backends has executed."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import psycopg

from harness.cluster import Cluster, wait_for
from harness.workspace import as_postgres, make_workspace, remove_workspace

Session = psycopg.Connection[Any]
SETTINGS = {"autovacuum": "off", "fsync": "off", "checkpoint_timeout": "'1h'", "max_wal_size": "'4GB'", "jit": "off",
            "shared_buffers": "'256MB'", "full_page_writes": "off"}
START_SECONDS = 120
END_SECONDS = 60


class CountedServer:
    """Owner: one thread. Use it in a with statement. A session runs some fifty times as slow as usual."""

    def __init__(self) -> None:
        self.workspace = make_workspace("thalweg-counted")
        self.cluster = Cluster(self.workspace, "counted", SETTINGS)
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "CountedServer":
        self.cluster.initialise()
        command = ["valgrind", "--tool=callgrind", "--quiet", "--toggle-collect=PostgresMain",
                   f"--callgrind-out-file={self.workspace}/callgrind.%p",
                   str(self.cluster.programs / "postgres"), "-D", str(self.cluster.directory)]
        with (self.workspace / "server.log").open("ab") as log:
            self.process = subprocess.Popen(as_postgres(command), stdout=log, stderr=log, start_new_session=True)
        self.cluster.wait_ready(START_SECONDS)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.cluster.stop("immediate")
        if self.process:
            self.process.wait()
        remove_workspace(self.workspace)

    def count(self, database: str, work: Callable[[Session], None]) -> int:
        """Instructions of a backend that does `work`, from its start to its end."""
        with self.cluster.connect(database) as session:
            backend = session.info.backend_pid
            work(session)
        file = self.workspace / f"callgrind.{backend}"
        return int(wait_for(lambda: _total(file), END_SECONDS, "the backend's count"))


def _total(file: Path) -> int | None:
    if not file.exists():
        return None
    found = re.search(r"^(?:totals|summary): (\d+)", file.read_text(), re.MULTILINE)
    return int(found[1]) if found else None
