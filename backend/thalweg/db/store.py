"""The connection to the control store."""

from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker, create_async_engine

from thalweg.kernel.settings import Settings


def connect_store(settings: Settings, application: str) -> AsyncEngine:
    """Owner: the process's lifespan, which disposes of it. Connections are made on first use."""
    return create_async_engine(
        settings.store_url,
        pool_size=settings.store_pool_size,
        max_overflow=0,
        pool_pre_ping=True,
        pool_timeout=10,
        connect_args={"application_name": application, "connect_timeout": 5},
    )


def sessions_of(engine: AsyncEngine) -> async_sessionmaker[AsyncSession]:
    return async_sessionmaker(engine, expire_on_commit=False)
