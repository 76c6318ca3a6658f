"""Registered databases as the API shows them. A password goes in and never comes out."""

import re
from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, StrictInt, StringConstraints, model_validator

from thalweg.features.databases.addresses import FIELDS, fields_of_uri, options_of_uri
from thalweg.kernel.hosts import servers_of
from thalweg.kernel.models import NO_CONTROL_CHARACTERS, Body, Id, Name, Resource, Secret
from thalweg.kernel.pem import PEM_BYTES_MAX, PEM_FIELDS


class SslMode(StrEnum):
    DISABLE = "disable"
    ALLOW = "allow"
    PREFER = "prefer"
    REQUIRE = "require"
    VERIFY_CA = "verify-ca"
    VERIFY_FULL = "verify-full"


class ReadFrom(StrEnum):
    PRIMARY = "primary"
    STANDBY = "standby"


def checked_host(value: str) -> str:
    servers_of(value, 5432)
    return value


def checked_pem(name: str) -> Callable[[str], str]:
    def check(value: str) -> str:
        if value:
            PEM_FIELDS[name](value)
        return value

    return check


Host = Annotated[
    str, StringConstraints(min_length=1, max_length=1000, strip_whitespace=True), AfterValidator(checked_host)
]
HOST = (
    "A host name or an address. Of several, separated by commas, the first that answers is used: "
    "`db1,db2:5433,[::1]`. A port beside a name takes precedence over `port`."
)
PemText = Annotated[
    str, StringConstraints(max_length=PEM_BYTES_MAX, pattern=r"^[\x09\x0a\x0d -~]*$", strip_whitespace=True)
]
RootCertificates = Annotated[PemText, AfterValidator(checked_pem("sslrootcert"))]
ClientCertificate = Annotated[PemText, AfterValidator(checked_pem("sslcert"))]
ClientKey = Annotated[PemText, AfterValidator(checked_pem("sslkey"))]
Revocations = Annotated[PemText, AfterValidator(checked_pem("sslcrl"))]
ROOT_CERTIFICATES = (
    "Certificates (PEM contents) that the server's certificate must derive from. Stored encrypted, never shown again."
)
CLIENT_CERTIFICATE = "The certificate (PEM contents) that this user presents to the server."
CLIENT_KEY = "The certificate's key (PEM contents, without a passphrase). Stored encrypted, never shown again."
REVOCATIONS = "Certificates that are no longer valid (a revocation list as PEM contents)."
READ_FROM = (
    "`standby`: `host` names the servers of one cluster, PostgreSQL 16 or later. Streams decode and copy at the "
    "standby, and make their few writes at the primary. Cannot change while streams capture from the database."
)
Port = Annotated[StrictInt, Field(ge=1, le=65535)]
Identifier = Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=NO_CONTROL_CHARACTERS)]
OptionValue = Annotated[str, StringConstraints(max_length=500, pattern=NO_CONTROL_CHARACTERS)]

WHOLE_NUMBER = re.compile(r"^[0-9]{1,9}$")
ALLOWED_OPTIONS: dict[str, re.Pattern[str]] = {
    "connect_timeout": WHOLE_NUMBER,
    "keepalives": re.compile(r"^[01]$"),
    "keepalives_idle": WHOLE_NUMBER,
    "keepalives_interval": WHOLE_NUMBER,
    "keepalives_count": WHOLE_NUMBER,
    "tcp_user_timeout": WHOLE_NUMBER,
    "sslsni": re.compile(r"^[01]$"),
    "gssencmode": re.compile(r"^(disable|prefer|require)$"),
    "channel_binding": re.compile(r"^(disable|prefer|require)$"),
    "target_session_attrs": re.compile(r"^(any|read-write|read-only|primary|standby|prefer-standby)$"),
    "ssl_min_protocol_version": re.compile(r"^TLSv1(\.[123])?$"),
}
"""The allowed options and their values. The engine has the same list (engine/src/pg/connection_settings.cc)."""
URI_OPTIONS = {*FIELDS, *PEM_FIELDS, *ALLOWED_OPTIONS}
"""Options that a URI may have, or that are refused with an answer of their own."""


def not_allowed(name: str) -> ValueError:
    return ValueError(f"Not an option that may be set: {name}. Allowed: {', '.join(sorted(ALLOWED_OPTIONS))}.")


def checked_options(value: dict[str, str] | None) -> dict[str, str] | None:
    for name, text in sorted((value or {}).items()):
        if name in PEM_FIELDS:
            raise ValueError(f"{name} is a field of its own: give the contents of the file there, as PEM.")
        if name not in ALLOWED_OPTIONS:
            raise not_allowed(name)
        if not ALLOWED_OPTIONS[name].match(text):
            raise ValueError(f"{text!r} is not a value of {name}.")
    return value


Options = Annotated[dict[str, OptionValue], Field(max_length=20), AfterValidator(checked_options)]


def check_read_from(read_from: str, host: str, port: int, options: dict[str, str]) -> None:
    """Raises ValueError."""
    if read_from != ReadFrom.STANDBY:
        return
    if "target_session_attrs" in options:
        raise ValueError("target_session_attrs cannot be set beside read_from = standby, which chooses the server.")
    if len(servers_of(host, port)) < 2:
        raise ValueError("To read from a standby, name both servers as hosts, with a comma: db1,db2.")


