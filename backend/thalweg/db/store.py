"""The connection to the control store."""

from typing import Any

from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker, create_async_engine

from thalweg.kernel.outside import gave_back, took_connection
from thalweg.kernel.settings import Settings


def connect_store(settings: Settings, application: str) -> AsyncEngine:
    """Owner: the process's lifespan, which disposes of it. Connections are made on first use."""
    engine = create_async_engine(
        settings.store_url,
        pool_size=settings.store_pool_size,
        max_overflow=0,
        pool_pre_ping=True,
        pool_timeout=10,
        connect_args={"application_name": application, "connect_timeout": 5},
    )
    event.listen(engine.sync_engine, "checkout", _on_checkout)
    event.listen(engine.sync_engine, "checkin", _on_checkin)
    return engine


def _on_checkout(_connection: Any, record: Any, _proxy: Any) -> None:
    record.info["work"] = took_connection()


def _on_checkin(_connection: Any, record: Any) -> None:
    work = record.info.pop("work", None)
    if work is not None:
        gave_back(work)


def sessions_of(engine: AsyncEngine) -> async_sessionmaker[AsyncSession]:
    return async_sessionmaker(engine, expire_on_commit=False)
