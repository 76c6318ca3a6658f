"""A stream that reads from a standby: servers of a release that can, and a scene whose source names both."""

from pathlib import Path

from packaged_servers import packaged_server

from harness.cluster import PASSWORD, server_programs
from harness.compare import Table
from harness.failover import FailoverScene

DECODES_AT_A_STANDBY_FROM = 16


def programs_from(release: int, workspace: Path) -> Path:
    """The bin directory of the server under test, or of a newer one where that is older than this release."""
    given = server_programs()
    own = given.parent.name
    return given if own.isdigit() and int(own) >= release else packaged_server(17, workspace)


def programs_that_decode_at_a_standby(workspace: Path) -> Path:
    return programs_from(DECODES_AT_A_STANDBY_FROM, workspace)


class StandbyScene(FailoverScene):
    """`source` is the server that takes changes; the stream reads from the other."""

    def make_source(self) -> None:
        super().make_source()
        self.engine.read_from = "standby"
        self.source.sql(self.database, "GRANT EXECUTE ON FUNCTION pg_log_standby_snapshot() TO thalweg")
        self.servers.wait_standby()

    @property
    def source_conninfo(self) -> str:
        first, second = self.servers.clusters
        return (f"host=127.0.0.1,127.0.0.1 port={first.port},{second.port} dbname={self.database} user=thalweg "
                f"password={PASSWORD}")

    def start_stream(self, tables: list[Table] | None = None, wait: bool = True,
                     **parameters: int | str | bool) -> None:
        self.servers.wait_standby()
        super().start_stream(tables, wait, **parameters)

    def slots_at(self, standby: bool) -> int:
        server = self.servers.standby if standby else self.servers.primary
        return int(server.value("postgres", "SELECT count(*) FROM pg_replication_slots WHERE slot_type = 'logical'"))