def fill_from_uri(body: Any) -> Any:
    """Fields given beside the URI take precedence over the URI's."""
    if not isinstance(body, dict) or not isinstance(body.get("uri"), str):
        return body
    refused = [name for name in options_of_uri(body["uri"]) if name not in URI_OPTIONS]
    if refused:
        raise not_allowed(refused[0])
    return {**fields_of_uri(body["uri"]), **{name: value for name, value in body.items() if name != "uri"}}


class DatabaseSettings(Body):
    """The connection settings of a database. `host`, `dbname` and `user` are required, or come from `uri` or
    `service`."""

    uri: Annotated[str, StringConstraints(max_length=4000)] | None = Field(
        default=None,
        description="postgresql://user:password@host:5432/database?sslmode=require, split into its fields.",
    )
    service: Annotated[str, StringConstraints(max_length=100, pattern=NO_CONTROL_CHARACTERS)] = Field(
        default="", description="A service of the administrator's service file. Its settings are copied."
    )
    host: Host = Field(default="", description=HOST)
    port: Port = 5432
    dbname: Identifier = ""
    user: Identifier = ""
    password: Secret = ""
    sslmode: SslMode = SslMode.PREFER
    sslrootcert: RootCertificates = Field(default="", description=ROOT_CERTIFICATES)
    sslcert: ClientCertificate = Field(default="", description=CLIENT_CERTIFICATE)
    sslkey: ClientKey = Field(default="", description=CLIENT_KEY)
    sslcrl: Revocations = Field(default="", description=REVOCATIONS)
    options: Options = Field(default_factory=dict, description="More libpq options, such as target_session_attrs.")
    read_from: ReadFrom = Field(default=ReadFrom.PRIMARY, description=READ_FROM)

    _uri = model_validator(mode="before")(fill_from_uri)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        missing = [name for name in ("host", "dbname", "user") if not getattr(self, name)]
        if missing and not self.service:
            raise ValueError(f"{', '.join(missing)} is missing: give it as a field, in `uri`, or by a `service`.")
        if not self.service:
            check_read_from(self.read_from, self.host, self.port, self.options)
        return self


class DatabaseCreate(DatabaseSettings):
    name: Name


def fill_change_from_uri(body: Any) -> Any:
    """A URI that has no options takes the database's away: it is its whole address."""
    filled = fill_from_uri(body)
    return body if filled is body else {"options": {}, **filled}


class DatabaseUpdate(Body):
    name: Name | None = None
    uri: Annotated[str, StringConstraints(max_length=4000)] | None = Field(
        default=None,
        description="postgresql://user:password@host:5432/database?sslmode=require, split into its fields. Port and "
        "options become those of the URI; what else it does not name stays.",
    )
    host: Host | None = None
    port: Port | None = None
    dbname: Identifier | None = None
    user: Identifier | None = None
    password: Secret | None = Field(
        default=None,
        description="Unchanged if omitted. Required again if the host, port, dbname or user changes, or if TLS "
        "becomes weaker, because it would be sent there.",
    )
    sslmode: SslMode | None = None
    sslrootcert: RootCertificates | None = Field(default=None, description=ROOT_CERTIFICATES + " Empty: none.")
    sslcert: ClientCertificate | None = Field(default=None, description=CLIENT_CERTIFICATE + " Empty: none.")
    sslkey: ClientKey | None = Field(default=None, description=CLIENT_KEY + " Empty: none.")
    sslcrl: Revocations | None = Field(default=None, description=REVOCATIONS + " Empty: none.")
    options: Options | None = None
    read_from: ReadFrom | None = Field(default=None, description=READ_FROM)

    _uri = model_validator(mode="before")(fill_change_from_uri)


class DatabaseTestRequest(DatabaseSettings):
    database_id: Id | None = Field(
        default=None,
        description="Use what is stored with this database where `password`, a certificate or a key is empty. The "
        "stored password is used only if it would be sent to the same place, with at least the same TLS.",
    )


class StoredPem(Resource):
    """A stored file, whose contents are not shown."""

    subject: str | None = Field(description="The certificate's subject, the revocation list's issuer; null of a key.")
    expires_at: datetime | None = Field(description="When the certificate ends, or the next revocation list is due.")


class Database(Resource):
    id: str
    name: str
    host: str
    port: int
    dbname: str
    user: str
    sslmode: SslMode
    options: dict[str, str]
    read_from: ReadFrom
    sslrootcert: StoredPem | None
    sslcert: StoredPem | None
    sslkey: StoredPem | None
    sslcrl: StoredPem | None
    has_password: bool
    version: str | None = Field(description="The server's version at the last successful test.")
    tested_at: datetime | None = Field(description="Null: its connection, as it is now, has not been tested.")
    test_code: str | None = Field(description="Outcome of the last test: null when it worked.")
    source_of: list[str] = Field(description="Ids of the streams that capture from it.")
    destination_of: list[str] = Field(description="Ids of the streams that apply to it.")
    created_at: datetime
    updated_at: datetime
    etag: str = Field(description="Send as If-Match when updating.")
