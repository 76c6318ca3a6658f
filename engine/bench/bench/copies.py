"""The ways to bring a database's tables into an empty one, with all indexes, constraints and statistics."""

import shutil
import subprocess
from pathlib import Path
from typing import Protocol

from bench.mixed_tables import MixedTables
from bench.rig import SOURCE_DATABASE, Rig
from harness.cluster import PASSWORD, Cluster, wait_for
from harness.workspace import give_to_postgres

JOBS = 2
LIMIT_SECONDS = 3600
SPLIT_BYTES = 200 * 2**20  # pgcopydb copies bigger tables in parts


class Copy(Protocol):
    method: str

    def run(self, database: str) -> None:
        """From an empty database to one that is complete."""
        ...

    def clear(self, database: str) -> None:
        """Takes away what it has left, before the database is dropped."""
        ...


class DumpAndRestore:
    """Into a directory, by two connections, then out of it by two."""

    method = "dump-restore"

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.directory = rig.workspace / "dump"

    def run(self, database: str) -> None:
        _run(self.rig.source, "pg_dump", "--format=directory", f"--jobs={JOBS}", "--compress=0", "--no-publications",
             f"--file={self.directory}", self.rig.source.conninfo(SOURCE_DATABASE))
        _run(self.rig.destination, "pg_restore", f"--jobs={JOBS}", "--exit-on-error",
             f"--dbname={self.rig.destination.conninfo(database)}", str(self.directory))
        analyze(self.rig.destination, database)

    def clear(self, database: str) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)


class DumpPipedToRestore:
    """The rows through a pipe, which pg_restore reads with one connection; what comes after them with two."""

    method = "dump-pipe"

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.schema = rig.workspace / "schema.dump"

    def run(self, database: str) -> None:
        source = self.rig.source.conninfo(SOURCE_DATABASE)
        _run(self.rig.source, "pg_dump", "--format=custom", "--schema-only", "--no-publications",
             f"--file={self.schema}", source)
        restore(self.rig.destination, database, self.schema, "pre-data", 1)
        into = f"--dbname={self.rig.destination.conninfo(database)}"
        with subprocess.Popen(self.rig.source.program("pg_dump", "--format=custom", "--compress=0", "--data-only",
                                                      source), stdout=subprocess.PIPE) as dump:
            _run(self.rig.destination, "pg_restore", "--exit-on-error", into, stdin=dump)
        if dump.returncode != 0:
            raise RuntimeError(f"pg_dump ended with {dump.returncode}")
        restore(self.rig.destination, database, self.schema, "post-data", JOBS)
        analyze(self.rig.destination, database)

    def clear(self, database: str) -> None:
        self.schema.unlink(missing_ok=True)


class NativeSync:
    """PostgreSQL's own subscription into bare tables; their keys, indexes and the rest once all rows are there."""

    method = "native"

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.schema = rig.workspace / "schema.dump"

    def run(self, database: str) -> None:
        _run(self.rig.source, "pg_dump", "--format=custom", "--schema-only", "--no-publications",
             f"--file={self.schema}", self.rig.source.conninfo(SOURCE_DATABASE))
        restore(self.rig.destination, database, self.schema, "pre-data", 1)
        destination = self.rig.destination
        destination.sql(database, f"""
            CREATE SUBSCRIPTION {database} CONNECTION '{self.rig.source.conninfo(SOURCE_DATABASE)}'
              PUBLICATION native WITH (binary = true, streaming = on)""")
        with destination.connect(database) as watch:
            waiting = "SELECT count(*) FROM pg_subscription_rel WHERE srsubstate <> 'r'"
            wait_for(lambda: watch.execute(waiting).fetchone() == (0,), LIMIT_SECONDS, "every table is ready")
        restore(destination, database, self.schema, "post-data", JOBS)
        analyze(destination, database)

    def clear(self, database: str) -> None:
        self.schema.unlink(missing_ok=True)
        self.rig.destination.sql(database, f"DROP SUBSCRIPTION IF EXISTS {database}")


class PgCopyDb:
    method = "pgcopydb"

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.directory: Path = rig.workspace / "pgcopydb"

    def run(self, database: str) -> None:
        self.directory.mkdir()
        give_to_postgres(self.directory)
        environment = ["env", f"PGPASSWORD={PASSWORD}", f"TMPDIR={self.directory}", f"XDG_RUNTIME_DIR={self.directory}",
                       f"XDG_DATA_HOME={self.directory}"]
        program = self.rig.destination.program("pgcopydb")
        command = [*program[:-1], *environment, "pgcopydb", "clone", "--source",
                   self.rig.source.conninfo(SOURCE_DATABASE), "--target", self.rig.destination.conninfo(database),
                   "--dir", str(self.directory / "work"), "--table-jobs", str(JOBS), "--index-jobs", str(JOBS),
                   "--split-tables-larger-than", str(SPLIT_BYTES), "--skip-large-objects"]
        _finish(command)

    def clear(self, database: str) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)


class Thalweg:
    """A stream of the real engine, until it replicates; each step of a user's is in it, ANALYZE too."""

    method = "thalweg"

    def __init__(self, rig: Rig, workload: MixedTables, parameters: dict[str, int | str | bool]) -> None:
        self.rig = rig
        self.tables = workload.tables
        self.parameters = parameters

    def run(self, database: str) -> None:
        self.rig.engine.add_stream(database, self.rig.source.conninfo(SOURCE_DATABASE),
                                   self.rig.destination.conninfo(database), self.tables, **self.parameters)
        self.rig.engine.wait_phase(database, "REPLICATING", LIMIT_SECONDS)
        warnings = self.rig.engine.destination(database)["instantiation"]["warnings"]
        if warnings:
            raise AssertionError(f"left out: {warnings[:3]}")

    def clear(self, database: str) -> None:
        self.rig.engine.drop_stream(database)


def has_pgcopydb() -> bool:
    return shutil.which("pgcopydb") is not None


def restore(cluster: Cluster, database: str, dump: Path, section: str, jobs: int) -> None:
    _run(cluster, "pg_restore", f"--section={section}", f"--jobs={jobs}", "--exit-on-error",
         f"--dbname={cluster.conninfo(database)}", str(dump))


def analyze(cluster: Cluster, database: str) -> None:
    _run(cluster, "vacuumdb", "--analyze-only", "--quiet", f"--jobs={JOBS}", f"--dbname={cluster.conninfo(database)}")


def _run(cluster: Cluster, program: str, *arguments: str, stdin: subprocess.Popen[bytes] | None = None) -> None:
    _finish(cluster.program(program, *arguments), stdin)


def _finish(command: list[str], stdin: subprocess.Popen[bytes] | None = None) -> None:
    done = subprocess.run(command, stdin=stdin.stdout if stdin else subprocess.DEVNULL, capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {(done.stderr or done.stdout)[-1500:]}")
