"""The connection to Redis."""

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from thalweg.kernel.settings import Settings


def connect_redis(settings: Settings) -> Redis:
    """Owner: the process's lifespan. Connects on first use; one quick retry covers a restarted server."""
    return Redis.from_url(
        settings.redis_url,
        socket_connect_timeout=1.0,
        socket_timeout=5.0,
        protocol=2,
        retry=Retry(NoBackoff(), 1),
    )
