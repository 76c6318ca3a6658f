"""A stream with several destinations: databases of one cluster, each behind a relay of its own."""

import itertools
from collections.abc import Callable
from typing import Any

from harness.cluster import PASSWORD, wait_for
from harness.compare import Table, differences, user_tables
from harness.engine import SECONDS, destination_path, parse_lsn
from harness.relay import Relay
from harness.scene import Scene


class Destination:
    def __init__(self, scene: Scene, name: str) -> None:
        self.scene = scene
        self.name = name
        self.database = f"{scene.database}{name}"
        scene.destination.make_database(self.database, owner="thalweg")
        self.relay = Relay(scene.destination.port)

    @property
    def conninfo(self) -> str:
        return f"host=127.0.0.1 port={self.relay.port} dbname={self.database} user=thalweg password={PASSWORD}"

    def definition(self, **parameters: int | str | bool) -> dict[str, Any]:
        return {"id": self.name, "name": self.name, "status": "ENABLED", "force": False, "backlog": True,
                "conninfo": self.conninfo, "parameters": parameters}

    def remove(self) -> None:
        self.relay.close()
        self.scene.destination.sql("postgres", f'DROP DATABASE IF EXISTS "{self.database}" WITH (FORCE)')


class FanOut:
    """The scene's engine and source, and as many destinations as a test adds."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.engine = scene.engine
        self.made: dict[str, Destination] = {}

    # --- the desired state

    def start_stream(self, *names: str, wait: bool = True, **parameters: int | str | bool) -> None:
        scene = self.scene
        self.engine.define_stream(scene.stream, scene.source_conninfo, "", user_tables(scene.source, scene.database),
                                  parameters)
        self.set_destinations([self.make(name).definition() for name in names])
        if wait:
            for name in names:
                self.wait_phase(name, "REPLICATING")

    def start_stream_without_backlog(self, name: str) -> None:
        """With this one as the only destination."""
        scene = self.scene
        tables = user_tables(scene.source, scene.database)
        self.engine.define_stream(scene.stream, scene.source_conninfo, "", tables, {})
        self.set_destinations([self.make(name).definition() | {"backlog": False}])
        self.wait_phase(name, "REPLICATING")

    def make(self, name: str) -> Destination:
        self.made[name] = Destination(self.scene, name)
        return self.made[name]

    def destinations(self) -> list[dict[str, Any]]:
        return list(self.engine.streams[self.scene.stream]["destinations"])

    def set_destinations(self, destinations: list[dict[str, Any]]) -> None:
        self.engine.set_stream(self.scene.stream, destinations=destinations)

    def change(self, name: str, **changed: Any) -> None:
        self.set_destinations([{**destination, **changed} if destination["id"] == name else destination
                               for destination in self.destinations()])

    def drop(self, name: str, **changed: Any) -> None:
        """Drops a destination and leaves it out."""
        self.change(name, status="DROPPED", **changed)
        self.wait(name, lambda found: found["status"] == "DROPPED", "DROPPED")
        self.set_destinations([destination for destination in self.destinations() if destination["id"] != name])

    def mend(self, name: str) -> None:
        """Lets a destination be reached again, and has it tried at once."""
        self.made[name].relay.mend()
        self.engine.request("POST", destination_path(self.scene.stream, name) + "/retry")

    # --- what is observed

    def status(self, name: str) -> dict[str, Any]:
        for found in self.engine.status(self.scene.stream)["destinations"]:
            if found["id"] == name:
                return dict(found)
        raise KeyError(name)

    def wait(self, name: str, condition: Callable[[dict[str, Any]], Any], what: str,
             seconds: float = SECONDS) -> dict[str, Any]:
        last: dict[str, Any] = {}

        def holds() -> bool:
            last.update(self.status(name))
            return bool(condition(last))

        try:
            wait_for(holds, seconds, f"{name}: {what}")
        except TimeoutError as late:
            raise TimeoutError(f"{late}; last status {last}") from None
        return last

    def wait_phase(self, name: str, phase: str, seconds: float = SECONDS) -> dict[str, Any]:
        return self.wait(name, lambda found: found["phase"] == phase, phase, seconds)

    def source_position(self) -> int:
        scene = self.scene
        return parse_lsn(str(scene.source.value(scene.database, "SELECT pg_current_wal_flush_lsn()")))

    def wait_applied(self, *names: str, seconds: float = SECONDS) -> None:
        """Waits until these have everything that the source has committed by now."""
        lsn = self.source_position()
        for name in names or tuple(self.made):
            self.wait(name, lambda found: parse_lsn(found["positions"]["applied"]) >= lsn, f"applied up to {lsn:X}",
                      seconds)

    def slot_position(self) -> int:
        return parse_lsn(str(self.scene.source.value("postgres", "SELECT confirmed_flush_lsn FROM pg_replication_slots "
                                                     f"WHERE slot_name = 'thalweg_{self.scene.stream}'")))

    def wait_slot(self, lsn: int, seconds: float = SECONDS) -> None:
        wait_for(lambda: self.slot_position() >= lsn, seconds, f"the source's slot passes {lsn:X}")

    def assert_same(self, *names: str, tables: list[Table] | None = None) -> None:
        scene = self.scene
        compared = tables or user_tables(scene.source, scene.database)
        found = list(itertools.chain.from_iterable(
            differences(scene.source, scene.destination, scene.database, self.made[name].database, compared)
            for name in names or tuple(self.made)))
        assert not found, "\n" + "\n".join(found)

    def close(self) -> None:
        self.engine.stop()
        for destination in self.made.values():
            destination.remove()
