"""Logs in at a user's server, on a thread of its own.

The server decides how much a login computes: SCRAM lets it name the number of rounds (RFC 5802, section 5.1), up to two
thousand million of them, and libpq does them all in one step that nothing ends. That takes half an hour, in which the
event loop would stand still.
"""

import asyncio
import os
from concurrent.futures import Future
from threading import Lock, Thread

import psycopg
from psycopg.rows import dict_row

from thalweg.inspection.bounds import BoundedConnection

GRACE_SECONDS = 2.0
"""Beyond libpq's own time: for the start of the thread, and for what an honest login computes."""
LEFT_MAX = 32
"""Logins under way that nobody waits for any more."""
LEFT_NICENESS = 19
"""They get the processor only where nobody else wants it."""
_left: set["_Login"] = set()


class TooManyRounds(psycopg.OperationalError):
    """A server wants too many rounds of SCRAM. The message is ours."""


async def log_in(conninfo: str, server: str, seconds: float) -> BoundedConnection:
    """In autocommit mode. `server` is its address in words, `seconds` libpq's time for all of its hosts. Raises
    TooManyRounds where the login computes for longer, and psycopg.Error."""
    if any(login.server == server and login.is_overdue for login in _left):
        raise TooManyRounds(f"A login at {server} still computes: the server asked for far too many SCRAM rounds.")
    if len(_left) >= LEFT_MAX:
        raise TooManyRounds(f"{LEFT_MAX} logins that nobody waits for any more have not ended yet.")
    login = _Login(conninfo, server)
    login.start()
    try:
        return await asyncio.wait_for(asyncio.wrap_future(login.result), seconds + GRACE_SECONDS)
    except BaseException as error:
        login.is_overdue = isinstance(error, TimeoutError)
        login.leave()
        if login.is_overdue:
            raise TooManyRounds("The server asks for more SCRAM rounds than a login may cost.") from error
        raise


class _Login(Thread):
    """Owner: the event loop's thread, except for `run`."""

    def __init__(self, conninfo: str, server: str) -> None:
        super().__init__(name="login", daemon=True)  # the process may end before it
        self.result: Future[BoundedConnection] = Future()
        self.result.set_running_or_notify_cancel()  # from here on nobody can cancel it
        self._conninfo, self.server = conninfo, server
        self.is_overdue = False
        self._lock = Lock()
        self._is_left = False

    def run(self) -> None:
        connection, failure = None, None
        try:
            connection = asyncio.run(BoundedConnection.connect(self._conninfo, autocommit=True, row_factory=dict_row))
        except BaseException as error:  # all of them are the caller's
            failure = error
        with self._lock:
            if self._is_left:
                _left.discard(self)
                if connection is not None:
                    connection.pgconn.finish()
            elif connection is not None:
                self.result.set_result(connection)
            else:
                self.result.set_exception(failure)

    def leave(self) -> None:
        """Nobody takes the result any more."""
        with self._lock:
            if not self.result.done():
                self._is_left = True
                _left.add(self)
                os.setpriority(os.PRIO_PROCESS, self.native_id or 0, LEFT_NICENESS)
            elif self.result.exception() is None:
                self.result.result().pgconn.finish()
