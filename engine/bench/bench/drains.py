"""The ways to drain a staged workload. Each is prepared before the workload is staged, then drains it once.

A drain's clock starts before the request that starts it and stops when its sentinel, the workload's last transaction,
and every row before it are at the destination.
"""

import time
from dataclasses import dataclass
from typing import Any, Protocol

import psycopg

from bench.rig import SOURCE_DATABASE, Rig, used
from harness.compare import Table
from harness.engine import parse_lsn

LIMIT_SECONDS = 900
POLL_SECONDS = 0.01
METHODS = "native-binary,native-text,thalweg"

Parameters = dict[str, int | str | bool | list[dict[str, Any]]]


class Workload(Protocol):
    @property
    def tables(self) -> list[Table]:
        """All of them, and `sentinel`, whose row is the workload's last transaction."""
        ...

    def make_source(self, rig: Rig) -> None: ...
    def make_destination(self, rig: Rig, database: str) -> None:
        """A new database with these tables as they are at the source before the workload."""
        ...
    def stage(self, rig: Rig) -> int:
        """Runs the workload at the source and returns its LCRs, sentinel included."""
        ...


@dataclass(frozen=True)
class Measurement:
    method: str
    round: int
    lcrs: int
    seconds: float
    source_cpu: float  # seconds
    engine_cpu: float
    destination_cpu: float

    @property
    def rate(self) -> float:
        """LCRs a second."""
        return self.lcrs / self.seconds

    @property
    def cpu_per_million(self) -> tuple[float, float, float]:
        """CPU seconds of source, engine and destination for a million LCRs."""
        scale = 1e6 / self.lcrs
        return (self.source_cpu * scale, self.engine_cpu * scale, self.destination_cpu * scale)


class Drain(Protocol):
    method: str
    database: str  # at the destination

    def prepare(self) -> None: ...
    def start(self) -> None: ...
    def finished(self, watch: psycopg.Connection[Any]) -> bool:
        """`watch` is connected to the destination's database."""
        ...
    def stop(self) -> None:
        """Ends it for good; the source keeps nothing for it."""
        ...


def has_sentinel(watch: psycopg.Connection[Any]) -> bool:
    row = watch.execute("SELECT EXISTS (SELECT FROM sentinel)").fetchone()
    return bool(row and row[0])


class NativeDrain:
    """PostgreSQL's own subscription, binary or text; made disabled with its slot, enabled to drain."""

    def __init__(self, rig: Rig, name: str, binary: bool) -> None:
        self.rig = rig
        self.method = "native-binary" if binary else "native-text"
        self.binary = binary
        self.database = f"native_{'binary' if binary else 'text'}_{name}"

    def prepare(self) -> None:
        self.rig.destination.sql(self.database, f"""
            CREATE SUBSCRIPTION {self.database} CONNECTION '{self.rig.source.conninfo(SOURCE_DATABASE)}'
              PUBLICATION native
              WITH (enabled = false, create_slot = true, slot_name = '{self.database}', copy_data = false,
                    binary = {str(self.binary).lower()}, streaming = on)""")

    def start(self) -> None:
        self.rig.destination.sql(self.database, f"ALTER SUBSCRIPTION {self.database} ENABLE")

    def finished(self, watch: psycopg.Connection[Any]) -> bool:
        return has_sentinel(watch)

    def stop(self) -> None:
        self.rig.destination.sql(self.database, f"ALTER SUBSCRIPTION {self.database} DISABLE")
        self._wait_released()
        self.rig.destination.sql(self.database, f"DROP SUBSCRIPTION {self.database}")

    def _wait_released(self) -> None:
        end = time.monotonic() + 30
        while self.rig.source.value("postgres", "SELECT count(*) FROM pg_replication_slots "
                                    f"WHERE slot_name = '{self.database}' AND active"):
            if time.monotonic() > end:
                raise TimeoutError(f"slot {self.database} stays active")
            time.sleep(0.05)


class StreamDrain:
    """A stream of the real engine that waits, stopped, until it is started to drain. `end` is the staged workload's in
    the source's WAL."""

    rig: Rig
    stream: str
    end = 0

    def start(self) -> None:
        self.end = parse_lsn(str(self.rig.source.value("postgres", "SELECT pg_current_wal_flush_lsn()")))
        self.rig.engine.set_stream(self.stream, status="ENABLED")

    def stop(self) -> None:
        self.rest()
        self.rig.engine.drop_stream(self.stream)

    def rest(self) -> None:
        self.rig.engine.set_stream(self.stream, status="DISABLED")
        self.rig.engine.wait_phase(self.stream, "STOPPED")


class ThalwegDrain(StreamDrain):
    """A stream of the real engine: made before the workload, stopped, started to drain.

    Its destination has the extension; `thalweg-sets` does not use it. `thalweg-wal` mines the source's WAL.
    """

    def __init__(self, rig: Rig, name: str, method: str, tables: list[Table], parameters: Parameters) -> None:
        self.rig = rig
        self.engine = rig.engine
        self.method = method
        self.tables = tables
        self.parameters = {"data_layer": method != "thalweg-sets", **parameters}
        self.database = f"{method.replace('-', '_')}_{name}"
        self.stream = self.database.replace("_", "")

    def prepare(self) -> None:
        self.rig.destination.sql(self.database, "CREATE EXTENSION thalweg_datalayer")
        self.define()
        self.engine.put_desired()
        self.engine.wait_phase(self.stream, "REPLICATING")
        self.rest()

    def define(self) -> None:
        self.engine.define_stream(self.stream, self.rig.source.conninfo(SOURCE_DATABASE),
                                  self.rig.destination.conninfo(self.database), self.tables,
                                  {"initial_copy": False, **self.parameters},
                                  **({"capture_kind": "wal"} if self.method == "thalweg-wal" else {}))

    def finished(self, watch: psycopg.Connection[Any]) -> bool:
        """The sentinel alone is not enough: independent transactions may commit in another order."""
        if not has_sentinel(watch):
            return False
        return parse_lsn(self.engine.status(self.stream)["positions"]["applied"]) >= self.end


def make_drain(rig: Rig, workload: Workload, method: str, name: str, parameters: Parameters) -> Drain:
    """With its own database at the destination, ready to be prepared."""
    drain: Drain
    if method.startswith("native-"):
        drain = NativeDrain(rig, name, binary=method == "native-binary")
    else:
        drain = ThalwegDrain(rig, name, method, workload.tables, parameters)
    workload.make_destination(rig, drain.database)
    return drain


def measure(drain: Drain, rig: Rig, round_number: int, lcrs: int) -> Measurement:
    """Drains once. Both servers begin with a fresh checkpoint."""
    rig.checkpoint()
    # One connection for all looks: logging in a hundred times a second would take a tenth of this machine.
    with rig.destination.connect(drain.database) as watch:
        before = rig.cpu()
        begun = time.monotonic()
        drain.start()
        await_finished(drain, watch)
        seconds = time.monotonic() - begun
    return Measurement(drain.method, round_number, lcrs, seconds, *used(before, rig.cpu()))


def await_finished(drain: Drain, watch: psycopg.Connection[Any]) -> None:
    end = time.monotonic() + LIMIT_SECONDS
    while not drain.finished(watch):
        if time.monotonic() > end:
            raise TimeoutError(f"{drain.method}: not finished within {LIMIT_SECONDS} s")
        time.sleep(POLL_SECONDS)
