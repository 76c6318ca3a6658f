"""One source, 1, 2 and 4 destinations: what decoding costs the source (Wong et al. 2009, figure 4)."""

import argparse
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from bench.drains import LIMIT_SECONDS, POLL_SECONDS, Drain, NativeDrain, StreamDrain, has_sentinel
from bench.report import Report
from bench.rig import SOURCE_DATABASE, Rig, used
from harness.compare import Table, assert_same
from harness.engine import parse_lsn

COUNTS = (1, 2, 4)
ROWS = 10  # of a transaction
TABLES: list[Table] = [("public", "entry"), ("public", "sentinel")]
METHOD = f"""The workload is staged in the source's WAL; then all destinations of a method drain it at once, with slots
from before it. Destinations discard: a BEFORE trigger of `entry` returns NULL; only the sentinel's row is written,
which must be seen in each. native: a subscription for each destination, binary, streaming on. thalweg: one stream.
Rounds alternate between the methods. The figure is the source's CPU time for a million LCRs. The ratio: how many times
as much native takes for {COUNTS[-1]} destinations as for one, over the same of Thalweg."""

SCHEMA = """
CREATE TABLE entry (id bigint PRIMARY KEY, account integer NOT NULL, amount numeric(12,2) NOT NULL, note text NOT NULL,
                    changed_at timestamptz NOT NULL);
CREATE TABLE sentinel (id integer PRIMARY KEY);
"""
GENERATOR = f"""
CREATE PROCEDURE stage(transactions integer) LANGUAGE plpgsql AS $$
BEGIN
  FOR t IN 1 .. transactions LOOP
    INSERT INTO entry SELECT t * {ROWS}::bigint + n, n, n + 0.25, 'entry number ' || n, clock_timestamp()
      FROM generate_series(1, {ROWS}) n;
    COMMIT;
  END LOOP;
END $$;
"""
DISCARD = """
CREATE FUNCTION discard() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
CREATE TRIGGER discard BEFORE INSERT ON entry FOR EACH ROW EXECUTE FUNCTION discard();
ALTER TABLE entry ENABLE ALWAYS TRIGGER discard;
"""


class Fan(Protocol):
    method: str
    count: int
    databases: list[str]  # at the destination

    def prepare(self) -> None: ...
    def start(self) -> None: ...
    def applied(self) -> bool:
        """Whether every destination says that it has all; their sentinels are looked at besides."""
        ...
    def stop(self) -> None: ...


class Drains:
    """A drain for each destination."""

    def __init__(self, method: str, drains: Sequence[Drain]) -> None:
        self.method = method
        self.count = len(drains)
        self.drains = drains
        self.databases = [drain.database for drain in drains]

    def prepare(self) -> None:
        for drain in self.drains:
            drain.prepare()

    def start(self) -> None:
        for drain in self.drains:
            drain.start()

    def applied(self) -> bool:
        return True

    def stop(self) -> None:
        for drain in self.drains:
            drain.stop()


class NativeFan(Drains):
    def __init__(self, rig: Rig, name: str, count: int) -> None:
        super().__init__("native", [NativeDrain(rig, f"{name}_{count}_{number}", binary=True)
                                    for number in range(count)])


class ThalwegFan(StreamDrain):
    def __init__(self, rig: Rig, name: str, count: int) -> None:
        self.method = "thalweg"
        self.count = count
        self.rig = rig
        self.engine = rig.engine
        self.stream = f"fanout{name}{count}"
        self.databases = [f"thalweg_{name}_{count}_{number}" for number in range(count)]

    def prepare(self) -> None:
        for database in self.databases:
            self.rig.destination.sql(database, "CREATE EXTENSION thalweg_datalayer")
        self.engine.streams[self.stream] = {
            "id": self.stream, "name": self.stream, "status": "ENABLED", "force": False,
            "source": {"name": "source", "conninfo": self.rig.source.conninfo(SOURCE_DATABASE)},
            "destinations": [{"id": f"to{number}", "name": database, "status": "ENABLED", "force": False,
                              "backlog": True, "conninfo": self.rig.destination.conninfo(database), "parameters": {}}
                             for number, database in enumerate(self.databases)],
            "tables": [{"schema": schema, "table": table} for schema, table in TABLES],
            "parameters": {"initial_copy": False},
        }
        self.engine.put_desired()
        self.engine.wait_phase(self.stream, "REPLICATING")
        self.rest()

    def applied(self) -> bool:
        return all(parse_lsn(destination["positions"]["applied"]) >= self.end
                   for destination in self.engine.status(self.stream)["destinations"])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--transactions", type=int, default=60_000)
    parser.add_argument("--rounds", type=int, default=2)


