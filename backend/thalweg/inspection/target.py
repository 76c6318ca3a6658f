"""Connection settings of a user's database, for the control plane's inspections and for the engine."""

import os
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

from psycopg.conninfo import make_conninfo

from thalweg.db.models import DatabaseRow
from thalweg.kernel.context import Resources
from thalweg.kernel.hosts import Server, servers_of
from thalweg.kernel.networks import Networks
from thalweg.kernel.secret_box import SecretBox

NO_FILE = "/dev/null/none"
NOTHING_OF_THE_ACCOUNT = {"gssencmode": "disable", "passfile": NO_FILE, "sslcert": NO_FILE}
"""Neither tickets nor passwords and keys in the files where libpq looks by itself go along with a user's settings. The
engine has the same (engine/src/pg/connection_settings.cc)."""


@dataclass(frozen=True)
class Target:
    """Holds the password and the keys in clear: never log it; repr leaves them out."""

    host: str
    port: int
    dbname: str
    user: str
    password: str = field(repr=False)
    sslmode: str
    options: dict[str, str] = field(default_factory=dict)
    pem: dict[str, str] = field(default_factory=dict, repr=False)
    """Certificates and keys by libpq's names (kernel/pem.py)."""
    within: Networks = field(default_factory=Networks)
    reads_standby: bool = False
    """Its servers are a primary and a standby: the standby is read where there is one, the primary is written."""

    @property
    def for_reading(self) -> "Target":
        return self._at("prefer-standby")

    @property
    def for_writing(self) -> "Target":
        return self._at("primary")

    def _at(self, session_attributes: str) -> "Target":
        if not self.reads_standby:
            return self
        return replace(self, reads_standby=False, options={**self.options, "target_session_attrs": session_attributes})

    @property
    def each_server(self) -> "list[Target]":
        """Its servers, each by itself."""
        return [
            replace(
                self, host=f"[{server.host}]" if ":" in server.host else server.host, port=server.port,
                reads_standby=False,
            )
            for server in self.servers
        ]  # fmt: skip

    @property
    def servers(self) -> list[Server]:
        return servers_of(self.host, self.port)

    def for_engine(self) -> str:
        """With PEM contents where libpq wants paths: the engine gives libpq files of its own, and refuses paths.

        Of a primary and a standby it leads to the primary, unless the engine is told to read at the standby.
        """
        return self._conninfo(
            {**self.for_writing.options, **self.pem},
            host=",".join(server.host for server in self.servers),
            port=",".join(str(server.port) for server in self.servers),
        )

    @contextmanager
    def for_libpq(self, **more: str | int) -> Generator[str, None, None]:
        """Certificates and keys lie in memory, for as long as this lasts, where libpq finds them as files."""
        with ExitStack() as files:
            paths = {name: files.enter_context(_in_memory(pem)) for name, pem in self.pem.items()}
            yield self._conninfo({**NOTHING_OF_THE_ACCOUNT, **self.options, **paths}, **more)

    def _conninfo(self, settings: dict[str, str], **more: str | int) -> str:
        secret = {"password": self.password} if self.password else {}
        return make_conninfo(
            "", dbname=self.dbname, user=self.user, sslmode=self.sslmode, **secret, **{**settings, **more}
        )


@contextmanager
def _in_memory(pem: str) -> Generator[str, None, None]:
    """A file without a place on disk: nobody else can open it, and it goes with its descriptor."""
    descriptor = os.memfd_create("thalweg-pem")
    try:
        os.fchmod(descriptor, 0o600)  # libpq refuses a key that others might read
        os.write(descriptor, pem.encode())
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def target_of(row: DatabaseRow, resources: Resources) -> Target:
    """Raises SecretKeyError when the key is not the one that encrypted the password."""
    return stored_target(row, resources.secrets, resources.settings.database_networks)


def stored_target(row: DatabaseRow, secrets: SecretBox, within: Networks | None = None) -> Target:
    password = secrets.open(row.password_sealed) if row.password_sealed else ""
    options = {str(name): str(value) for name, value in row.options.items()}
    pem = {name: secrets.open(kept["sealed"]) for name, kept in row.pem.items()}
    return Target(
        row.host, row.port, row.dbname, row.username, password, row.sslmode, options, pem, within or Networks(),
        reads_standby=row.read_from == "standby",
    )  # fmt: skip
