"""The context of a request handler: the principal, the transaction and the process's resources."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Annotated, Any, Protocol, cast

import httpx
from fastapi import Depends, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.security import APIKeyCookie, HTTPAuthorizationCredentials, HTTPBearer
from redis.asyncio import Redis
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker

from thalweg.kernel.http.strangers import no_stranger
from thalweg.kernel.http.strict import StrictRoute
from thalweg.kernel.outside import HeldConnection, begin_request, end_request
from thalweg.kernel.principal import Principal, Role
from thalweg.kernel.problems import Problem
from thalweg.kernel.recent import Recent
from thalweg.kernel.secret_box import SecretBox
from thalweg.kernel.settings import Settings
from thalweg.kernel.turns import Turns

SESSION_COOKIE = "thalweg_session"
HALF_LOGIN_COOKIE = "thalweg_half_login"
CSRF_HEADER = "X-CSRF-Token"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


class Authenticator(Protocol):
    """Implemented by the identity feature, wired by `thalweg.api`."""

    async def by_cookie(self, session: AsyncSession, cookie: str, csrf: str | None, safe: bool) -> Principal | None:
        """Raises csrf_token_invalid when a change comes without the session's CSRF token."""

    async def by_token(self, session: AsyncSession, token: str) -> Principal | None: ...

    async def still_valid(self, session: AsyncSession, principal: Principal) -> bool:
        """False once the session or token that a request came with has ended, or its user may not come in any more."""


@dataclass(frozen=True)
class Resources:
    """Made once at start, shared by all requests. Owner: the application's lifespan."""

    settings: Settings
    engine: AsyncEngine
    sessions: async_sessionmaker[AsyncSession]
    redis: Redis
    http: httpx.AsyncClient
    secrets: SecretBox
    authenticator: Authenticator
    login_turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Logins of an address are counted one after another anyway: they queue here, without a connection."""
    recent: Recent = field(default_factory=Recent)
    """Answers of databases, for views that refresh every few seconds."""
    history_turns: Turns = field(default_factory=Turns)
    """Charts of long ranges keep a connection to the store for a while, and there are ten."""


@dataclass(frozen=True)
class Context:
    session: AsyncSession
    principal: Principal
    resources: Resources
    request_id: str
    address: str | None

    async def release(self) -> None:
        """Ends the transaction and gives its connection back, before anything outside is waited for: after what the
        request reads, or after what it writes. Later requests to the session begin another transaction."""
        await release(self.session)


async def release(session: AsyncSession) -> None:
    """Does what Context.release does. It is a mistake inside an idempotent request's work, of which half would stay."""
    if session.info.get("once_only"):
        raise HeldConnection("an idempotent request cannot commit before its end: do this before or after")
    await session.commit()


class TransactionalRoute(StrictRoute):
    """One transaction a request, committed before the response is sent, rolled back by any exception. Code that waits
    for something outside releases it before and begins another one after."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def in_transaction(request: Request) -> Response:
            resources = cast(Resources, request.app.state.resources)
            token = begin_request()
            try:
                async with resources.sessions() as session:
                    request.state.session = session
                    response = await handler(request)
                    await session.commit()
                    return response
            finally:
                end_request(token)

        return in_transaction


def get_session(request: Request) -> AsyncSession:
    return cast(AsyncSession, request.state.session)


def get_resources(request: Request) -> Resources:
    return cast(Resources, request.app.state.resources)


_cookie = APIKeyCookie(name=SESSION_COOKIE, auto_error=False, scheme_name="session")
_bearer = HTTPBearer(auto_error=False, scheme_name="token")


async def current_context(
    request: Request,
    session: Annotated[AsyncSession, Depends(get_session)],
    resources: Annotated[Resources, Depends(get_resources)],
    cookie: Annotated[str | None, Depends(_cookie)],
    bearer: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
) -> Context:
    principal: Principal | None = None
    if bearer is not None:
        principal = await resources.authenticator.by_token(session, bearer.credentials)
    elif cookie is not None:
        principal = await resources.authenticator.by_cookie(
            session, cookie, request.headers.get(CSRF_HEADER), request.method in SAFE_METHODS
        )
    if principal is None:
        raise Problem(
            "authentication_required", "The request carries no valid session or API token.",
            "Log in, or send an API token as Authorization: Bearer TOKEN.",
            headers={"WWW-Authenticate": "Bearer"},
        )  # fmt: skip
    no_stranger(request, principal.user_id)
    return Context(
        session,
        principal,
        resources,
        request.state.request_id,
        request.client.host if request.client else None,
    )


def asks_for_login(dependant: Dependant) -> bool:
    """Whether a route, or what it depends on, needs a session or a token."""
    return dependant.call is current_context or any(asks_for_login(other) for other in dependant.dependencies)


def require(role: Role, *, also_confined: bool = False) -> Callable[..., Coroutine[Any, Any, Context]]:
    async def checked(context: Annotated[Context, Depends(current_context)]) -> Context:
        if context.principal.confined and not also_confined:
            raise Problem(
                "second_factor_demanded", "An admin requires a second factor of you, and you have none yet.",
                "Set one up in the console: it asks for that after the login. By REST: "
                f"POST /api/v1/users/{context.principal.user_id}:prepare-second-factor, then :confirm-second-factor.",
            )  # fmt: skip
        check_role(context.principal, role)
        return context

    return checked


def check_role(principal: Principal, role: Role) -> None:
    """Raises permission_denied. For what only some requests of an operation need."""
    if not principal.role.covers(role):
        raise Problem(
            "permission_denied", f"This needs the role {role}; you are {principal.role}.",
            "Ask an admin for the role, or use an API token that has it.",
        )  # fmt: skip


Scraper = Annotated[Context, Depends(require(Role.METRICS))]
Confined = Annotated[Context, Depends(require(Role.VIEWER, also_confined=True))]
"""A Viewer, or a user who has to set up a second factor first."""
Viewer = Annotated[Context, Depends(require(Role.VIEWER))]
Operator = Annotated[Context, Depends(require(Role.OPERATOR))]
Admin = Annotated[Context, Depends(require(Role.ADMIN))]
