"""An error queue of small transactions, executed: how many a second?"""

import argparse
import time

from bench.comparison import assert_identical
from bench.report import Report
from bench.rig import SOURCE_DATABASE, Rig, used
from harness.cluster import wait_for
from harness.engine import destination_path

DESTINATION = "thalweg"
STREAM = "errors001"
ROWS = 100
METHOD = """The destination loses all {rows} rows of a table; one transaction of the source then updates all of them,
and {transactions} more update one row each in turn. None can be applied: the first one is parked, the others behind it.
The rows are put back as they were, and the first one is executed with all behind it, in commit order. The clock runs
from the request until the engine says DONE, watched every 20 ms. Each is committed by itself and leaves the queue in
the same transaction; the queue is empty afterwards and every row is compared. Rate: transactions / seconds. CPU:
seconds of source, engine and destination. The ratio is the rate over 1000 a second."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--transactions", type=int, default=5000)


def run(arguments: argparse.Namespace) -> None:
    report = Report("errors", arguments)
    report.method(METHOD.format(rows=ROWS, transactions=arguments.transactions))
    with Rig(arguments.keep) as rig:
        _make(rig)
        _park(rig, arguments.transactions)
        rig.checkpoint()
        total = arguments.transactions + 1
        before = rig.cpu()
        begun = time.monotonic()
        _execute(rig, total)
        seconds = time.monotonic() - begun
        source, engine, destination = used(before, rig.cpu())
        assert_identical(rig.source, rig.destination, SOURCE_DATABASE, DESTINATION, [("public", "item")])
        rate = total / seconds
        report.figure(f"{total} transactions in {seconds:.2f} s: {rate:,.0f} a second   CPU s: source {source:.2f} "
                      f"engine {engine:.2f} destination {destination:.2f}   rows identical", method="thalweg",
                      transactions=total, seconds=round(seconds, 3), transactions_per_second=round(rate),
                      engine_cpu=round(engine, 2), destination_cpu=round(destination, 2))
    report.ratio(rate / 1000)


def _make(rig: Rig) -> None:
    rig.source.make_database(SOURCE_DATABASE)
    rig.destination.make_database(DESTINATION)
    rig.source.sql(SOURCE_DATABASE, "CREATE TABLE item (id integer PRIMARY KEY, n bigint, note text)",
                   f"INSERT INTO item SELECT i, 0, 'note ' || i FROM generate_series(1, {ROWS}) i")
    rig.engine.add_stream(STREAM, rig.source.conninfo(SOURCE_DATABASE), rig.destination.conninfo(DESTINATION),
                          [("public", "item")], disable_on_error=False)
    rig.engine.wait_phase(STREAM, "REPLICATING")


def _park(rig: Rig, transactions: int) -> None:
    rig.destination.sql(DESTINATION, "CREATE TABLE kept AS TABLE item", "TRUNCATE item")
    rig.source.sql(SOURCE_DATABASE, "UPDATE item SET n = n + 1")
    rig.source.sql(SOURCE_DATABASE, f"""DO $$ BEGIN FOR i IN 1..{transactions} LOOP
        UPDATE item SET n = n + 1 WHERE id = 1 + i % {ROWS}; COMMIT; END LOOP; END $$""")
    rig.engine.wait_applied(STREAM, rig.source, SOURCE_DATABASE, 600)
    rig.destination.sql(DESTINATION, "INSERT INTO item TABLE kept", "DROP TABLE kept")


def _execute(rig: Rig, total: int) -> None:
    errors = destination_path(STREAM) + "/errors"
    queue = rig.engine.request("GET", f"{errors}?limit=1")
    if queue["total"] != total:
        raise SystemExit(f"{queue['total']} transactions are parked, where {total} should be")
    rig.engine.request("POST", f"{errors}/{queue['errors'][0]['id']}/execute")

    def ended() -> bool:
        execution = rig.engine.request("GET", f"{errors}?limit=1")["execution"]
        if execution["state"] == "FAILED":
            raise SystemExit(f"the execution failed: {execution['error']}")
        return bool(execution["state"] == "DONE")

    wait_for(ended, 900, "the execution ends", pause=0.02)
