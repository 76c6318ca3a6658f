"""Serves the built console: hashed assets for ever, index.html always fresh and for every page's address. The reference
of the REST API, at /api/docs, is a page of the same build.

The build lays compressed copies beside its files (`index.js.br`, `index.js.gz`); a browser gets the smallest one that
it accepts (RFC 9110, 12.5.3).
"""

import mimetypes
from pathlib import Path

from fastapi.responses import FileResponse
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from thalweg.kernel.http.failures import respond
from thalweg.kernel.problems import Problem

FOREVER = "public, max-age=31536000, immutable"
FRESH = "no-cache"
REFERENCE = "/api/docs"
REFERENCE_FILE = "api-docs.html"
# The smaller one first.
ENCODINGS = {"br": ".br", "gzip": ".gz"}


class Console:
    """The router's default: gets what no route knows. Immutable."""

    def __init__(self, directory: Path) -> None:
        self._root = directory.resolve()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        await self._respond(request)(scope, receive, send)

    def _respond(self, request: Request) -> Response:
        path = request.url.path
        if path == REFERENCE and request.method in ("GET", "HEAD") and (self._root / REFERENCE_FILE).is_file():
            return _answer(request, self._root / REFERENCE_FILE, FRESH)
        if path.startswith("/api/") or path == "/api":
            return respond(request, Problem("not_found", f"There is nothing at {path}.", "GET /api/v1/openapi.json."))
        if request.method not in ("GET", "HEAD"):
            problem = Problem("method_not_allowed", "Pages can only be read.", "Use GET.", headers={"Allow": "GET"})
            return respond(request, problem)
        file = self._file(path)
        if file is not None:
            return _answer(request, file, FOREVER if path.startswith("/assets/") else FRESH)
        index = self._root / "index.html"
        is_page = "." not in path.rsplit("/", 1)[-1]
        if is_page and index.is_file():
            return _answer(request, index, FRESH)
        cure = "Build it with `make build`." if not index.is_file() else "Check the address."
        return respond(request, Problem("not_found", f"The console has no page at {path}.", cure))

    def _file(self, path: str) -> Path | None:
        if "\x00" in path:
            return None
        file = (self._root / path.lstrip("/")).resolve()
        return file if file.is_relative_to(self._root) and file.is_file() else None


def _answer(request: Request, file: Path, caching: str) -> FileResponse:
    headers = {"Cache-Control": caching, "Vary": "Accept-Encoding"}
    media_type = mimetypes.guess_type(file.name)[0]
    for encoding in ENCODINGS:
        copy = file.with_name(file.name + ENCODINGS[encoding])
        if accepts(request.headers.get("accept-encoding", ""), encoding) and copy.is_file():
            return FileResponse(copy, headers={**headers, "Content-Encoding": encoding}, media_type=media_type)
    return FileResponse(file, headers=headers, media_type=media_type)


def accepts(header: str, encoding: str) -> bool:
    """Whether a browser takes `encoding`: it is listed, and not with a weight of 0."""
    for item in header.lower().split(","):
        name, _, weight = item.partition(";")
        if name.strip() == encoding:
            return weight.replace(" ", "").rstrip("0").rstrip(".") != "q="
    return False
