"""No code waits for the world outside while it holds a connection of the store, nor for a second connection.

A pool has few connections. Code that holds one while a database, an engine, Redis, a receiver of notices or a password
hash takes its time stops everybody else; code that holds one and waits for another stops itself. The store registers
holders here, and all code that waits for the outside checks here first: `make lint` finds what does not
(`scripts/lint/outside.py`). A violation fails in tests and is logged elsewhere.
"""

import asyncio
from contextvars import ContextVar, Token
from dataclasses import dataclass

import structlog

log = structlog.get_logger(__name__)


class HeldConnection(AssertionError):
    """Outside work inside a store transaction: a mistake of the program's."""


@dataclass
class Work:
    """One request with all its tasks, or one task of a worker, and the connections that it holds. One event loop."""

    task: asyncio.Task[object] | None
    held: int = 0


_work: ContextVar[Work | None] = ContextVar("work", default=None)
strict = False
"""True: a violation raises HeldConnection."""


def begin_request() -> Token[Work | None]:
    return _work.set(Work(None))


def end_request(token: Token[Work | None]) -> None:
    _work.reset(token)


def took_connection() -> Work:
    """Called by the store's pool. The answer goes to `gave_back` with the connection."""
    work = _current()
    if work is None:
        work = Work(asyncio.current_task())
        _work.set(work)
    if work.held:
        _report("a second connection of the store was taken")
    work.held += 1
    return work


def gave_back(work: Work) -> None:
    work.held -= 1


def outside(awaited: str) -> None:
    """Say this before waiting for what is not the store."""
    work = _current()
    if work is not None and work.held:
        _report(f"{awaited} was waited for")


def _current() -> Work | None:
    """A request's tasks share its work. A worker's tasks inherit what began them, and have work of their own."""
    work = _work.get()
    if work is None or (work.task is not None and work.task is not asyncio.current_task()):
        return None
    return work


def _report(violation: str) -> None:
    message = f"{violation} while a connection of the store was held"
    if strict:
        raise HeldConnection(message)
    log.error("store connection held", error=message, stack_info=True)
