"""Every failure is problem details with a stable type and a cure; large and odd requests are refused in time."""

import json
import time

import httpx
import pytest
from fastapi import FastAPI
from starlette.types import Receive, Scope, Send

from tests.conftest import make_client
from tests.features.test_streams import body_of
from tests.support.engine_double import EngineDouble
from tests.support.servers import Cluster
from thalweg.engine_client.access import problem_of
from thalweg.engine_client.client import EngineClient, EngineFailure
from thalweg.kernel.context import Resources
from thalweg.kernel.http.guard import RequestGuard

FIELDS = {"type", "title", "status", "detail", "instance", "code", "cure", "sql", "errors", "checks"}


def check_problem(answer: httpx.Response, status: int, code: str) -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert set(problem) == FIELDS
    assert (problem["type"], problem["code"]) == (f"urn:thalweg:problem:{code}", code)
    assert problem["status"] == status
    assert problem["cure"]


async def test_unknown_address(admin: httpx.AsyncClient) -> None:
    check_problem(await admin.get("/api/v1/nothing"), 404, "not_found")
    check_problem(await admin.post("/api/v1/nothing"), 404, "not_found")


async def test_unknown_id(admin: httpx.AsyncClient) -> None:
    check_problem(await admin.get("/api/v1/streams/abcdefgh"), 404, "not_found")


async def test_wrong_method(admin: httpx.AsyncClient) -> None:
    answer = await admin.put("/api/v1/overview")
    check_problem(answer, 405, "method_not_allowed")
    assert answer.headers["allow"] == "GET"


async def test_unknown_field(admin: httpx.AsyncClient) -> None:
    answer = await admin.post("/api/v1/users", json={"name": "a", "password": "0123456789", "rolle": "admin"})
    check_problem(answer, 422, "invalid_request")
    assert answer.json()["errors"] == [
        {
            "pointer": "/rolle", "code": "extra_forbidden", "message": "Extra inputs are not permitted",
            "cure": None, "sql": None,
        }
    ]  # fmt: skip


async def test_refused_secret_is_not_repeated(admin: httpx.AsyncClient) -> None:
    answer = await admin.post("/api/v1/users", json={"name": "a", "password": "short one"})
    check_problem(answer, 422, "invalid_request")
    assert "short one" not in answer.text


@pytest.mark.parametrize("body", [b"{", b'{"name": "\\ud800", "password": "x"}', b"\xff\xfe", b"[" * 10_000, b"null"])
async def test_malformed_json(anonymous: httpx.AsyncClient, body: bytes) -> None:
    answer = await anonymous.post("/api/v1/session", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422)
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("parameters", ['{"\\ud800": 1}', '{"error_policies": [{"\\ud800": 1}]}'])
async def test_a_name_that_is_no_unicode(
    admin: httpx.AsyncClient, parameters: str, registered: dict[str, str], engine: EngineDouble
) -> None:
    body = body_of(registered)
    text = json.dumps({**body, "parameters": "here"}).replace('"here"', parameters)
    answer = await admin.post("/api/v1/streams", content=text, headers={"Content-Type": "application/json"})
    check_problem(answer, 422, "invalid_request")
    assert "/parameters/" in answer.json()["errors"][0]["pointer"]


async def test_pattern_of_ten_megabytes(admin: httpx.AsyncClient, registered: dict[str, str]) -> None:
    rules = {"include": [{"schema": "public", "table": "*" * 10_000_000}]}
    body = {"source_id": registered["source"], "rules": rules}
    check_problem(await admin.post("/api/v1/streams:preview-tables", json=body), 413, "body_too_large")


async def test_body_that_hides_its_size(app: FastAPI, admin: httpx.AsyncClient) -> None:
    async def endless():  # type: ignore[no-untyped-def]
        for _ in range(40):
            yield b" " * 100_000

    headers = {"Content-Type": "application/json"}
    answer = await admin.post("/api/v1/users", content=endless(), headers=headers)  # type: ignore[no-untyped-call]
    check_problem(answer, 413, "body_too_large")


