"""Typed settings, read once at start from THALWEG_* variables. Nothing else reads the environment."""

import ipaddress
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from thalweg.kernel.networks import Networks, NetworksSetting

REPOSITORY = Path(__file__).resolve().parents[3]
PACKAGE = Path(__file__).resolve().parents[1]


class Settings(BaseSettings):
    """Defaults fit `make up`. Durations in seconds, sizes in bytes."""

    model_config = SettingsConfigDict(env_prefix="THALWEG_", extra="ignore", hide_input_in_errors=True)

    store_url: str = Field(
        default="postgresql+psycopg://thalweg@127.0.0.1:55430/thalweg",
        description="SQLAlchemy address of the control store.",
    )
    redis_url: str = "redis://127.0.0.1:56379/0"
    listen_host: str = "127.0.0.1"
    listen_port: int = Field(default=8642, ge=1, le=65535)
    secret_key_file: Path = Field(
        default=REPOSITORY / ".thalweg" / "secret.key",
        description="Key that encrypts stored passwords. Created with mode 0600 if missing.",
    )
    secret_key: SecretStr | None = Field(default=None, description="The key itself; takes precedence over the file.")
    console_directory: Path = REPOSITORY / "frontend" / "dist"
    help_directory: Path = REPOSITORY / "build" / "help"
    contract_directory: Path = Field(
        default=PACKAGE / "contract", description="Where parameters.json of the engine's contract lies."
    )
    migrations_directory: Path = REPOSITORY / "migrations"
    tls_certificate_file: Path | None = Field(
        default=None,
        description="Certificate chain (PEM): API and console are then served over HTTPS. Needs tls_key_file.",
    )
    tls_key_file: Path | None = Field(default=None, description="The certificate's private key (PEM).")
    trusted_proxies: Annotated[list[str], NoDecode] = Field(
        default=[],
        description="Addresses and ranges, separated by commas, whose X-Forwarded-For and X-Forwarded-Proto are "
                    "trusted.",
    )  # fmt: skip
    request_seconds: float = Field(
        default=30.0, gt=0, description="The time within which the headers and the body of a request must arrive."
    )
    cookie_secure: bool = Field(
        default=False,
        description="Turn on when a proxy serves the console over HTTPS. It is on with tls_certificate_file.",
    )
    session_seconds: int = Field(default=12 * 3600, ge=60)
    body_bytes_max: int = Field(default=1024 * 1024, ge=1024)
    store_pool_size: int = Field(default=10, ge=1, le=200)
    engine_timeout: float = Field(default=5.0, gt=0)
    poll_interval: float = Field(default=1.0, gt=0)
    samples_kept: int = Field(default=3600, ge=10, description="Live samples kept for each stream.")
    history_second_kept: int = Field(
        default=3600, ge=900, le=7 * 86400, description="How long samples of every second are kept."
    )
    history_minute_kept_days: int = Field(
        default=90, ge=1, le=3660, description="How long roll-ups to minutes are kept. Up to 2.6 MB a day and stream."
    )
    history_hour_kept_days: int = Field(default=90, ge=1, le=3660, description="How long roll-ups to hours are kept.")
    events_heartbeat: float = Field(
        default=15.0, gt=0,
        description="How often an idle stream of events is pinged, and each one is checked for the end of its login.",
    )  # fmt: skip
    engine_ca_file: Path | None = Field(
        default=None,
        description="Certificates (PEM) to trust for engines at https:// addresses, instead of the system's.",
    )
    engine_lost_after: float = Field(
        default=30.0, gt=0,
        description="A forced delete continues without an engine that has not answered for this long.",
    )  # fmt: skip
    operation_patience: float = Field(
        default=600.0, gt=0,
        description="An operation fails when its engine has not answered, or not taken its request, for this long.",
    )  # fmt: skip
    public_url: str | None = Field(
        default=None, pattern=r"^https?://[!-~]+$",
        description="Where people reach the console: links in alerts begin with it. Default: the listening address.",
    )  # fmt: skip
    alerts_interval: float = Field(default=5.0, gt=0, description="Alert rules are evaluated this often.")
    sources_interval: float = Field(
        default=10.0, gt=0, description="Replication slots are read at the sources this often."
    )
    alerts_kept_days: int = Field(default=90, ge=1, le=3650, description="Resolved alerts are forgotten after this.")
    alerts_timeout: float = Field(
        default=10.0, gt=0, le=120, description="The time limit for one attempt to deliver a notice."
    )
    webhook_networks: NetworksSetting = Field(
        default=Networks(), description="The networks that webhooks of alerts may lead to, as in database_networks."
    )
    mail_networks: NetworksSetting | None = Field(
        default=None, description="The networks of alerts' mail servers, likewise. Default: as for webhooks."
    )
    alerts_retry_after: float = Field(
        default=5.0,
        gt=0,
        description="The wait before a notice is sent again; it doubles with each attempt, up to an hour.",
    )
    login_attempts_free: int = Field(
        default=5, ge=1, description="Failed logins before waits begin; the wait doubles with each one."
    )
    database_connect_timeout: int = Field(default=5, ge=1, le=60)
    database_networks: NetworksSetting = Field(
        default=Networks(),
        description="The networks where databases may be: ranges of addresses, separated by commas, such as "
                    "10.0.0.0/8,fd00::/8. Compared when control plane and engines connect. Default: every address. "
                    "`local` adds local sockets.",
    )  # fmt: skip
    database_service_file: Path | None = Field(
        default=None,
        description="A service file of libpq's form. Databases may be registered by the names of its services.",
    )
    lab_source: str | None = Field(
        default=None,
        description="HOST:PORT/DBNAME of the demo's source. With lab_destination: the lab may act on these two.",
    )
    lab_destination: str | None = Field(default=None, description="HOST:PORT/DBNAME of the demo's destination.")
    lab_rate: int = Field(default=100, ge=0, description="The demo's usual load, in transactions a second.")
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["json", "text"] = "json"

    @property
    def console_url(self) -> str:
        scheme = "https" if self.serves_tls else "http"
        return (self.public_url or f"{scheme}://{self.listen_host}:{self.listen_port}").rstrip("/")

    @property
    def serves_tls(self) -> bool:
        return self.tls_certificate_file is not None

    @property
    def secure_cookies(self) -> bool:
        return self.cookie_secure or self.serves_tls

    @field_validator("trusted_proxies", mode="before")
    @classmethod
    def _ranges(cls, value: object) -> object:
        parts = [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value
        for part in parts if isinstance(parts, list) else []:
            ipaddress.ip_network(part)
        return parts

    @model_validator(mode="after")
    def _certificate_and_key(self) -> Self:
        if (self.tls_certificate_file is None) != (self.tls_key_file is None):
            raise ValueError("tls_certificate_file and tls_key_file go together")
        return self

    @field_validator("store_url")
    @classmethod
    def _psycopg(cls, value: str) -> str:
        if value.startswith("postgresql://"):
            value = "postgresql+psycopg://" + value.removeprefix("postgresql://")
        if not value.startswith("postgresql+psycopg://"):
            raise ValueError("must begin with postgresql://")
        return value
