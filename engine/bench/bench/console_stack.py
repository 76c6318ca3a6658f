"""A whole installation for the load of the console: store, Redis, engines, API workers, collector, light streams."""

import base64
import json
import os
import secrets
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from harness.cluster import PASSWORD, Cluster, wait_for
from harness.engine import Engine
from harness.workspace import free_port, make_workspace, remove_workspace

START_SECONDS = 90


class Worker:
    """A process of the control plane. Owner: the stack."""

    def __init__(self, program: str, environment: dict[str, str], log: Path) -> None:
        with log.open("ab") as file:
            self.process = subprocess.Popen([str(Path(sys.executable).with_name(program))], env=environment,
                                            stdin=subprocess.DEVNULL, stdout=file, stderr=file)

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        self.process.wait()


class Stack:
    """`streams` light streams over `engines` engines; each engine has a database of its own at either side. `settings`
    are of the source and the destination."""

    def __init__(self, engines: int, streams: int, keep: bool, **settings: str) -> None:
        self.keep = keep
        self.workspace = make_workspace("thalweg-console")
        light = {"shared_buffers": "64MB", "max_connections": "400", "autovacuum": "off", **settings}
        self.store = Cluster(self.workspace, "store", {
            "shared_preload_libraries": "'pg_stat_statements'", "shared_buffers": "128MB"})
        self.source = Cluster(self.workspace, "source", {
            **light, "wal_level": "logical", "max_replication_slots": str(streams + 10),
            "max_wal_senders": str(streams + 10), "fsync": "off"})
        self.destination = Cluster(self.workspace, "destination", {**light, "fsync": "off"})
        self.engines = [Engine(self.workspace / f"engine-{number}") for number in range(1, engines + 1)]
        self.streams = streams
        self.redis_port = free_port()
        self.api_ports = [free_port(), free_port()]
        self.redis: subprocess.Popen[bytes] | None = None
        self.apis: list[Worker] = []
        self.collector: Worker | None = None
        self.token = ""
        self.password = ""

    # --- life

    def __enter__(self) -> "Stack":
        try:
            self._start()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def _start(self) -> None:
        for cluster in (self.store, self.source, self.destination):
            cluster.initialise()
            cluster.start()
        self.store.make_database("thalweg")
        self.store.sql("thalweg", "CREATE EXTENSION pg_stat_statements")
        self.redis = subprocess.Popen(
            ["redis-server", "--port", str(self.redis_port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"],
            stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, cwd="/")
        for engine in self.engines:
            engine.start()
        self._admin("migrate")
        self.password = self._admin("create-admin").strip().rpartition(" ")[2]
        self.token = self._admin("create-token", "--name", "load").strip().splitlines()[-1]
        self.apis = [Worker("thalweg-api", self._environment(port), self.workspace / f"api-{port}.log")
                     for port in self.api_ports]
        for port in self.api_ports:
            wait_for(lambda port=port: self._healthy(port), START_SECONDS, f"the API answers on {port}")
        self.collector = Worker("thalweg-collector", self._environment(0), self.workspace / "collector.log")

    def _stop(self) -> None:
        for worker in [*self.apis, *([self.collector] if self.collector else [])]:
            if worker.process.poll() is None:
                worker.kill()
        for engine in self.engines:
            engine.stop()
        if self.redis:
            self.redis.kill()
            self.redis.wait()
        for cluster in (self.store, self.source, self.destination):
            if (cluster.directory / "postmaster.pid").exists():
                cluster.stop("immediate")
        if self.keep:
            print(f"kept: {self.workspace}")
        else:
            remove_workspace(self.workspace)

    def _environment(self, port: int) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("THALWEG_")}
        key_file = self.workspace / "secret.key"
        if not key_file.exists():
            key_file.write_text(base64.urlsafe_b64encode(secrets.token_bytes(32)).decode())
        return kept | {
            "THALWEG_STORE_URL": f"postgresql://postgres:{PASSWORD}@127.0.0.1:{self.store.port}/thalweg",
            "THALWEG_REDIS_URL": f"redis://127.0.0.1:{self.redis_port}/0", "THALWEG_LISTEN_PORT": str(port or 1),
            "THALWEG_SECRET_KEY_FILE": str(key_file), "THALWEG_LOG_LEVEL": "warning"}

    def _admin(self, *arguments: str) -> str:
        program = str(Path(sys.executable).with_name("thalweg-admin"))
        return subprocess.run([program, *arguments], env=self._environment(0), check=True, capture_output=True,
                              text=True).stdout

    # --- REST

    def call(self, method: str, path: str, body: Any = None) -> Any:
        return call(self.api_ports[-1], self.token, method, path, body)

    def _healthy(self, port: int) -> bool:
        try:
            return bool(call(port, "", "GET", "/readyz", None, prefix="")["store"] == "ok")
        except OSError:
            return False

    # --- the streams

    def make_streams(self) -> None:
        """Returns when all replicate."""
        for number, engine in enumerate(self.engines):
            database = f"shop_{number}"
            for cluster in (self.source, self.destination):
                cluster.make_database(database)
            tables = [f"CREATE TABLE t{n} (id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, n int, note text)"
                      for n in self._numbers(number)]
            self.source.sql(database, *tables)
            ids = [self.register(f"{side} {number}", cluster, database)
                   for side, cluster in (("source", self.source), ("destination", self.destination))]
            enrolled_id = self.enrol(f"engine {number}", engine)
            for n in self._numbers(number):
                self.call("POST", "/streams", {
                    "name": f"stream {n}", "source_id": ids[0], "capture_engine_id": enrolled_id,
                    "destinations": [{"database_id": ids[1], "engine_id": enrolled_id}],
                    "rules": {"include": [{"schema": "public", "table": f"t{n}"}]}, "accept": ["left_out"],
                    "parameters": {"parallelism": 1, "memory_budget_mb": 32, "queue_memory_mb": 1,
                                   "metadata_cache_mb": 1, "copy_workers": 1}})
        try:
            wait_for(self._all_replicate, START_SECONDS, "all streams replicate", 1.0)
        except TimeoutError as error:
            streams = self.call("GET", "/overview")["streams"]
            told = {f"{stream['phase']}: {stream['health']['reason']}" for stream in streams
                    if stream["phase"] != "REPLICATING"}
            raise TimeoutError("; ".join(sorted(told))) from error

    def _numbers(self, engine: int) -> range:
        share = self.streams // len(self.engines)
        return range(engine * share, (engine + 1) * share)

    def enrol(self, name: str, engine: Engine) -> str:
        token = self.call("POST", "/engines/enrolments", {})["token"]
        enrolled = self.call("POST", "/engines/enrol", {
            "token": token, "name": name, "url": f"http://127.0.0.1:{engine.port}", "control_token": engine.token})
        return str(enrolled["id"])

    def register(self, name: str, cluster: Cluster, database: str) -> str:
        made = self.call("POST", "/databases", {"name": name, "host": "127.0.0.1", "port": cluster.port,
                                                "dbname": database, "user": "postgres", "password": PASSWORD})
        return str(made["id"])

    def _all_replicate(self) -> bool:
        return all(stream["phase"] == "REPLICATING" for stream in self.call("GET", "/overview")["streams"])

    def write_once(self, connections: list[Any]) -> None:
        """One transaction for each stream."""
        for number, connection in enumerate(connections):
            for n in self._numbers(number):
                connection.execute(f"INSERT INTO t{n} (n, note) VALUES ({n}, 'light load')")


def call(port: int, token: str, method: str, path: str, body: Any, prefix: str = "/api/v1") -> Any:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{prefix}{path}", method=method,
                                     headers={"Authorization": f"Bearer {token}"} if token else {})
    if body is not None:
        request.data = json.dumps(body).encode()
        request.add_header("Content-Type", "application/json")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=60) as answer:
            content = answer.read()
    except urllib.error.HTTPError as error:
        raise RuntimeError(f"{method} {path}: {error.read().decode(errors='replace')}") from error
    return json.loads(content) if content else None
