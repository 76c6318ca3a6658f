"""Serves an ASGI application on a real port from inside the test's event loop."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn

from thalweg.kernel.settings import Settings
from thalweg.serving import server_config

PATIENCE = 60.0
"""Seconds for an answer: a slow machine's, not a user's."""


@asynccontextmanager
async def serve(app: Any, port: int = 0, settings: Settings | None = None) -> AsyncGenerator[str, None]:
    """As thalweg-api does it with these settings."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    config = server_config(app, settings or Settings())
    config.timeout_graceful_shutdown = 1
    server = uvicorn.Server(config)
    server.install_signal_handlers = lambda: None
    task = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started:
        if task.done():
            await task
        await asyncio.sleep(0.01)
    try:
        yield f"{'https' if config.is_ssl else 'http'}://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await task
        listener.close()


def without_lifespan(app: Any) -> Any:
    """The application whose resources the test has already made."""

    async def served(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await app(scope, receive, send)

    return served


async def eventually(check: Any, seconds: float = 60.0) -> Any:
    """Awaits a condition that another task brings about; gives its first true value."""
    deadline = asyncio.get_running_loop().time() + seconds
    while True:
        value = await check()
        if value:
            return value
        if asyncio.get_running_loop().time() > deadline:
            raise AssertionError(f"not within {seconds} s: {check}")
        await asyncio.sleep(0.03)
