"""Registered databases."""

from datetime import datetime
from typing import Any

from sqlalchemy.orm import Mapped, mapped_column

from thalweg.db.models.base import Base, Versioned
from thalweg.kernel.hosts import servers_of


class DatabaseRow(Versioned, Base):
    __tablename__ = "databases"

    name: Mapped[str] = mapped_column(unique=True)
    host: Mapped[str]
    port: Mapped[int]
    dbname: Mapped[str]
    username: Mapped[str]
    password_sealed: Mapped[str | None]
    sslmode: Mapped[str]
    options: Mapped[dict[str, Any]]
    pem: Mapped[dict[str, Any]]
    """Certificates and keys by libpq's names: each sealed, with what may be shown of it."""
    read_from: Mapped[str] = mapped_column(default="primary")
    """"standby": of its servers the standby is decoded and copied, and the primary only written."""
    server_version: Mapped[str | None]
    tested_at: Mapped[datetime | None]
    test_code: Mapped[str | None]

    @property
    def servers(self) -> str:
        """Each with its own port."""
        return ",".join(server.shown for server in servers_of(self.host, self.port))

    @property
    def address(self) -> str:
        return f"{self.servers}/{self.dbname}"