def run(arguments: argparse.Namespace) -> None:
    report = Report("fanout", arguments)
    report.method(f"{arguments.transactions} transactions of {ROWS} inserts.\n{METHOD}")
    cpu = compare(report, arguments, (NativeFan, ThalwegFan))
    report.ratio(growth(cpu, "native") / growth(cpu, "thalweg"))


def growth(cpu: Mapping[tuple[str, int], float], method: str) -> float:
    """How many times as much the most destinations take as one."""
    return cpu[method, COUNTS[-1]] / cpu[method, 1]


def compare(report: Report, arguments: argparse.Namespace,
            ways: Sequence[Callable[[Rig, str, int], Fan]]) -> dict[tuple[str, int], float]:
    """The source's CPU seconds for a million LCRs, the median, by method and destinations."""
    cpu: dict[tuple[str, int], list[float]] = {}
    with Rig(arguments.keep) as rig:
        fans = _prepare(rig, arguments.rounds, ways)
        rig.source.run_script(SOURCE_DATABASE, "SET synchronous_commit = off; "
                              f"CALL stage({arguments.transactions});\nINSERT INTO sentinel VALUES (1);")
        report.say(f"{'round':>5}  {'method':<8} {'destinations':>12} {'seconds':>8}   "
                   f"CPU s per million LCRs: {'source':>6} {'engine':>6} {'destinations':>12}")
        for round_number, fan in fans:
            source = _drain(rig, report, fan, round_number, arguments.transactions * ROWS + 1)
            cpu.setdefault((fan.method, fan.count), []).append(source)
    medians = {key: statistics.median(found) for key, found in cpu.items()}
    for method in dict.fromkeys(method for method, _ in medians):
        report.finding(f"{method}: {COUNTS[-1]} destinations take {growth(medians, method):.2f} times the source's CPU "
                       "of one")
    return medians


def _prepare(rig: Rig, rounds: int, ways: Sequence[Callable[[Rig, str, int], Fan]]) -> list[tuple[int, Fan]]:
    rig.source.make_database(SOURCE_DATABASE)
    rig.source.run_script(SOURCE_DATABASE, SCHEMA + GENERATOR)
    rig.source.sql(SOURCE_DATABASE, "CREATE PUBLICATION native FOR TABLE entry, sentinel")
    fans: list[tuple[int, Fan]] = []
    for round_number in range(1, rounds + 1):
        for count in COUNTS:
            fans += [(round_number, way(rig, str(round_number), count)) for way in ways]
    for _, fan in fans:
        for database in fan.databases:
            rig.destination.make_database(database)
            rig.destination.run_script(database, SCHEMA + DISCARD)
        fan.prepare()
    return fans


def _drain(rig: Rig, report: Report, fan: Fan, round_number: int, lcrs: int) -> float:
    """Returns the source's CPU seconds for a million LCRs."""
    rig.checkpoint()
    waiting = [rig.destination.connect(database) for database in fan.databases]
    before = rig.cpu()
    begun = time.monotonic()
    fan.start()
    while waiting or not fan.applied():
        for watch in [watch for watch in waiting if has_sentinel(watch)]:
            waiting.remove(watch)
            watch.close()
        if time.monotonic() > begun + LIMIT_SECONDS:
            raise TimeoutError(f"{fan.method} with {fan.count}: not finished within {LIMIT_SECONDS} s")
        time.sleep(POLL_SECONDS)
    seconds = time.monotonic() - begun
    source, engine, destination = (part * 1e6 / lcrs for part in used(before, rig.cpu()))
    fan.stop()
    for database in fan.databases:
        assert_same(rig.source, rig.destination, SOURCE_DATABASE, database, [("public", "sentinel")])
    report.figure(f"{round_number:>5}  {fan.method:<8} {fan.count:>12} {seconds:>8.2f} {'':>25} {source:>6.2f} "
                  f"{engine:>6.2f} {destination:>12.2f}", method=fan.method, destinations=fan.count,
                  seconds=round(seconds, 2), source_cpu=round(source, 2), engine_cpu=round(engine, 2),
                  destination_cpu=round(destination, 2))
    return source
