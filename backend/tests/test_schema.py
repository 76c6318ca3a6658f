"""Schemathesis: generated requests, valid and invalid, get only answers that the OpenAPI document promises."""

import asyncio
import sys
from pathlib import Path

from fastapi import FastAPI

from tests.conftest import Users
from tests.support.serving import serve, without_lifespan
from thalweg.kernel.principal import Role

SECONDS_MAX = 30
# The stream of events never ends; the others would end the run's own access.
LEFT_OUT = ["events_subscribe", "session_create", "session_delete", "tokens_revoke", "users_delete", "users_update",
            "users_change_password"]  # fmt: skip
CHECKS = ["not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance",
          "response_headers_conformance", "negative_data_rejection", "unsupported_method",
          "missing_required_header"]  # fmt: skip


async def test_every_operation_keeps_its_promises(app: FastAPI, users: Users, tmp_path: Path) -> None:
    app.openapi()  # Made once: on a busy machine that takes longer than the first request waits.
    async with serve(without_lifespan(app)) as url:
        process = await asyncio.create_subprocess_exec(
            str(Path(sys.executable).with_name("schemathesis")), "run", f"{url}/api/v1/openapi.json", "--url", url,
            "--header", f"Authorization: Bearer {users.tokens[Role.ADMIN]}", "--checks", ",".join(CHECKS),
            "--phases", "coverage,fuzzing", "--max-examples", "8", "--max-time", str(SECONDS_MAX), "--seed", "1",
            "--no-shrink", "--no-color", "--warnings", "off", "--request-timeout", "20", "--continue-on-failure",
            "--generation-database", "none", "--suppress-health-check", "all",
            *(part for name in LEFT_OUT for part in ("--exclude-operation-id", name)),
            cwd=tmp_path, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        output, _ = await process.communicate()
    report = output.decode(errors="replace")
    assert process.returncode == 0, report[-12000:]
    assert "Test cases" in report or "generated" in report, report
