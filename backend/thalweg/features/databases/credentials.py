"""Keeps a database's secrets sealed, and decides where they may be sent."""

from typing import Any, TypeVar

from pydantic import ValidationError

from thalweg.db.models import DatabaseRow
from thalweg.features.databases.addresses import fields_of_service
from thalweg.features.databases.schemas import DatabaseSettings, SslMode, StoredPem
from thalweg.inspection.target import Target
from thalweg.kernel.context import Context
from thalweg.kernel.models import FieldProblem
from thalweg.kernel.pem import PEM_FIELDS, check_pair
from thalweg.kernel.problems import Problem, secret_required
from thalweg.kernel.secret_box import SecretBox

TLS_MODES = tuple(SslMode)
BINDINGS = ("disable", "prefer", "require")
Settings = TypeVar("Settings", bound=DatabaseSettings)
PROTOCOLS = ("TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3")


def sealed_pem(pem: dict[str, str], secrets: SecretBox) -> dict[str, Any]:
    """For DatabaseRow.pem. Raises Problem when certificate and key do not fit each other."""
    given = {name: text for name, text in pem.items() if text}
    _check_pair(given)
    return {
        name: {
            "sealed": secrets.seal(text), "subject": (facts := PEM_FIELDS[name](text)).subject,
            "expires_at": facts.expires_at.isoformat() if facts.expires_at else None,
        }
        for name, text in given.items()
    }  # fmt: skip


def _check_pair(given: dict[str, str]) -> None:
    certificate, key = given.get("sslcert"), given.get("sslkey")
    if bool(certificate) != bool(key):
        missing, there = ("sslkey", "sslcert") if certificate else ("sslcert", "sslkey")
        raise wrong_field(missing, f"{there} needs its {missing}: give both, or neither.")
    if certificate and key:
        try:
            check_pair(certificate, key)
        except ValueError as error:
            raise wrong_field("sslkey", str(error)) from error


def wrong_field(field: str, message: str, code: str = "value_error") -> Problem:
    return Problem(
        "invalid_request", message, "Correct the field that is named.",
        errors=[FieldProblem(pointer=f"/{field}", code=code, message=message)],
    )  # fmt: skip


def stored_pem(row: DatabaseRow, name: str) -> StoredPem | None:
    kept = row.pem.get(name)
    return None if kept is None else StoredPem(subject=kept["subject"], expires_at=kept["expires_at"])


def with_service(context: Context, body: Settings) -> Settings:
    """Fields given beside the service take precedence over the service's. Its password goes only where the service
    says: the administrator gave it for that place, and users who name the service need not know it."""
    if not body.service:
        return body
    given = {**body.model_dump(exclude_unset=True), "service": ""}
    try:
        fields = fields_of_service(context.resources.settings.database_service_file, body.service)
        whole = type(body).model_validate({**fields, "service": "", **given})
        # A field that the service leaves out has the default that it has in a database.
        place = _place(DatabaseSettings.model_construct(**fields))
        changes = changes_of_place(place, _place(whole)) if "password" in fields and "password" not in given else []
    except ValidationError as error:
        messages = "; ".join(str(found["msg"]) for found in error.errors(include_url=False, include_input=False))
        raise wrong_field("service", f"The service {body.service} cannot be used: {messages}") from error
    except ValueError as error:
        raise wrong_field("service", str(error)) from error
    if changes:
        raise secret_required(
            "password", changes, "Send a password with these fields, or leave to the service what it says itself."
        )
    return whole


def _place(settings: DatabaseSettings) -> Target:
    pem = {name: getattr(settings, name) for name in PEM_FIELDS if getattr(settings, name)}
    return Target(
        settings.host, settings.port, settings.dbname, settings.user, settings.password, settings.sslmode,
        settings.options, pem,
    )  # fmt: skip


def check_password_stays(stored: Target, wanted: Target) -> None:
    """Raises Problem where the stored password would be sent elsewhere, or with less TLS."""
    if not stored.password:
        return
    changes = changes_of_place(stored, wanted)
    if changes:
        raise secret_required("password", changes, "Send the password again with this change.")


def changes_of_place(stored: Target, wanted: Target) -> list[str]:
    """Changes of the place that the password was given for. A stricter TLS mode is no change."""
    changes = [name for name in ("host", "port", "dbname", "user") if getattr(stored, name) != getattr(wanted, name)]
    if TLS_MODES.index(SslMode(wanted.sslmode)) < TLS_MODES.index(SslMode(stored.sslmode)):
        changes.append("sslmode")
    # Other certificates are trusted then, or those that were revoked. The first ones to check are more TLS, not less.
    changes += [
        name for name in ("sslrootcert", "sslcrl")
        if name in stored.pem and stored.pem[name] != wanted.pem.get(name)
    ]  # fmt: skip
    for option, ranks, default in (
        ("channel_binding", BINDINGS, "prefer"), ("ssl_min_protocol_version", PROTOCOLS, "TLSv1.2"),
    ):  # fmt: skip
        before, after = stored.options.get(option, default), wanted.options.get(option, default)
        if before in ranks and ranks.index(after) < ranks.index(before):
            changes.append(option)
    return changes
