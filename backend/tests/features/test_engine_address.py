"""An engine on another host is asked over TLS or not at all: its token and the databases' passwords go there."""

from pathlib import Path

import httpx
import pytest

from tests.support.engine_double import TOKEN
from tests.test_commands import Shell, shell  # noqa: F401
from thalweg.engine_client.address import require_private_way


@pytest.mark.parametrize(
    "url",
    [
        "http://192.0.2.7:8643",
        "http://engine.example.com:8643",
        "http://127.0.0.1.example.com",
        "http://[2001:db8::1]:1",
    ],
)
async def test_plain_http_to_another_host_is_refused(admin: httpx.AsyncClient, url: str) -> None:
    token = (await admin.post("/api/v1/engines/enrolments", json={})).json()["token"]
    body = {"token": token, "name": "far", "url": url, "control_token": TOKEN}
    answer = await admin.post("/api/v1/engines/enrol", json=body)
    assert answer.status_code == 422, answer.text
    (problem,) = answer.json()["errors"]
    assert (problem["pointer"], problem["code"]) == ("/url", "engine_needs_tls")
    assert "--tls-cert" in answer.json()["cure"]
    assert (await admin.get("/api/v1/engines")).json()["items"] == []


async def test_an_address_that_is_none_is_refused(admin: httpx.AsyncClient) -> None:
    token = (await admin.post("/api/v1/engines/enrolments", json={})).json()["token"]
    body = {"token": token, "name": "far", "url": "http://host:port:8643", "control_token": TOKEN}
    assert (await admin.post("/api/v1/engines/enrol", json=body)).status_code == 422


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8643", "http://127.8.0.1", "http://[::1]:8643", "http://localhost:8643", "https://far:1"]
)
def test_loopback_and_tls_are_fine(url: str) -> None:
    require_private_way(url)


async def test_the_administration_refuses_it_too(shell: Shell, admin: httpx.AsyncClient, tmp_path: Path) -> None:  # noqa: F811
    file = tmp_path / "engine-token"
    file.write_text(TOKEN)
    answer = await shell.admin("enrol-local", "--token-file", str(file), "--url", "http://10.0.0.1:8643", "--wait", "0")
    assert (answer.code, "--tls-cert" in answer.err) == (1, True), answer.out
    assert (await admin.get("/api/v1/engines")).json()["items"] == []
