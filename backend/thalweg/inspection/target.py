"""How to connect to somebody's database: for the control plane's inspections and for the engine."""

from dataclasses import dataclass, field

from psycopg.conninfo import make_conninfo

from thalweg.db.models import DatabaseRow
from thalweg.kernel.secret_box import SecretBox


@dataclass(frozen=True)
class Target:
    """Holds the password in clear: never log it; repr leaves it out."""

    host: str
    port: int
    dbname: str
    user: str
    password: str = field(repr=False)
    sslmode: str
    options: dict[str, str] = field(default_factory=dict)

    def conninfo(self, **more: str | int) -> str:
        secret = {"password": self.password} if self.password else {}
        return make_conninfo(
            "", host=self.host, port=self.port, dbname=self.dbname, user=self.user, sslmode=self.sslmode,
            **secret, **{**self.options, **more},
        )  # fmt: skip


def target_of(row: DatabaseRow, secrets: SecretBox) -> Target:
    """Raises SecretKeyError when the key is not the one that encrypted the password."""
    password = secrets.open(row.password_sealed) if row.password_sealed else ""
    options = {str(name): str(value) for name, value in row.options.items()}
    return Target(row.host, row.port, row.dbname, row.username, password, row.sslmode, options)
