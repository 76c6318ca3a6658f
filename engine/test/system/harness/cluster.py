"""One PostgreSQL cluster of a test: made, started, crashed and restarted through the server's own programs."""

import os
import subprocess
import time
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
from kept_sessions import Sessions

from harness.place import HERE, Place
from harness.workspace import as_postgres, free_port

PASSWORD = "system-test"  # the clusters listen on loopback and live for one run
OUTPUT_PLUGINS = "'pgoutput, test_decoding, thalweg_output'"


def server_programs() -> Path:
    """The newest installed server's bin directory, or THALWEG_PG_BIN."""
    given = os.environ.get("THALWEG_PG_BIN")
    if given:
        return Path(given)
    found = [path for path in Path("/usr/lib/postgresql").glob("*/bin") if (path / "initdb").exists()]
    if not found:
        raise RuntimeError("no PostgreSQL server is installed")
    return max(found, key=lambda path: int(path.parent.name))


@cache
def restricts_output_plugins(programs: Path) -> bool:
    """Minor releases from November 2026 let only the output plugins be used that the server's configuration lists."""
    known = subprocess.run([programs / "postgres", "--describe-config"], capture_output=True, check=True,
                           text=True).stdout
    return any(line.startswith("output_plugin_libraries\t") for line in known.splitlines())


