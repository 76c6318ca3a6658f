"""The help under /help/: its pages, what may be kept, and what is not there."""

import httpx
from fastapi import FastAPI

from tests.conftest import make_client


async def test_help_that_is_not_built_says_how_to_build_it(anonymous: httpx.AsyncClient) -> None:
    for path in ("/help/", "/help/guides/lab.html"):
        answer = await anonymous.get(path)
        assert answer.status_code == 404
        assert answer.headers["content-type"].startswith("text/html")
        assert "scripts/build.sh help" in answer.text
    assert (await anonymous.post("/help/")).status_code == 405


async def test_help_and_its_caching(app: FastAPI, anonymous: httpx.AsyncClient) -> None:
    root = app.state.settings.help_directory
    files = {"index.html": "home", "guides/lab.html": "the lab", "decisions/index.html": "decisions",
             "assets/javascripts/bundle.0123.js": "script", "search/search_index.json": "index"}  # fmt: skip
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "search/search_index.json.gz").write_text("smaller")
    (root.parent / "secret").write_text("s")

    moved = await anonymous.get("/help", follow_redirects=False)
    assert (moved.status_code, moved.headers["location"]) == (308, "/help/")
    for path, text in (("/help/", "home"), ("/help/guides/lab.html", "the lab"), ("/help/decisions/", "decisions")):
        page = await anonymous.get(path)
        assert (page.status_code, page.text, page.headers["cache-control"]) == (200, text, "no-cache")
        assert page.headers["content-security-policy"].startswith("default-src 'self';")
    script = await anonymous.get("/help/assets/javascripts/bundle.0123.js")
    assert "immutable" in script.headers["cache-control"]
    async with anonymous.stream("GET", "/help/search/search_index.json", headers={"Accept-Encoding": "gzip"}) as index:
        assert (index.headers["content-encoding"], index.headers["cache-control"]) == ("gzip", "no-cache")

    missing = await anonymous.get("/help/guides/%3Cb%3E.html")
    assert missing.status_code == 404 and 'href="/help/"' in missing.text
    assert "<b>" not in missing.text and "&lt;b&gt;" in missing.text
    assert (await anonymous.get("/helpful")).headers["content-type"] == "application/problem+json"
    async with make_client(app) as client:
        for path in ("/help/..%2fsecret", "/help/%2e%2e/secret", "/help/assets/../../secret", "/help/%00"):
            answer = await client.get(path)
            assert answer.status_code == 404 and answer.text != "s", path


async def test_a_name_too_long_for_any_file_is_not_there(anonymous: httpx.AsyncClient) -> None:
    for path in (f"/{'a' * 300}", f"/assets/{'a' * 300}.js", f"/help/{'a' * 5000}", f"/help/{'a/' * 3000}"):
        assert (await anonymous.get(path)).status_code == 404, path[:20]
