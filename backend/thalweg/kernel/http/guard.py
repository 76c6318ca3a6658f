"""The outermost middleware: request ids, the body's size limit, security headers, access log and metrics."""

import re
import time

import structlog
from prometheus_client import Counter, Histogram
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from thalweg.kernel.ids import new_id

REQUEST_ID = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
"""Request ids that a client may choose for our log and audit; any other request gets an id of ours."""
SECURITY_HEADERS = {
    # Styles are inline because the console's component library sets them; scripts never are.
    "Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self' data:; object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
REQUESTS = Counter("thalweg_api_requests_total", "Requests answered.", ["method", "route", "status"])
SECONDS = Histogram("thalweg_api_request_seconds", "Time until the answer began.", ["method", "route"])
API_PREFIX = "/api/v1"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
log = structlog.get_logger("thalweg.access")


STRANGERS_BODY_BYTES_MAX = 16 * 2**10
"""Where no login is needed: a name and a secret, each of whose characters may be an escape."""


class BodyTooLarge(HTTPException):
    def __init__(self, limit: int) -> None:
        super().__init__(413, f"The body is larger than {limit} bytes.")


class RequestGuard:
    """Immutable. `body_bytes_max` bounds every request, whatever its Content-Length says. Strangers may send less:
    requests that show neither a cookie nor a token, and requests to `open_paths`, which ask for neither."""

    def __init__(self, app: ASGIApp, body_bytes_max: int, open_paths: frozenset[str] = frozenset()) -> None:
        self._app = app
        self._body_bytes_max = body_bytes_max
        self._open_paths = open_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        request_id = given if REQUEST_ID.fullmatch(given) else new_id()
        scope.setdefault("state", {})["request_id"] = request_id
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=request_id)
        started = time.monotonic()
        status = 500

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                _complete_headers(message, request_id, scope["path"])
                _measure(scope, status, time.monotonic() - started)
            await send(message)

        try:
            await self._app(scope, self._limited(receive, headers, scope["path"]), answer)
        finally:
            log.info(
                "request", method=scope["method"], path=scope["path"], status=status,
                milliseconds=round((time.monotonic() - started) * 1000, 1),
            )  # fmt: skip

    def _limited(self, receive: Receive, headers: Headers, path: str) -> Receive:
        stranger = path in self._open_paths or not ("authorization" in headers or "cookie" in headers)
        limit = min(self._body_bytes_max, STRANGERS_BODY_BYTES_MAX) if stranger else self._body_bytes_max
        declared = headers.get("content-length", "0")
        too_large = declared.isdecimal() and int(declared) > limit
        received = 0

        async def limited() -> Message:
            nonlocal received
            if too_large:
                raise BodyTooLarge(limit)
            message = await receive()
            received += len(message.get("body", b""))
            if received > limit:
                raise BodyTooLarge(limit)
            return message

        return limited


def _complete_headers(message: Message, request_id: str, path: str) -> None:
    headers = MutableHeaders(scope=message)
    headers["X-Request-Id"] = request_id
    for name, value in SECURITY_HEADERS.items():
        headers.setdefault(name, value)
    if path.startswith("/api/"):
        headers.setdefault("Cache-Control", "no-store")


def _measure(scope: Scope, status: int, seconds: float) -> None:
    """Labels come from the route's template: paths of strangers would make endless series."""
    route = getattr(scope.get("route"), "path", "other")
    if route != "other" and scope["path"].startswith(API_PREFIX) and not route.startswith(API_PREFIX):
        route = API_PREFIX + route
    method = scope["method"] if scope["method"] in METHODS else "OTHER"
    REQUESTS.labels(method, route, str(status)).inc()
    SECONDS.labels(method, route).observe(seconds)
