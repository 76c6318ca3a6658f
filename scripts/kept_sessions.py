"""Idle sessions that wait for the next statement: to open one costs more than most statements of a test."""

import select
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

Session = psycopg.Connection[Any]


class Sessions:
    """Any thread: each statement has a session to itself, in the state of a new one."""

    def __init__(self, opened: Callable[[str], Session]) -> None:
        self._opened = opened
        self._idle: dict[str, list[Session]] = {}

    @contextmanager
    def session(self, database: str) -> Iterator[Session]:
        session = self._taken(database) or self._opened(database)
        try:
            yield session
            if session.info.transaction_status == TransactionStatus.IDLE:
                session.execute("DISCARD ALL")
                self._idle.setdefault(database, []).append(session)
                return
        except BaseException:
            session.close()
            raise
        session.close()

    def close(self, database: str) -> None:
        """Before the database is dropped, say."""
        for session in self._idle.pop(database, []):
            session.close()

    def _taken(self, database: str) -> Session | None:
        idle = self._idle.get(database, [])
        while idle:
            session = idle.pop()
            # To a session that has asked for nothing a server only says that it ends it.
            if not select.select([session.fileno()], [], [], 0)[0]:
                return session
            session.close()
        return None
