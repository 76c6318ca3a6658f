"""From an engine's row to a client, and from its failures to problem details."""

import httpx

from thalweg.db.models import EngineRow
from thalweg.engine_client.client import EngineClient, EngineFailure
from thalweg.kernel.problems import Problem
from thalweg.kernel.secret_box import SecretBox


def client_of(row: EngineRow, http: httpx.AsyncClient, secrets: SecretBox, timeout: float) -> EngineClient:
    return EngineClient(http, row.url, secrets.open(row.control_token_sealed), timeout)


def problem_of(failure: EngineFailure) -> Problem:
    if not failure.reached:
        code = "engine_slow" if failure.code == "engine_slow" else "engine_unreachable"
        return Problem(code, failure.message, failure.cure)
    if failure.status == httpx.codes.NOT_FOUND:
        return Problem("not_found", failure.message, failure.cure or "Read the list again.")
    if failure.status == httpx.codes.CONFLICT:
        return Problem("conflict", failure.message, failure.cure or "Read the stream's state again.")
    return Problem("engine_refused", failure.message, failure.cure)
