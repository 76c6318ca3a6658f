"""The settings of each kind of channel. Secrets (a webhook's key, a mail password) are kept apart, sealed."""

from enum import StrEnum
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field, StringConstraints, field_validator, model_validator

from thalweg.kernel.models import NO_CONTROL_CHARACTERS, Body
from thalweg.kernel.pem import PEM_BYTES_MAX, facts_of_roots
from thalweg.kernel.words import ended


class ChannelKind(StrEnum):
    WEBHOOK = "webhook"
    EMAIL = "email"
    LOG = "log"


class MailSecurity(StrEnum):
    STARTTLS = "starttls"
    TLS = "tls"
    PLAIN = "plain"


ADDRESS = r"^[!#-+\-./0-9:=?A-Z\[-~]+@[A-Za-z0-9.\[\]:-]+$"

Address = Annotated[str, StringConstraints(min_length=3, max_length=320, strip_whitespace=True, pattern=ADDRESS)]
Host = Annotated[
    str, StringConstraints(min_length=1, max_length=255, strip_whitespace=True, pattern=r"^[A-Za-z0-9._:-]+$")
]


class WebhookSettings(Body):
    url: Annotated[
        str, StringConstraints(min_length=8, max_length=2000, strip_whitespace=True, pattern=r"^https?://[!-~]+$")
    ] = Field(description="Receives each notice by POST, as JSON. Redirects are not followed.")

    @field_validator("url")
    @classmethod
    def _has_host(cls, value: str) -> str:
        try:
            parts = urlsplit(value)
            host, _ = parts.hostname, parts.port
        except ValueError as error:
            raise ValueError(f"Not an address: {ended(str(error))}") from error
        if not host:
            raise ValueError("The address names no host.")
        if parts.username or parts.password:
            raise ValueError("Credentials do not belong in the address, which everybody can see.")
        return value


class EmailSettings(Body):
    host: Host
    port: Annotated[int, Field(ge=1, le=65535)] = 587
    security: MailSecurity = Field(default=MailSecurity.STARTTLS, description="STARTTLS usually on 587, TLS on 465.")
    user: Annotated[str, StringConstraints(max_length=320, pattern=NO_CONTROL_CHARACTERS)] = Field(
        default="", description="Empty: the server is not given any credentials."
    )
    sender: Address = Field(description="The From address.")
    recipients: Annotated[list[Address], Field(min_length=1, max_length=50)]
    ca_certificate: Annotated[str, StringConstraints(max_length=PEM_BYTES_MAX, pattern=r"^[\x09\x0a\x0d -~]*$")] = (
        Field(default="", description="Certificates (PEM) to trust instead of the system's.")
    )

    @field_validator("ca_certificate")
    @classmethod
    def _is_pem(cls, value: str) -> str:
        if value:
            facts_of_roots(value)
        return value

    @model_validator(mode="after")
    def _no_password_in_clear(self) -> "EmailSettings":
        if self.user and self.security is MailSecurity.PLAIN and self.host not in ("127.0.0.1", "::1", "localhost"):
            raise ValueError("A password must not travel unencrypted: choose STARTTLS or TLS, or leave the user empty.")
        return self


class LogSettings(Body):
    """This channel has no settings: notices go to the log of the process that sends them."""


SETTINGS: dict[ChannelKind, type[Body]] = {
    ChannelKind.WEBHOOK: WebhookSettings,
    ChannelKind.EMAIL: EmailSettings,
    ChannelKind.LOG: LogSettings,
}
