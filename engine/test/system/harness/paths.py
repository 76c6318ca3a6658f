"""A stream over two engines: certificates as the control plane would sign them, and a document for each."""

import subprocess
from pathlib import Path
from typing import Any

from harness.compare import Table, user_tables
from harness.engine import SECONDS, Engine, applied_there
from harness.place import HERE, Place
from harness.relay import Relay
from harness.scene import Scene


class Authority:
    """A certificate authority made with the openssl command."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir()
        self._openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "10",
                      "-subj", "/CN=test authority", "-keyout", "ca.key", "-out", "ca.pem")

    def enrol(self, engine: Engine, name: str) -> dict[str, Any]:
        csr = engine.request("POST", "/v1/identity/request", {"name": name})["csr"]
        (self.directory / "request.pem").write_text(csr)
        self._openssl("x509", "-req", "-in", "request.pem", "-copy_extensions", "copyall", "-days", "5",
                      "-CA", "ca.pem", "-CAkey", "ca.key", "-out", "signed.pem")
        return dict(engine.request("PUT", "/v1/identity", {
            "certificate": (self.directory / "signed.pem").read_text(), "ca": (self.directory / "ca.pem").read_text()}))

    def _openssl(self, *arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=self.directory, check=True, capture_output=True)


class EnginePair:
    """The scene's engine sends; a second one receives and applies. Both are enrolled.

    The second is behind a relay; where it has a place of its own, the network between the two takes the relay's part.
    """

    def __init__(self, scene: Scene, directory: Path, place: Place = HERE) -> None:
        self.scene = scene
        self.sender = scene.engine
        self.receiver = Engine(directory / "receiver", place=place)
        self.receiver.start()
        self.relay = Relay(self.receiver.propagation_port)
        self.port = self.relay.port if place is HERE else self.receiver.propagation_port
        self.authority = Authority(directory / "authority")
        self.authority.enrol(self.sender, "alpha")
        self.authority.enrol(self.receiver, "bravo")

    def start_stream(self, wait: bool = True, tables: list[Table] | None = None, capture_kind: str = "logical",
                     **parameters: int | str | bool) -> None:
        scene = self.scene
        tables = tables or user_tables(scene.source, scene.database)
        self.sender.define_stream(scene.stream, scene.source_conninfo, "", tables, parameters,
                                  capture_kind=capture_kind)
        self.sender.set_stream(scene.stream, destinations=[
            applied_there("bravo", self.receiver.place.address, self.port)])
        self.receiver.put_stream(scene.stream, scene.source_conninfo, scene.destination_conninfo, tables, parameters,
                                 receive_from={"engine": "alpha"}, capture_kind=capture_kind)
        if wait:
            self.wait_replicating()

    def wait_replicating(self) -> None:
        for engine in (self.receiver, self.sender):
            engine.wait_phase(self.scene.stream, "REPLICATING")

    def wait_applied(self, seconds: float = SECONDS) -> None:
        self.receiver.wait_applied(self.scene.stream, self.scene.source, self.scene.database, seconds)

    def drop_stream(self) -> None:
        self.sender.drop_stream(self.scene.stream)
        self.receiver.drop_stream(self.scene.stream)

    def close(self) -> None:
        self.receiver.stop()
        self.relay.close()
