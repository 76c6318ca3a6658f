"""Loads on a source: pgbench, and seeded writers that run beside a test until it stops them."""

import random
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Self, TypeVar

import psycopg

from harness.cluster import Cluster, server_programs, wait_for
from harness.scene import Scene

Target = TypeVar("Target")


def make_pgbench_tables(cluster: Cluster, database: str, scale: int) -> None:
    """Owned by thalweg; the history, which has no key, gets REPLICA IDENTITY FULL."""
    pgbench = [str(server_programs() / "pgbench")]
    subprocess.run([*pgbench, "--initialize", "--quiet", f"--scale={scale}",
                    cluster.conninfo(database, "thalweg")], check=True, capture_output=True)
    cluster.sql(database, "ALTER TABLE pgbench_history REPLICA IDENTITY FULL")


class PgBench:
    """pgbench's TPC-B-like transactions for ever, over restarts of the server. Use it in a with statement."""

    def __init__(self, cluster: Cluster, database: str, rate: int, clients: int, log: Path, seed: int) -> None:
        self.rate = rate
        self.command = [str(server_programs() / "pgbench"), "--no-vacuum", f"--client={clients}", "--time=3600",
                        f"--random-seed={seed}", cluster.conninfo(database, "thalweg")]
        self.log = log
        self.process: subprocess.Popen[bytes] | None = None
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._run)

    def __enter__(self) -> "PgBench":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self._end_process()
        self.thread.join()

    def slow_down(self) -> None:
        """A tenth of the rate from now on: what applies no faster than the load writes would never catch up."""
        self.rate //= 10
        self._end_process()

    def _end_process(self) -> None:
        if self.process:
            self.process.terminate()

    def _run(self) -> None:
        with self.log.open("ab") as log:
            while not self.stopping.is_set():
                command = [self.command[0], f"--rate={self.rate}", *self.command[1:]]
                self.process = subprocess.Popen(command, stdout=log, stderr=log)
                if self.stopping.is_set():
                    self._end_process()
                self.process.wait()
                self.stopping.wait(0.2)


def strike_under_load(scene: Scene, target: Target, faults: Iterable[Callable[[Target], None]],
                      random_: random.Random) -> None:
    """One fault after the other, at random moments, while pgbench writes at the source."""
    log = scene.engine.directory / "pgbench.log"
    with PgBench(scene.source, scene.database, rate=400, clients=4, log=log, seed=random_.randrange(2**31)):
        for fault in faults:
            time.sleep(random_.uniform(0.3, 2.5))
            print(f"fault: {fault.__name__}")
            fault(target)


class Writers:
    """Threads that call `work(connection, random, number)` until the with statement ends. An error of one fails it.

    With `goes_on`, a lost connection is none: the thread works on over a new one.
    """

    def __init__(self, cluster: Cluster, database: str, count: int, random_: random.Random,
                 work: Callable[[psycopg.Connection[Any], random.Random, int], None], goes_on: bool = False) -> None:
        self.cluster = cluster
        self.database = database
        self.work = work
        self.goes_on = goes_on
        self.stopping = threading.Event()
        self.errors: list[BaseException] = []
        self.rounds = [0] * count
        self.threads = [threading.Thread(target=self._run, args=(random.Random(random_.random()), number))
                        for number in range(count)]

    def __enter__(self) -> Self:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        for thread in self.threads:
            thread.join()
        if self.errors:
            raise self.errors[0]

    def wait_for_more(self, rounds: int, seconds: float = 60) -> None:
        """Waits until every writer has done so many more."""
        wanted = [done + rounds for done in self.rounds]

        def have() -> bool:
            if self.errors:
                raise self.errors[0]
            return all(done >= least for done, least in zip(self.rounds, wanted, strict=True))

        wait_for(have, seconds, "the writers go on")

    def _run(self, random_: random.Random, number: int) -> None:
        while not self.stopping.is_set():
            try:
                with self._connect() as connection:
                    self._begin(connection, number)
                    while not self.stopping.is_set():
                        self.work(connection, random_, number)
                        self.rounds[number] += 1
            except BaseException as error:
                if not (self.goes_on and isinstance(error, psycopg.OperationalError)):
                    self.errors.append(error)
                    return
                time.sleep(0.05)  # the server is away, or chose this one in a deadlock

    def _connect(self) -> psycopg.Connection[Any]:
        return self.cluster.connect(self.database, "thalweg")

    def _begin(self, connection: psycopg.Connection[Any], number: int) -> None:
        """Called once with each connection."""
