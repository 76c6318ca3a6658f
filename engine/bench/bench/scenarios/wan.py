"""Two engines, a far link between them: the share of the bandwidth that propagation uses (Wong et al. 2009, VI.E)."""

import argparse
import statistics
import time
from typing import Any

from bench.comparison import assert_identical
from bench.drains import LIMIT_SECONDS, POLL_SECONDS, Parameters, has_sentinel
from bench.ledger import Ledger
from bench.report import Report
from bench.rig import SOURCE_DATABASE, Rig
from bench.wan_link import ADDRESSES, NamespaceEngine, WanLink
from harness.cluster import PASSWORD, Cluster
from harness.engine import applied_there, parse_lsn
from harness.paths import Authority
from harness.processes import cpu_seconds

ROUND_TRIP_MS = 50
RATE_MBIT = 40
QUEUE_PACKETS = 400  # more than what is under way: 250 kB, 170 packets
METHOD = f"""two engines in network namespaces, capture and sender here, receiver and apply there; between them a
relay of IP packets with a round trip of {ROUND_TRIP_MS} ms and {RATE_MBIT} Mbit/s, {QUEUE_PACKETS} packets a direction
at most. The servers are reached over unix sockets. yardstick: a plain TCP connection over the same link, before and
after the streams, bytes over the time from its opening to its last byte. A stream's time runs from its sender's start
until the staged workload's last transaction, a sentinel, and all before it are seen at the destination; bytes: of LCR
frames, as they left the sender's queue; on the link: what the sender wrote to its socket. TLS 1.3 is on, as always.
Afterwards every row is compared. The ratio is the uncompressed stream's LCR bytes/s over the yardstick's bytes/s."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--transactions", type=int, default=80_000)
    parser.add_argument("--compressions", default="none,lz4,zstd")
    parser.add_argument("--bulk-seconds", type=float, default=15)


def run(arguments: argparse.Namespace) -> None:
    report = Report("wan", arguments)
    workload = Ledger(arguments.transactions, 10)
    report.method(f"{arguments.transactions} staged transactions of 10 row changes.\n{METHOD}")
    with Rig(arguments.keep) as rig, WanLink(ROUND_TRIP_MS, RATE_MBIT, QUEUE_PACKETS) as link:
        report.say(f"round trip {link.round_trip_ms():.1f} ms")
        workload.make_source(rig)
        with EnginesApart(rig, link) as engines:
            paths = [Path(rig, engines, workload, compression) for compression in arguments.compressions.split(",")]
            lcrs = workload.stage(rig)
            bulk = [link.bulk_rate(arguments.bulk_seconds)]
            report.say(f"{'compression':<12} {'LCR/s':>9} {'seconds':>8} {'LCR MB/s':>9} {'on link MB/s':>12}   "
                       f"CPU s per million LCRs: {'source':>6} {'sender':>6} {'receiver':>8} {'destination':>11}")
            rates = {path.compression: path.drain(report, lcrs) for path in paths}
            bulk.append(link.bulk_rate(arguments.bulk_seconds))
    yardstick = statistics.mean(bulk)
    report.figure(f"plain TCP: {bulk[0] / 1e6:.2f} and {bulk[1] / 1e6:.2f} MB/s",
                  compression="plain TCP", mb_per_second=round(yardstick / 1e6, 3))
    plain = rates["none"]
    for compression, (lcr_rate, _) in rates.items():
        if compression != "none":
            report.finding(f"{compression} carries {lcr_rate / plain[0]:.2f} times the LCR/s of none")
    report.ratio(plain[1] / yardstick)


class EnginesApart:
    """The sending engine here, the receiving one at the link's other end, both enrolled."""

    def __init__(self, rig: Rig, link: WanLink) -> None:
        self.sender = NamespaceEngine(rig.workspace / "sender", link.near, ADDRESSES[0])
        self.receiver = NamespaceEngine(rig.workspace / "receiver", link.far, ADDRESSES[1])
        self.authority = Authority(rig.workspace / "authority")

    def __enter__(self) -> "EnginesApart":
        for engine, name in ((self.sender, "alpha"), (self.receiver, "bravo")):
            engine.start()
            self.authority.enrol(engine, name)
        return self

    def __exit__(self, *_: object) -> None:
        self.sender.stop()
        self.receiver.stop()