@pytest.mark.parametrize("path", ["/session", "/session:verify-code", "/engines/enrol", "/users"])
@pytest.mark.parametrize("shown", [{}, {"Cookie": "thalweg_session=made-up", "Authorization": "Bearer made-up"}])
async def test_strangers_send_little(anonymous: httpx.AsyncClient, path: str, shown: dict[str, str]) -> None:
    answer = await anonymous.post("/api/v1" + path, json={f"{n:x}": 1 for n in range(80_000)}, headers=shown)
    if path == "/users" and shown:
        check_problem(answer, 401, "authentication_required")
    else:
        check_problem(answer, 413, "body_too_large")


async def test_only_what_needs_no_login_is_open_to_strangers(app: FastAPI) -> None:
    guard = next(layer for layer in app.user_middleware if layer.cls is RequestGuard)  # type: ignore[comparison-overlap]
    assert set(guard.kwargs["open_paths"]) == {  # type: ignore[union-attr]
        "/api/v1/session", "/api/v1/session:verify-code", "/api/v1/engines/enrol",
    }  # fmt: skip


async def test_many_unknown_fields_are_one_failure(admin: httpx.AsyncClient, registered: dict[str, str]) -> None:
    many: dict[str, object] = {f"{number:x}": 1 for number in range(80_000)}
    few = {f"{number:x}": 1 for number in range(5)}
    rules = {"include": [{"schema": "public", **dict(list(many.items())[:70])}] * 1000}
    preview = "/api/v1/streams:preview-tables"
    begun = time.process_time()
    answer = await admin.post("/api/v1/users", json=many)
    nested = await admin.post(preview, json={"source_id": registered["source"], "rules": rules})
    assert time.process_time() - begun < 2
    check_problem(answer, 422, "invalid_request")
    assert [error["code"] for error in answer.json()["errors"]] == ["too_many_fields"]
    check_problem(nested, 422, "invalid_request")
    assert len(nested.json()["errors"]) <= 100
    answer = await admin.post(preview, json=few)
    assert [error["code"] for error in answer.json()["errors"]].count("extra_forbidden") == 5


async def test_pattern_and_list_limits(admin: httpx.AsyncClient, registered: dict[str, str]) -> None:
    for include in ([{"schema": "public", "table": "a" * 129}], [{"schema": "a", "table": "b"}] * 1001, []):
        body = {"source_id": registered["source"], "rules": {"include": include}}
        answer = await admin.post("/api/v1/streams:preview-tables", json=body)
        check_problem(answer, 422, "invalid_request")
        assert answer.json()["errors"][0]["pointer"].startswith("/rules/include")


async def test_lost_store(admin: httpx.AsyncClient, resources: Resources, cluster: Cluster) -> None:
    """Without the store nothing can be answered, and the process says so instead of ending."""
    name = resources.engine.url.database
    cluster.execute(
        f"ALTER DATABASE {name} ALLOW_CONNECTIONS false",
        f"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '{name}'",
    )
    check_problem(await admin.get("/api/v1/overview"), 503, "store_unreachable")
    assert (await admin.get("/readyz")).status_code == 503
    assert (await admin.get("/healthz")).status_code == 200


async def test_security_headers(anonymous: httpx.AsyncClient) -> None:
    headers = (await anonymous.get("/api/v1/session", headers={"X-Request-Id": "abc"})).headers
    assert "default-src 'self'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert headers["x-request-id"] == "abc"


@pytest.mark.parametrize("given", ["", "a b", "a\tb", "x" * 65, "forged\x1b[31m", '"},{"level":"info', "abc\n"])
async def test_a_request_is_called_by_a_short_token_or_by_one_of_ours(given: str) -> None:
    """Headers that the server hands over: servers differ in what they let through."""
    seen: list[str] = []

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope["state"]["request_id"])

    async def nothing(*_: object) -> None: ...

    scope = {"type": "http", "method": "GET", "path": "/", "headers": [(b"x-request-id", given.encode())]}
    await RequestGuard(application, 1000)(scope, nothing, nothing)  # type: ignore[arg-type]
    assert seen[0] != given and seen[0].isalnum()


