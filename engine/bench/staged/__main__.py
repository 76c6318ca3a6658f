"""make bench SCENARIO=staged: drains the same staged WAL by Thalweg and by PostgreSQL's own subscription, in turn."""

import argparse
import json
import statistics

from harness.cluster import Cluster
from harness.compare import assert_same
from harness.engine import Engine
from harness.workspace import make_workspace, remove_workspace
from staged.drains import Drain, Measurement, NativeDrain, Servers, ThalwegDrain, measure
from staged.workload import ROWS_PER_TRANSACTION, TABLES, make_destination, make_source, stage

SOURCE_DATABASE = "staged"
# The same for both servers and all methods. wal_retrieve_retry_interval is native's start-up wait: at its default of
# 5 s the launcher alone would cost native half its rate.
SETTINGS = {
    "wal_level": "logical", "shared_buffers": "'512MB'", "max_wal_size": "'8GB'", "checkpoint_timeout": "'30min'",
    "wal_retrieve_retry_interval": "'10ms'", "autovacuum": "off", "max_replication_slots": "40",
    "max_wal_senders": "40", "max_connections": "100",
}


def main() -> None:
    arguments = _arguments()
    workspace = make_workspace("thalweg-bench")
    source = Cluster(workspace, "source", SETTINGS)
    destination = Cluster(workspace, "destination", SETTINGS)
    servers = Servers(source, destination, SOURCE_DATABASE)
    engine = Engine(workspace / "engine") if "thalweg" in arguments.methods else None
    try:
        for cluster in (source, destination):
            cluster.initialise()
            cluster.start()
        if engine:
            engine.start()
        make_source(source, SOURCE_DATABASE)
        drains = _prepare(arguments, servers, engine)
        wal = stage(source, SOURCE_DATABASE, arguments.transactions)
        lcrs = arguments.transactions * ROWS_PER_TRANSACTION + 1
        print(f"staged {arguments.transactions} transactions of {ROWS_PER_TRANSACTION} rows: {lcrs} LCRs, "
              f"{wal / 2**20:.0f} MiB of WAL", flush=True)
        print(f"{'round':>5}  {'method':<14} {'LCR/s':>9} {'seconds':>8}   CPU s: source   tool  destination",
              flush=True)
        measured = []
        for round_number, drain in drains:
            measured.append(measure(drain, servers, round_number, lcrs, lambda database: assert_same(
                source, destination, SOURCE_DATABASE, database, TABLES)))
            _print(measured[-1])
        _summary(measured)
    finally:
        if engine:
            engine.stop()
        for cluster in (destination, source):
            cluster.stop("immediate")
        if not arguments.keep:
            remove_workspace(workspace)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="staged", description=__doc__)
    parser.add_argument("--transactions", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--methods", default="native-binary,native-text,thalweg",
                        help="native-binary, native-text, thalweg (through the data layer), thalweg-sets (in SQL)")
    parser.add_argument("--parameters", default="{}", help="of the Thalweg stream, as JSON")
    parser.add_argument("--keep", action="store_true", help="keep the clusters' directory")
    return parser.parse_args()


def _prepare(arguments: argparse.Namespace, servers: Servers, engine: Engine | None) -> list[tuple[int, Drain]]:
    drains: list[tuple[int, Drain]] = []
    for round_number in range(1, arguments.rounds + 1):
        for method in arguments.methods.split(","):
            drain: Drain
            if method in ("thalweg", "thalweg-sets"):
                assert engine
                drain = ThalwegDrain(servers, round_number, engine, method, json.loads(arguments.parameters))
            else:
                drain = NativeDrain(servers, round_number, binary=method == "native-binary")
            make_destination(servers.destination, drain.database)
            drain.prepare()
            drains.append((round_number, drain))
    return drains


def _print(result: Measurement) -> None:
    print(f"{result.round:>5}  {result.method:<14} {result.rate:>9,.0f} {result.seconds:>8.2f} {'':>9}"
          f"{result.source_cpu:>6.2f} {result.tool_cpu:>6.2f} {result.destination_cpu:>12.2f}   rows identical",
          flush=True)


def _summary(measured: list[Measurement]) -> None:
    medians = {method: statistics.median(result.rate for result in measured if result.method == method)
               for method in dict.fromkeys(result.method for result in measured)}
    for method, rate in medians.items():
        print(f"median {method:<14} {rate:>12,.0f} LCR/s")
    native = max((rate for method, rate in medians.items() if method.startswith("native")), default=None)
    if native and "thalweg" in medians:
        print(f"staged ratio: {medians['thalweg'] / native:.2f}")


if __name__ == "__main__":
    main()
