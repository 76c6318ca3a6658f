"""Makes the resources that the API, the collector and the administration share."""

import httpx
from redis.asyncio import Redis

from thalweg.db.store import connect_store, sessions_of
from thalweg.features.identity.service import SessionsAndTokens
from thalweg.kernel.context import Resources
from thalweg.kernel.secret_box import load_secret_box
from thalweg.kernel.settings import Settings
from thalweg.live.redis import connect_redis


def make_resources(settings: Settings, application: str) -> Resources:
    """Nothing connects yet. The caller closes them with `close_resources`."""
    engine = connect_store(settings, application)
    redis: Redis = connect_redis(settings)
    return Resources(
        settings=settings, engine=engine, sessions=sessions_of(engine), redis=redis, http=httpx.AsyncClient(),
        secrets=load_secret_box(settings), authenticator=SessionsAndTokens(),
    )  # fmt: skip


async def close_resources(resources: Resources) -> None:
    await resources.http.aclose()
    await resources.redis.aclose()
    await resources.engine.dispose()
