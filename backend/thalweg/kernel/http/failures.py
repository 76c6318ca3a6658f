"""Every failure becomes RFC 9457 problem details, whoever raised it."""

import json
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from sqlalchemy.exc import DBAPIError, IntegrityError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from starlette.exceptions import HTTPException

from thalweg.kernel.models import FieldProblem
from thalweg.kernel.problems import MEDIA_TYPE, Problem
from thalweg.kernel.secret_box import SecretKeyError

ERRORS_SHOWN = 100
COLLISIONS = ("40P01", "40001")  # deadlock_detected, serialization_failure
CODES = {400: "malformed_request", 401: "authentication_required", 403: "permission_denied", 404: "not_found",
         405: "method_not_allowed", 413: "body_too_large", 415: "unsupported_media_type"}  # fmt: skip
CURES = {
    "body_too_large": "Send less: shorten patterns and values, or split the request.",
    "not_found": "Check the address; GET /api/v1/openapi.json lists them all.",
    "method_not_allowed": "Use one of the methods in the Allow header.",
    "malformed_request": "Send a JSON document in UTF-8.",
}
log = structlog.get_logger(__name__)


class ProblemResponse(JSONResponse):
    def render(self, content: Any) -> bytes:
        """Names of the request may be no Unicode: JSON can write half of a surrogate pair."""
        return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode(
            "utf-8", "replace"
        )


def respond(request: Request, problem: Problem) -> JSONResponse:
    details = problem.details(request.url.path)
    return ProblemResponse(details.model_dump(mode="json"), problem.status, problem.headers, MEDIA_TYPE)


async def on_problem(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Problem)  # noqa: S101
    return respond(request, error)


async def on_invalid(request: Request, error: Exception) -> JSONResponse:
    """The answer does not repeat the input: it may be a secret, or large."""
    assert isinstance(error, RequestValidationError)  # noqa: S101
    errors = [
        FieldProblem(
            pointer=_pointer(item["loc"]),
            code=str(item["type"]),
            message=str(item["msg"]),
            cure=item.get("ctx", {}).get("cure"),
        )
        for item in error.errors()[:ERRORS_SHOWN]
    ]
    where = ", ".join(dict.fromkeys(item.pointer or "the body" for item in errors[:5]))
    problem = Problem(
        "invalid_request", f"Not valid: {where}. {errors[0].message if errors else ''}".strip(),
        "Correct what `errors` lists.", errors=errors,
    )  # fmt: skip
    return respond(request, problem)


def _pointer(location: tuple[int | str, ...]) -> str:
    """RFC 6901 for the body; other parts of the request begin with their name."""
    parts = list(location)
    if parts and parts[0] == "body":
        parts = parts[1:]
    shown = [str(part)[:128].encode("utf-8", "replace").decode() for part in parts]
    return "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in shown)


async def on_http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)  # noqa: S101
    code = CODES.get(error.status_code, "internal_error" if error.status_code >= 500 else "malformed_request")
    problem = Problem(code, str(error.detail), CURES.get(code), headers=dict(error.headers or {}))
    return respond(request, problem)


async def on_store(request: Request, error: Exception) -> JSONResponse:
    if isinstance(error, IntegrityError):
        constraint = getattr(getattr(error.orig, "diag", None), "constraint_name", None)
        problem = Problem(
            "conflict",
            f"Another request changed the same thing at the same time ({constraint}).",
            "Try again.",
        )
        return respond(request, problem)
    if getattr(getattr(error, "orig", None), "sqlstate", None) in COLLISIONS:
        log.warning("request collided with another", error=str(error))
        return respond(request, Problem("conflict", "The request collided with another one.", "Try again."))
    if isinstance(error, DBAPIError) and not isinstance(error, OperationalError | InterfaceError):
        return await on_anything(request, error)
    log.error("store cannot be reached", error=str(error))
    return respond(
        request,
        Problem(
            "store_unreachable", "The control store does not answer.",
            "Check that its PostgreSQL runs; streams continue without it.", headers={"Retry-After": "2"},
        ),
    )  # fmt: skip


async def on_secret_key(request: Request, error: Exception) -> JSONResponse:
    log.error("secret key does not fit", error=str(error))
    return respond(
        request,
        Problem(
            "secret_key_mismatch", str(error),
            "Put the right key back (THALWEG_SECRET_KEY_FILE). Without it, enter databases' passwords again, and reset "
            "users' second factors: thalweg-admin reset-second-factor NAME.",
        ),
    )  # fmt: skip


async def on_anything(request: Request, error: Exception) -> JSONResponse:
    log.error("request failed", exc_info=error)
    request_id = getattr(request.state, "request_id", "unknown")
    return respond(
        request,
        Problem(
            "internal_error", f"The request failed; the log has it under request id {request_id}.",
            "Try again; if the error recurs, report it with the log.",
        ),
    )  # fmt: skip


def install(app: FastAPI) -> None:
    app.add_exception_handler(Problem, on_problem)
    app.add_exception_handler(RequestValidationError, on_invalid)
    app.add_exception_handler(HTTPException, on_http)
    app.add_exception_handler(DBAPIError, on_store)
    app.add_exception_handler(PoolTimeoutError, on_store)
    app.add_exception_handler(SecretKeyError, on_secret_key)
    app.add_exception_handler(Exception, on_anything)
