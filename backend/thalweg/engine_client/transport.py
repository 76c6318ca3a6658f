"""Connections to engines."""

import ssl

import httpx

ONCE = "thalweg.once"
"""The extension of a request that must not be sent again, since the engine may have done it."""


class EngineTransport(httpx.AsyncBaseTransport):
    """Keeps connections for further requests, but not for those that must not be sent again: an engine may close a kept
    connection while a request is on its way, and nobody knows then whether the engine has got it. Closing it closes
    both pools."""

    def __init__(self, verify: ssl.SSLContext | bool = True) -> None:
        self._kept = httpx.AsyncHTTPTransport(verify=verify)
        self._fresh = httpx.AsyncHTTPTransport(verify=verify, limits=httpx.Limits(max_keepalive_connections=0))

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        pool = self._fresh if ONCE in request.extensions else self._kept
        return await pool.handle_async_request(request)

    async def aclose(self) -> None:
        await self._kept.aclose()
        await self._fresh.aclose()
