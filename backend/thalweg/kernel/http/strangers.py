"""The allowance that the API gives strangers: whoever has not shown a session or a token that is valid.

Connections and requests are counted by the network that they come from until they have authenticated. Where an
allowance is used up, a new connection takes the place of one of its strangers, so that somebody who is slow on purpose
pushes out only themselves; a new request is refused. Then their connections are counted by the user: one who has too
many keeps those, and gets no further one.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from thalweg.kernel.http.failures import respond
from thalweg.kernel.networks import network_of
from thalweg.kernel.problems import Problem

CONNECTIONS_EACH_MAX = 64
"""A browser opens six; several people may share an address."""
CONNECTIONS_MAX = 400
"""The connections of all strangers: well below the descriptors that a process usually has (1024)."""
REQUESTS_EACH_MAX = 32
"""Fewer than wait for a password's hash (`thalweg.kernel.passwords`): one network cannot fill that queue."""
REQUESTS_SHOWING_MAX = 200
"""Requests of one network with a cookie or token that has not been looked up yet: users' requests come in crowds."""
REQUESTS_MAX = 200
USER_CONNECTIONS_MAX = 200
"""One user's at one process: an HTTP client's pool has a hundred, each event stream (40 at most) is one, and browsers
open six each. Four users stay below the descriptors that a process usually has (1024)."""
RETRY_AFTER = {"Retry-After": "5"}
TOO_MANY = Problem(
    "too_many_requests", "Too many requests without a login come from your network at once.",
    "Try again in a few seconds, with fewer at once.", headers=RETRY_AFTER,
)  # fmt: skip
BUSY = Problem(
    "server_busy", "Too many requests without a login are being answered at this moment.",
    "Try again in a few seconds. Requests with a session or an API token are still answered.", headers=RETRY_AFTER,
)  # fmt: skip


TOO_MANY_OF_USER = Problem(
    "too_many_requests", f"You have {USER_CONNECTIONS_MAX} connections open already: as many as one user may.",
    "Close some: let programs share connections, and keep fewer of them.",
    headers={**RETRY_AFTER, "Connection": "close"},
)  # fmt: skip


@dataclass(eq=False)
class Guest:
    """A stranger's connection."""

    network: str
    turn_away: Callable[[], None]
    busy: bool = False
    """Its request has arrived whole, and is being answered."""


@dataclass
class Guests:
    """All strangers' connections. Owner: the event loop."""

    each_max: int = CONNECTIONS_EACH_MAX
    all_max: int = CONNECTIONS_MAX
    _by_network: dict[str, dict[Guest, None]] = field(default_factory=dict)
    _count: int = 0

    def enter(self, address: str | None, turn_away: Callable[[], None]) -> Guest:
        """Where there are too many, `turn_away` of another one is called: of the same network, or of the network that
        has the most."""
        network = network_of(address)
        own = self._by_network.get(network, {})
        if len(own) >= self.each_max:
            self._turn_one_away(own)
        elif self._count >= self.all_max:
            self._turn_one_away(max(self._by_network.values(), key=len))
        guest = Guest(network, turn_away)
        self._by_network.setdefault(network, {})[guest] = None
        self._count += 1
        return guest

    def leave(self, guest: Guest) -> None:
        """It has authenticated, or is gone. A second time does nothing."""
        own = self._by_network.get(guest.network, {})
        if guest in own:
            del own[guest]
            self._count -= 1
            if not own:
                del self._by_network[guest.network]

    def _turn_one_away(self, guests: dict[Guest, None]) -> None:
        """The oldest one whose request has not arrived yet, or else the oldest."""
        victim = next((guest for guest in guests if not guest.busy), next(iter(guests)))
        self.leave(victim)
        victim.turn_away()


@dataclass
class UsersConnections:
    """The connections of each user: of the one who has authenticated first on it. Owner: the event loop."""

    each_max: int = USER_CONNECTIONS_MAX
    _counts: dict[str, int] = field(default_factory=dict)

    def enter(self, user_id: str) -> bool:
        """False: the user has as many as one may."""
        count = self._counts.get(user_id, 0)
        if count >= self.each_max:
            return False
        self._counts[user_id] = count + 1
        return True

    def leave(self, user_id: str) -> None:
        self._counts[user_id] -= 1
        if not self._counts[user_id]:
            del self._counts[user_id]


class StrangersAllowance:
    """Middleware: counts requests until they have authenticated. Owner: the event loop. Those that show a cookie or a
    token, true or not, have an allowance of their own: who merely asks does not keep them out."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._counts: dict[tuple[str, bool], int] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers, client = Headers(scope=scope), scope.get("client")
        shows = "authorization" in headers or "cookie" in headers
        key = (network_of(client[0] if client else None), shows)
        refusal = self._refusal(key)
        if refusal is not None:
            await respond(Request(scope), refusal)(scope, receive, send)
            return
        self._counts[key] = self._counts.get(key, 0) + 1
        counted = True

        def stop_counting() -> None:
            nonlocal counted
            if counted:
                counted = False
                self._counts[key] -= 1
                if not self._counts[key]:
                    del self._counts[key]

        scope.setdefault("state", {})["stop_counting"] = stop_counting
        try:
            await self._app(scope, receive, send)
        finally:
            stop_counting()

    def _refusal(self, key: tuple[str, bool]) -> Problem | None:
        if self._counts.get(key, 0) >= (REQUESTS_SHOWING_MAX if key[1] else REQUESTS_EACH_MAX):
            return TOO_MANY
        if not key[1] and sum(count for (_, shows), count in self._counts.items() if not shows) >= REQUESTS_MAX:
            return BUSY
        return None


def no_stranger(request: Request, user_id: str) -> None:
    """The request does not count any longer, and the connection that it came by counts as the user's. Raises Problem
    where the user has too many: it stays a stranger's then, until the answer ends it."""
    admit = getattr(request.state, "admit", None)
    if admit is not None and not admit(user_id):
        raise TOO_MANY_OF_USER
    stop_counting = getattr(request.state, "stop_counting", None)
    if stop_counting is not None:
        stop_counting()