class Path:
    """One stream over the link, made before the workload is staged, drained once."""

    def __init__(self, rig: Rig, engines: EnginesApart, workload: Ledger, compression: str) -> None:
        self.rig = rig
        self.engines = engines
        self.workload = workload
        self.compression = compression
        self.database = f"wan_{compression}"
        self.stream = f"wan00{compression}"
        workload.make_destination(rig, self.database)
        rig.destination.sql(self.database, "CREATE EXTENSION thalweg_datalayer")
        self._define({"propagation_compression": compression, "initial_copy": False})
        for engine in (engines.receiver, engines.sender):
            engine.wait_phase(self.stream, "REPLICATING")
        self._set("DISABLED")
        for engine in (engines.receiver, engines.sender):
            engine.wait_phase(self.stream, "STOPPED")

    def drain(self, report: Report, lcrs: int) -> tuple[float, float]:
        """Returns LCRs and bytes of LCRs a second."""
        rig = self.rig
        end = parse_lsn(str(rig.source.value("postgres", "SELECT pg_current_wal_flush_lsn()")))
        rig.checkpoint()
        before = self._cpu()
        begun = time.monotonic()
        self._set("ENABLED")
        with rig.destination.connect(self.database) as watch:
            while not (has_sentinel(watch) and self._applied() >= end):
                if time.monotonic() > begun + LIMIT_SECONDS:
                    raise TimeoutError(f"{self.stream}: not finished within {LIMIT_SECONDS} s")
                time.sleep(POLL_SECONDS)
        seconds = time.monotonic() - begun
        cpu = [(after - first) * 1e6 / lcrs for first, after in zip(before, self._cpu(), strict=True)]
        counters = self._sender_counters()
        for engine in (self.engines.sender, self.engines.receiver):
            engine.drop_stream(self.stream)
        assert_identical(rig.source, rig.destination, SOURCE_DATABASE, self.database, self.workload.tables)
        rate, byte_rate, link_rate = (count / seconds for count in (lcrs, counters["bytes"], counters["bytes_sent"]))
        report.figure(f"{self.compression:<12} {rate:>9,.0f} {seconds:>8.2f} {byte_rate / 1e6:>9.2f} "
                      f"{link_rate / 1e6:>12.2f} {'':>26} {cpu[0]:>6.2f} {cpu[1]:>6.2f} {cpu[2]:>8.2f} {cpu[3]:>11.2f}"
                      "  rows identical", compression=self.compression, lcr_per_second=round(rate),
                      seconds=round(seconds, 2), mb_per_second=round(byte_rate / 1e6, 3),
                      link_mb_per_second=round(link_rate / 1e6, 3), source_cpu=round(cpu[0], 2),
                      sender_cpu=round(cpu[1], 2), receiver_cpu=round(cpu[2], 2), destination_cpu=round(cpu[3], 2))
        return rate, byte_rate

    def _define(self, parameters: Parameters) -> None:
        receiver, sender = self.engines.receiver, self.engines.sender
        source, tables = _through_socket(self.rig.source, SOURCE_DATABASE), self.workload.tables
        sender.define_stream(self.stream, source, "", tables, parameters)
        sender.set_stream(self.stream, destinations=[applied_there("bravo", ADDRESSES[1], receiver.propagation_port)])
        receiver.put_stream(self.stream, source, _through_socket(self.rig.destination, self.database), tables,
                            parameters, receive_from={"engine": "alpha"})

    def _set(self, status: str) -> None:
        for engine in (self.engines.receiver, self.engines.sender):
            engine.set_stream(self.stream, status=status)

    def _applied(self) -> int:
        return parse_lsn(self.engines.receiver.status(self.stream)["positions"]["applied"])

    def _sender_counters(self) -> dict[str, Any]:
        return next(dict(component["counters"]) for component in self.engines.sender.components(self.stream)
                    if component["type"] == "PROPAGATION SENDER")

    def _cpu(self) -> list[float]:
        return [cpu_seconds(pid) for pid in (self.rig.source.postmaster(), self.engines.sender.pid,
                                             self.engines.receiver.pid, self.rig.destination.postmaster())]


def _through_socket(cluster: Cluster, database: str) -> str:
    directory = cluster.settings["unix_socket_directories"].strip("'")
    return f"host={directory} port={cluster.port} dbname={database} user=postgres password={PASSWORD}"