class Cluster:
    """Owner: one test thread. Superuser is postgres; `settings` are postgresql.conf values as written there.

    `programs` holds the server's, where it is not the one under test.
    """

    def __init__(self, workspace: Path, name: str, settings: dict[str, str] | None = None,
                 place: Place = HERE, programs: Path | None = None) -> None:
        self.name = name
        self.programs = programs or server_programs()
        self.place = place
        self.directory = workspace / name
        self.log = workspace / f"{name}.log"
        self.port = free_port()
        self.settings = {
            "listen_addresses": f"'{place.address}'",
            "port": str(self.port),
            "unix_socket_directories": "''",
            "timezone": "'UTC'",
            "log_line_prefix": "'%m [%p] %q%u@%d '",
            **({"output_plugin_libraries": OUTPUT_PLUGINS} if restricts_output_plugins(self.programs) else {}),
            **(settings or {}),
        }
        self._sessions = Sessions(lambda database: self.connect(database, prepare_threshold=None))

    def initialise(self) -> None:
        password = self.directory.with_name(f".{self.name}.password")
        password.write_text(PASSWORD)
        password.chmod(0o644)
        self._run("initdb", f"--pgdata={self.directory}", "--username=postgres", "--auth=scram-sha-256",
                  f"--pwfile={password}", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync")
        password.unlink()
        lines = "".join(f"{name} = {value}\n" for name, value in self.settings.items())
        with (self.directory / "postgresql.conf").open("a") as file:
            file.write(lines)
        with (self.directory / "pg_hba.conf").open("a") as file:
            file.writelines(f"host {kind} all samenet scram-sha-256\n" for kind in ("all", "replication"))

    def set(self, **settings: str) -> None:
        """Appends to postgresql.conf; takes effect at the next restart, or at reload() where PostgreSQL allows it."""
        with (self.directory / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = {value}\n" for name, value in settings.items())

    def reload(self) -> None:
        self._control("reload")

    def back_up(self, directory: Path) -> None:
        """A base backup of the running server, with the WAL that it needs; `directory` comes into being."""
        self._run("pg_basebackup", f"--dbname={self.conninfo('postgres')}", f"--pgdata={directory}",
                  "--checkpoint=fast", "--wal-method=stream", "--no-sync")

    def start(self) -> None:
        self._control("start", "--wait", "--timeout=60", f"--log={self.log}")

    def stop(self, mode: str = "fast") -> None:
        if self.is_running():
            self._control("stop", "--wait", "--timeout=60", f"--mode={mode}")

    def reset_wal(self, *arguments: str) -> None:
        """pg_resetwal, of a cluster that was stopped cleanly."""
        self._run("pg_resetwal", f"--pgdata={self.directory}", *arguments)

    def restart(self, mode: str = "fast") -> None:
        self.stop(mode)
        self.start()

    def is_running(self) -> bool:
        status = subprocess.run(self._command("pg_ctl", f"--pgdata={self.directory}", "status"),
                                capture_output=True, check=False)
        return status.returncode == 0

    def postmaster(self) -> int:
        return int((self.directory / "postmaster.pid").read_text().splitlines()[0])

    def wait_ready(self, seconds: float = 60) -> None:
        """Waits until the server takes connections again, after a crash restart say."""
        end = time.monotonic() + seconds
        while True:
            try:
                self.connect("postgres").close()
            except psycopg.OperationalError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)
            else:
                return

    def conninfo(self, database: str, user: str = "postgres", password: str = PASSWORD, **more: str) -> str:
        extra = "".join(f" {name}={value}" for name, value in more.items())
        return f"host={self.place.address} port={self.port} dbname={database} user={user} password={password}{extra}"

    def connect(self, database: str, user: str = "postgres", **more: Any) -> psycopg.Connection[Any]:
        with self.place.entered():
            return psycopg.connect(self.conninfo(database, user), autocommit=True, **more)

    def sql(self, database: str, *statements: str) -> list[tuple[Any, ...]]:
        """Runs statements, each in its own transaction, and returns the last one's rows."""
        rows: list[tuple[Any, ...]] = []
        with self._sessions.session(database) as session:
            for statement in statements:
                cursor = session.execute(statement)
                rows = cursor.fetchall() if cursor.description else []
        return rows

    def leave(self, database: str) -> None:
        """Ends the sessions that wait in it for further statements."""
        self._sessions.close(database)

    def value(self, database: str, statement: str) -> Any:
        return self.sql(database, statement)[0][0]

    def make_database(self, database: str, owner: str | None = None) -> None:
        self.sql("postgres", f'CREATE DATABASE "{database}"' + (f" OWNER {owner}" if owner else ""))

    def run_script(self, database: str, script: str) -> None:
        """Runs a psql script: several statements and transaction commands as they stand."""
        self._run("psql", "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--output=/dev/null",
                  f"--dbname={self.conninfo(database)}", stdin=script)

    def program(self, name: str, *arguments: str) -> list[str]:
        """A command line of one of the server's programs, for callers that start it themselves."""
        return self._command(name, *arguments)

    def _control(self, action: str, *options: str) -> None:
        self._run("pg_ctl", f"--pgdata={self.directory}", "--silent", *options, action)

    def _command(self, program: str, *arguments: str) -> list[str]:
        here = self.programs if (self.programs / program).exists() else server_programs()
        return [*self.place.prefix, *as_postgres([str(here / program), *arguments])]

    def _run(self, program: str, *arguments: str, stdin: str = "") -> None:
        # A file, not a pipe: the server keeps the descriptor open, and a pipe would never end.
        output = self.directory.with_name(f"{self.name}.{program}.out")
        with output.open("w+") as file:
            done = subprocess.run(self._command(program, *arguments), input=stdin.encode(), stdout=file,
                                  stderr=subprocess.STDOUT, check=False, start_new_session=True)
        if done.returncode != 0:
            tail = output.read_text().splitlines()[-15:]
            log = self.log.read_text().splitlines()[-15:] if self.log.exists() else []
            lines = [line[:400] for line in [f"{program} of cluster {self.name} failed:", *tail, *log]]
            raise RuntimeError("\n".join(lines))


def wait_for(condition: Any, seconds: float, what: str, pause: float = 0.05) -> Any:
    """Polls `condition` until it returns something true, and returns that."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {seconds} s")
        time.sleep(pause)


def quote(*names: str) -> str:
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)


def joined(values: Iterable[str]) -> str:
    return ", ".join(values)
