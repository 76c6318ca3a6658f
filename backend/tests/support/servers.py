"""Real PostgreSQL clusters and a real Redis for the tests, each in a directory and on a port of its own."""

import contextlib
import itertools
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import redis
from kept_sessions import Sessions

POSTGRES_USER = "postgres"


def _ports_of(span: str) -> range:
    first, last = (int(part) for part in span.split("-"))
    return range(first, last + 1)


PORTS = _ports_of(os.environ.get("THALWEG_TEST_PORTS", "20000-23999"))
"""Engines' system tests run beside these on ports of their own: scripts/lib/suites.sh."""


def _own_ports() -> list[int]:
    """This process's share among pytest's workers: what one finds free, another one cannot hand out meanwhile."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    own = PORTS[int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) :: workers]
    first = os.getpid() % len(own)
    return [*own[first:], *own[:first]]


_ports: Iterator[int] = itertools.cycle(_own_ports())


def free_port() -> int:
    """A free port of loopback, below those that Linux gives to outgoing connections, so none takes it meanwhile."""
    for port in itertools.islice(_ports, len(PORTS)):
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                listener.bind(("127.0.0.1", port))
                return port
    raise RuntimeError(f"No port of {PORTS} is free.")


def postgres_binaries() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    if found:
        return found[-1]
    on_path = shutil.which("initdb")
    if on_path is None:
        raise RuntimeError("The tests need PostgreSQL's server programs (initdb, pg_ctl).")
    return Path(on_path).parent


def unprivileged(command: list[str], environment: dict[str, str] | None = None) -> None:
    """PostgreSQL refuses to run as root: then as its own user."""
    prefix = ["runuser", "-u", POSTGRES_USER, "--"] if os.geteuid() == 0 else []
    done = subprocess.run([*prefix, *command], capture_output=True, text=True, cwd="/", check=False, env=environment)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} failed: {done.stdout}{done.stderr}")


@dataclass
class Cluster:
    directory: Path
    port: int
    binaries: Path

    def __post_init__(self) -> None:
        self.sessions = Sessions(self._connect)

    def _connect(self, dbname: str) -> psycopg.Connection[Any]:
        return psycopg.connect(
            host="127.0.0.1", port=self.port, user=POSTGRES_USER, dbname=dbname, autocommit=True, prepare_threshold=None
        )

    def url(self, dbname: str) -> str:
        return f"postgresql+psycopg://{POSTGRES_USER}@127.0.0.1:{self.port}/{dbname}"

    def execute(self, *statements: str, dbname: str = "postgres") -> None:
        """Statements that name the database of a session may find one that waits there: see leave()."""
        with self.sessions.session(dbname) as session:
            for statement in statements:
                session.execute(statement.encode())

    def rows(self, statement: str, dbname: str = "postgres") -> list[tuple[Any, ...]]:
        with self.sessions.session(dbname) as session:
            return session.execute(statement.encode()).fetchall()

    def value(self, statement: str) -> Any:
        rows = self.rows(statement)
        return rows[0][0] if rows else None

    def leave(self, dbname: str) -> None:
        """Ends the sessions that wait in it for further statements."""
        self.sessions.close(dbname)

    def stop(self) -> None:
        self.control("-m", "immediate", "stop")
        shutil.rmtree(self.directory)

    def start(self) -> None:
        self.control("-w", "-l", f"{self.directory}/log", "start")

    def control(self, *arguments: str) -> None:
        unprivileged([f"{self.binaries}/pg_ctl", "-D", f"{self.directory}/data", *arguments])

    def set(self, **settings: str | int) -> None:
        """Takes effect with the next start."""
        with Path(self.directory, "data/postgresql.conf").open("a") as file:
            file.writelines(f"{name} = {value}\n" for name, value in settings.items())


def _new_cluster(binaries: Path) -> Cluster:
    directory = Path(tempfile.mkdtemp(prefix="thalweg-test-pg-"))
    if os.geteuid() == 0:
        shutil.chown(directory, POSTGRES_USER)
    return Cluster(directory, free_port(), binaries)


def start_standby(primary: Cluster, **settings: str | int) -> Cluster:
    """Of a primary that restarts meanwhile. Its slot there is called standby."""
    primary.execute("SELECT pg_create_physical_replication_slot('standby')")
    primary.control("-m", "fast", "stop")
    standby = _new_cluster(primary.binaries)
    unprivileged(["cp", "-r", f"{primary.directory}/data", f"{standby.directory}/data"])
    unprivileged(["rm", "-rf", f"{standby.directory}/data/pg_replslot/standby"])
    unprivileged(["touch", f"{standby.directory}/data/standby.signal"])
    conninfo = f"'host=127.0.0.1 port={primary.port} user={POSTGRES_USER}'"
    standby.set(
        port=standby.port, unix_socket_directories=f"'{standby.directory}'", primary_conninfo=conninfo, **settings
    )
    primary.start()
    standby.start()
    return standby


def start_cluster(binaries: Path | None = None, **settings: str | int) -> Cluster:
    """The superuser comes in by trust, everybody else by password, as in the wild."""
    binaries = binaries or postgres_binaries()
    cluster = _new_cluster(binaries)
    directory = cluster.directory
    data = f"{directory}/data"
    unprivileged(
        [f"{binaries}/initdb", "-D", data, "-U", POSTGRES_USER, "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C"]
    )
    options = {
        "port": cluster.port, "listen_addresses": "'127.0.0.1'", "unix_socket_directories": f"'{directory}'",
        "fsync": "off", "wal_level": "logical", "shared_buffers": "32MB", "max_connections": 100,
        "autovacuum": "off", **settings,
    }  # fmt: skip
    cluster.set(**options)
    Path(data, "pg_hba.conf").write_text(
        f"host all,replication {POSTGRES_USER} 127.0.0.1/32 trust\n"
        "host all outsider 127.0.0.1/32 reject\n"
        "host all all 127.0.0.1/32 scram-sha-256\n"
    )
    cluster.start()
    return cluster


@dataclass
class RedisServer:
    """Can be stopped and started again on the same port, as in an outage."""

    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"],
            stdout=subprocess.DEVNULL, cwd="/",
        )  # fmt: skip
        client = redis.Redis(port=self.port)
        for _ in range(100):
            try:
                client.ping()
                break
            except redis.RedisError:
                time.sleep(0.05)
        else:
            raise RuntimeError("redis-server does not answer")
        client.close()

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(10)
            self.process = None
