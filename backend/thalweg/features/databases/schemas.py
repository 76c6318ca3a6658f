"""Registered databases as the API shows them. A password goes in and never comes out."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import Field, StrictInt, StringConstraints, field_validator

from thalweg.kernel.models import NO_CONTROL_CHARACTERS, Body, Id, Name, Resource, Secret


class SslMode(StrEnum):
    DISABLE = "disable"
    ALLOW = "allow"
    PREFER = "prefer"
    REQUIRE = "require"
    VERIFY_CA = "verify-ca"
    VERIFY_FULL = "verify-full"


Host = Annotated[
    str,
    StringConstraints(min_length=1, max_length=255, strip_whitespace=True, pattern=r"^[^\s\x00-\x1f\x7f,]+$"),
]
Port = Annotated[StrictInt, Field(ge=1, le=65535)]
Identifier = Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=NO_CONTROL_CHARACTERS)]
OptionValue = Annotated[str, StringConstraints(max_length=500, pattern=NO_CONTROL_CHARACTERS)]

ALLOWED_OPTIONS = frozenset(
    {
        "connect_timeout", "keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count",
        "tcp_user_timeout", "sslrootcert", "sslcert", "sslkey", "sslcrl", "sslsni", "gssencmode",
        "channel_binding", "target_session_attrs", "ssl_min_protocol_version",
    }
)  # fmt: skip


def checked_options(value: dict[str, str] | None) -> dict[str, str] | None:
    unknown = sorted(set(value or {}) - ALLOWED_OPTIONS)
    if unknown:
        raise ValueError(
            f"Not an option that may be set: {', '.join(unknown)}. Allowed: {', '.join(sorted(ALLOWED_OPTIONS))}."
        )
    return value


class DatabaseSettings(Body):
    """How to connect to a database."""

    host: Host
    port: Port = 5432
    dbname: Identifier
    user: Identifier
    password: Secret = ""
    sslmode: SslMode = SslMode.PREFER
    options: Annotated[dict[str, OptionValue], Field(max_length=20)] = Field(
        default_factory=dict, description="More libpq connection options, such as sslrootcert."
    )

    _options = field_validator("options")(checked_options)


class DatabaseCreate(DatabaseSettings):
    name: Name


class DatabaseUpdate(Body):
    name: Name | None = None
    host: Host | None = None
    port: Port | None = None
    dbname: Identifier | None = None
    user: Identifier | None = None
    password: Secret | None = Field(default=None, description="Left as it is when missing.")
    sslmode: SslMode | None = None
    options: Annotated[dict[str, OptionValue], Field(max_length=20)] | None = None

    _options = field_validator("options")(checked_options)


class DatabaseTestRequest(DatabaseSettings):
    database_id: Id | None = Field(
        default=None, description="Take the stored password of this database when `password` is empty."
    )


class Database(Resource):
    id: str
    name: str
    host: str
    port: int
    dbname: str
    user: str
    sslmode: SslMode
    options: dict[str, str]
    has_password: bool
    version: str | None = Field(description="The server's version at the last successful test.")
    tested_at: datetime | None
    test_code: str | None = Field(description="Outcome of the last test: null when it worked.")
    source_of: list[str] = Field(description="Ids of the streams that capture from it.")
    destination_of: list[str] = Field(description="Ids of the streams that apply to it.")
    created_at: datetime
    updated_at: datetime
    etag: str = Field(description="Send as If-Match when updating.")
