"""Serves the built console: hashed assets for ever, index.html always fresh and for every page's address. The reference
of the REST API, at /api/docs, is a page of the same build; what lies under /help/ is the help's (help.py).
"""

from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from thalweg.kernel.http.failures import respond
from thalweg.kernel.http.files import FOREVER, FRESH, NAME_LENGTH_MAX, answer_file, file_below
from thalweg.kernel.http.help import Help
from thalweg.kernel.problems import Problem

REFERENCE = "/api/docs"
REFERENCE_FILE = "api-docs.html"


class Console:
    """The router's default: gets what no route knows. Immutable."""

    def __init__(self, directory: Path, help_directory: Path) -> None:
        self._root = directory.resolve()
        self._help = Help(help_directory)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        await self._respond(request)(scope, receive, send)

    def _respond(self, request: Request) -> Response:
        path = request.url.path
        if path == REFERENCE and request.method in ("GET", "HEAD") and (self._root / REFERENCE_FILE).is_file():
            return answer_file(request, self._root / REFERENCE_FILE, FRESH)
        if path.startswith("/api/") or path == "/api":
            return respond(request, Problem("not_found", f"There is nothing at {path}.", "GET /api/v1/openapi.json."))
        if request.method not in ("GET", "HEAD"):
            problem = Problem("method_not_allowed", "Pages can only be read.", "Use GET.", headers={"Allow": "GET"})
            return respond(request, problem)
        if self._help.holds(path):
            return self._help.respond(request)
        file = file_below(self._root, path)
        if file is not None:
            return answer_file(request, file, FOREVER if path.startswith("/assets/") else FRESH)
        index = self._root / "index.html"
        name = path.rsplit("/", 1)[-1]
        is_page = "." not in name and len(name) <= NAME_LENGTH_MAX
        if is_page and index.is_file():
            return answer_file(request, index, FRESH)
        cure = "Build it with `make build`." if not index.is_file() else "Check the address."
        return respond(request, Problem("not_found", f"The console has no page at {path}.", cure))
