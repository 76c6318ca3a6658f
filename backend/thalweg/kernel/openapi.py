"""Finishing touches to FastAPI's OpenAPI document: problem details for every failure, schemas of SSE events,
examples."""

import json
import re
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from thalweg.kernel.examples import add_examples
from thalweg.kernel.models import ProblemDetails
from thalweg.kernel.problems import MEDIA_TYPE

NAMES_OTHERS = {"advisor_comparison_get"}
"""Operations whose query names things that may not exist."""
REASONS = {
    "400": "Malformed request", "401": "Not logged in", "403": "Not allowed", "404": "Not found", "409": "Conflict",
    "412": "Changed meanwhile", "413": "Too large", "422": "Not valid", "428": "If-Match missing",
    "429": "Too many requests or failed logins", "502": "The engine refused", "503": "Not available now",
}  # fmt: skip
ASK_ENGINES = (
    "stream_errors_", "stream_conflicts_", "stream_transactions_", "stream_markers_", "streams_retry", "searches_",
    "changes_",
)  # fmt: skip
SHOWS_PASSWORD = (
    "session_create", "session_verify_code", "users_change_password", "users_prepare_second_factor",
    "users_confirm_second_factor", "users_renew_recovery_codes", "users_remove_second_factor",
)  # fmt: skip
LOGS_IN = ("session_create", "session_verify_code")
PUBLIC = frozenset({*LOGS_IN, "engines_enrol", "health_live", "health_ready"})


def build_openapi(app: FastAPI, events: list[type[BaseModel]]) -> dict[str, Any]:
    """The document, cached on the application. Deterministic: it is compared with the file in the repository."""
    if app.openapi_schema:
        return app.openapi_schema
    document = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes, tags=app.openapi_tags
    )
    schemas = document["components"]["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    models: list[type[BaseModel]] = [ProblemDetails, *events]
    _, extra = models_json_schema(
        [(model, "serialization") for model in models],
        ref_template="#/components/schemas/{model}",
    )
    for name, schema in extra["$defs"].items():
        schemas.setdefault(name, schema)
    for path, item in document["paths"].items():
        for method, operation in item.items():
            _add_problems(path, method, operation)
    document["components"]["schemas"] = dict(sorted(schemas.items()))
    document = _with_plain_names(document)
    add_examples(document)
    app.openapi_schema = document
    return document


def _with_plain_names(document: dict[str, Any]) -> dict[str, Any]:
    """Page[Database] is Page_Database_ to Pydantic; clients are generated with a name that every language can have."""
    plain: dict[str, Any] = json.loads(re.sub(r"\bPage_([A-Za-z0-9]+)_(?=\")", r"\1Page", json.dumps(document)))
    return plain


def _add_problems(path: str, method: str, operation: dict[str, Any]) -> None:
    """Derives the possible failures of an operation from its shape."""
    statuses = {"400", "422"}
    if path not in ("/healthz", "/readyz"):
        statuses.add("503")
    if operation["operationId"] not in PUBLIC:
        statuses |= {"401", "403"}
    else:
        operation["security"] = []
        if operation["operationId"] in LOGS_IN:
            statuses.add("401")
        elif method != "get":
            statuses.add("403")
    if "{" in path or operation["operationId"] in NAMES_OTHERS:
        statuses.add("404")
    if method != "get":
        statuses |= {"403", "409"}
    if "requestBody" in operation:
        statuses |= {"404", "413"}
    if any(parameter["name"] == "If-Match" for parameter in operation.get("parameters", [])):
        statuses |= {"412", "428"}
    if operation["operationId"] in SHOWS_PASSWORD or path.endswith("/history") or "/history/" in path:
        statuses.add("429")
    if operation["operationId"].startswith(ASK_ENGINES):
        statuses.add("502")
    for status in sorted(statuses):
        operation["responses"][status] = {
            "description": REASONS[status],
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}},
        }
