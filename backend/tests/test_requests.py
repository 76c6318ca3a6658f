"""Requests that the API refuses before it does anything: wrong methods, unknown parameters, requests that never end,
strangers' headers; and how it is served by HTTPS."""

import asyncio
import ssl
import sys
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from pydantic import ValidationError

from tests.conftest import PASSWORD, Users
from tests.support.engine_double import TOKEN
from tests.support.real_engine import make_certificate
from tests.support.serving import PATIENCE, serve, without_lifespan
from thalweg.kernel.principal import Role
from thalweg.kernel.settings import Settings
from thalweg.serving import CertificateError, server_config

FORWARDED = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https"}


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/api/v1/databases/abcdefgh", "DELETE, GET, PATCH"),
        ("PUT", "/api/v1/databases", "GET, POST"),
        ("GET", "/api/v1/databases:test", "POST"),
        ("GET", "/api/v1/streams/abcdefgh:start", "POST"),
        ("GET", "/api/v1/engines/enrol", "POST"),
        ("GET", "/api/v1/engines/enrolments", "POST"),
        ("POST", "/api/v1/streams/x", "DELETE, GET, PATCH"),
        ("DELETE", "/healthz", "GET"),
        ("BREW", "/api/v1/session", "DELETE, GET, POST"),
    ],
)
async def test_a_wrong_method_is_told_the_right_ones(
    admin: httpx.AsyncClient, method: str, path: str, allowed: str
) -> None:
    answer = await admin.request(method, path)
    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")
    assert answer.headers["allow"] == allowed
    assert allowed in answer.json()["cure"]


async def test_every_operation_refuses_unknown_query_parameters(admin: httpx.AsyncClient) -> None:
    document = (await admin.get("/api/v1/openapi.json")).json()
    for path, operations in document["paths"].items():
        for method in operations:
            address = path.replace("{", "").replace("}", "")
            answer = await admin.request(method, address, params={"nonsense": "1"})
            assert answer.status_code == 422, (method, path)
            pointers = [error["pointer"] for error in answer.json()["errors"]]
            assert pointers == ["/query/nonsense"], (method, path)
    told = (await admin.get("/api/v1/streams", params={"limit": 5, "lmit": 5})).json()
    assert "cursor, limit" in told["errors"][0]["message"]


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: x\r\n", b"POST /api/v1/session HTTP/1.1\r\nHost: x\r\n"
                                  b"Content-Type: application/json\r\nContent-Length: 50\r\n\r\n{"])  # fmt: skip
async def test_a_request_that_never_ends_is_ended(app: FastAPI, settings: Settings, sent: bytes) -> None:
    settings.request_seconds = 0.5
    async with serve(without_lifespan(app), settings=settings) as url:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rsplit(":", 1)[1]))
        writer.write(sent)
        answer = await asyncio.wait_for(reader.read(), 30)
        writer.close()
    assert answer.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert b"request_timeout" in answer


async def test_a_kept_connection_gets_the_same_time_for_each_request(app: FastAPI, settings: Settings) -> None:
    settings.request_seconds = 0.5
    async with serve(without_lifespan(app), settings=settings) as url:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rsplit(":", 1)[1]))
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await reader.readuntil(b"}")).startswith(b"HTTP/1.1 200")
        writer.write(b"GET /healthz HTTP/1.1\r\n")
        assert (await asyncio.wait_for(reader.read(), 30)).startswith(b"HTTP/1.1 408")
        writer.close()


async def login_address(admin: httpx.AsyncClient, app: FastAPI, settings: Settings) -> tuple[str, str]:
    """(the address that the audit log has of a login through a proxy, the cookie)"""
    async with serve(without_lifespan(app), settings=settings) as url, httpx.AsyncClient(timeout=PATIENCE) as client:
        body = {"name": "viewer", "password": PASSWORD}
        answer = await client.post(f"{url}/api/v1/session", json=body, headers=FORWARDED)
    assert answer.status_code == 201
    return (await admin.get("/api/v1/audit")).json()["items"][0]["address"], answer.headers["set-cookie"]


async def test_forwarded_addresses_count_only_from_the_proxies_that_are_named(
    admin: httpx.AsyncClient, app: FastAPI, settings: Settings
) -> None:
    assert (await login_address(admin, app, settings))[0] == "127.0.0.1"
    settings.trusted_proxies = ["10.0.0.0/8"]
    assert (await login_address(admin, app, settings))[0] == "127.0.0.1"
    settings.trusted_proxies = ["127.0.0.0/8"]
    assert (await login_address(admin, app, settings))[0] == "203.0.113.9"


def test_proxies_are_addresses_or_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THALWEG_TRUSTED_PROXIES", "10.0.0.0/8, 192.0.2.7")
    assert Settings().trusted_proxies == ["10.0.0.0/8", "192.0.2.7"]
    monkeypatch.setenv("THALWEG_TRUSTED_PROXIES", "*")
    with pytest.raises(ValidationError, match="trusted_proxies"):
        Settings()


async def test_https_by_setting_makes_cookies_secure(
    app: FastAPI, users: Users, settings: Settings, tmp_path: Path
) -> None:
    settings.tls_certificate_file, settings.tls_key_file = make_certificate(tmp_path)
    trusted = ssl.create_default_context(cafile=settings.tls_certificate_file)
    async with (
        serve(without_lifespan(app), settings=settings) as url,
        httpx.AsyncClient(verify=trusted, timeout=PATIENCE) as client,
    ):
        assert url.startswith("https://")
        answer = await client.post(f"{url}/api/v1/session", json={"name": "viewer", "password": PASSWORD})
    assert answer.status_code == 201
    assert "; secure" in answer.headers["set-cookie"].lower()


def test_certificate_and_key_must_be_usable(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="go together"):
        Settings(tls_certificate_file=tmp_path / "a")
    with pytest.raises(CertificateError, match="THALWEG_TLS_KEY_FILE"):
        server_config(None, Settings(tls_certificate_file=tmp_path / "a", tls_key_file=tmp_path / "b"))


async def test_a_control_token_that_no_header_can_hold_is_refused(
    admin: httpx.AsyncClient, double: tuple[object, str]
) -> None:
    token = (await admin.post("/api/v1/engines/enrolments", json={})).json()["token"]
    for odd in ("ключ от машины номер один", "token with spaces in it", TOKEN + "\n"):
        body = {"token": token, "name": "local", "url": double[1], "control_token": odd}
        answer = await admin.post("/api/v1/engines/enrol", json=body)
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/control_token"), odd


async def test_command_line_trusts_the_authority_that_it_is_given(
    app: FastAPI, users: Users, settings: Settings, tmp_path: Path
) -> None:
    settings.tls_certificate_file, settings.tls_key_file = make_certificate(tmp_path)
    async with serve(without_lifespan(app), settings=settings) as url:
        for trusted, code in ((str(settings.tls_certificate_file), 0), ("", 4), (str(settings.tls_key_file), 1)):
            process = await asyncio.create_subprocess_exec(
                str(Path(sys.executable).with_name("thalweg")), "databases", "list",
                env={"THALWEG_URL": url, "THALWEG_TOKEN": users.tokens[Role.VIEWER], "THALWEG_CA_FILE": trusted},
                stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
            )  # fmt: skip
            output, _ = await process.communicate()
            assert process.returncode == code, output
            assert (code == 0) == (b"THALWEG_CA_FILE" not in output), output
