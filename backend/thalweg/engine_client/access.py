"""From an engine's row to a client, and from its failures to problem details."""

from dataclasses import replace

import httpx

from thalweg.db.models import EngineRow
from thalweg.engine_client.client import EngineClient, EngineFailure
from thalweg.engine_client.documents import ABOUT_ROWS
from thalweg.engine_client.error_codes import ErrorCode
from thalweg.kernel.principal import Principal, Role
from thalweg.kernel.problems import Problem
from thalweg.kernel.row_values import state_quotes_rows
from thalweg.kernel.secret_box import SecretBox


def client_of(row: EngineRow, http: httpx.AsyncClient, secrets: SecretBox, timeout: float) -> EngineClient:
    return EngineClient(http, row.url, secrets.open(row.control_token_sealed), timeout)


OF_DATABASES = (ErrorCode.DATABASE_ERROR, *ABOUT_ROWS)


def problem_for(reader: Principal, failure: EngineFailure) -> Problem:
    """Without what a database may have said about rows, where the reader is a viewer: only an SQLSTATE that is known
    to name none lets its message through."""
    hides = failure.code in OF_DATABASES or failure.sqlstate != ""
    if hides and state_quotes_rows(failure.sqlstate) and not reader.role.covers(Role.OPERATOR):
        failure = replace(failure, message="The engine's database refused it; operators are shown why.")
    return problem_of(failure)


def problem_of(failure: EngineFailure) -> Problem:
    """For operators."""
    if not failure.reached:
        code = "engine_slow" if failure.code == "engine_slow" else "engine_unreachable"
        return Problem(code, failure.message, failure.cure)
    if failure.code == ErrorCode.DATABASE_BUSY:
        return Problem("engine_busy", failure.message, "Try again in a moment.")
    if failure.status == httpx.codes.NOT_FOUND:
        return Problem("not_found", failure.message, failure.cure or "Read the list again.")
    if failure.status == httpx.codes.CONFLICT:
        return Problem("conflict", failure.message, failure.cure or "Read the stream's state again.")
    return Problem("engine_refused", failure.message, failure.cure)
