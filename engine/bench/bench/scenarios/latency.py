"""20 000 LCR/s offered for a minute: how long from a commit until it is visible (Wong et al. 2009, figure 18)."""

import argparse
import json
import statistics
import threading
from dataclasses import dataclass

from bench.comparison import assert_identical
from bench.drains import METHODS, Drain, Parameters, make_drain
from bench.ledger import SCHEMA
from bench.report import Report
from bench.rig import SOURCE_DATABASE, Rig, used
from harness.cluster import wait_for
from harness.compare import Table

WRITERS = 4
ROWS = 10  # of a transaction
POLL_SECONDS = 0.0005  # pg_sleep makes a whole millisecond of it, and would make two of a little more than one
SHARES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999, "max": 1.0}
METHOD = f"""{WRITERS} writers at the source, each with transactions of {ROWS} row changes at times that are set
beforehand (a late one is not left out). One writer's transactions each hold a row of a table `probe`. A procedure in
a session at the destination looks for new probes, and then sleeps for a millisecond. Latency: from the source's
commit timestamp, taken before the commit record is flushed, until that row has been seen; both clocks are this
machine's. Afterwards every row is compared. Rounds alternate between the methods; the plot shows the last one.
native: PostgreSQL's own subscription, streaming on, synchronous_commit off as its default is; of binary and text the
lower median of p99 counts. CPU: seconds for a million LCRs. The ratio is native's median p99 over Thalweg's."""

# Each writer has keys of its own, so that writers never wait for each other.
OFFER = """
CREATE TABLE probe (id integer PRIMARY KEY);
CREATE PROCEDURE offer(writer integer, transactions integer, per_second integer) LANGUAGE plpgsql AS $$
DECLARE
  begun timestamptz := clock_timestamp();
  newest bigint := writer * 1000000000::bigint;
  oldest bigint := newest + 1;
  wait double precision;
BEGIN
  FOR t IN 1 .. transactions LOOP
    wait := extract(epoch FROM begun + (t - 1) * interval '1 second' / per_second - clock_timestamp());
    IF wait > 0 THEN
      PERFORM pg_sleep(wait);
    END IF;
    INSERT INTO ledger SELECT newest + n, n, n + 0.25, 'entry number ' || newest + n, clock_timestamp()
      FROM generate_series(1, 6) n;
    newest := newest + 6;
    UPDATE ledger SET amount = amount + 1 WHERE id BETWEEN newest - 2 AND newest;
    IF writer = 0 THEN
      INSERT INTO probe VALUES (t);
    ELSE
      DELETE FROM ledger WHERE id = oldest;
      oldest := oldest + 1;
    END IF;
    COMMIT;
  END LOOP;
END $$;
"""

# In the server, where a look costs less than it costs a client: who watches takes little from what is watched. Probes
# may come in any order. No snapshot is held from one look to the next.
WATCH = f"""
CREATE PROCEDURE watch(probes integer, limit_seconds double precision, INOUT seen double precision[])
LANGUAGE plpgsql AS $$
DECLARE
  finish timestamptz := clock_timestamp() + limit_seconds * interval '1 second';
  complete integer := 0; -- every probe up to here has been seen
  found integer[];
  at double precision;
  number integer;
BEGIN
  seen := array_fill(NULL::double precision, ARRAY[probes]);
  WHILE complete < probes AND clock_timestamp() < finish LOOP
    found := ARRAY(SELECT id FROM probe WHERE id > complete);
    at := extract(epoch FROM clock_timestamp());
    FOREACH number IN ARRAY found LOOP
      IF seen[number] IS NULL THEN
        seen[number] := at;
      END IF;
    END LOOP;
    WHILE complete < probes AND seen[complete + 1] IS NOT NULL LOOP
      complete := complete + 1;
    END LOOP;
    COMMIT;
    PERFORM pg_sleep({POLL_SECONDS});
  END LOOP;
END $$;
"""


class Offer:
    """The tables of a run; implements what make_drain() needs of a drains.Workload."""

    @property
    def tables(self) -> list[Table]:
        return [("public", "ledger"), ("public", "probe"), ("public", "sentinel")]

    def make_source(self, rig: Rig) -> None:
        rig.source.make_database(SOURCE_DATABASE)
        rig.source.run_script(SOURCE_DATABASE, SCHEMA + OFFER)
        rig.source.sql(SOURCE_DATABASE, "CREATE PUBLICATION native FOR ALL TABLES")

    def make_destination(self, rig: Rig, database: str) -> None:
        rig.destination.make_database(database)
        rig.destination.run_script(database, SCHEMA + "CREATE TABLE probe (id integer PRIMARY KEY);" + WATCH)

    def stage(self, rig: Rig) -> int:
        """Begins a run: empty tables and one row, so that what follows finds a consumer that runs."""
        rig.source.sql(SOURCE_DATABASE, "INSERT INTO sentinel VALUES (1)")
        return 1


@dataclass(frozen=True)
class Latencies:
    """Seconds. `by_second`: second of the run, p50, p99 and max of the commits in it."""

    shares: dict[str, float]
    by_second: list[list[float]]
    offered: float  # LCRs a second that the source did commit


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rate", type=int, default=20_000, help="LCRs a second, all writers together")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--methods", default=METHODS)
    parser.add_argument("--report", action="store_true",
                        help="a session at the destination holds one snapshot all the time, as a long report does")
    parser.add_argument("--parameters", type=json.loads, default={}, help="of the Thalweg stream, as JSON")


