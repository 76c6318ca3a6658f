"""The real thalwegd: started, asked through its control API, killed and started again."""

import http.client
import json
import os
import secrets
import signal
import ssl
import subprocess
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from harness import standstill
from harness.cluster import Cluster, wait_for
from harness.compare import Table
from harness.place import HERE, Place
from harness.workspace import free_port

ROOT = Path(__file__).resolve().parents[4]
DESTINATION = "warehouse"  # the id of a stream's only one
TAKEN_UP_WITHIN = timedelta(seconds=10)
SECONDS = 60  # how long a state may take to come before a test gives up


class RefusedError(Exception):
    """The control API's error answer."""

    def __init__(self, status: int, error: dict[str, Any]) -> None:
        super().__init__(f"{status}: {error}")
        self.status = status
        self.error = error


class AbortedError(AssertionError):
    """The stream stopped with an error while a test waited for something else."""


def program() -> str:
    return os.environ.get("THALWEG_ENGINE", str(ROOT / "build/release/src/daemon/thalwegd"))


class Engine:
    """Owner: one test thread. `directory` keeps the state over restarts; the desired document is `streams`.

    With `tls`, a certificate's and its key's files, the control API is served and asked over TLS. `environment` is the
    process's beside the test's own.
    """

    def __init__(self, directory: Path, tls: tuple[Path, Path] | None = None, place: Place = HERE) -> None:
        self.directory = directory
        self.tls = tls
        self.place = place
        self.environment: dict[str, str] = {}
        self.port = free_port()
        self.propagation_host = place.address
        self.propagation_port = free_port()
        self.token = secrets.token_urlsafe(32)
        self.token_file = directory / "token"
        self.log = directory / "thalwegd.log"
        self.process: subprocess.Popen[bytes] | None = None
        self.read_from = ""  # of its streams' sources; empty: nothing is said
        self.revision = 0
        self.asked_at = datetime.now(UTC)  # for the last document
        self.streams: dict[str, dict[str, Any]] = {}
        directory.mkdir(parents=True)
        self.token_file.touch(mode=0o600)
        self.token_file.write_text(self.token)

    # --- the process

    def start(self) -> None:
        tls = ["--tls-cert", str(self.tls[0]), "--tls-key", str(self.tls[1])] if self.tls else []
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*self.place.prefix, program(), "--listen", f"127.0.0.1:{self.port}",
                 "--state-dir", str(self.directory / "state"),
                 "--propagation-listen", f"{self.propagation_host}:{self.propagation_port}",
                 "--token-file", str(self.token_file), *tls], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=os.environ | self.environment)
        wait_for(self._answers, SECONDS, "thalwegd answers")

    def kill(self) -> None:
        """kill -9."""
        assert self.process
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process = None

    def terminate(self, seconds: float = 30) -> int:
        """SIGTERM; returns the exit status once the engine has drained and ended."""
        assert self.process
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(seconds)
        self.process = None
        return status

    def stop(self) -> None:
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process = None
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        forbidden = [line for line in lines if '"state_out_of_order"' in line]
        assert not forbidden, "\n".join(["transitions that control/state.h does not allow:", *forbidden])

    @property
    def pid(self) -> int:
        assert self.process
        return self.process.pid

    # --- the control API

    def request(self, method: str, path: str, body: Any = None, token: str | None = None) -> Any:
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection = self._connection()
        try:
            with self.place.entered():
                connection.connect()
            connection.request(method, path, data, {"Authorization": f"Bearer {token or self.token}",
                                                    "Content-Type": "application/json"})
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        if answer.status >= 400:
            raise RefusedError(answer.status, json.loads(content)["error"])
        is_json = (answer.getheader("Content-Type") or "").startswith("application/json")
        return json.loads(content) if content and is_json else content.decode()

    def _connection(self) -> http.client.HTTPConnection:
        if self.tls is None:
            return http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=30,
                                           context=ssl.create_default_context(cafile=self.tls[0]))

    def put_desired(self, **changed: Any) -> None:
        """Sends the whole desired document; a stream with the status None is left out."""
        self.revision += 1
        self.asked_at = datetime.now(UTC)
        document = {"format": 1, "revision": self.revision, "streams": list(self.streams.values()), **changed}
        self.request("PUT", "/v1/desired", document)

    def set_stream(self, stream: str, **changed: Any) -> None:
        self.streams[stream].update(changed)
        self.put_desired()

    def status(self, stream: str) -> dict[str, Any]:
        for found in self.request("GET", "/v1/status")["streams"]:
            if found["id"] == stream:
                return dict(found)
        raise KeyError(stream)

    def destination(self, stream: str) -> dict[str, Any]:
        """The status of a stream's only destination."""
        (found,) = self.status(stream)["destinations"]
        return dict(found)

    def components(self, stream: str) -> list[dict[str, Any]]:
        for found in self.request("GET", "/v1/stats")["streams"]:
            if found["id"] == stream:
                return list(found["components"])
        return []

    def transactions(self, stream: str) -> list[dict[str, Any]]:
        """Those on their way, as of a second ago."""
        return list(self.request("GET", f"/v1/streams/{stream}/transactions")["transactions"])

    def component_states(self, stream: str) -> set[str]:
        return {str(component["state"]) for component in self.components(stream)}

    # --- streams

    def add_stream(self, stream: str, source: str, destination: str, tables: list[Table],
                   **parameters: Any) -> None:
        """Makes and starts a stream between two conninfos."""
        self.put_stream(stream, source, destination, tables, parameters)

    def put_stream(self, stream: str, source: str, destination: str, tables: list[Table],
                   parameters: Mapping[str, Any], **more: Any) -> None:
        """The same with further members of the definition."""
        self.define_stream(stream, source, destination, tables, parameters, **more)
        self.put_desired()

    def define_stream(self, stream: str, source: str, destination: str, tables: list[Table],
                      parameters: Mapping[str, Any], **more: Any) -> None:
        """Into the document that the next put_desired sends."""
        self.streams[stream] = {
            "id": stream, "name": f"stream {stream}", "status": "ENABLED", "force": False,
            "source": {"name": "source", "conninfo": source,
                       **({"read_from": self.read_from} if self.read_from else {})},
            "destinations": [applied_here(destination)],
            "tables": [{"schema": schema, "table": table} for schema, table in tables],
            "parameters": dict(parameters),
            **more,
        }

    def give_up_updates(self, stream: str, *tables: str) -> None:
        """Of these, and of no others; in the document that the next put_desired sends."""
        self.streams[stream]["tables"] = [
            {"schema": table["schema"], "table": table["table"], "inserts_only": table["table"] in tables}
            for table in self.streams[stream]["tables"]
        ]

    def wait_phase(self, stream: str, phase: str, seconds: float = SECONDS) -> dict[str, Any]:
        return self.wait_status(stream, lambda status: status["phase"] == phase, seconds, phase)

    def _is_past(self, error: dict[str, Any] | None) -> bool:
        """It is from before the last document, which the engine may not have looked at yet."""
        since = datetime.now(UTC) - self.asked_at
        return error is not None and datetime.fromisoformat(error["at"]) < self.asked_at and since < TAKEN_UP_WITHIN

    def wait_status(self, stream: str, condition: Any, seconds: float, what: str) -> dict[str, Any]:
        """Waits for a condition on the stream's status; fails at once when it is ABORTED instead."""
        last: dict[str, Any] = {}

        def holds() -> bool:
            last.update(self.status(stream))
            if condition(last):
                return True
            if last["status"] == "ABORTED" and not self._is_past(last["error"]):
                raise AbortedError(f"stream {stream} ABORTED while waiting for {what}: {last['error']}")
            return False

        try:
            wait_for(holds, seconds, what)
        except TimeoutError as late:
            raise TimeoutError(f"{late}; last status {json.dumps(last)}") from None
        return last

    def wait_in_effect(self, stream: str, destination: str = "", seconds: float = SECONDS) -> dict[str, Any]:
        """Waits until the last document is in effect at the destination, or the only one: since when and where."""
        found: dict[str, Any] = {}

        def holds(status: dict[str, Any]) -> bool:
            known = next(part for part in status["destinations"] if destination in ("", part["id"]))["in_effect"] or {}
            found.update(known)
            return bool(known.get("revision", 0) >= self.revision)

        self.wait_status(stream, holds, seconds, "in effect")
        return found

    def wait_aborted(self, stream: str, seconds: float = SECONDS) -> dict[str, Any]:
        """The error that stopped the stream."""
        def aborted(status: dict[str, Any]) -> bool:
            return status["status"] == "ABORTED" and not self._is_past(status["error"])

        return dict(self.wait_status(stream, aborted, seconds, "ABORTED")["error"])

    def wait_applied(self, stream: str, source: Cluster, database: str, seconds: float = SECONDS) -> float:
        """Waits until everything that the source has committed by now is committed at the destination."""
        begun = time.monotonic()
        lsn = parse_lsn(str(source.value(database, "SELECT pg_current_wal_flush_lsn()")))
        passed: dict[str, float] = {}  # applied position -> when it was first seen

        def applied(status: dict[str, Any]) -> bool:
            passed.setdefault(str(status["positions"]["applied"]), round(time.monotonic() - begun, 1))
            return parse_lsn(status["positions"]["applied"]) >= lsn

        try:
            self.wait_status(stream, applied, seconds, f"applied up to {lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}")
        except TimeoutError as late:
            last_moves = list(passed.items())[-5:]
            raise TimeoutError(f"{late}\nlast moved at: {last_moves}\n"
                               f"{standstill.describe(self.components(stream), source)}") from None
        return time.monotonic() - begun

    def retry(self, stream: str) -> None:
        """Clears an ABORTED stream's error; returns once the engine has begun again."""
        before = self.status(stream)["error"]
        self.request("POST", f"/v1/streams/{stream}/retry")

        def began() -> bool:
            status = self.status(stream)
            return bool(status["status"] != "ABORTED" or status["error"] != before)

        wait_for(began, SECONDS, "the engine tries again")

    def drop_stream(self, stream: str, seconds: float = SECONDS) -> None:
        self.set_stream(stream, status="DROPPED")
        # One that was ABORTED shows that until the engine begins to drop it.
        wait_for(lambda: self.status(stream)["status"] == "DROPPED", seconds, f"stream {stream} is DROPPED")
        del self.streams[stream]
        self.put_desired()

    def _answers(self) -> bool:
        assert self.process
        if self.process.poll() is not None:
            tail = "\n".join(self.log.read_text(errors="replace").splitlines()[-15:])
            raise RuntimeError(f"thalwegd ended with {self.process.returncode}:\n{tail}")
        try:
            self.request("GET", "/healthz")
        except OSError:
            return False
        return True


def applied_here(conninfo: str, **changed: Any) -> dict[str, Any]:
    """The definition of a stream's only destination, without a backlog."""
    return {"id": DESTINATION, "name": "destination", "status": "ENABLED", "force": False, "backlog": False,
            "conninfo": conninfo, **changed}


def applied_there(engine: str, host: str, port: int, **changed: Any) -> dict[str, Any]:
    """The same of one that another engine applies."""
    return {"id": DESTINATION, "name": "destination", "status": "ENABLED", "force": False, "backlog": False,
            "send_to": {"engine": engine, "host": host, "port": port}, **changed}


def destination_path(stream: str, destination: str = DESTINATION) -> str:
    return f"/v1/streams/{stream}/destinations/{destination}"


def parse_lsn(text: str) -> int:
    high, low = text.split("/")
    return (int(high, 16) << 32) + int(low, 16)
