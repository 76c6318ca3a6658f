"""Failures as values that become RFC 9457 problem details. Each code is stable and has one title."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from thalweg.kernel.models import Check, FieldProblem, ProblemDetails

MEDIA_TYPE = "application/problem+json"
URN = "urn:thalweg:problem:"

TITLES: dict[str, tuple[int, str]] = {
    "malformed_request": (400, "The request cannot be read"),
    "authentication_required": (401, "You are not logged in"),
    "wrong_credentials": (401, "The name or the password is wrong"),
    "second_factor_required": (401, "A code of the second factor is needed"),
    "wrong_code": (401, "The code is wrong"),
    "login_expired": (401, "The login must be started again"),
    "second_factor_demanded": (403, "A second factor must be set up first"),
    "too_many_attempts": (429, "Too many failed logins"),
    "csrf_token_invalid": (403, "The CSRF token is missing or wrong"),
    "permission_denied": (403, "Your role does not allow this"),
    "not_found": (404, "The resource does not exist"),
    "method_not_allowed": (405, "This address does not support this method"),
    "conflict": (409, "The request conflicts with what exists"),
    "not_kept_whole": (409, "The audit log cannot keep all of it"),
    "execution_refused": (409, "The execution did not go through"),
    "name_taken": (409, "The name is taken"),
    "database_in_use": (409, "A stream uses the database"),
    "slot_in_use": (409, "The slot is being read"),
    "slot_owned": (409, "The slot belongs to a stream"),
    "slot_not_ours": (409, "The slot is not Thalweg's"),
    "lab_unavailable": (409, "The lab cannot act here"),
    "engine_in_use": (409, "The engine runs streams"),
    "invalid_transition": (409, "The stream's state does not allow this"),
    "search_refused": (409, "The log cannot be searched"),
    "search_running": (409, "The search has not ended"),
    "search_busy": (503, "Too many searches are running"),
    "preflight_failed": (409, "The databases are not ready for this stream"),
    "stale_resource": (412, "Somebody else has changed it in the meantime"),
    "request_timeout": (408, "The request did not arrive in time"),
    "body_too_large": (413, "The request is too large"),
    "head_too_large": (431, "The request's head is too large"),
    "too_many_requests": (429, "Too many requests at once"),
    "server_busy": (503, "The control plane is busy"),
    "unsupported_media_type": (415, "The body is not JSON"),
    "invalid_request": (422, "The request is not valid"),
    "idempotency_key_reused": (422, "The idempotency key belongs to another request"),
    "if_match_required": (428, "The If-Match header is missing"),
    "enrolment_refused": (403, "The enrolment token is not valid"),
    "no_engine": (409, "No engine is enrolled"),
    "engine_unreachable": (503, "The engine cannot be reached"),
    "engine_busy": (503, "The engine is busy"),
    "engine_slow": (504, "The engine is still at work"),
    "engine_refused": (502, "The engine refused the request"),
    "store_unreachable": (503, "The control store cannot be reached"),
    "redis_unreachable": (503, "Redis cannot be reached"),
    "password_required": (422, "The password must be given again"),
    "connection_pooler": (422, "A connection pooler is in front of the database"),
    "connection_setting_refused": (422, "A setting of the database's connection may not be used"),
    "address_not_allowed": (422, "The database's address is outside the permitted networks"),
    "unsupported_version": (422, "The server's version is not supported"),
    "database_unreachable": (422, "The database cannot be reached"),
    "authentication_failed": (422, "The database refused the user or the password"),
    "unknown_database": (422, "The server has no such database"),
    "tls_failed": (422, "The encrypted connection could not be made"),
    "insufficient_privilege": (422, "The database user lacks a privilege"),
    "database_error": (422, "The database reported an error"),
    "secret_key_mismatch": (500, "A stored secret cannot be read"),
    "internal_error": (500, "Something went wrong in the control plane"),
}


@dataclass
class Problem(Exception):
    """Raised anywhere below the API; the API turns it into the response. `code` is a key of TITLES."""

    code: str
    detail: str
    cure: str | None = None
    sql: str | None = None
    errors: Sequence[FieldProblem] = ()
    checks: Sequence[Check] = ()
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def status(self) -> int:
        return TITLES[self.code][0]

    def details(self, instance: str) -> ProblemDetails:
        status, title = TITLES[self.code]
        return ProblemDetails(
            type=URN + self.code, title=title, status=status, detail=self.detail, instance=instance,
            code=self.code, cure=self.cure, sql=self.sql, errors=list(self.errors),
            checks=list(self.checks),
        )  # fmt: skip


def not_found(noun: str, identifier: str) -> Problem:
    return Problem(
        "not_found", f"There is no {noun} with the id {identifier}.", "Read the list for the ids that exist."
    )


def name_taken(noun: str, name: str) -> Problem:
    return Problem("name_taken", f"Another {noun} is already called “{name}”.", "Choose another name.")


def secret_required(field: str, changes: Sequence[str], cure: str) -> Problem:
    """A stored password or secret was given for one place; `changes` would send it to another."""
    places = ", ".join(changes)
    return Problem(
        "password_required", f"The stored {field} would be sent with another {places}.", cure,
        errors=[FieldProblem(pointer=f"/{field}", code="missing", message=f"Required, because of: {places}.")],
    )  # fmt: skip