def run(arguments: argparse.Namespace) -> None:
    report = Report("latency", arguments)
    held = " A session at the destination holds one snapshot meanwhile." if arguments.report else ""
    report.method(f"{arguments.rate} LCR/s offered for {arguments.seconds} s.{held}\n{METHOD}")
    report.say(f"{'method':<14} {'LCR/s':>7} {'p50 ms':>9} {'p99 ms':>9} {'p99.9 ms':>9} {'max ms':>9}   "
               f"CPU s per million LCRs: {'source':>6} {'engine':>6} {'destination':>11}")
    with Rig(arguments.keep, track_commit_timestamp="on") as rig:
        Offer().make_source(rig)
        rounds = [{method: _run(rig, report, method, f"{number:03}", arguments)
                   for method in arguments.methods.split(",")} for number in range(1, arguments.rounds + 1)]
    p99 = {method: statistics.median(round_[method] for round_ in rounds) for method in rounds[0]}
    native = [value for method, value in p99.items() if method.startswith("native")]
    if native and "thalweg" in p99:
        report.ratio(min(native) / p99["thalweg"])


def _run(rig: Rig, report: Report, method: str, name: str, arguments: argparse.Namespace) -> float:
    """One method's part of a round; `name` is the round's. Returns the p99 in seconds."""
    offer, parameters = Offer(), Parameters(arguments.parameters)
    rig.source.sql(SOURCE_DATABASE, "TRUNCATE ledger, probe, sentinel")
    drain = make_drain(rig, offer, method, name, parameters)
    drain.prepare()
    offer.stage(rig)
    drain.start()
    with rig.destination.connect(drain.database) as watch:
        wait_for(lambda: drain.finished(watch), 60, f"{method} runs")
    rig.checkpoint()
    before = rig.cpu()
    with rig.destination.connect(drain.database) as holder:
        if arguments.report:
            holder.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            holder.execute("SELECT FROM probe")
        found = _offer(rig, drain, arguments.rate, arguments.seconds)
    lcrs = arguments.rate * arguments.seconds
    source, engine, destination = (seconds * 1e6 / lcrs for seconds in used(before, rig.cpu()))
    drain.stop()
    assert_identical(rig.source, rig.destination, SOURCE_DATABASE, drain.database, offer.tables)
    ms = {name: value * 1000 for name, value in found.shares.items()}
    report.figure(f"{method:<14} {found.offered:>7,.0f} {ms['p50']:>9.1f} {ms['p99']:>9.1f} {ms['p99.9']:>9.1f} "
                  f"{ms['max']:>9.1f} {'':>27} {source:>6.2f} {engine:>6.2f} {destination:>11.2f}  rows identical",
                  method=method, lcr_per_second=round(found.offered),
                  **{f"{name}_ms": round(value, 1) for name, value in ms.items()},
                  source_cpu=round(source, 2), engine_cpu=round(engine, 2), destination_cpu=round(destination, 2))
    report.series(method, [[second, *(round(1000 * value, 2) for value in values)]
                           for second, *values in found.by_second])
    return found.shares["p99"]


def _offer(rig: Rig, drain: Drain, rate: int, seconds: int) -> Latencies:
    per_second = rate // ROWS // WRITERS
    transactions = per_second * seconds
    writers = [threading.Thread(target=rig.source.sql, args=(
        SOURCE_DATABASE, f"CALL offer({writer}, {transactions}, {per_second})")) for writer in range(WRITERS)]
    for writer in writers:
        writer.start()
    seen = _watch(rig, drain, transactions, seconds + 60)
    for writer in writers:
        writer.join()
    committed = {int(number): float(at) for number, at in rig.source.sql(
        SOURCE_DATABASE, "SELECT id, extract(epoch FROM pg_xact_commit_timestamp(xmin)) FROM probe")}
    return _latencies(committed, seen)


def _watch(rig: Rig, drain: Drain, probes: int, limit_seconds: float) -> dict[int, float]:
    """When each probe was first seen: Unix time."""
    with rig.destination.connect(drain.database) as session:
        session.execute("SET enable_seqscan = off")  # the look is planned while the table is empty
        ((seen,),) = session.execute("CALL watch(%s, %s, NULL)", (probes, limit_seconds)).fetchall()
    found = {number: at for number, at in enumerate(seen, 1) if at is not None}
    if len(found) < probes:
        raise TimeoutError(f"{drain.method}: {len(found)} of {probes} probes came within {limit_seconds} s")
    return found


def _latencies(committed: dict[int, float], seen: dict[int, float]) -> Latencies:
    begun = min(committed.values())
    by_second: dict[int, list[float]] = {}
    for number, at in committed.items():
        by_second.setdefault(int(at - begun), []).append(seen[number] - at)
    every = sorted(seen[number] - at for number, at in committed.items())
    lasted = max(committed.values()) - begun
    return Latencies({name: _share(every, share) for name, share in SHARES.items()},
                     [[second, *(_share(sorted(values), share) for share in (0.5, 0.99, 1.0))]
                      for second, values in sorted(by_second.items())],
                     len(committed) * ROWS * WRITERS / lasted)


def _share(ordered: list[float], share: float) -> float:
    """The smallest value that at least this share of them does not exceed."""
    return ordered[min(len(ordered) - 1, max(0, round(share * len(ordered) + 0.5) - 1))]
