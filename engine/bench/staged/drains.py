"""The ways to drain the staged WAL. Each prepares before the workload is staged, then drains it once.

A drain's clock starts before the request that starts it and stops when its sentinel, the workload's last transaction,
and every row before it are at the destination.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import psycopg

from harness.cluster import Cluster
from harness.engine import Engine, parse_lsn
from harness.processes import cpu_seconds
from staged.workload import TABLES

LIMIT_SECONDS = 600
POLL_SECONDS = 0.01


@dataclass(frozen=True)
class Servers:
    source: Cluster
    destination: Cluster
    source_database: str


@dataclass(frozen=True)
class Measurement:
    method: str
    round: int
    lcrs: int
    seconds: float
    source_cpu: float  # seconds
    tool_cpu: float
    destination_cpu: float

    @property
    def rate(self) -> float:
        """LCRs a second."""
        return self.lcrs / self.seconds


def has_sentinel(watch: psycopg.Connection[Any]) -> bool:
    row = watch.execute("SELECT EXISTS (SELECT FROM sentinel)").fetchone()
    return bool(row and row[0])


class Drain(Protocol):
    method: str
    database: str  # at the destination

    def prepare(self) -> None: ...
    def start(self) -> None: ...
    def finished(self, watch: psycopg.Connection[Any]) -> bool:
        """`watch` is connected to the destination's database."""
        ...
    def stop(self) -> None: ...
    def tool_cpu(self) -> float: ...


class NativeDrain:
    """PostgreSQL's own subscription, binary or text; made disabled with its slot, enabled to drain."""

    def __init__(self, servers: Servers, round_number: int, binary: bool) -> None:
        self.method = "native binary" if binary else "native text"
        self.binary = binary
        self.servers = servers
        self.database = f"native_{'binary' if binary else 'text'}_{round_number}"

    def prepare(self) -> None:
        conninfo = self.servers.source.conninfo(self.servers.source_database)
        self.servers.destination.sql(self.database, f"""
            CREATE SUBSCRIPTION {self.database} CONNECTION '{conninfo}' PUBLICATION native
              WITH (enabled = false, create_slot = true, slot_name = '{self.database}', copy_data = false,
                    binary = {str(self.binary).lower()}, streaming = on)""")

    def start(self) -> None:
        self.servers.destination.sql(self.database, f"ALTER SUBSCRIPTION {self.database} ENABLE")

    def finished(self, watch: psycopg.Connection[Any]) -> bool:
        return has_sentinel(watch)

    def stop(self) -> None:
        self.servers.destination.sql(self.database, f"ALTER SUBSCRIPTION {self.database} DISABLE")
        self._wait_released()
        self.servers.destination.sql(self.database, f"DROP SUBSCRIPTION {self.database}")

    def tool_cpu(self) -> float:
        return 0.0  # its apply worker is one of the destination's processes

    def _wait_released(self) -> None:
        end = time.monotonic() + 30
        while self.servers.source.value("postgres", "SELECT count(*) FROM pg_replication_slots "
                                        f"WHERE slot_name = '{self.database}' AND active"):
            if time.monotonic() > end:
                raise TimeoutError(f"slot {self.database} stays active")
            time.sleep(0.05)


class ThalwegDrain:
    """A stream of the real engine: made before the workload, stopped, started to drain.

    Its destination has the extension; `thalweg-sets` does not use it.
    """

    def __init__(self, servers: Servers, round_number: int, engine: Engine, method: str,
                 parameters: dict[str, int | str | bool]) -> None:
        self.method = method
        self.servers = servers
        self.engine = engine
        self.parameters = {"data_layer": method == "thalweg", **parameters}
        self.database = f"{method.replace('-', '_')}_{round_number}"
        self.stream = f"staged{'0' if method == 'thalweg' else '1'}0{round_number}"
        self.end = 0  # the staged workload's end in the source's WAL

    def prepare(self) -> None:
        self.servers.destination.sql(self.database, "CREATE EXTENSION thalweg_datalayer")
        self.engine.add_stream(self.stream, self.servers.source.conninfo(self.servers.source_database),
                               self.servers.destination.conninfo(self.database), TABLES, initial_copy=False,
                               **self.parameters)
        self.engine.wait_phase(self.stream, "REPLICATING")
        self._disable()

    def start(self) -> None:
        self.end = parse_lsn(str(self.servers.source.value("postgres", "SELECT pg_current_wal_flush_lsn()")))
        self.engine.set_stream(self.stream, status="ENABLED")

    def finished(self, watch: psycopg.Connection[Any]) -> bool:
        """The sentinel alone is not enough: independent transactions may commit in another order."""
        if not has_sentinel(watch):
            return False
        return parse_lsn(self.engine.status(self.stream)["positions"]["applied"]) >= self.end

    def stop(self) -> None:
        self._disable()
        self.engine.drop_stream(self.stream)

    def tool_cpu(self) -> float:
        return cpu_seconds(self.engine.pid)

    def _disable(self) -> None:
        self.engine.set_stream(self.stream, status="DISABLED")
        self.engine.wait_phase(self.stream, "STOPPED")


def measure(drain: Drain, servers: Servers, round_number: int, lcrs: int,
            compare: Callable[[str], None]) -> Measurement:
    """Drains once, then compares every row. Both servers begin with a fresh checkpoint."""
    for cluster in (servers.source, servers.destination):
        cluster.sql("postgres", "CHECKPOINT")
    # One connection for all looks: logging in a hundred times a second would take a tenth of this machine.
    with servers.destination.connect(drain.database) as watch:
        before = _cpu(servers, drain)
        begun = time.monotonic()
        drain.start()
        while not drain.finished(watch):
            if time.monotonic() - begun > LIMIT_SECONDS:
                raise TimeoutError(f"{drain.method}: not drained within {LIMIT_SECONDS} s")
            time.sleep(POLL_SECONDS)
        seconds = time.monotonic() - begun
    after = _cpu(servers, drain)
    drain.stop()
    compare(drain.database)
    used = [after[part] - before[part] for part in range(3)]
    return Measurement(drain.method, round_number, lcrs, seconds, *used)


def _cpu(servers: Servers, drain: Drain) -> tuple[float, float, float]:
    return (cpu_seconds(servers.source.postmaster()), drain.tool_cpu(), cpu_seconds(servers.destination.postmaster()))
