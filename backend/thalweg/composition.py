"""Makes the resources that the API, the collector and the administration share."""

import ssl

import httpx
from redis.asyncio import Redis

from thalweg.db.store import connect_store, sessions_of
from thalweg.engine_client.transport import EngineTransport
from thalweg.features.identity.service import SessionsAndTokens
from thalweg.kernel.context import Resources
from thalweg.kernel.secret_box import load_secret_box
from thalweg.kernel.settings import Settings
from thalweg.kernel.words import ended
from thalweg.live.redis import connect_redis


class EngineCaError(RuntimeError):
    """The setting engine_ca_file names a file that holds no certificates."""


def make_resources(settings: Settings, application: str) -> Resources:
    """Creates the resources without connecting. The caller closes them with `close_resources`."""
    engine = connect_store(settings, application)
    redis: Redis = connect_redis(settings)
    return Resources(
        settings=settings, engine=engine, sessions=sessions_of(engine), redis=redis, http=engine_http(settings),
        secrets=load_secret_box(settings), authenticator=SessionsAndTokens(),
    )  # fmt: skip


def engine_http(settings: Settings) -> httpx.AsyncClient:
    """The client that talks to engines. Raises EngineCaError when the file of certificates cannot be used."""
    if settings.engine_ca_file is None:
        return httpx.AsyncClient(transport=EngineTransport())
    try:
        trusted = ssl.create_default_context(cafile=settings.engine_ca_file)
        return httpx.AsyncClient(transport=EngineTransport(trusted))
    except (OSError, ssl.SSLError) as error:
        raise EngineCaError(
            f"THALWEG_ENGINE_CA_FILE: {settings.engine_ca_file} holds no certificates that can be read: "
            f"{ended(str(error))}"
        ) from error


async def close_resources(resources: Resources) -> None:
    await resources.http.aclose()
    await resources.redis.aclose()
    await resources.engine.dispose()
