"""Session, users and API tokens over HTTP."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from thalweg.features.identity import login, service, tokens, users
from thalweg.features.identity.schemas import (
    PasswordChange,
    Session,
    SessionCreate,
    Token,
    TokenCreate,
    TokenCreated,
    User,
    UserCreate,
    UserUpdate,
)
from thalweg.kernel.context import (
    SESSION_COOKIE,
    Admin,
    Resources,
    TransactionalRoute,
    Viewer,
    get_resources,
)
from thalweg.kernel.etags import IfMatch
from thalweg.kernel.idempotency import OnceOnly
from thalweg.kernel.models import IdPath, Page
from thalweg.kernel.pagination import LIMIT_DEFAULT, Cursor, Limit

router = APIRouter(route_class=TransactionalRoute, tags=["identity"])


@router.post("/session", status_code=201, operation_id="session_create")
async def create_session(
    body: SessionCreate,
    request: Request,
    response: Response,
    resources: Annotated[Resources, Depends(get_resources)],
) -> Session:
    """Log in. Sets the session's cookie; failed attempts slow down the next ones."""
    address = request.client.host if request.client else None
    caller = login.Caller(address, request.headers.get("user-agent"), request.state.request_id)
    session, cookie = await login.log_in(request.state.session, resources, body, caller)
    response.set_cookie(
        SESSION_COOKIE, cookie, max_age=resources.settings.session_seconds, httponly=True,
        samesite="lax", secure=resources.settings.secure_cookies, path="/",
    )  # fmt: skip
    response.headers["Cache-Control"] = "no-store"
    return session


@router.get("/session", operation_id="session_get")
async def get_session(context: Viewer) -> Session:
    """Who is logged in, and the CSRF token to send with changes."""
    return await service.current_session(context)


@router.delete("/session", status_code=204, operation_id="session_delete")
async def delete_session(context: Viewer, response: Response) -> None:
    """Log out."""
    await service.log_out(context)
    secure = context.resources.settings.secure_cookies
    response.delete_cookie(SESSION_COOKIE, path="/", httponly=True, samesite="lax", secure=secure)


@router.get("/users", operation_id="users_list")
async def list_users(context: Admin, limit: Limit = LIMIT_DEFAULT, cursor: Cursor = None) -> Page[User]:
    return await users.list_users(context, limit, cursor)


@router.post("/users", status_code=201, operation_id="users_create", response_model=User)
async def create_user(body: UserCreate, context: Admin, once: OnceOnly) -> Response:
    return await once.run_prepared(
        context, lambda: users.hashed(context, body), lambda hashed: users.create_user(context, body, hashed)
    )


@router.get("/users/{user_id}", operation_id="users_get")
async def get_user(user_id: IdPath, context: Admin, response: Response) -> User:
    user = await users.get_user(context, user_id)
    response.headers["ETag"] = user.etag
    return user


@router.patch("/users/{user_id}", operation_id="users_update")
async def update_user(
    user_id: IdPath, body: UserUpdate, context: Admin, response: Response, if_match: IfMatch = None
) -> User:
    user = await users.update_user(context, user_id, body, if_match)
    response.headers["ETag"] = user.etag
    return user


@router.delete("/users/{user_id}", status_code=204, operation_id="users_delete")
async def delete_user(user_id: IdPath, context: Admin) -> None:
    """Delete a user with their sessions and tokens. You cannot delete yourself."""
    await users.delete_user(context, user_id)


@router.post("/users/{user_id}:change-password", status_code=204, operation_id="users_change_password")
async def change_password(user_id: IdPath, body: PasswordChange, context: Viewer) -> None:
    """Change a password; ends the user's other sessions. Your own needs the current one, others' need an admin."""
    await users.change_password(context, user_id, body)


@router.get("/tokens", operation_id="tokens_list")
async def list_tokens(context: Viewer, limit: Limit = LIMIT_DEFAULT, cursor: Cursor = None) -> Page[Token]:
    """Your API tokens; an admin sees everybody's."""
    return await tokens.list_tokens(context, limit, cursor)


@router.post("/tokens", status_code=201, operation_id="tokens_create", response_model=TokenCreated)
async def create_token(body: TokenCreate, context: Viewer, once: OnceOnly) -> Response:
    """Make an API token. Its secret is in this answer and nowhere else. One that is made with a token may not outlive
    it, and is revoked with it."""
    return await once.run(context, lambda: tokens.create_token(context, body))


@router.delete("/tokens/{token_id}", status_code=204, operation_id="tokens_revoke")
async def revoke_token(token_id: IdPath, context: Viewer) -> None:
    await tokens.revoke_token(context, token_id)