async def test_metrics_name_routes_and_not_addresses(anonymous: httpx.AsyncClient, viewer: httpx.AsyncClient) -> None:
    await anonymous.get("/api/v1/streams/abcdefgh")
    metrics = (await viewer.get("/metrics")).text
    assert 'route="/api/v1/streams/{stream_id}"' in metrics
    assert "abcdefgh" not in metrics


async def test_console_and_its_caching(app: FastAPI, anonymous: httpx.AsyncClient) -> None:
    missing = await anonymous.get("/streams")
    check_problem(missing, 404, "not_found")
    root = app.state.settings.console_directory
    (root / "assets").mkdir(parents=True)
    (root / "index.html").write_text("<html>")
    (root / "assets" / "a.js").write_text("1")
    (root.parent / "secret").write_text("s")
    check_problem(await anonymous.get("/api/docs"), 404, "not_found")
    (root / "api-docs.html").write_text("<html>reference")
    reference = await anonymous.get("/api/docs")
    assert (reference.text, reference.headers["cache-control"]) == ("<html>reference", "no-cache")
    assert reference.headers["content-security-policy"].startswith("default-src 'self';")
    page = await anonymous.get("/streams/abc/parameters")
    assert (page.text, page.headers["cache-control"]) == ("<html>", "no-cache")
    assert "immutable" in (await anonymous.get("/assets/a.js")).headers["cache-control"]
    check_problem(await anonymous.get("/assets/b.js"), 404, "not_found")
    async with make_client(app) as client:
        for path in ("/..%2fsecret", "/%2e%2e/secret", "/assets/../../secret"):
            assert (await client.get(path)).text != "s"


async def test_console_comes_compressed_where_the_browser_takes_it(app: FastAPI, anonymous: httpx.AsyncClient) -> None:
    root = app.state.settings.console_directory
    (root / "assets").mkdir(parents=True, exist_ok=True)
    script = root / "assets" / "big.js"
    for suffix in ("", ".br", ".gz"):
        script.with_name(script.name + suffix).write_text(f"as it is{suffix}")

    async def encoding(accepted: str) -> str | None:
        # Raw: the client would try to decompress what only pretends to be compressed.
        async with anonymous.stream("GET", "/assets/big.js", headers={"Accept-Encoding": accepted}) as answer:
            assert answer.headers["content-type"].startswith("text/javascript")
            assert answer.headers["vary"] == "Accept-Encoding"
            assert "immutable" in answer.headers["cache-control"]
            return answer.headers.get("content-encoding")

    assert await encoding("gzip, deflate, br") == "br"
    assert await encoding("gzip") == "gzip"
    assert await encoding("br;q=0, gzip;q=0.5") == "gzip"
    assert await encoding("identity") is None
    (root / "assets" / "big.js.br").unlink()
    assert await encoding("br") is None


async def test_an_engine_that_has_not_answered_in_time_is_not_called_away() -> None:
    def late(request: httpx.Request) -> httpx.Response:
        raise httpx.ReadTimeout("", request=request)

    def away(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    codes = []
    for answer in (late, away):
        async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as http:
            with pytest.raises(EngineFailure) as caught:
                await EngineClient(http, "http://127.0.0.1:1", "token", 1).execute_error("stream01", None, 1)
        codes.append(problem_of(caught.value).code)
        assert ("still at work" in caught.value.message) is (answer is late)
    assert codes == ["engine_slow", "engine_unreachable"]


async def test_a_question_that_an_engine_has_not_answered_in_time_leaves_nothing_to_be_done() -> None:
    def late(request: httpx.Request) -> httpx.Response:
        raise httpx.ReadTimeout("", request=request)

    async with httpx.AsyncClient(transport=httpx.MockTransport(late)) as http:
        with pytest.raises(EngineFailure) as caught:
            await EngineClient(http, "http://127.0.0.1:1", "token", 1).status()
    assert "has not answered in time" in caught.value.message
    assert "took the request" not in caught.value.message
    assert "done by then" not in caught.value.cure
